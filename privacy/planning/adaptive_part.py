"""The part of a release that looks at the data over time: one query's levels, published anew or repeated.

Its claim holds whatever the data do: privacy.adaptive.scales. It is composed with the other parts as one measurement,
of so much epsilon, or of so much rho where samples have Gaussian noise.
"""

import math
from dataclasses import dataclass

from privacy.accounting.composition import Measurement
from privacy.adaptive.carry import offered
from privacy.adaptive.choice import AdaptiveChoice
from privacy.adaptive.policy import PARTS, Adaptive, Spread
from privacy.adaptive.scales import Scales, scales_for, spent
from privacy.adaptive.sketch import Over, column, rounds, typical_deviation
from privacy.cells.choice import CellChoice
from privacy.cells.fitting import strategies
from privacy.cells.kdtree import KdTree, kdtree_over
from privacy.cells.space import Space
from privacy.constraint import AtOnce, Constraint, Within, parts
from privacy.counted import counted
from privacy.measure import Measure
from privacy.noise.kinds import NOISE, Mechanism
from privacy.planning.promise import Promise
from privacy.strategies.choice import MOST_WEIGHTS
from privacy.strategies.window_budgets import WHOLE, best_shares
from privacy.upward import above, below


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptivePart:
    """How the levels of one query are published. All of it is public.

    Attributes:
        query: the query's place among the demands.
        share: its epsilon or rho, rounded up.
        over: what samples are made with; None: each cell has noise of its own.

    Raises:
        ValueError: the noise is for samples that are made otherwise, and so may be too small.
    """

    query: int
    adaptive: Adaptive
    scales: Scales
    share: float
    over: Over | None = None

    def __post_init__(self) -> None:
        if (self.scales.column, self.scales.rounds) != (column(self.over, self.scales.noise), rounds(self.over)):
            raise ValueError("scales: the noise is for samples with other sums over cells")

    @property
    def grouped(self) -> bool:
        """Whether every window is sampled, and cells are smoothed over groups of windows."""
        return self.adaptive.policy == "pegasus"

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell in the first window, which is sampled whatever the data, in grid steps.

        With sums over cells the root mean square over what the cells are for; with a kd-tree over its last regions,
        were they split evenly, and of their noise alone.
        """
        return math.sqrt(self.scales.sample(offered(self.adaptive, None)).variance) * typical_deviation(self.over)


def over_of(choice: CellChoice, space: Space, noise: Mechanism = "laplace") -> Over | None:
    """What samples of a query are made with: the cheapest for what its cells are for, where the spec leaves it open.

    A sample is a release by itself: all that counts is the norm of a column.

    Raises:
        ValueError: a choice that cannot be had.

    >>> from privacy.cells.space import Axis
    >>> over = over_of(CellChoice(workload="ranges"), (Axis(cells=256, ordered=True),))
    >>> alone, together = (258 / 3) ** 0.5, typical_deviation(over) * column(over, "laplace")
    >>> round(alone, 1), round(together, 1)
    (9.3, 6.3)
    """
    if not choice.asks:
        return None
    if choice.name == "kdtree":
        return kdtree_over(space, height=choice.height, share=choice.splits)
    best, *_ = strategies(space, choice, power=NOISE[noise].power, changes=1, blocks=True)
    return None if best.trivial else best


def decisions_over(over: Over | None, cells: int) -> int:
    """Over how many numbers distances are added up."""
    return over.regions if isinstance(over, KdTree) else cells


def adaptive_of(
    choice: AdaptiveChoice, promise: Promise, *, cells: int, measure: Measure, noise: Mechanism = "laplace"
) -> Adaptive:
    """The policy for a release.

    Args:
        promise: of the release.
        cells: over how many numbers distances are added up.
        measure: with one component, whose grid the noise is on.
        noise: of the samples.

    Raises:
        ValueError: everything is protected and the release has no end, or a parameter does not fit.
    """
    span = promise.boundaries
    if span is None and promise.windows is None:
        raise ValueError("adaptive publication needs an end of the schedule, or a span that is protected")
    whole = promise.windows if span is None else None
    # Levels at the ends of windows: those of the release, and not that at its start.
    return choice.settled(
        windows=whole,
        span=span,
        cells=cells,
        grid=measure.components[0].grid,
        noise=noise,
        spread=spread_of(choice, windows=whole, span=span, noise=noise) if choice.weights else None,
    )


def spread_of(choice: AdaptiveChoice, *, windows: int | None, span: int | None, noise: Mechanism) -> Spread:
    """The best budgets for the samples of a rhythm with weights: known before, and kept in the plan.

    In any `span` windows there are at most ceil(span / interval) samples, in a row.

    Raises:
        ValueError: more weights than samples, or weights that no budget is spread by.

    >>> weekly = AdaptiveChoice(policy="fixed", interval=7, weights=(1.0, 8.0))
    >>> units = spread_of(weekly, windows=None, span=14, noise="laplace").units
    >>> round(units[1] / units[0], 3)  # 8^(2/3)
    4.0
    """
    interval, weights = choice.interval or 1, choice.weights
    among = -(-(windows or span or 1) // interval)
    repeated = windows is None or among > MOST_WEIGHTS
    if windows is not None and len(weights) > among:
        raise ValueError(
            f"weights: {len(weights):,} for {counted(among, 'sample')}; give one for each, or fewer to be repeated"
        )
    if not repeated:
        weights = (weights * -(-among // len(weights)))[:among]
    power = NOISE[noise].power
    found = best_shares(weights, among, repeated=repeated, power=power)
    # What a share of the width costs is a power of it.
    units = tuple(part**power // WHOLE ** (power - 1) for part in found.parts)
    if min(units) < 1:
        raise ValueError(f"weights: {among} samples are too many to share one budget; use a longer interval")
    return Spread(weights=weights, units=units, least=found.least)


def above_least(spread: Spread, noise: Mechanism) -> float:
    """By what share the weighted squared error is above the least that any budgets have, at most."""
    power = 2 / NOISE[noise].power
    error = math.fsum(a**2 * (PARTS / u) ** power for a, u in zip(spread.weights, spread.units, strict=True))
    return max(error / spread.least - 1, 0.0)


def one_measurement(weight: float) -> Measurement:
    """A part that costs one epsilon at a scale of 1, or half a rho."""
    return Measurement(l1=1.0, l2=1.0, nodes=1, node_l1=1.0, node_l2=1.0, coordinates=1, weight=weight)


def calibrated(
    query: int, adaptive: Adaptive, *, scale: float, sensitivity: int, noise: Mechanism, over: Over | None = None
) -> AdaptivePart:
    """The part whose epsilon is 1 / scale, or whose rho is 1 / (2 scale^2).

    Args:
        sensitivity: of all cells at any one time, in grid steps.
    """
    whole, splits, share = column(over, noise), rounds(over), over.share if isinstance(over, KdTree) else 0.0
    scales = scales_for(
        adaptive,
        noise=noise,
        budget=NOISE[noise].budget_at(scale),
        sensitivity=sensitivity,
        column=whole,
        rounds=splits,
        share=share,
    )
    return AdaptivePart(query=query, adaptive=adaptive, scales=scales, share=above(spent(adaptive, scales)), over=over)


def scale_of(part: AdaptivePart) -> float:
    """What `one_measurement` would have as a scale, for what the part costs; rounded down."""
    cost = spent(part.adaptive, part.scales)
    return below(1 / NOISE[part.scales.noise].ratio_of(cost))


def at_once(measure: Measure, promise: Promise) -> int:
    """How far neighbours' histograms are apart in L1 at any one time: what one unit is then at most, in grid steps.

    Args:
        measure: with one component.

    Raises:
        ValueError: that is not so, since both of two neighbours may be there, or differ beyond what is protected.

    >>> from privacy.constraint import AtMost
    >>> promise = Promise(constraint=AtMost(4, entries=2), window=1, windows=9, owner=True)
    >>> at_once(Measure(kind="count"), promise)
    2
    """
    if promise.span is not None and promise.span.near:
        raise ValueError("adaptive publication protects whether a unit is there, not where; use another strategy")
    if promise.span is not None and promise.counts_changes:  # what is held back goes on beyond the span
        raise ValueError("adaptive publication needs no bound of changes in a span; remove at_most")
    (component,) = measure.components
    return component.largest * (_entries(promise.constraint) if promise.owner else 1)


def _entries(constraint: Constraint) -> int:
    """Of an owner, at once."""
    if isinstance(constraint, AtOnce):
        return constraint.entries
    most = 0
    for part in parts(constraint):
        if isinstance(part, Within):
            raise ValueError("a time span does not bound an owner's entries; use at_most")
        most = max(most, part.changes if part.entries is None else min(part.changes, part.entries))
    return most
