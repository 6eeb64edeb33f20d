"""Policy `fixed`: a window is sampled at a fixed interval; no decision looks at the data.

Samples may get different shares of the budget, known before the release begins, if they differ in importance.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privacy.adaptive.base import AdaptiveTerms, Period, Publication, Rule
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.step import Sampled
from privacy.checks import at_least
from privacy.columns import Column
from privacy.counted import counted
from privacy.noise.kinds import NOISE, Mechanism
from privacy.problems import RuleError
from privacy.strategies.choice import MOST_WEIGHTS
from privacy.strategies.window_budgets import WHOLE, best_shares

PARTS = 1 << 32
"""Number of units of the budget if samples get different ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Division of a budget over the samples of a fixed interval, which differ in importance.

    Attributes:
        weights: importance of the samples, one after another; the list repeats.
        units: units of each sample, of `PARTS`.
        least: proved lower bound of the sum of squared errors, in squares of weights
            (privacy.strategies.window_budgets).
    """

    weights: tuple[float, ...]
    units: tuple[int, ...]
    least: float

    def __post_init__(self) -> None:
        if not self.units or len(self.units) != len(self.weights):
            raise ValueError("units: expected one for each weight")
        if not 1 <= min(self.units) <= max(self.units) <= PARTS:
            raise ValueError(f"units: expected 1 to {PARTS} for each sample")

    def above_least(self, noise: Mechanism) -> float:
        """Return a bound on the ratio of the weighted squared error to the least possible one, minus 1."""
        power = 2 / NOISE[noise].power
        error = math.fsum(a**2 * (PARTS / u) ** power for a, u in zip(self.weights, self.units, strict=True))
        return max(error / self.least - 1, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Policy `fixed` with the settings of a spec.

    Attributes:
        interval: number of windows from one sample to the next.
        weights: importance of the samples, one after another; empty if all are equal.
    """

    name: ClassVar[str] = "fixed"
    missing: ClassVar[Mapping[str, str]] = {"interval": "from one sample to the next; add interval: 7d"}
    columns: ClassVar[tuple[Column, ...]] = ()

    interval: int
    weights: tuple[float, ...] = ()

    def settled(self, terms: AdaptiveTerms) -> Rule:
        spread = spread_of(self, terms.period, terms.noise) if self.weights else None
        return FixedRule(period=terms.period, interval=self.interval, spread=spread)

    def problems(self, cells: int, *, over: bool) -> Iterator[RuleError]:
        return iter(())

    def sentence(self, length: Callable[[int], str]) -> str:
        every = length(self.interval)
        return f"New numbers are published every {every}; the windows between repeat them." * (self.interval > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRule:
    """`Fixed` for one release.

    Attributes:
        interval: number of windows from one sample to the next.
        spread: division of the budget; None if all samples get the same.
    """

    name: ClassVar[str] = "fixed"
    pure: ClassVar[bool] = False
    decisions: ClassVar[None] = None

    period: Period
    interval: int
    spread: Spread | None = None

    def __post_init__(self) -> None:
        at_least("interval", self.interval, 1)

    @property
    def units(self) -> int:
        return -(-self.period.among // self.interval) if self.spread is None else PARTS

    @property
    def fewest(self) -> int:
        return 1 if self.spread is None else min(self.spread.units)

    @property
    def publication(self) -> Publication:
        return Sampled(self)

    def runs(self, *, fresh: bool) -> tuple[int, int] | None:
        return None

    def wanted(self, carry: AdaptiveCarry | None, left: int) -> int:
        sample, rest = divmod(0 if carry is None else carry.windows, self.interval)
        if self.spread is None or rest:
            return int(rest == 0)
        return self.spread.units[sample % len(self.spread.units)]

    def settings(self, grid: float, noise: Mechanism) -> dict[str, Any]:
        found = {**self.period.settings, "interval": self.interval}
        if self.spread is None:
            return found
        weights = {"weights": list(self.spread.weights), "above_least": self.spread.above_least(noise)}
        return {**found, **weights, "for_ever": self.period.windows is None}


def spread_of(policy: Fixed, period: Period, noise: Mechanism) -> Spread:
    """Return the best division of the budget for weighted samples: known in advance, and stored in the plan.

    In any `span` windows there are at most ceil(span / interval) samples, consecutive ones.

    Args:
        policy: policy with weights.
        period: windows that the budget is for.
        noise: noise of samples.

    Raises:
        RuleError: more weights than samples, or weights by which no budget can be divided.

    >>> weekly = Fixed(interval=7, weights=(1.0, 8.0))
    >>> units = spread_of(weekly, Period(span=14), "laplace").units
    >>> round(units[1] / units[0], 3)  # 8^(2/3)
    4.0
    """
    weights, among = policy.weights, -(-period.among // policy.interval)
    repeated = period.windows is None or among > MOST_WEIGHTS
    if period.windows is not None and len(weights) > among:
        message = f"{len(weights):,} for {counted(among, 'sample')}; give one for each, or fewer to be repeated"
        raise RuleError(message, "weights")
    if not repeated:
        weights = (weights * -(-among // len(weights)))[:among]
    power = NOISE[noise].power
    found = best_shares(weights, among, repeated=repeated, power=power)
    # A share of the width costs a power of it.
    units = tuple(part**power // WHOLE ** (power - 1) for part in found.parts)
    if min(units) < 1:
        raise RuleError(f"{among} samples are too many to share one budget; use a longer interval", "weights")
    return Spread(weights=weights, units=units, least=found.least)
