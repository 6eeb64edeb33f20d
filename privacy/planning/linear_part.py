"""Linear part of a release: a strategy publishes linear functions of noisy nodes, for all windows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from privacy.accounting.accounting import paper_epsilon
from privacy.accounting.composition import Measurement
from privacy.answers.in_time import NoiseInTime, noise_in_time
from privacy.answers.of_parts import half_widths_of_totals, spreads_of_numbers
from privacy.answers.sums import over_cells
from privacy.cells.base import Along
from privacy.cells.product import Product
from privacy.columns import Column
from privacy.measure import Measure
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.noise.sampling import LARGEST_SCALE
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.costed import Costed, mean_variances
from privacy.planning.demand import Demand
from privacy.planning.part import Calibrated
from privacy.planning.pricing import measured, total_variance
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_family
from privacy.planning.statement import UNPROVED, unproved
from privacy.problems import RuleError
from privacy.series import Family, Ints, Series
from privacy.strategies.base import Floats, Strategy, of_one_width
from privacy.upward import below


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDraft:
    """Part of a query before its noise is calibrated.

    Attributes:
        query: the query's place among the demands.
        demand: demand of the query.
        costed: the strategy and its sensitivity.
    """

    query: int
    demand: Demand
    costed: Costed

    def measurement(self, weight: float) -> Measurement:
        return measured(self.costed.sensitivity, weight)

    def calibrated(self, noise: Calibrated) -> "LinearPart":
        """Return the part with noise in proportion to each component's largest value; rounded up."""
        costed, components, kind = self.costed, self.demand.measure.components, NOISE[noise.mechanism]
        if noise.scale * max(c.largest for c in components) > LARGEST_SCALE:
            raise ValueError(
                f"query {self.demand.name}: {costed.family} numbers would need noise of more than 2^55 grid steps; "
                "use a larger epsilon, a smaller constraint or narrower bounds"
            )
        stated = None
        if costed.strategy.sparse and of_one_width(costed.strategy):
            one = self.measurement(1.0)
            stated = paper_epsilon([one], [noise.scale], mechanism=noise.mechanism, delta=noise.delta)
        return LinearPart(
            query=self.query,
            family=costed.family,
            leaf=costed.leaf,
            strategy=costed.strategy,
            series=costed.series,
            sensitivity=costed.sensitivity,
            noise=tuple(kind.distribution(math.nextafter(noise.scale * c.largest, math.inf)) for c in components),
            share=noise.share,
            paper_epsilon=stated,
            over=costed.over,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPart:
    """One part of one query, with its noise.

    Attributes:
        query: the query's place among the demands.
        family: the leaf sums that it uses.
        leaf: number of windows in one leaf of the strategy.
        strategy: defines the nodes, and how numbers are computed from them.
        series: published series, in windows.
        sensitivity: sensitivity of all its nodes, in normalised units.
        over: the strategy over cells; None if each cell has its own noise.
        noise: distribution of each component's noise, in grid steps.
        share: share of the budget, in `Plan.share_unit`.
        paper_epsilon: epsilon that the paper's composition states for this noise; None if it states none.
    """

    query: int
    family: Family
    leaf: int
    strategy: Strategy
    series: tuple[Series, ...]
    sensitivity: Sensitivity
    noise: tuple[NoiseDistribution, ...]
    share: float
    paper_epsilon: float | None
    over: Product | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return ()

    @property
    def together(self) -> bool:
        return self.over is not None

    @property
    def delta(self) -> float:
        return 0.0

    @property
    def decides(self) -> bool:
        return False

    def variances(self, series: Series, windows: int) -> Floats:
        """Return the variance of each number in units of one node's, float64 [numbers], averaged over cells."""
        return mean_variances(self.strategy, self.over, series.merged(self.leaf), windows // self.leaf)

    def variance(self, measure: Measure, windows: int) -> tuple[float, int]:
        node = self.noise[0].variance / measure.components[0].largest ** 2
        return total_variance([(self, node)], windows)

    def conditions(self, name: str, mechanism: Mechanism) -> tuple[tuple[str, str], ...]:
        """Return the premise that the data do not react to published numbers, if the claim needs it."""
        if not unproved(mechanism, self.strategy):
            return ()
        return ((UNPROVED, f"query {name} ({self.strategy.variant})"),)

    def measurement(self, weight: float) -> Measurement:
        return measured(self.sensitivity, weight)

    def so_far(self, demand: Demand, promise: Promise, windows: int, weight: float) -> Measurement | None:
        """Return the measurement of the nodes that count so far; for the proof, see privacy.planning.spent."""
        strategy = self.strategy.so_far(windows // self.leaf) if windows else None
        if strategy is None:
            return None
        if strategy == self.strategy:
            return self.measurement(weight)
        unit = Contribution.of(demand, promise, leaf=self.leaf, over=self.over)
        near = of_family(self.family, strategy, unit)
        least = {f.name: min(getattr(near, f.name), getattr(self.sensitivity, f.name)) for f in fields(Sensitivity)}
        return measured(Sensitivity(**least), weight)

    def scale(self, measure: Measure) -> float:
        return min(
            below(Fraction(distribution.scale) / c.largest)
            for distribution, c in zip(self.noise, measure.components, strict=True)
        )

    def movement(self, measure: Measure) -> tuple[tuple[float, float] | None, float]:
        deviation = self.noise[0].variance ** 0.5 / measure.components[0].largest
        return (self.sensitivity.l1, self.sensitivity.l2), deviation

    @property
    def unsummed(self) -> str | None:
        return None

    def sum_errors(
        self, series: Series, query: Floats, wanted: Ints, others: Ints | None, sampled: Sequence[bool]
    ) -> Floats:
        (noise,) = self.noise
        of_cells = over_cells(query, None if self.over is None or self.over.trivial else self.over)
        return spreads_of_numbers(noise, self.strategy, series.merged(self.leaf), of_cells, wanted, others)

    @property
    def along(self) -> Sequence[Along] | None:
        return None if self.over is None or self.over.trivial else self.over.axes

    def noise_in_time(self, series: Series, numbers: int, sampled: Sequence[bool]) -> list[NoiseInTime | None]:
        (noise,) = self.noise
        leaves = _windows(series, numbers) // self.leaf
        return [*noise_in_time(noise, self.strategy, series.merged(self.leaf), leaves)]

    def total_errors(self, series: Series, numbers: int, cells: int, sampled: Sequence[bool]) -> Floats | None:
        (noise,) = self.noise
        leaves = _windows(series, numbers) // self.leaf
        return half_widths_of_totals(noise, self.strategy, series.merged(self.leaf), leaves, cells)

    def deviations(self, measure: Measure, series: Series, windows: int) -> Floats:
        """Return the standard deviation of each number; under a strategy over cells, the root mean square of cells."""
        if len(self.noise) > 1:
            raise ValueError("the error of a ratio depends on the data")
        (noise,), grid = self.noise, measure.components[0].grid
        stretch = self.strategy.stretch(self.strategy.nodes(windows // self.leaf))
        if stretch is None:
            deviations: Floats = np.sqrt(self.variances(series, windows) * (noise.variance * grid**2))
            return deviations
        over = 1.0 if self.over is None else self.over.average()
        return np.array([math.sqrt(widened(noise, width).variance * grid**2 * over) for width in stretch.tolist()])

    def describe(self, demand: Demand, unit: str) -> dict[str, Any] | None:
        return None

    def refuse(self, demand: Demand, mechanism: Mechanism, accounting: Accounting) -> None:
        """Refuse a demand or settings of a plan that the part does not fit (`Part.refuse`).

        Raises:
            ValueError: the query is adaptive, or the noise is another.
            RuleError: the number of noises is not the number of components.
        """
        components = demand.measure.components
        if demand.discover and self.family == "net" and not self.delta:
            raise ValueError("parts: expected a part with a threshold for a query whose keys are found")
        if demand.adaptive is not None:
            raise ValueError("parts: expected an adaptively sampled part for a query that is published adaptively")
        if len(self.noise) != len(components):
            raise RuleError(f"expected one for each of {len(components)} components", "noise")
        if any(noise.name != f"discrete_{mechanism}" for noise in self.noise):
            raise ValueError(f"mechanism: {mechanism}, but the part has noise of another mechanism")


def _windows(series: Series, numbers: int) -> int:
    """Return the number of windows up to the end of the last of some numbers."""
    return numbers * series.every + series.width - series.every
