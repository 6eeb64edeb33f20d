"""The plan of a release: how each query is released, with how much noise and which guarantee."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.accounting import Budget
from privacy.cells.product import Product
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.contribution import Sensitivity
from privacy.planning.demand import Demand
from privacy.planning.planner import mean_variances
from privacy.planning.promise import Promise
from privacy.series import Family, Series
from privacy.strategies.base import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One part of one query, with its noise.

    Attributes:
        query: the query's place among the demands.
        family: the leaf sums that it is made from.
        leaf: windows in one leaf of the strategy.
        strategy: which nodes there are, and how numbers are made from them.
        series: what is published from them, in windows.
        sensitivity: in normalised units.
        over: the strategy over cells; None where each has noise of its own.
        noise: the distribution of each component's noise, in grid steps.
        share: of the budget; `Plan.share_unit` says in what.
        paper_epsilon: what the paper's composition would state for this noise; None where it has none.
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

    def variances(self, series: Series, windows: int) -> NDArray[np.float64]:
        """[numbers]: how often the variance of one node's noise is in each number, in the mean over cells."""
        return mean_variances(self.strategy, self.over, series.merged(self.leaf), windows // self.leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that is fixed before data is read; the guarantee is `statement`.

    Attributes:
        promise: what the guarantee is for: it holds for sums that were bounded by the promise's constraint.
        adaptive: the parts where the data decide which windows are published anew.
        strategies: name of the strategy of each query.
        weights: the share of the budget of each query, 1 in sum.
        claim: the guarantee in words, without what it rests on.
        conditions: what it rests on, a sentence each.
    """

    promise: Promise
    demands: tuple[Demand, ...]
    released: tuple[Released, ...]
    adaptive: tuple[AdaptivePart, ...]
    strategies: tuple[str, ...]
    weights: tuple[float, ...]
    mechanism: Mechanism
    accounting: Accounting
    budget: Budget
    share_unit: str
    claim: str
    conditions: tuple[str, ...]

    def adaptive_of(self, query: int) -> AdaptivePart | None:
        """How a query is published where the data decide when; None if a strategy publishes all windows."""
        return next((part for part in self.adaptive if part.query == query), None)

    @property
    def statement(self) -> str:
        """The guarantee in words, with all that it rests on."""
        return " ".join([self.claim, *self.conditions])

    def of(self, query: int, family: Family) -> tuple[Released, ...]:
        """The parts that are made from these leaf sums."""
        return tuple(r for r in self.released if r.query == query and r.family == family)

    def publishing(self, query: int, series: Series) -> Released:
        """The part from which a series is published."""
        return next(r for r in self.released if r.query == query and series in r.series)


def stddev(plan: Plan, query: int, series: Series, windows: int) -> NDArray[np.float64]:
    """Exact standard deviation of each published number, [numbers], in the measure's units.

    Under a strategy over cells the root mean square over what the cells are for. Only for counts and sums, whose error
    does not depend on the data.
    """
    released = plan.publishing(query, series)
    if len(released.noise) > 1:
        raise ValueError("the error of a ratio depends on the data")
    (noise,), grid = released.noise, plan.demands[query].measure.components[0].grid
    strategy = released.strategy
    deviations: NDArray[np.float64]
    if (stretch := strategy.stretch(strategy.nodes(windows // released.leaf))) is not None:
        over = 1.0 if released.over is None else released.over.average()
        deviations = np.array(
            [math.sqrt(widened(noise, width).variance * grid**2 * over) for width in stretch.tolist()]
        )
    else:
        deviations = np.sqrt(released.variances(series, windows) * (noise.variance * grid**2))
    return deviations
