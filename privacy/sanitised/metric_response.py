"""Responses in a finite metric space: nearer values are likelier, and the worst expected distance is small.

With probability delta the true value is the output, otherwise the choice of a pure mechanism: one in whose table no two
odds of a column differ by more than the factor e^epsilon. The one with the least worst error is found by a linear
programme (up to `MOST_SOLVED` values); it is compared with odds that fall exponentially with the distance, and with
randomised response. The best is rounded to exact odds, which are checked, so the guarantee does not depend on a solver.

Source of the exponential odds: McSherry, Talwar, "Mechanism Design via Differential Privacy" (FOCS 2007), with the rate
that the check allows instead of the theorem's. The mixture with the truth is optimal for the discrete metric: Holohan,
Leith, Mason, "Differential Privacy in Metric Spaces" (Information Sciences 305, 2015), example 6 and theorem 7. For
other metrics and a delta above 0 another table may have a slightly smaller error (docs/proofs/sanitised.md).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from privacy.bisection import last_holding
from privacy.noise.odds import PARTS, Integers, choose
from privacy.sanitised.channel import Channel, Floats
from privacy.sanitised.finite import Exact, FiniteMechanism
from privacy.sanitised.lower_bounds import Distances
from privacy.upward import above, exp_below, shown

MOST_SOLVED = 60
"""Largest number of values for which the linear programme is solved, in about half a second."""

MOST_COMPARED = 100
"""Largest number of values of which all pairs are compared, each by all outputs, in about a second."""

MOST_VALUES = 1000
"""Largest number of values, whose table easily fits into memory."""


@dataclass(frozen=True, kw_only=True)
class MetricResponse:
    """Response given by odds of each output, by input: [values][values], in parts of `privacy.noise.odds.PARTS`.

    Neighbours: one record with any two of the values. Guarantee: (epsilon, delta)-differential privacy, which is
    checked here: without `truth` on the diagonal, the largest of a column is at most e^epsilon times the least; or else
    over all pairs.

    Attributes:
        truth: part of the odds on the diagonal that outputs the truth by delta.

    Raises:
        ValueError: the odds do not add up, or do not have the guarantee.
    """

    epsilon: float
    delta: float
    truth: int
    odds: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if {len(row) for row in self.odds} != {len(self.odds)} or {sum(row) for row in self.odds} != {PARTS}:
            raise ValueError(f"odds are a square table, each row of which adds up to {PARTS}")
        if not 0 <= self.truth <= Fraction(self.delta) * PARTS:
            raise ValueError(f"{self.truth} of {PARTS} parts are more than delta={self.delta}")
        if _is_pure(self.table - self.truth * np.eye(len(self.odds), dtype=np.int64), self.epsilon):
            return
        if len(self.odds) > MOST_COMPARED or self.mechanism().least_delta(self.epsilon).delta > Fraction(self.delta):
            raise ValueError(f"the odds do not have epsilon={self.epsilon}, delta={self.delta}")

    def covers(self, epsilon: float, delta: float) -> bool:
        """Return whether a response costs at most this epsilon and delta."""
        return self.epsilon <= epsilon and self.delta <= delta

    @staticmethod
    def own(rows: Sequence[Sequence[Exact]], *, epsilon: float, delta: float = 0.0) -> "MetricResponse":
        """Return the response of a given table, in parts of 2^62; rounding errors go to the largest entry of each row.

        Args:
            rows: probabilities, [values][values].
            epsilon, delta: privacy parameters that the table must have.

        Raises:
            ValueError: the table is not a square table of probabilities, or costs more.
        """
        mechanism = FiniteMechanism.of(rows)
        if len(rows) != len(mechanism.rows[0]):
            raise ValueError(
                f"{len(rows)} values go in and {len(mechanism.rows[0])} come out; a value for each is needed"
            )
        if len(rows) > MOST_COMPARED:
            raise ValueError(f"{len(rows)} values are more than {MOST_COMPARED}, of which all pairs can be compared")
        least = mechanism.least_delta(epsilon)
        if least.delta > Fraction(delta):
            one, other = least.pair
            raise ValueError(
                f"rows {one} and {other} differ by more than epsilon={epsilon}, delta={delta} allow: with this epsilon "
                f"the least delta is {shown(above(least.delta))}, with this delta the least epsilon is "
                f"{shown(mechanism.least_epsilon(delta), 16)}"
            )
        odds = [[int(cell * PARTS) for cell in row] for row in mechanism.rows]
        for row in odds:
            row[row.index(max(row))] += PARTS - sum(row)
        return MetricResponse(epsilon=epsilon, delta=delta, truth=0, odds=tuple(map(tuple, odds)))

    @property
    def values(self) -> int:
        return len(self.odds)

    @cached_property
    def table(self) -> Integers:
        return np.array(self.odds, dtype=np.int64)

    def error_over(self, distances: Distances | None) -> float:
        """Return the largest expected distance between input and output.

        Args:
            distances: distances of values, [values, values]; None if all are 1 apart.
        """
        apart = 1 - np.eye(self.values) if distances is None else np.asarray(distances)
        return float((self.table / PARTS * apart).sum(axis=1).max())

    def text(self, *, near: bool) -> str:
        """Return the response in words.

        Args:
            near: whether distances of values are given.
        """
        return "a table of odds, nearer values likelier" if near else "the table of the spec"

    def channel(self) -> Channel:
        """Return the map from counts of outputs to estimates.

        Raises:
            ValueError: outputs hardly depend on inputs.
        """
        return Channel.of_table(self.table)

    def sample(self, codes: Integers) -> Integers:
        """Return the response for each code, int64 [records]. A second call samples again."""
        return choose(self.table, codes)

    def mechanism(self) -> FiniteMechanism:
        return FiniteMechanism(tuple(tuple(Fraction(cell, PARTS) for cell in row) for row in self.odds))


def refuse_no_metric(distances: Floats) -> None:
    """Refuse distances, float64 [values, values], that are not a metric.

    Raises:
        ValueError: not square, not symmetric, not zero exactly on the diagonal, or against the triangle inequality.
    """
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or len(distances) < 2:
        raise ValueError("distances are a square table, a row for each of at least two values")
    if not np.isfinite(distances).all() or (distances != distances.T).any():
        raise ValueError("distances are finite, and the same from either side")
    apart = ~np.eye(len(distances), dtype=bool)
    if np.diag(distances).any() or (distances[apart] <= 0).any():
        raise ValueError("the distance of a value from itself is 0, and from others above 0")
    for middle in range(len(distances)):
        around = distances[:, middle, None] + distances[None, middle, :]
        wrong = np.argwhere(distances > around * (1 + 1e-12))
        if len(wrong):
            one, other = (int(place) for place in wrong[0])
            raise ValueError(
                f"values {one} and {other} are further apart than by way of value {middle}: this is not a metric"
            )


def best_response(distances: Floats, *, epsilon: float, delta: float = 0.0) -> MetricResponse:
    """Return the response with the least worst error of the known ones; without a delta, up to `MOST_SOLVED`, of all.

    Args:
        distances: float64 [values, values], a metric.
        epsilon, delta: privacy parameters.

    Raises:
        ValueError: not a metric, or too many values.

    >>> line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> round(best_response(line, epsilon=1.0).error_over(line), 4)
    0.605
    """
    refuse_no_metric(distances)
    if len(distances) > MOST_VALUES:
        raise ValueError(f"{len(distances)} values with distances are more than {MOST_VALUES}; take fewer")
    found = [_rounded(pure, epsilon, delta) for pure in _candidates(distances, epsilon)]
    return min(found, key=lambda response: response.error_over(distances))


def _candidates(distances: Floats, epsilon: float) -> Iterator[Floats]:
    values = len(distances)
    yield _flattened(np.where(np.eye(values, dtype=bool), math.exp(min(epsilon, 60.0)), 1.0))
    yield _exponential(distances, epsilon)
    if values <= MOST_SOLVED:
        solved = _solved(distances.tobytes(), values, epsilon)
        if solved is not None:
            yield solved


def _flattened(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def _exponential(distances: Floats, epsilon: float) -> Floats:
    """Return odds proportional to exp(-rate distance), with the largest rate that epsilon allows."""

    def loss(rate: float) -> float:
        odds = _flattened(np.exp(-rate * distances))
        return float(np.log(odds.max(axis=0) / odds.min(axis=0)).max())

    highest = 50.0 / float(distances.max())
    rate = last_holding(lambda rate: loss(rate) <= epsilon * (1 - 1e-9), 0.0, highest, near=lambda *_: False, steps=60)
    return _flattened(np.exp(-rate * distances))


@lru_cache(maxsize=64)
def _solved(distances: bytes, values: int, epsilon: float) -> Floats | None:
    """Return the table with the least worst error; variables are its cells, the least of each column, and the error.

    Among tables with the same worst error it chooses one with a small mean error. None if the solver fails.
    """
    from scipy.optimize import linprog  # slow to import
    from scipy.sparse import coo_array, eye_array, hstack, kron, vstack

    far = np.frombuffer(distances).reshape(values, values)
    cells, columns = values * values, eye_array(values)
    least = kron(np.ones((values, 1)), columns)  # the column of each cell
    none = coo_array((cells, 1))
    rows = kron(columns, np.ones((1, values)))
    of_rows = kron(columns, np.ones((1, values))).multiply(far.reshape(1, -1))
    over = hstack([-eye_array(cells), least, none])
    under = hstack([eye_array(cells), -math.exp(epsilon) * least, none])
    errors = hstack([of_rows, coo_array((values, values)), -np.ones((values, 1))])
    found = linprog(
        np.concatenate([far.ravel() * 1e-3 / cells, np.zeros(values), [1.0]]),
        A_ub=vstack([over, under, errors]).tocsr(),
        b_ub=np.zeros(2 * cells + values),
        A_eq=hstack([rows, coo_array((values, values + 1))]).tocsr(),
        b_eq=np.ones(values),
        method="highs",
    )
    return _flattened(np.maximum(found.x[:cells], 0.0).reshape(values, values)) if found.status == 0 else None


def _rounded(pure: Floats, epsilon: float, delta: float) -> MetricResponse:
    """Return exact odds near these floats, mixed with as little of uniform odds as the check requires."""
    values = len(pure)
    truth = math.floor(Fraction(delta) * PARTS)
    for uniform in (0.0, *(10.0**-power for power in range(12, -1, -1))):
        odds = np.floor(((1 - uniform) * pure + uniform / values) * float(PARTS - truth)).astype(np.int64)
        rest = PARTS - truth - odds.sum(axis=1)
        odds[np.arange(values), odds.argmax(axis=1)] += rest
        if odds.min() > 0 and _is_pure(odds, epsilon):
            exact = odds + truth * np.eye(values, dtype=np.int64)
            return MetricResponse(
                epsilon=epsilon, delta=delta, truth=truth, odds=tuple(tuple(row) for row in exact.tolist())
            )
    raise ValueError(f"epsilon={epsilon} is too small for {values} values: all of them would be equally likely")


def _is_pure(odds: Integers, epsilon: float) -> bool:
    """Return whether in each column the largest is at most e^epsilon times the least; in integers."""
    factor = exp_below(epsilon)
    most, least = odds.max(axis=0).tolist(), odds.min(axis=0).tolist()
    return min(least) >= 0 and all(
        a * factor.denominator <= factor.numerator * b for a, b in zip(most, least, strict=True)
    )
