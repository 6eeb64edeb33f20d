"""The shape of `cells:` in a query: the purpose of its ordered cells, and which sums over cells get noise."""

from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from pipelines.spec.errors import refuse
from pipelines.spec.fields import FiniteNumber, Section, one_of
from privacy.cells.averages import Workload
from privacy.cells.boxes import Range
from privacy.cells.choice import BRANCHING, HEIGHT, CellChoice
from privacy.cells.table import OFFERS
from privacy.checks import PROPORTION

CellName = Annotated[str, BeforeValidator(one_of(OFFERS))]
WorkloadName = Annotated[Workload | Literal["listed"], BeforeValidator(one_of((*get_args(Workload), "listed")))]


class CellsSection(Section):
    """A strategy over cells; the planner chooses the best value for each key that is left out."""

    strategy: CellName = "auto"
    branching: Annotated[int, BRANCHING] | None = None
    for_: WorkloadName = Field(default="cells", alias="for")
    height: Annotated[int, HEIGHT] | None = None
    splits: Annotated[FiniteNumber, PROPORTION] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.strategy, self.for_) == ("auto", "cells"):
            refuse([((), "states only defaults; add for: ranges, or a strategy, or remove it")])
        return self

    def choice(self, listed: tuple[tuple[Range | None, ...], ...]) -> CellChoice:
        """Return the settings that the section fixes for the planner.

        Args:
            listed: The published ranges, each with its part of each axis; None: the whole axis.
        """
        return CellChoice(
            name=self.strategy,
            branching=self.branching,
            workload=self.for_,
            listed=listed if self.for_ == "listed" else (),
            height=self.height,
            splits=None if self.splits is None else float(self.splits),
        )
