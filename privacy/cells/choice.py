"""Settings of strategies over cells in a spec: names, parameters, and the purpose of the cells."""

from dataclasses import dataclass
from typing import Literal

from privacy.cells.averages import Workload
from privacy.cells.boxes import Range
from privacy.checks import PROPORTION, Limits
from privacy.problems import RuleError, placed

BRANCHING, HEIGHT = Limits(2, 1024), Limits(1, 8)
"""Limits of a tree over cells, and of a kdtree, in a spec."""

Purpose = Workload | Literal["listed", "levels"]
"""Purpose of cells: a workload; single cells and the listed ranges, with equal weight; or those of a hierarchy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChoice:
    """Settings of the spec for the strategy over cells; the planner chooses settings that are None.

    Attributes:
        name: key of privacy.cells.table.OFFERS.
        branching: of a tree.
        workload: the queries over the ordered axes that are to be accurate: single cells, all prefixes, or all ranges;
            or single cells and the listed ranges, with equal weight; or all levels of a hierarchy.
        listed: cells of each listed range along each axis, None on an axis without an order.
        marginals: axes that each published marginal keeps, increasing; it adds up over the other axes.
        shares: how much the mean variance of single cells counts, and that of each marginal; empty: the cells count as
            much as all marginals together.
        height: of a kdtree, the number of splits of a region along each axis.
        splits: of a kdtree, the share of a sample's budget for choosing splits.

    Raises:
        RuleError: ranges are listed but not requested, or requested but not listed; or a setting is outside its range.
        ValueError: shares are not one for the cells and one for each marginal, all above 0.
    """

    name: str = "auto"
    branching: int | None = None
    workload: Purpose = "cells"
    listed: tuple[tuple[Range | None, ...], ...] = ()
    marginals: tuple[tuple[int, ...], ...] = ()
    shares: tuple[float, ...] = ()
    height: int | None = None
    splits: float | None = None

    def __post_init__(self) -> None:
        with placed("cells"):
            BRANCHING.check("branching", self.branching)
            HEIGHT.check("height", self.height)
            PROPORTION.check("splits", self.splits)
        if bool(self.listed) != (self.workload == "listed"):
            raise RuleError(
                "for: listed is for ranges that are published; add {ranges: ...} to publish, or use ranges", "cells"
            )
        if self.shares and (len(self.shares) != 1 + len(self.marginals) or min(self.shares) <= 0):
            raise ValueError(f"shares={self.shares}: above 0, for the cells and {len(self.marginals)} marginals")

    @property
    def along(self) -> Workload:
        """Queries along each ordered axis."""
        return "cells" if self.workload == "listed" or self.workload == "levels" else self.workload

    @property
    def purpose(self) -> Purpose:
        """Queries whose mean variance compares strategies: single cells and marginals count as listed sums."""
        return "listed" if self.marginals else self.workload

    @property
    def asks(self) -> bool:
        """Whether the spec requests anything other than separate noise for each cell."""
        return self != CellChoice()
