"""Calibration: the least noise that a budget covers.

privacy.accounting.composition defines the measurements of a release, the six ways to compose them and what each proves.
This module searches the least noise whose proved epsilon and delta are within the budget.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from privacy.accounting.composition import (
    ACCOUNTINGS,
    Measurement,
    discretisation_gap,
    epsilon_spent,
    paper_epsilon,
)
from privacy.bisection import last_holding
from privacy.checks import DELTA, at_least, positive
from privacy.counted import counted
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.problems import RuleError, enforce, placed
from privacy.upward import above, shown

__all__ = [
    "ACCOUNTINGS",
    "Budget",
    "Calibration",
    "Measurement",
    "calibrate",
    "epsilon_spent",
    "paper_epsilon",
]

HEADROOM = 1 + 2.0**-48
"""Factor by which scales are widened, so that a caller may round a few bits when it converts them to grid steps."""

TOLERANCE = 2.0**-40
"""Relative accuracy of the search for the least noise."""

COMPOSED: dict[Accounting, str] = {
    "naive": "epsilons added",
    "advanced": "advanced composition (Kairouz, Oh, Viswanath 2015)",
    "zcdp": "zero-concentrated differential privacy",
    "rdp": "Renyi differential privacy",
    "pld": "privacy loss distributions",
    "paper": "every touched node charged alone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """(epsilon, delta), allowed or proved.

    Raises:
        ValueError: epsilon not positive and finite, or delta outside [0, 1).
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        DELTA.check("delta", self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Noise of each measurement and its proved cost.

    Attributes:
        scales: b (Laplace) or sigma (Gaussian) by measurement, in normalised units; times a
            component's largest value, in grid steps, they are that component's scale.
        budget: the proved budget of the whole release, never above the allowed one.
        shares: what each measurement adds to the total, in `unit`.
        unit: "epsilon" (Laplace) or "rho" = (sensitivity / sigma)^2 / 2 (Gaussian).
        sentence: the claim in words, for plans and reports.
    """

    scales: tuple[float, ...]
    budget: Budget
    shares: tuple[float, ...]
    unit: Literal["epsilon", "rho"]
    sentence: str


def calibrate(
    measurements: Sequence[Measurement],
    *,
    budget: Budget,
    mechanism: Mechanism,
    accounting: Accounting,
    steps: float,
    found: float = 0.0,
    protected: str = "the whole release for all mutations of one privacy unit",
) -> Calibration:
    """Return the least noise, in the proportions of the weights, that `budget` provably covers.

    Neighbours: changelogs that differ by all mutations of one privacy unit, or as `protected` states. The sensitivities
    are those of the measurements. Guarantee: (epsilon, delta)-differential privacy of the whole release, as proved by
    privacy.accounting.composition.

    Args:
        measurements: at least one.
        budget: the budget of the whole release.
        mechanism: the distribution of the noise.
        accounting: how the measurements are composed.
        steps: grid steps in one normalised unit, the least over the components; only Gaussian noise depends on it.
        found: delta of the discovery of keys, which is added to that of the noise.
        protected: what the claim protects, in words.

    Raises:
        ValueError: delta is required and missing, or too small for the grid.

    >>> one = Measurement(l1=4, l2=2, nodes=4, node_l1=1, node_l2=1, coordinates=4)
    >>> budget = Budget(epsilon=0.5)
    >>> found = calibrate([one], budget=budget, mechanism="laplace", accounting="naive", steps=1)
    >>> round(found.scales[0], 6)
    8.0
    >>> budget = Budget(epsilon=1, delta=1e-6)
    >>> found = calibrate([one], budget=budget, mechanism="gaussian", accounting="pld", steps=2**24)
    >>> round(found.scales[0], 3)
    8.449
    """
    at_least("number of measurements", len(measurements), 1)
    _check(budget, mechanism, accounting)
    kind = NOISE[mechanism]
    chosen, epsilon = _least(measurements, budget, mechanism, accounting, steps)
    pure = kind.pure and accounting in ("naive", "paper")
    noise = 0.0 if pure else budget.delta
    stated = Budget(epsilon=epsilon, delta=above(Fraction(noise) + Fraction(found)))
    composed = COMPOSED["pld" if not kind.pure and accounting == "advanced" else accounting]
    sentence = (
        f"({shown(stated.epsilon)}, {shown(stated.delta)})-differential privacy of {protected}: discrete "
        f"{mechanism.capitalize()} noise on {counted(len(measurements), 'measurement')}, {composed}"
    )
    if not kind.pure and accounting not in ("zcdp", "rdp"):
        sentence += _of_grid(discretisation_gap(measurements, chosen, steps=steps), replace(stated, delta=noise), steps)
    if found:
        sentence += f"; {shown(found, 2)} of delta covers the discovery of keys"
    charged = [m.charged(mechanism, accounting) for m in measurements]
    ratios = [Fraction(c) / Fraction(s) for c, s in zip(charged, chosen, strict=True)]
    return Calibration(
        scales=chosen,
        budget=stated,
        shares=tuple(above(kind.cost(r)) for r in ratios),
        unit=kind.unit,
        sentence=sentence + ".",
    )


def _least(
    measurements: Sequence[Measurement], budget: Budget, mechanism: Mechanism, accounting: Accounting, steps: float
) -> tuple[tuple[float, ...], float]:
    """Return the least scales that a budget covers, and the epsilon proved for them. Args: as for `calibrate`."""
    weights = math.fsum(m.weight for m in measurements)
    parts = [m.weight / weights for m in measurements]
    powers = parts if NOISE[mechanism].pure else [math.sqrt(part) for part in parts]
    charged = [m.charged(mechanism, accounting) for m in measurements]

    def scales(multiplier: float, headroom: float) -> tuple[float, ...]:
        return tuple(c / (multiplier * p) * headroom for c, p in zip(charged, powers, strict=True))

    def spent(candidate: tuple[float, ...]) -> float:
        return epsilon_spent(
            measurements,
            candidate,
            mechanism=mechanism,
            accounting=accounting,
            delta=budget.delta,
            steps=steps,
        )

    def fits(multiplier: float) -> bool:
        # Both are checked, so that the headroom is real and the returned scales are the checked ones.
        return all(spent(scales(multiplier, room)) <= budget.epsilon for room in (1.0, HEADROOM))

    chosen = scales(_largest(fits, start=budget.epsilon), HEADROOM)
    return chosen, spent(chosen)


def _of_grid(gap: float, stated: Budget, steps: float) -> str:
    """Return the part of a claim about the step from continuous to discrete noise.

    Raises:
        ValueError: the step takes more than a tenth of delta.
    """
    slack = (1 + math.exp(stated.epsilon)) * gap
    if slack > stated.delta / 10:
        raise ValueError(
            f"delta={stated.delta} is too small for noise on a grid of {steps:g} steps; "
            f"use accounting zcdp, which needs no allowance for the grid, or a larger delta"
        )
    return f"; {shown(slack, 2)} of delta covers the step from continuous to discrete noise"


def _check(budget: Budget, mechanism: Mechanism, accounting: Accounting) -> None:
    if mechanism not in NOISE:
        raise ValueError(f"mechanism {mechanism!r} must be laplace or gaussian")
    if accounting not in ACCOUNTINGS:
        raise ValueError(f"accounting {accounting!r} must be one of {', '.join(ACCOUNTINGS)}")
    with placed("privacy"):
        enforce(budget_problems(mechanism, accounting, delta=budget.delta))


def budget_problems(
    mechanism: Mechanism | Literal["auto"], accounting: Accounting | None, *, delta: float
) -> Iterator[RuleError]:
    """Yield the reason why a budget needs a delta; its path starts at `privacy` of a spec.

    Args:
        mechanism: kind of noise; `auto` for any.
        accounting: how measurements are composed; None for the default.
        delta: delta of the budget.
    """
    if delta > 0:
        return
    if mechanism != "auto" and not NOISE[mechanism].pure:
        yield RuleError(f"missing; {mechanism.capitalize()} noise needs one, add delta: 1.0e-9", "delta")
    elif accounting not in (None, "naive", "paper"):
        message = f"missing; accounting {accounting} needs one, add delta: 1.0e-9 or use accounting: naive"
        yield RuleError(message, "delta")


def _largest(fits: Callable[[float], bool], *, start: float) -> float:
    """Return the largest multiplier that fits, to `TOLERANCE`; the returned value itself was checked."""
    good = start
    while not fits(good):
        good /= 2
    bad = 2 * good
    while fits(bad):
        good, bad = bad, 2 * bad
    return last_holding(fits, good, bad, near=lambda good, bad: bad - good <= TOLERANCE * good)
