"""What is spent so far: the privacy parameters of all that a release published of its first windows.

Claim. If a release stopped for ever after t windows, what it published would have spent `spent(plan, t)`, for the same
neighbours and in the same setting as the plan's (docs/proofs/strategies.md#adaptive). It is never more than the plan's,
and the plan's at the horizon.

Proof. Numbers of the first t windows are A x + W z = W (C x + z), privacy.strategies.base, and these rows of A are 0
beyond leaf t. So they stay the same whatever the later leaves of x are. Let these be 0: neighbours then differ by the
leaf sums of a unit that is bounded as before and rests after t. (Where a span is protected, let them bring both to one
state in leaf t + 1 instead, so that they are apart no longer than before.) W uses the noise of no other nodes than
those of the same strategy (`so_far`) with the horizon below, and so all that was published is a function of these noisy
nodes:

    t                       trees without noise in advance, and sliding windows: a number uses complete nodes alone, and
                            the nodes of a horizon are those that end by it
    t                       factorisations, also endless ones: C is lower-triangular and Toeplitz, so its first rows are
                            those of a shorter one with the same coefficients
    the end of t's root     trees with noise in advance, whose nodes up to there are a forest of their own

Noise in advance is used before its node is complete: a number may hold the noise of any node under the root that was
begun, so all of these count from its first window on. Under a single root that is the whole part at once.

A part that looks at the data (privacy.adaptive) is charged as a whole from its first window on.

The sensitivity of a subset of the nodes is never larger, so each is capped by the whole part's, which may be known more
closely. They are composed as the plan composes, at the plan's delta: all of delta is spent with the first number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from privacy.accounting.composition import Measurement, epsilon_spent, is_proved
from privacy.checks import at_least
from privacy.noise.kinds import NOISE
from privacy.planning.adaptive_part import one_measurement, scale_of
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.plan import Plan, Released
from privacy.planning.pricing import measured, share
from privacy.planning.sensitivity import of_family
from privacy.upward import above, below


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What is proved of all that was published so far; zeros if nothing was.

    Attributes:
        epsilon, delta: of the release.
        shares: of each query, in `Plan.share_unit`, rounded up. They add up as epsilons do under naive accounting of
            Laplace noise, and as rho does under zCDP of Gaussian noise.
    """

    epsilon: float
    delta: float
    shares: tuple[float, ...]


def spent(plan: Plan, windows: int) -> Spent:
    """What is proved of the first `windows` windows; with more of them no less, but for 1e-11 of a solver's error.

    Args:
        plan: of the whole release.
        windows: how many have closed, at most the horizon.

    Raises:
        ValueError: windows below 0 or beyond the horizon.

    >>> from privacy.accounting.accounting import Budget
    >>> from privacy.constraint import AtMost
    >>> from privacy.measure import Measure
    >>> from privacy.planning.demand import Demand
    >>> from privacy.planning.make_plan import make_plan
    >>> from privacy.planning.promise import Promise
    >>> from privacy.series import Series
    >>> changes = Demand(name="stays", measure=Measure(kind="count"), cells=1, series=(Series(kind="change"),))
    >>> plan = make_plan([changes], Promise(constraint=AtMost(4), window=1, windows=None, owner=False),
    ...     budget=Budget(epsilon=1), mechanism="laplace", accounting="naive")
    >>> [round(spent(plan, windows).epsilon, 6) for windows in (0, 1, 2, 4, 1000)]
    [0.0, 0.25, 0.5, 1.0, 1.0]
    """
    at_least("windows", windows, 0)
    if plan.promise.windows is not None and windows > plan.promise.windows:
        raise ValueError(f"{windows} windows are more than the horizon of {plan.promise.windows}")
    charged = [
        (released, so_far)
        for released in plan.released
        if (so_far := _sensitivity(plan, released, windows)) is not None
    ]
    if not charged and not (plan.adaptive and windows):
        return Spent(epsilon=0.0, delta=0.0, shares=(0.0,) * len(plan.demands))
    epsilon = plan.budget.epsilon
    if tuple(so_far for _, so_far in charged) != tuple(released.sensitivity for released in plan.released):
        epsilon = min(epsilon, _composed(plan, charged))
    shares = [
        above(
            sum(
                (_share(plan, released, so_far) for released, so_far in charged if released.query == query), Fraction(0)
            )
            + _adaptive(plan, query)
        )
        for query in range(len(plan.demands))
    ]
    return Spent(epsilon=epsilon, delta=plan.budget.delta, shares=tuple(shares))


