"""Linear map from counts of outputs of a response to unbiased estimates of counts of its inputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.noise.odds import PARTS, Integers

Floats = NDArray[np.float64]
Counts = NDArray[np.int64] | Floats

WORST_CONDITION = 1e6
"""Largest condition number of a table: beyond it outputs hardly distinguish inputs, and estimates would be noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Linear map from counts of outputs to estimates of counts of inputs.

    It is a table, or `same` for an output's own value and `other` for the rest.

    Attributes:
        scores: float64 [inputs, 3]: for a record that has the value, the mean squared score; the least mean of the
            squares among records that have another value; the distance of the highest score from the lowest.
        inverse: float64 [inputs, outputs]; None if two numbers suffice.
        coin: probability of an output for a record that has its value, and for one that has another; None for a table.
    """

    scores: Floats
    same: float = 0.0
    other: float = 0.0
    inverse: Floats | None = None
    coin: tuple[float, float] | None = None

    @staticmethod
    def of_coins(values: int, keep: float, other: float) -> "Channel":
        """Return the map of a response that outputs all other values with equal odds.

        Args:
            values: number of values.
            keep: probability of the true value.
            other: probability of each other value.

        >>> Channel.of_coins(2, 0.75, 0.25).unbiased(np.array([0.75, 0.25])).tolist()
        [1.0, 0.0]
        """
        own, rest = (1 - other) / (keep - other), -other / (keep - other)
        chances = np.array([keep, other])
        of_a_record = (*(chances * own**2 + (1 - chances) * rest**2), own - rest)
        return Channel(scores=np.tile(of_a_record, (values, 1)), same=own, other=rest, coin=(keep, other))

    @staticmethod
    def of_table(odds: Integers) -> "Channel":
        """Return the map of a table of odds, [inputs, outputs], in parts of `privacy.noise.odds.PARTS`.

        Raises:
            ValueError: outputs hardly depend on inputs.
        """
        table = odds / PARTS
        if np.linalg.cond(table) > WORST_CONDITION:
            raise ValueError(
                "outputs hardly depend on inputs, so shares cannot be estimated; leave out the distances, "
                "or take a larger epsilon"
            )
        inverse = np.asarray(np.linalg.inv(table.T), dtype=np.float64)
        of_all = inverse**2 @ table.T
        others = np.where(np.eye(len(table), dtype=bool), np.inf, of_all).min(axis=1)
        return Channel(scores=np.stack([np.diag(of_all), others, np.ptp(inverse, axis=1)], axis=1), inverse=inverse)

    def unbiased(self, counts: Counts, *, axis: int = -1) -> Floats:
        """Return estimates of counts of inputs along one axis, float64 of the shape of `counts`."""
        return _mapped(counts, axis, self.same, self.other, self.inverse)

    def squares(self, counts: Counts, *, axis: int = -1) -> Floats:
        """Return the map with squared coefficients, for sums of squared scores, float64 of the shape of `counts`."""
        inverse = None if self.inverse is None else self.inverse**2
        return _mapped(counts, axis, self.same**2, self.other**2, inverse)


def _mapped(counts: Counts, axis: int, same: float, other: float, inverse: Floats | None) -> Floats:
    table = np.asarray(counts, dtype=np.float64)
    if inverse is not None:
        return np.asarray(np.moveaxis(np.tensordot(inverse, table, axes=(1, axis)), 0, axis), dtype=np.float64)
    return np.asarray((same - other) * table + other * table.sum(axis=axis, keepdims=True), dtype=np.float64)
