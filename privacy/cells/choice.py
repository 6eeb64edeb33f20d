"""What a spec can say of strategies over cells: their names and settings, and what the cells are for."""

from dataclasses import dataclass
from typing import Literal, get_args

from privacy.cells.averages import Workload
from privacy.cells.boxes import Range

Purpose = Workload | Literal["listed"]
"""What cells are for: a workload, or each cell and the ranges that are listed, alike."""

PURPOSES: tuple[Purpose, ...] = ("cells", "prefixes", "ranges", "listed")
CellName = Literal["auto", "each", "prefix", "tree", "optimised", "quadtree", "kdtree"]

CELL_NAMES: tuple[CellName, ...] = get_args(CellName)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChoice:
    """What the spec says of the strategy over cells; None is left to the planner.

    Attributes:
        branching: of a tree.
        workload: which queries over the ordered axes are to be near: each cell, all prefixes, or all ranges; or each
            cell, and the listed ranges, alike.
        listed: of each of these ranges its cells along each axis, None on one without an order.
        height: of a kdtree, how often a region is split along each axis.
        splits: of a kdtree, the share of a sample's budget that choosing splits gets.

    Raises:
        ValueError: ranges are listed and not asked for, or the other way round.
    """

    name: CellName = "auto"
    branching: int | None = None
    workload: Purpose = "cells"
    listed: tuple[tuple[Range | None, ...], ...] = ()
    height: int | None = None
    splits: float | None = None

    def __post_init__(self) -> None:
        if bool(self.listed) != (self.workload == "listed"):
            raise ValueError("listed: ranges are given where the workload is `listed`, and only there")

    @property
    def asks(self) -> bool:
        """Whether anything but noise of its own for each cell is asked for."""
        return self != CellChoice()
