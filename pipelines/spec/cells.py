"""The shape of `cells:` in a query: what its ordered cells are for, and by which sums over cells they are published."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from pipelines.spec.errors import refuse
from pipelines.spec.fields import Number, Section
from privacy.cells.boxes import Range
from privacy.cells.choice import CellChoice, CellName, Purpose


class CellsSection(Section):
    """A strategy over cells; the planner takes the best for what is left out."""

    strategy: CellName = "auto"
    branching: Annotated[int, Field(ge=2, le=1024)] | None = None
    for_: Purpose = Field(default="cells", alias="for")
    height: Annotated[int, Field(ge=1, le=8)] | None = None
    splits: Annotated[Number, Field(gt=0, lt=1)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.branching is not None and self.strategy != "tree":
            refuse([(("branching",), "of a tree; add strategy: tree, or remove it")])
        for name in ("height", "splits"):
            if getattr(self, name) is not None and self.strategy != "kdtree":
                refuse([((name,), "of a kdtree; add strategy: kdtree, or remove it")])
        if self.strategy == "kdtree" and self.for_ != "cells":
            refuse([(("for",), "a kdtree is the same for all of them; remove it")])
        if (self.strategy, self.for_) == ("auto", "cells"):
            refuse([((), "says what holds without it; add for: ranges, or a strategy, or remove it")])
        return self

    def choice(self, listed: tuple[tuple[Range | None, ...], ...]) -> CellChoice:
        """What it leaves to the planner.

        Args:
            listed: the ranges that are published, along each axis.
        """
        return CellChoice(
            name=self.strategy,
            branching=self.branching,
            workload=self.for_,
            listed=listed if self.for_ == "listed" else (),
            height=self.height,
            splits=None if self.splits is None else float(self.splits),
        )
