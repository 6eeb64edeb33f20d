"""What a spec can say of strategies over cells: their names and settings, and what the cells are for."""

from dataclasses import dataclass
from typing import Literal, get_args

from privacy.cells.averages import WORKLOADS, Workload
from privacy.exact import Json, Members

CellName = Literal["auto", "each", "prefix", "tree", "optimised"]

CELL_NAMES: tuple[CellName, ...] = get_args(CellName)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChoice:
    """What the spec says of the strategy over cells; None is left to the planner.

    Attributes:
        branching: of a tree.
        workload: which queries over the ordered axes are to be near: each cell, all prefixes, or all ranges.
    """

    name: CellName = "auto"
    branching: int | None = None
    workload: Workload = "cells"

    @property
    def asks(self) -> bool:
        """Whether anything but noise of its own for each cell is asked for."""
        return self != CellChoice()

    def to_json(self) -> Json:
        """As a document."""
        return {"name": self.name, "branching": self.branching, "workload": self.workload}

    @staticmethod
    def from_json(members: Members) -> "CellChoice":
        """The choice of a document."""
        choice = CellChoice(
            name=members.word("name", CELL_NAMES),
            branching=members.optional_count("branching"),
            workload=members.word("workload", WORKLOADS),
        )
        members.end()
        return choice
