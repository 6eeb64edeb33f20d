"""Attributes on a grid, a number and a curve: their sanitisation, its cost and its error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privacy.counted import counted
from privacy.noise.distributions import DiscreteLaplace, NoiseDistribution
from privacy.noise.kinds import NOISE, PURE
from privacy.noise.odds import Integers
from privacy.problems import RuleError
from privacy.sanitised.attribute_checks import (
    missing_step,
    refuse_budget,
    refuse_wide,
)
from privacy.sanitised.curve_noise import CurveMetric, CurveNoise
from privacy.sanitised.grid import MOST_STEPS, Grid
from privacy.sanitised.grid_noise import delta_of, least_scale
from privacy.sanitised.lower_bounds import line_bound


class OnGrid:
    """Part of attributes with a grid: the range of means, and the number that replaces a missing one."""

    __slots__ = ()

    numeric: ClassVar[bool] = True
    grid: Grid
    missing: int

    @property
    def range(self) -> tuple[float, float]:
        """Least and largest possible mean."""
        return self.grid.low, self.grid.low + self.grid.steps * self.grid.step

    @property
    def missing_text(self) -> str:
        """The number that counts for a missing or impossible one."""
        return f"{self.grid.low + self.grid.step * self.missing:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(OnGrid):
    """A number on a grid, with discrete Laplace noise of `scale` steps.

    Neighbours: one record with any two numbers. Sensitivity: `grid.steps` in L1. Guarantee: (epsilon, delta), checked
    here.
    """

    kind: ClassVar[str] = "number"
    estimates: ClassVar[str | None] = None
    errors: ClassVar[str] = "number"

    name: str
    grid: Grid
    missing: int
    epsilon: float
    delta: float
    scale: float

    def __post_init__(self) -> None:
        refuse_budget(self.epsilon, self.delta)
        if not 0 <= self.missing <= self.grid.steps:
            raise ValueError(f"missing={self.missing} is no step of the grid")
        refuse_wide(self.name, self.scale)
        if delta_of(self.scale, self.grid.steps, epsilon=self.epsilon) > Fraction(self.delta):
            raise ValueError(f"scale={self.scale} is too small for epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def planned(name: str, grid: Grid, *, missing: float | None, epsilon: float, delta: float = 0.0) -> "Number":
        """Return the attribute with the least noise that epsilon and delta allow.

        Args:
            name: name of the attribute.
            grid: its grid.
            missing: the number that replaces a missing one; None: the middle of the range.
            epsilon, delta: privacy parameters of the attribute.
        """
        refuse_budget(epsilon, delta)
        return Number(
            name=name,
            grid=grid,
            missing=missing_step(grid, missing),
            epsilon=epsilon,
            delta=delta,
            scale=least_scale(grid.steps, epsilon=epsilon, delta=delta),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def width(self) -> int:
        return 1

    @property
    def asked(self) -> str:
        """A sentence that describes the estimates."""
        low, high = self.range
        return f"The mean of all records, each number clamped to {low:g} to {high:g}."

    @property
    def error(self) -> float:
        """Expected distance of an output from the number within the range."""
        return NOISE[PURE].mean_size(self.scale) * self.grid.step

    @property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    @property
    def noise_of_each(self) -> NoiseDistribution:
        """Noise of each number."""
        return self.noise

    @property
    def lower_bound(self) -> float:
        return line_bound(self.grid.steps, epsilon=self.epsilon, delta=self.delta) * self.grid.step

    @property
    def mechanism(self) -> str:
        return f"discrete Laplace noise of scale {self.scale * self.grid.step:.6g}"

    def sample(self, codes: Integers) -> Integers:
        return codes + self.noise.noise(codes.size).reshape(codes.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(OnGrid):
    """A curve, given at some points, each a number on one grid.

    Neighbours: one record with any two curves. Guarantee: (epsilon, delta), checked by the noise.

    Attributes:
        points: columns of the points, in their order.
        metric: distance in which errors are stated.
    """

    kind: ClassVar[str] = "curve"
    estimates: ClassVar[str | None] = "means"

    name: str
    points: tuple[str, ...]
    grid: Grid
    missing: int
    epsilon: float
    delta: float
    metric: CurveMetric
    noise: CurveNoise

    def __post_init__(self) -> None:
        refuse_budget(self.epsilon, self.delta)
        refuse_wide(self.name, self.noise.scale)
        if (self.noise.points, self.noise.steps) != (len(self.points), self.grid.steps):
            raise ValueError(f"{self.name}: the noise is for curves of another size")
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
        """Return the attribute with the least noise that epsilon and delta allow.

        Args:
            name: name of the attribute.
            points: columns of the points, in their order.
            grid: grid of each point.
            missing: the number that replaces a missing point; None: the least number.
            total: largest sum of the points' distances from the least number; a curve with more is scaled down.
            metric: distance in which errors are stated.
            epsilon, delta: privacy parameters of the attribute.

        Raises:
            ValueError: the total is less than a step, or sums of it would overflow.
        """
        refuse_budget(epsilon, delta)
        most = None if total is None else math.floor(total / grid.step * (1 + 1e-12))
        if most is not None and most < 1:
            raise RuleError(f"less than a step, {grid.step:g}", "total")
        if (len(points) * grid.steps if most is None else most) > MOST_STEPS:
            raise ValueError("a curve of more than 2^30 steps in total; take a larger step")
        return Curve(
            name=name,
            points=tuple(points),
            grid=grid,
            missing=missing_step(grid, grid.low if missing is None else missing),
            epsilon=epsilon,
            delta=delta,
            metric=metric,
            noise=CurveNoise.optimal(len(points), grid.steps, total=most, epsilon=epsilon, delta=delta),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.points

    @property
    def width(self) -> int:
        return len(self.points)

    @property
    def asked(self) -> str:
        """A sentence that describes the estimates."""
        low, high = self.range
        return (
            f"The mean of all records at each of {counted(len(self.points), 'point')} of a curve, each number clamped "
            f"to {low:g} to {high:g}."
        )

    @property
    def errors(self) -> str:
        """Metric in which `error` is measured."""
        return self.metric

    @property
    def noise_of_each(self) -> NoiseDistribution:
        """Noise of each point."""
        return self.noise.noise

    @property
    def error(self) -> float:
        """Expected distance of an output, in the metric."""
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