def whole(plan: Plan) -> Spent:
    """What the whole release spends; `spent` at the horizon, and never less than `spent`."""
    shares = [
        above(
            sum((Fraction(released.share) for released in plan.released if released.query == query), Fraction(0))
            + _adaptive(plan, query)
        )
        for query in range(len(plan.demands))
    ]
    return Spent(epsilon=plan.budget.epsilon, delta=plan.budget.delta, shares=tuple(shares))


def proved(plan: Plan) -> float:
    """The epsilon, at the plan's delta, that is proved here and now for the noise and sensitivities of a plan.

    It is the plan's, but for what another version of the program or of its libraries proves otherwise.
    """
    return _composed(plan, _all(plan))


def covered(plan: Plan, epsilon: float) -> bool:
    """Whether `proved` is at most so much; without a solver where that can be seen."""
    measurements, scales = _measured(plan, _all(plan))
    return is_proved(
        measurements,
        scales,
        mechanism=plan.mechanism,
        accounting=plan.accounting,
        delta=plan.budget.delta,
        steps=_steps(plan),
        epsilon=epsilon,
    )


def _all(plan: Plan) -> list[tuple[Released, Sensitivity]]:
    return [(released, released.sensitivity) for released in plan.released]


def _sensitivity(plan: Plan, released: Released, windows: int) -> Sensitivity | None:
    """Of the nodes of one part that count; None if there are none yet."""
    strategy = released.strategy.so_far(windows // released.leaf) if windows else None
    if strategy is None:
        return None
    if strategy == released.strategy:
        return released.sensitivity
    unit = Contribution.of(plan.demands[released.query], plan.promise, leaf=released.leaf, over=released.over)
    near = of_family(released.family, strategy, unit)
    return Sensitivity(
        **{f.name: min(getattr(near, f.name), getattr(released.sensitivity, f.name)) for f in fields(Sensitivity)}
    )


def _measurement(plan: Plan, released: Released, sensitivity: Sensitivity) -> Measurement:
    """A part as the plan composes it, with the part's own share of the query's weight."""
    return measured(sensitivity, share(released.query, plan.weights, [other.query for other in plan.released]))


def _composed(plan: Plan, charged: Sequence[tuple[Released, Sensitivity]]) -> float:
    measurements, scales = _measured(plan, charged)
    return epsilon_spent(
        measurements,
        scales,
        mechanism=plan.mechanism,
        accounting=plan.accounting,
        delta=plan.budget.delta,
        steps=_steps(plan),
    )


def _measured(plan: Plan, charged: Sequence[tuple[Released, Sensitivity]]) -> tuple[list[Measurement], list[float]]:
    """What a unit can move, and the noise on it, in normalised units: the least over a part's components."""
    scales = []
    for released, _ in charged:
        components = plan.demands[released.query].measure.components
        scales.append(
            min(
                below(Fraction(distribution.scale) / c.largest)
                for distribution, c in zip(released.noise, components, strict=True)
            )
        )
    measurements = [_measurement(plan, released, so_far) for released, so_far in charged]
    measurements += [one_measurement(plan.weights[part.query]) for part in plan.adaptive]
    return measurements, [*scales, *(scale_of(part) for part in plan.adaptive)]


def _adaptive(plan: Plan, query: int) -> Fraction:
    """All of an adaptive part, from its first window on: what decisions did not use is spent all the same."""
    part = plan.adaptive_of(query)
    return Fraction(0) if part is None else Fraction(part.share)


def _steps(plan: Plan) -> int:
    return min(c.largest for demand in plan.demands for c in demand.measure.components)


def _share(plan: Plan, released: Released, so_far: Sensitivity) -> Fraction:
    """The part's share of the whole release, by proportion: the noise is the same."""
    now, whole = (
        Fraction(_measurement(plan, released, sensitivity).charged(plan.mechanism, plan.accounting))
        for sensitivity in (so_far, released.sensitivity)
    )
    return Fraction(released.share) * (now / whole) ** NOISE[plan.mechanism].power
