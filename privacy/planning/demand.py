"""What one query asks of a plan, which knows nothing of columns and conditions."""

from dataclasses import dataclass, field

from privacy.adaptive.choice import AdaptiveChoice
from privacy.adaptive.grouping import MOST_CELLS
from privacy.cells.choice import CellChoice
from privacy.cells.space import Space, cells_of
from privacy.counted import counted
from privacy.measure import Measure
from privacy.series import Family, Series
from privacy.strategies.choice import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one query asks of the plan.

    Attributes:
        name: the query's.
        measure: what is added up, on the plain grid; the plan makes it fine where Gaussian noise asks for that.
        cells: in how many cells.
        axes: how they are arranged; empty where none of the axes has an order.
        series: which numbers are published.
        weight: share of the budget, relative to the other queries.
        choice: what is said of the strategy.
        over: what is said of a strategy over the cells, where axes have an order.
        apart: where only the place of a unit is protected, how many cells are near along each axis; else empty.
        adaptive: how levels are published where the data decide when; None where a strategy publishes all windows.
        expected: a public guess of how large a number is, for `relative_error`.
    """

    name: str
    measure: Measure
    cells: int
    series: tuple[Series, ...]
    weight: float = 1.0
    choice: Choice = field(default_factory=Choice)
    expected: float | None = None
    adaptive: AdaptiveChoice | None = None
    axes: Space = ()
    over: CellChoice = field(default_factory=CellChoice)
    apart: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.axes and (cells_of(self.axes) != self.cells or not any(axis.ordered for axis in self.axes)):
            raise ValueError(
                f"query {self.name}: axes are for {counted(self.cells, 'cell')}, one of them with an order at least"
            )
        if self.over.asks and not self.axes:
            raise ValueError(f"query {self.name}: a strategy over cells is for keys whose cells have an order")
        if any(
            [cells is None for cells in box] != [not axis.ordered for axis in self.axes] for box in self.over.listed
        ):
            raise ValueError(f"query {self.name}: listed ranges have cells along each axis with an order")
        if self.apart and (len(self.apart) != len(self.axes) or any(s.family != "net" for s in self.series)):
            raise ValueError(f"query {self.name}: apart is for levels, changes and sliding sums, one for each axis")
        if self.adaptive is None:
            if self.over.name == "kdtree":
                raise ValueError(f"query {self.name}: a kdtree is for samples of adaptive publication")
            return
        if self.apart:
            raise ValueError(f"query {self.name}: adaptive publication hides whether a unit is there, or nothing")
        if self.adaptive.policy == "pegasus" and (self.over.asks or self.cells > MOST_CELLS):
            raise ValueError(f"query {self.name}: pegasus smooths each cell by itself, {MOST_CELLS:,} at most")
        if self.series != (Series(kind="level"),):
            raise ValueError(f"query {self.name}: adaptive publication is of levels alone")
        if len(self.measure.components) > 1:
            raise ValueError(f"query {self.name}: adaptive publication is of counts and sums, not of a ratio")

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of leaf sums that the series need."""
        return tuple(dict.fromkeys(series.family for series in self.series))
