"""Noise on curves sampled on a grid of times: each point is bounded, optionally also their total.

A curve is n integers of grid steps between 0 and D that add up to at most S (enforced: a larger one is scaled down).
Any two of them are neighbours, and their distance is at most, for any shapes:

    L1 = f(k) + f(n - k)        f(m) = min(S, m D)             k = n / 2, rounded down
    L2^2 = g(k) + g(n - k)      g(m) = a D^2 + r^2, of a = min(m, floor(S / D)) full points and the rest r of S

The two most distant curves have no point in common, with half of the points each: f and g are the largest total and the
largest sum of squares of a curve on m points. Both are reached (docs/proofs/sanitised.md).

Discrete Laplace noise of scale L1 / epsilon is (epsilon, 0)-differentially private. With a delta, discrete Gaussian
noise is possible too, calibrated by the exact delta of continuous noise (Balle, Wang 2018); the smaller of both is
used. Holohan, Leith, Mason (Information Sciences 305, 2015) name such data in example 2 and have no mechanism for them.
By their example 4, curves at finitely many times are sufficient: docs/proofs/sanitised.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from privacy.accounting.accounting import Budget, Measurement, calibrate
from privacy.checks import at_least, positive
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.noise.odds import Integers
from privacy.sanitised.lower_bounds import curves_bound, diameter_bound
from privacy.upward import above, root_above

CurveMetric = Literal["total", "mean", "max"]
"""Distance of two curves: the sum, the mean or the largest of the differences of their points."""

SPARE = 1 + Fraction(1, 2**30)
"""Factor by which a planned scale is increased: the search of another version may end with different last bits."""

_ACCOUNTINGS: tuple[Accounting, ...] = ("zcdp", "pld")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveNoise:
    """Noise on each of `points` points with values 0, ..., `steps`, with a sum of at most `total`.

    Neighbours: one record with any two curves. Guarantee: (epsilon, delta)-differential privacy, checked here.
    Sensitivity: `l1` and the root of `l2_squared`, in steps.

    Attributes:
        scale: scale of the noise distribution, in grid steps.

    Raises:
        ValueError: numbers outside their ranges, or noise that does not have the guarantee.
    """

    points: int
    steps: int
    total: int | None
    epsilon: float
    delta: float
    distribution: Mechanism
    scale: float

    def __post_init__(self) -> None:
        at_least("points", self.points, 1)
        at_least("steps", self.steps, 1)
        at_least("total", self.total, 1)
        positive("epsilon", self.epsilon)
        if self.scale < LEAST[self.distribution](self.points, self.steps, self.total, self.epsilon, self.delta):
            raise ValueError(f"scale={self.scale} is too small for epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def optimal(
        points: int, steps: int, *, total: int | None = None, epsilon: float, delta: float = 0.0
    ) -> "CurveNoise":
        """Return the noise with the smaller variance.

        Args:
            points: number of points.
            steps: largest value of a point, in grid steps.
            total: largest sum of the points, in grid steps; None: no limit.
            epsilon, delta: privacy parameters of a curve.

        >>> CurveNoise.optimal(24, 1000, epsilon=2.0).scale, CurveNoise.optimal(24, 1000, total=3000, epsilon=2.0).scale
        (12000.0, 3000.0)
        """
        positive("epsilon", epsilon)
        scales = {
            name: least(points, steps, total, epsilon, delta)
            for name, least in LEAST.items()
            if NOISE[name].pure or delta > 0
        }
        noises = [
            CurveNoise(
                points=points,
                steps=steps,
                total=total,
                epsilon=epsilon,
                delta=delta,
                distribution=name,
                scale=scale if NOISE[name].pure else above(Fraction(scale) * SPARE),
            )
            for name, scale in scales.items()
        ]
        return min(noises, key=lambda noise: noise.noise.variance)

    @property
    def l1(self) -> int:
        """Largest L1 distance of two curves: the sum of the differences, in grid steps."""
        return int(_norms(self.points, self.steps, self.total)[0])

    @property
    def l2_squared(self) -> int:
        """Largest squared L2 distance of two curves: the sum of the squares of the differences."""
        return int(_norms(self.points, self.steps, self.total)[1])

    @property
    def noise(self) -> NoiseDistribution:
        """Noise of each point."""
        return NOISE[self.distribution].distribution(self.scale)

    def lower_bound(self, metric: CurveMetric) -> float:
        """Return a lower bound of the error of any mechanism, in steps."""
        cost = {"epsilon": self.epsilon, "delta": self.delta}
        most = self.points * self.steps if self.total is None else min(self.total, self.points * self.steps)
        bound = curves_bound(self.points, self.steps, most, largest=metric == "max", **cost)
        if metric != "max":
            bound = max(bound, diameter_bound(float(self.l1), **cost))
        return bound / (self.points if metric == "mean" else 1)

    def error(self, metric: CurveMetric) -> float:
        """Return the expected distance from the bounded curve, in steps; for `max` a few percent too large."""
        kind = NOISE[self.distribution]
        if metric == "max":
            return kind.mean_largest(self.scale, self.points)
        return kind.mean_size(self.scale) * (self.points if metric == "total" else 1)

    def bound(self, curves: Integers) -> Integers:
        """Return curves [records, points], those with a larger total scaled down to it and rounded downward."""
        if self.total is None:
            return curves
        totals = np.maximum(curves.sum(axis=1, keepdims=True), self.total)
        return np.asarray(curves * self.total // totals, dtype=np.int64)

    def sample(self, curves: Integers) -> Integers:
        """Return bounded curves with noise on every point, int64 [records, points]. A second call samples again."""
        return self.bound(curves) + self.noise.noise(curves.size).reshape(curves.shape)


def _norms(points: int, steps: int, total: int | None) -> tuple[Fraction, Fraction]:
    """Return the largest L1 distance of two curves, and the square of the largest L2 distance; both exact."""
    most = points * steps if total is None else total

    def of(half: int) -> tuple[int, int]:
        full = min(half, most // steps)
        rest = min(most - full * steps, steps) if full < half else 0
        return full * steps + rest, full * steps**2 + rest**2

    halves = of(points // 2), of(points - points // 2)
    return Fraction(sum(l1 for l1, _ in halves)), Fraction(sum(square for _, square in halves))


def _laplace_scale(points: int, steps: int, total: int | None, epsilon: float, delta: float) -> float:
    """Return the least scale, rounded up."""
    return above(_norms(points, steps, total)[0] / Fraction(epsilon))


def _gaussian_scale(points: int, steps: int, total: int | None, epsilon: float, delta: float) -> float:
    """Return the smaller of two scales: by the delta of continuous noise, and by zCDP, for noise of few steps.

    Rounding at random makes continuous noise of variance scale^2 - 2 discrete noise of this scale, except for less than
    10^-16 of epsilon a point (docs/proofs/discrete_gaussian.md#rounding-at-random).
    """
    budget = Budget(epsilon=epsilon, delta=delta)
    l1, square = _norms(points, steps, total)
    l1_norm, l2_norm = above(l1), root_above(square)
    curve = Measurement(l1=l1_norm, l2=l2_norm, nodes=1, node_l1=l1_norm, node_l2=l2_norm, coordinates=points)
    by_zcdp, continuous = (
        calibrate([curve], budget=budget, mechanism="gaussian", accounting=accounting, steps=2.0**60).scales[0]
        for accounting in _ACCOUNTINGS
    )
    wider = Fraction(continuous) * (1 + Fraction(1, 2**30) + Fraction(points, 10**16) / Fraction(budget.epsilon))
    return min(by_zcdp, root_above(wider**2 + 2))


LEAST: dict[Mechanism, Callable[[int, int, int | None, float, float], float]] = {
    "laplace": _laplace_scale,
    "gaussian": _gaussian_scale,
}
"""Functions that return the least scale of each kind of noise, for points, steps, total, epsilon and delta."""
