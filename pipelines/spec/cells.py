"""The shape of `cells:` in a query: what its ordered cells are for, and by which sums over cells they are published."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from pipelines.spec.errors import refuse
from pipelines.spec.fields import Section
from privacy.cells.averages import Workload
from privacy.cells.choice import CellChoice, CellName


class CellsSection(Section):
    """A strategy over cells; the planner takes the best for what is left out."""

    strategy: CellName = "auto"
    branching: Annotated[int, Field(ge=2, le=1024)] | None = None
    for_: Workload = Field(default="cells", alias="for")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.branching is not None and self.strategy != "tree":
            refuse([(("branching",), "of a tree; add strategy: tree, or remove it")])
        if not self.choice().asks:
            refuse([((), "says what holds without it; add for: ranges, or a strategy, or remove it")])
        return self

    def choice(self) -> CellChoice:
        """What it leaves to the planner."""
        return CellChoice(name=self.strategy, branching=self.branching, workload=self.for_)
