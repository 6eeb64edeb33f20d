"""Requirements of one query for a plan, without columns and conditions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from privacy.adaptive.base import Policy
from privacy.cells.boxes import Range
from privacy.cells.choice import CellChoice
from privacy.cells.offer import CellUse
from privacy.cells.space import Space, cells_of
from privacy.cells.table import problems
from privacy.counted import counted
from privacy.measure import Measure
from privacy.planning.query_rules import near_problems
from privacy.problems import RuleError, enforce, placed
from privacy.series import Family, Series
from privacy.strategies.choice import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Requirements of one query for the plan.

    Attributes:
        name: name of the query.
        measure: the summed quantity, on the plain grid; the plan makes it fine if Gaussian noise requires it.
        cells: number of cells.
        axes: arrangement of the cells; empty if no axis has an order or a hierarchy and no marginal is published.
        series: published numbers.
        weight: share of the budget, relative to the other queries.
        choice: settings of the strategy in time.
        over: settings of the strategy over cells, if axes have an order.
        apart: number of near cells along each axis, if only the place of a unit is protected; otherwise empty.
        adaptive: how levels are published if the data decide when; None if a strategy publishes all windows.
        expected: a public guess of the size of a number, for `relative_error`.
        discover: whether nobody lists the cells: they are keys that are found privately, any number of them.
    """

    name: str
    measure: Measure
    cells: int
    series: tuple[Series, ...]
    weight: float = 1.0
    choice: Choice = field(default_factory=Choice)
    expected: float | None = None
    adaptive: Policy | None = None
    axes: Space = ()
    over: CellChoice = field(default_factory=CellChoice)
    discover: bool = False
    apart: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        needed = bool(self.over.marginals) or not all(axis.listed for axis in self.axes)
        if self.axes and (cells_of(self.axes) != self.cells or not needed):
            raise ValueError(
                f"query {self.name}: axes are for {counted(self.cells, 'cell')}, one of them with an order at least"
            )
        listed = [axis.listed for axis in self.axes]
        with placed("queries", self.name):
            if self.over.marginals and listed != sorted(listed, reverse=True):
                raise RuleError("with marginals, keys of listed values come first; list ranges and trees last", "by")
            use = CellUse(
                ordered=sum(axis.ordered for axis in self.axes),
                nested=any(axis.children for axis in self.axes),
                adaptive=self.adaptive is not None,
                apart=bool(self.apart),
            )
            enforce(problems(self.over, use))
        if any(axis >= len(self.axes) for kept in self.over.marginals for axis in (*kept, 0)):
            raise ValueError(f"query {self.name}: marginals keep some of its {len(self.axes)} axes")
        if not all(_fits(box, self.axes) for box in self.over.listed):
            raise ValueError(
                f"query {self.name}: listed ranges have cells along each axis with an order, and all or None of others"
            )
        if self.apart:
            with placed("queries", self.name):
                enforce(near_problems(moves=any(one.family != "net" for one in self.series)))
            if len(self.apart) != len(self.axes):
                raise ValueError(f"query {self.name}: apart has one number for each axis")

    @property
    def families(self) -> tuple[Family, ...]:
        """Families of leaf sums that the series need."""
        return tuple(dict.fromkeys(series.family for series in self.series))


def _fits(box: Sequence[Range | None], axes: Space) -> bool:
    """Return whether a listed sum takes a range of each ordered axis, and one or all cells of each other axis."""
    return len(box) == len(axes) and all(
        side is not None if axis.ordered else side in (None, (0, axis.cells))
        for side, axis in zip(box, axes, strict=True)
    )
