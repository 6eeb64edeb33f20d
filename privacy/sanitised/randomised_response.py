"""Optimal randomised response: the true value, or any other value, with exact odds.

Source: Holohan, Leith, Mason, "Differential Privacy in Metric Spaces" (Information Sciences 305, 2015), example 6;
without a delta, Kairouz, Oh, Viswanath, "Extremal Mechanisms for Local Differential Privacy" (JMLR 17, 2016).
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacy.checks import at_least
from privacy.noise.odds import PARTS, Integers, uniform
from privacy.sanitised.channel import Channel
from privacy.sanitised.finite import FiniteMechanism
from privacy.sanitised.lower_bounds import Distances
from privacy.upward import exp_below, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedResponse:
    """Values 0, ..., `values` - 1: one stays with odds `keep`, and becomes each of the others with odds `other`.

    Neighbours: one record with any two of the values. Guarantee: (epsilon, `delta_at(epsilon)`)-differential privacy.

    Attributes:
        values: number of values, at least 2.
        other: odds of each other value, in parts of `privacy.noise.odds.PARTS`.

    Raises:
        ValueError: another value is likelier than the true one.
    """

    values: int
    other: int

    def __post_init__(self) -> None:
        at_least("values", self.values, 2)
        at_least("other", self.other, 0)
        if self.other >= self.keep:
            raise ValueError(f"other={self.other} of {PARTS} is too much for {self.values} values: it hides all")

    @staticmethod
    def optimal(values: int, *, epsilon: float, delta: float = 0.0) -> "RandomisedResponse":
        """Return the response with the likeliest truth: others have (1 - delta) / (values - 1 + e^epsilon) each.

        The odds are rounded up to the next part, so that the guarantee is exact.

        Args:
            values: number of values.
            epsilon, delta: privacy parameters.

        Raises:
            ValueError: epsilon is so small that nothing of the truth would remain.

        >>> two = RandomisedResponse.optimal(2, epsilon=1.0)
        >>> round(two.keep / two.other, 9), two.delta_at(1.0)
        (2.718281828, Fraction(0, 1))
        """
        at_least("values", values, 2)
        least = PARTS * (1 - Fraction(delta)) / (values - 1 + exp_below(epsilon))
        return RandomisedResponse(values=values, other=-(-least.numerator // least.denominator))

    @property
    def keep(self) -> int:
        """Odds of the true value."""
        return int(PARTS - (self.values - 1) * self.other)

    def delta_at(self, epsilon: float) -> Fraction:
        """Return max(0, keep - e^epsilon other): of two inputs only the first's own value is likelier under it."""
        return max(Fraction(0), self.keep - exp_below(epsilon) * self.other) / PARTS

    def covers(self, epsilon: float, delta: float) -> bool:
        """Return whether a response costs at most this epsilon and delta."""
        return self.delta_at(epsilon) <= Fraction(delta)

    @property
    def error(self) -> float:
        """Probability of another value than the true one: the error if all distances are 1."""
        return (self.values - 1) * self.other / PARTS

    def error_over(self, distances: Distances | None) -> float:
        """Return the largest expected distance between input and output, which are 1 apart whenever they differ."""
        return self.error

    def text(self, *, near: bool) -> str:
        """Return the response in words. Args: as `MetricResponse.text`."""
        return f"randomised response, the truth except with probability {shown(self.error, 4)}"

    def channel(self) -> Channel:
        """Return the map from counts of outputs to estimates."""
        return Channel.of_coins(self.values, *self.chances)

    @property
    def chances(self) -> tuple[float, float]:
        """Probability of the true value, and of each other value."""
        return self.keep / PARTS, self.other / PARTS

    def sample(self, codes: Integers) -> Integers:
        """Return the response for each code, int64 [records]. A second call samples again."""
        points = uniform(len(codes))
        others = (points - self.keep) // max(self.other, 1)
        return np.where(points < self.keep, codes, others + (others >= codes))

    def mechanism(self) -> FiniteMechanism:
        """Return the response as a table, for few values."""
        keep, other = Fraction(self.keep, PARTS), Fraction(self.other, PARTS)
        return FiniteMechanism(
            tuple(tuple(keep if i == j else other for j in range(self.values)) for i in range(self.values))
        )
