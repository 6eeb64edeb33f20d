"""Options to release a query, before noise is calibrated: strategies with their sensitivities and errors."""

from dataclasses import dataclass

from privacy.cells.product import Product
from privacy.planning.contribution import Sensitivity
from privacy.series import Family, Series
from privacy.strategies.base import Floats, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Costed:
    """A strategy and the series that it publishes.

    Attributes:
        leaf: number of windows in one leaf of the strategy.
        series: published series, in windows.
        sensitivity: sensitivity of all its nodes.
        over: the strategy over cells; None if each cell has its own noise.
    """

    family: Family
    leaf: int
    strategy: Strategy
    series: tuple[Series, ...]
    sensitivity: Sensitivity
    over: Product | None = None

    @property
    def over_name(self) -> str:
        """Name of the strategy over cells; empty if each cell has its own noise."""
        return "" if self.over is None else " ".join(axis.name for axis in self.over.axes)

    def variances(self, series: Series, windows: int) -> Floats:
        """Return the sums of squares of weights (privacy.strategies.base), float64 [numbers], averaged over cells."""
        return mean_variances(self.strategy, self.over, series.merged(self.leaf), windows // self.leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to release all numbers of a query.

    Attributes:
        error: root mean square error over the numbers, for a whole budget of one unit: epsilon (Laplace) or
            (sensitivity / sigma)^2 (Gaussian), in normalised units.
    """

    name: str
    parts: tuple[Costed, ...]
    error: float

    @property
    def kind(self) -> tuple[str, ...]:
        """Properties that all options of one kind share: such options differ only in numbers."""
        return (self.name, *(part.strategy.variant + part.over_name for part in self.parts))

    @property
    def bounded(self) -> bool:
        """Whether the size of the carry between runs stays bounded however long the release runs."""
        return all(part.strategy.bounded for part in self.parts)


def mean_variances(strategy: Strategy, over: Product | None, series: Series, windows: int) -> Floats:
    """Return the variance in time times the mean variance of the cells' queries, float64 [numbers].

    Args:
        strategy: the strategy in time.
        over: the strategy over cells; None if each cell has its own noise.
        series: the published series, in leaves.
        windows: number of closed windows, in leaves.
    """
    variances = strategy.variances(series, windows)
    return variances if over is None else variances * over.average()
