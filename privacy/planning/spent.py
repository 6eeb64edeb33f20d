"""Budget spent so far: the privacy parameters of everything that a release published of its first windows.

Claim. If a release stopped permanently after t windows, its publications would have spent `spent(plan, t)`, for the
same neighbours and in the same setting as the plan's (docs/proofs/strategies.md#adaptive). This is never more than the
plan's budget, and equals it at the horizon.

Proof. Numbers of the first t windows are A x + W z = W (C x + z), privacy.strategies.base, and these rows of A are 0
beyond leaf t. So they do not depend on the later leaves of x. Let these be 0: neighbours then differ by the leaf sums
of a unit that is bounded as before and does not change after t. (If a span is protected, let them bring both to one
state in leaf t + 1 instead, so that they are apart no longer than before.) W uses only the noise of nodes of the same
strategy (`so_far`) with the horizon below, so everything that was published is a function of these noisy nodes:

    t                       trees without noise in advance, and sliding windows: a number uses complete nodes alone, and
                            the nodes of a horizon are those that end by it
    t                       factorisations, also endless ones: C is lower-triangular and Toeplitz, so its first rows are
                            those of a shorter one with the same coefficients
    the end of t's root     trees with noise in advance, whose nodes up to this boundary form a forest

Noise in advance is used before its node is complete: a number may contain the noise of any node under the root that has
begun, so all of these count from its first window on. Under a single root this is the whole part at once.

A part that looks at the data (privacy.adaptive) is charged as a whole from its first window on.

The sensitivity of a subset of the nodes is never larger, so each is capped by the whole part's, which may be bounded
more closely. They are composed as the plan composes, at the plan's delta: all of delta is spent with the first number.
If keys are found, their delta is a part of it (privacy.discovery), and the rest is the delta of the noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privacy.accounting.composition import Measurement, epsilon_spent, is_proved
from privacy.checks import at_least
from privacy.discovery.budget import of_noise
from privacy.noise.kinds import NOISE
from privacy.planning.part import Part
from privacy.planning.plan import Plan
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Proved privacy parameters of everything published so far; zeros if nothing was published.

    Attributes:
        epsilon, delta: parameters of the release.
        shares: share of each query, in `Plan.share_unit`, rounded up. They add up as epsilons do under naive accounting
            of Laplace noise, and as rho does under zCDP of Gaussian noise.
    """

    epsilon: float
    delta: float
    shares: tuple[float, ...]


def spent(plan: Plan, windows: int) -> Spent:
    """Return the proved parameters of the first `windows` windows.

    The result does not decrease with `windows`, except by 1e-11 for a solver's error. Guarantee: everything published
    by then is (epsilon, delta)-differentially private for the plan's neighbours; for the proof see the module.

    Args:
        plan: plan of the whole release.
        windows: number of closed windows, at most the horizon.

    Raises:
        ValueError: `windows` is below 0 or beyond the horizon.

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
        (part, so_far)
        for part in plan.parts
        if (so_far := part.so_far(plan.demands[part.query], plan.promise, windows, plan.share(part))) is not None
    ]
    if not charged:
        return Spent(epsilon=0.0, delta=0.0, shares=(0.0,) * len(plan.demands))
    epsilon = plan.budget.epsilon
    if charged != _all(plan):
        epsilon = min(epsilon, _composed(plan, charged))
    shares = [Fraction(0) for _ in plan.demands]
    for part, so_far in charged:
        shares[part.query] += _share(plan, part, so_far)
    return Spent(epsilon=epsilon, delta=plan.budget.delta, shares=tuple(map(above, shares)))


def whole(plan: Plan) -> Spent:
    """Return the parameters of the whole release; `spent` at the horizon, and never less than `spent`."""
    shares = [sum((Fraction(part.share) for part in plan.of_query(q)), Fraction(0)) for q in range(len(plan.demands))]
    return Spent(epsilon=plan.budget.epsilon, delta=plan.budget.delta, shares=tuple(map(above, shares)))


def proved(plan: Plan) -> float:
    """Return the epsilon, at the plan's delta, that this version proves for the noise and sensitivities of a plan.

    It equals the plan's, unless another version of the program or of its libraries computes differently.
    """
    return _composed(plan, _all(plan))


def covered(plan: Plan, epsilon: float) -> bool:
    """Return whether `proved` is at most `epsilon`; without a solver if possible."""
    return is_proved(*_measured(plan, _all(plan)), **_terms(plan), epsilon=epsilon)


def _all(plan: Plan) -> list[tuple[Part, Measurement]]:
    return [(part, part.measurement(plan.share(part))) for part in plan.parts]


def _composed(plan: Plan, charged: Sequence[tuple[Part, Measurement]]) -> float:
    return epsilon_spent(*_measured(plan, charged), **_terms(plan))


def _measured(plan: Plan, charged: Sequence[tuple[Part, Measurement]]) -> tuple[list[Measurement], list[float]]:
    """Return the measurements of a unit and the scales of their noise, in normalised units."""
    scales = [part.scale(plan.demands[part.query].measure) for part, _ in charged]
    return [measurement for _, measurement in charged], scales


def _terms(plan: Plan) -> dict[str, Any]:
    """Return the terms of composition."""
    steps = min(c.largest for demand in plan.demands for c in demand.measure.components)
    return {
        "mechanism": plan.mechanism,
        "accounting": plan.accounting,
        "delta": of_noise(plan.budget.delta, math.fsum(part.delta for part in plan.parts)),
        "steps": steps,
    }


def _share(plan: Plan, part: Part, so_far: Measurement) -> Fraction:
    """Return the part's share of the whole release, in proportion: the noise is the same."""
    now, whole = (
        Fraction(measurement.charged(plan.mechanism, plan.accounting))
        for measurement in (so_far, part.measurement(plan.share(part)))
    )
    return Fraction(part.share) * (now / whole) ** NOISE[plan.mechanism].power
