"""Curves sampled on a grid of times: each point bounded, perhaps their total as well, and noise on every point.

A curve is n whole numbers of steps between 0 and D that add up to at most S (enforced: a larger one is scaled down).
Any two of them are neighbours, and they are at most this far from each other, whatever their shapes:

    L1 = f(k) + f(n - k)        f(m) = min(S, m D)             k = n / 2, rounded down
    L2^2 = g(k) + g(n - k)      g(m) = a D^2 + r^2, of a = min(m, floor(S / D)) full points and the rest r of S

The furthest apart are two that have no point in common, with half of the points each: f and g are the largest total and
the largest sum of squares of a curve on m points. Both are reached (docs/proofs/sanitised.md).

Discrete Laplace noise of scale L1 / epsilon is (epsilon, 0)-differentially private. With a delta there is discrete
Gaussian noise, too, calibrated by the exact delta of continuous noise (Balle, Wang 2018); the smaller of both is taken.
Holohan, Leith, Mason (Information Sciences 305, 2015) name such data in example 2 and have no mechanism for them. Their
example 4 says that curves at finitely many times are all there is to show: docs/proofs/sanitised.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from privacy.accounting.accounting import Budget, Measurement, calibrate
from privacy.checks import at_least, positive
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution
from privacy.noise.kinds import Accounting
from privacy.noise.odds import Integers
from privacy.sanitised.lower_bounds import curves_bound, diameter_bound
from privacy.upward import above, root_above

CurveMetric = Literal["total", "mean", "max"]
_ACCOUNTINGS: tuple[Accounting, ...] = ("zcdp", "pld")

METRICS: tuple[CurveMetric, ...] = get_args(CurveMetric)
"""Of two curves the sum, the mean or the largest of the differences of their points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveNoise:
    """Noise on each of `points`, each of 0, ..., `steps`, together at most `total`.

    Neighbours: one record with any two curves. Guarantee: (epsilon, delta)-differential privacy, which is checked here.
    Sensitivity: `l1` and the root of `l2_squared`, in steps.

    Attributes:
        scale: of the noise distribution, in steps.

    Raises:
        ValueError: numbers outside their ranges, or noise that does not have the guarantee.
    """

    points: int
    steps: int
    total: int | None
    epsilon: float
    delta: float
    distribution: Literal["laplace", "gaussian"]
    scale: float

    def __post_init__(self) -> None:
        at_least("points", self.points, 1)
        at_least("steps", self.steps, 1)
        if self.total is not None:
            at_least("total", self.total, 1)
        positive("epsilon", self.epsilon)
        l1, _ = _norms(self.points, self.steps, self.total)
        if self.distribution == "laplace":
            fits = Fraction(self.scale) * Fraction(self.epsilon) >= l1
        else:
            needed = _gaussian_scale(
                self.points, self.steps, self.total, Budget(epsilon=self.epsilon, delta=self.delta)
            )
            fits = self.scale >= needed * (1 - 2.0**-30)  # another version may search to other last bits
        if not fits:
            raise ValueError(f"scale={self.scale} is too small for epsilon={self.epsilon}, delta={self.delta}")

    @staticmethod
    def optimal(
        points: int, steps: int, *, total: int | None = None, epsilon: float, delta: float = 0.0
    ) -> "CurveNoise":
        """The noise with the smaller variance.

        >>> CurveNoise.optimal(24, 1000, epsilon=2.0).scale, CurveNoise.optimal(24, 1000, total=3000, epsilon=2.0).scale
        (12000.0, 3000.0)
        """
        positive("epsilon", epsilon)
        l1, _ = _norms(points, steps, total)
        found: list[tuple[Literal["laplace", "gaussian"], float]] = [("laplace", above(l1 / Fraction(epsilon)))]
        if delta > 0:
            found += [("gaussian", _gaussian_scale(points, steps, total, Budget(epsilon=epsilon, delta=delta)))]
        noises = [
            CurveNoise(
                points=points, steps=steps, total=total, epsilon=epsilon, delta=delta, distribution=name, scale=scale
            )
            for name, scale in found
        ]
        return min(noises, key=lambda noise: noise.noise.variance)

    @property
    def l1(self) -> int:
        """How far two curves can be from each other: the sum of the differences, in steps."""
        return int(_norms(self.points, self.steps, self.total)[0])

    @property
    def l2_squared(self) -> int:
        """The sum of the squares of the differences."""
        return int(_norms(self.points, self.steps, self.total)[1])

    @property
    def noise(self) -> NoiseDistribution:
        """Of each point."""
        return DiscreteLaplace(self.scale) if self.distribution == "laplace" else DiscreteGaussian(self.scale)

    def lower_bound(self, metric: CurveMetric) -> float:
        """Return a lower bound of the error of any mechanism, in steps."""
        cost = {"epsilon": self.epsilon, "delta": self.delta}
        most = self.points * self.steps if self.total is None else min(self.total, self.points * self.steps)
        bound = curves_bound(self.points, self.steps, most, largest=metric == "max", **cost)
        if metric != "max":
            bound = max(bound, diameter_bound(float(self.l1), **cost))
        return bound / (self.points if metric == "mean" else 1)

    def error(self, metric: CurveMetric) -> float:
        """The expected distance from the bounded curve, in steps; for `max` a bound that is a few percent too large.

        The largest of n Laplace variables is on average the n-th harmonic number times the scale, and of Gaussian ones
        at most sqrt(2 ln(2 n)) times sigma; rounding to whole steps adds at most one.
        """
        if metric == "max":
            if self.distribution == "laplace":
                return self.scale * math.fsum(1 / place for place in range(1, self.points + 1)) + 1
            return self.scale * math.sqrt(2 * math.log(2 * self.points)) + 1
        return mean_size(self.noise) * (self.points if metric == "total" else 1)

    def bound(self, curves: Integers) -> Integers:
        """Curves with a larger total scaled down to it, and rounded downward; [records, points]."""
        if self.total is None:
            return curves
        totals = np.maximum(curves.sum(axis=1, keepdims=True), self.total)
        return np.asarray(curves * self.total // totals, dtype=np.int64)

    def sample(self, curves: Integers) -> Integers:
        """Bounded curves with noise on every point. A second call samples anew."""
        return self.bound(curves) + self.noise.noise(curves.size).reshape(curves.shape)


def mean_size(noise: NoiseDistribution) -> float:
    """The expected size of noise, in steps: of a discrete Gaussian at most half a step off."""
    if isinstance(noise, DiscreteLaplace):
        q = math.exp(-1 / noise.scale)
        return 2 * q / -(math.expm1(-2 / noise.scale))
    return noise.scale * math.sqrt(2 / math.pi)


def _norms(points: int, steps: int, total: int | None) -> tuple[Fraction, Fraction]:
    """The largest L1 distance of two curves, and the square of the largest L2 distance; both exact."""
    most = points * steps if total is None else total

    def of(half: int) -> tuple[int, int]:
        full = min(half, most // steps)
        rest = min(most - full * steps, steps) if full < half else 0
        return full * steps + rest, full * steps**2 + rest**2

    halves = of(points // 2), of(points - points // 2)
    return Fraction(sum(l1 for l1, _ in halves)), Fraction(sum(square for _, square in halves))


def _gaussian_scale(points: int, steps: int, total: int | None, budget: Budget) -> float:
    """The smaller of two scales: by the delta of continuous noise, and by zCDP, for noise of few steps.

    Rounding at random makes continuous noise of variance scale^2 - 2 discrete noise of this scale, except for less than
    10^-16 of epsilon a point (docs/proofs/discrete_gaussian.md#rounding-at-random).
    """
    l1, square = _norms(points, steps, total)
    l1_norm, l2_norm = above(l1), root_above(square)
    curve = Measurement(l1=l1_norm, l2=l2_norm, nodes=1, node_l1=l1_norm, node_l2=l2_norm, coordinates=points)
    by_zcdp, continuous = (
        calibrate([curve], budget=budget, mechanism="gaussian", accounting=accounting, steps=2.0**60).scales[0]
        for accounting in _ACCOUNTINGS
    )
    wider = Fraction(continuous) * (1 + Fraction(1, 2**30) + Fraction(points, 10**16) / Fraction(budget.epsilon))
    return min(by_zcdp, root_above(wider**2 + 2))
