"""The attributes of a record: what each can be, how it is sanitised, what that costs and how far off it is.

A record's attribute is codes, a whole number for each of its columns: steps of a number's grid, places in a list of
values, 1 and 0 for what is in a set, steps for each point of a curve. Every record has a code, also one without a value
or with one that cannot be: it counts as `missing`, which is public. So nothing shows which those are.

Each attribute has a mechanism of its own. A record of several costs the sum of their epsilons and the sum of their
deltas (docs/proofs/sanitised.md), and whatever is made of sanitised records costs nothing more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privacy.checks import positive
from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.odds import Integers
from privacy.noise.sampling import LARGEST_SCALE
from privacy.sanitised.curve_noise import CurveMetric, CurveNoise, mean_size
from privacy.sanitised.finite import Exact
from privacy.sanitised.grid import MOST_STEPS, Floats, Grid
from privacy.sanitised.grid_noise import delta_of, least_scale
from privacy.sanitised.lower_bounds import finite_bound, line_bound, packing_bound, sets_bound
from privacy.sanitised.metric_response import MetricResponse, best_response
from privacy.sanitised.randomised_response import RandomisedResponse
from privacy.sanitised.subset_response import SubsetResponse
from privacy.upward import shown

LARGEST_EPSILON = 40.0
"""Of one attribute; with more the odds of a lie would be less than a part of 2^62, and nothing would be protected."""

SMALLEST_EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number on a grid, with discrete Laplace noise of `scale` steps.

    Neighbours: one record with any two numbers. Sensitivity: `grid.steps` in L1. Guarantee: (epsilon, delta), checked
    here.
    """

    name: str
    grid: Grid
    missing: int
    epsilon: float
    delta: float
    scale: float

    def __post_init__(self) -> None:
        _check(self)
        if not 0 <= self.missing <= self.grid.steps:
            raise ValueError(f"missing={self.missing} is no step of the grid")
        _refuse_wide(self.name, self.scale)
        if delta_of(self.scale, self.grid.steps, epsilon=self.epsilon) > Fraction(self.delta):
            raise ValueError(f"scale={self.scale} is too small for epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def planned(name: str, grid: Grid, *, missing: float | None, epsilon: float, delta: float = 0.0) -> "Number":
        """
        Args:
            missing: what a number that is not there counts as; the middle of the range for None.
        """
        _positive(name, epsilon)
        return Number(
            name=name,
            grid=grid,
            missing=_missing_step(grid, missing),
            epsilon=epsilon,
            delta=delta,
            scale=least_scale(grid.steps, epsilon=epsilon, delta=delta),
        )

    @property
    def width(self) -> int:
        return 1

    @property
    def error(self) -> float:
        """The expected distance of what comes out from the number within the range."""
        return mean_size(self.noise) * self.grid.step

    @property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    @property
    def lower_bound(self) -> float:
        return line_bound(self.grid.steps, epsilon=self.epsilon, delta=self.delta) * self.grid.step

    @property
    def mechanism(self) -> str:
        return f"discrete Laplace noise of scale {self.scale * self.grid.step:.6g}"

    def sample(self, codes: Integers) -> Integers:
        return codes + self.noise.noise(codes.size).reshape(codes.shape)


@dataclass(frozen=True, kw_only=True)
class Category:
    """One of some values, all as different from each other, or with distances.

    Neighbours: one record with any two of the values. Guarantee: (epsilon, delta), checked here or by the response.

    Attributes:
        distances: [values][values]; None if all are 1 apart.
    """

    name: str
    values: tuple[str, ...]
    missing: int
    epsilon: float
    delta: float
    response: RandomisedResponse | MetricResponse
    distances: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.response.values != len(self.values) or not 0 <= self.missing < len(self.values):
            raise ValueError(f"{self.name}: the response is for other values than these")
        if isinstance(self.response, MetricResponse):
            fits = self.response.epsilon <= self.epsilon and self.response.delta <= self.delta
        else:
            fits = self.response.delta_at(self.epsilon) <= Fraction(self.delta)
        if not fits:
            raise ValueError(f"{self.name}: the response costs more than epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def planned(
        name: str,
        values: Sequence[str],
        *,
        missing: str,
        epsilon: float,
        delta: float = 0.0,
        distances: Floats | None = None,
        probabilities: Sequence[Sequence[Exact]] | None = None,
    ) -> "Category":
        """
        Args:
            missing: which of the values one counts as that is not there, or not among them.
            distances: [values, values], a metric; then the worst expected distance is made small.
            probabilities: a table of somebody's own, [values][values], instead of a response that is chosen here.
        """
        _positive(name, epsilon)
        response: RandomisedResponse | MetricResponse
        if probabilities is not None:
            response = MetricResponse.own(probabilities, epsilon=epsilon, delta=delta)
        elif distances is not None:
            response = best_response(distances, epsilon=epsilon, delta=delta)
        else:
            response = RandomisedResponse.optimal(len(values), epsilon=epsilon, delta=delta)
        return Category(
            name=name,
            values=tuple(values),
            missing=list(values).index(missing),
            epsilon=epsilon,
            delta=delta,
            response=response,
            distances=None if distances is None else tuple(map(tuple, distances.tolist())),
        )

    @property
    def width(self) -> int:
        return 1

    @cached_property
    def error(self) -> float:
        """The largest expected distance of what comes out: the probability of another value, where all are 1 apart."""
        if isinstance(self.response, RandomisedResponse):
            return self.response.error
        return self.response.error(self._distances)

    @cached_property
    def lower_bound(self) -> float:
        if self.distances is None:
            return packing_bound(1.0, len(self.values), epsilon=self.epsilon, delta=self.delta)
        return finite_bound(self._distances, epsilon=self.epsilon, delta=self.delta)

    @property
    def mechanism(self) -> str:
        if isinstance(self.response, RandomisedResponse):
            return f"randomised response, the truth except with probability {shown(self.response.error, 4)}"
        return "a table of odds, nearer values likelier" if self.distances is not None else "the table of the spec"

    def sample(self, codes: Integers) -> Integers:
        return self.response.sample(codes[:, 0])[:, None]

    @property
    def _distances(self) -> Floats:
        return 1 - np.eye(len(self.values)) if self.distances is None else np.array(self.distances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """A set of some of these elements; one that is not there is empty.

    Neighbours: one record with any two sets. Guarantee: (epsilon, delta), checked here.
    """

    name: str
    values: tuple[str, ...]
    epsilon: float
    delta: float
    response: SubsetResponse

    def __post_init__(self) -> None:
        _check(self)
        if self.response.elements != len(self.values):
            raise ValueError(f"{self.name}: the response is for other elements than these")
        if self.response.delta_at(self.epsilon) > Fraction(self.delta):
            raise ValueError(f"{self.name}: the response costs more than epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def planned(
        name: str, values: Sequence[str], *, at_most: int | None, epsilon: float, delta: float = 0.0
    ) -> "Subset":
        """
        Args:
            at_most: how many elements of a set count, the first of the list; None: all.
        """
        _positive(name, epsilon)
        response = SubsetResponse.optimal(len(values), at_most=at_most, epsilon=epsilon, delta=delta)
        return Subset(name=name, values=tuple(values), epsilon=epsilon, delta=delta, response=response)

    @property
    def width(self) -> int:
        return len(self.values)

    @property
    def error(self) -> float:
        """The expected number of elements that are wrongly in or out."""
        return self.response.error

    @property
    def lower_bound(self) -> float:
        at_most = min(self.response.at_most, len(self.values))
        return sets_bound(len(self.values), at_most, epsilon=self.epsilon, delta=self.delta)

    @property
    def mechanism(self) -> str:
        return f"each element turned over with probability {self.error / len(self.values):.4g}"

    def sample(self, codes: Integers) -> Integers:
        return self.response.sample(codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A curve, given at some points, each a number on one grid.

    Neighbours: one record with any two curves. Guarantee: (epsilon, delta), checked by the noise.

    Attributes:
        points: the columns that hold them, in their order.
        metric: in which errors are told.
    """

    name: str
    points: tuple[str, ...]
    grid: Grid
    missing: int
    epsilon: float
    delta: float
    metric: CurveMetric
    noise: CurveNoise

    def __post_init__(self) -> None:
        _check(self)
        _refuse_wide(self.name, self.noise.scale)
        if (self.noise.points, self.noise.steps) != (len(self.points), self.grid.steps):
            raise ValueError(f"{self.name}: the noise is for other curves than these")
        if self.noise.epsilon > self.epsilon or self.noise.delta > self.delta:
            raise ValueError(f"{self.name}: the noise costs more than epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def planned(
        name: str,
        points: Sequence[str],
        grid: Grid,
        *,
        missing: float | None,
        total: float | None,
        metric: CurveMetric,
        epsilon: float,
        delta: float = 0.0,
    ) -> "Curve":
        """
        Args:
            missing: what a point that is not there counts as; the least number for None.
            total: how much all points of a curve may be above the least number, together; a curve with more is scaled
                down.

        Raises:
            ValueError: a total of less than a step, or of so many that sums would not fit.
        """
        _positive(name, epsilon)
        most = None if total is None else math.floor(total / grid.step * (1 + 1e-12))
        if most is not None and most < 1:
            raise ValueError(f"total={total} is less than a step of {grid.step}")
        if (len(points) * grid.steps if most is None else most) > MOST_STEPS:
            raise ValueError("a curve of more than 2^30 steps in total; take a larger step")
        return Curve(
            name=name,
            points=tuple(points),
            grid=grid,
            missing=_missing_step(grid, grid.low if missing is None else missing),
            epsilon=epsilon,
            delta=delta,
            metric=metric,
            noise=CurveNoise.optimal(len(points), grid.steps, total=most, epsilon=epsilon, delta=delta),
        )

    @property
    def width(self) -> int:
        return len(self.points)

    @property
    def error(self) -> float:
        """The expected distance of what comes out, in the metric."""
        return self.noise.error(self.metric) * self.grid.step

    @property
    def lower_bound(self) -> float:
        return self.noise.lower_bound(self.metric) * self.grid.step

    @property
    def mechanism(self) -> str:
        name = self.noise.distribution.capitalize()
        return f"discrete {name} noise of scale {self.noise.scale * self.grid.step:.6g} on each point"

    def sample(self, codes: Integers) -> Integers:
        return self.noise.sample(codes)


Attribute = Number | Category | Subset | Curve


def _positive(name: str, epsilon: float) -> None:
    positive("epsilon", epsilon)
    if epsilon > LARGEST_EPSILON:
        raise ValueError(f"{name}: epsilon={epsilon} protects nothing; at most {LARGEST_EPSILON:g}")
    if epsilon < SMALLEST_EPSILON:
        raise ValueError(f"{name}: epsilon={epsilon} tells nothing; at least {SMALLEST_EPSILON:g}")


def _check(attribute: "Attribute") -> None:
    _positive(attribute.name, attribute.epsilon)
    if not 0 <= attribute.delta < 1:
        raise ValueError(f"{attribute.name}: delta={attribute.delta} must be at least 0 and below 1")


def _refuse_wide(name: str, scale: float) -> None:
    if scale > LARGEST_SCALE:
        raise ValueError(f"{name}: noise of more than 2^55 steps would be needed; use a larger epsilon or step")


def _missing_step(grid: Grid, missing: float | None) -> int:
    """The step that a number stands on, or the middle one.

    Raises:
        ValueError: it is not within the range.
    """
    if missing is None:
        return grid.steps // 2
    if not grid.low <= missing <= grid.low + grid.steps * grid.step * (1 + 1e-12):
        raise ValueError(f"missing={missing} lies outside of min and max")
    return int(grid.codes(np.array([missing]), missing=0)[0])
