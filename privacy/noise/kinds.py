"""The two kinds of noise as objects: all differences between them, so that no other code depends on a kind's name.

A release adds noise of one kind. With sensitivity S and scale s of each part, S / s is the part's *ratio*:

    Laplace     S in L1, epsilon = S / b; epsilons add up
    Gaussian    S in L2, rho = (S / sigma)^2 / 2; rhos add up (zero-concentrated differential privacy)
"""

import math
from fractions import Fraction
from typing import ClassVar, Literal

from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace
from privacy.upward import below, root_above

Mechanism = Literal["laplace", "gaussian"]
Accounting = Literal["naive", "advanced", "zcdp", "rdp", "pld", "paper"]

ROUNDING = 1 + Fraction(1, 2**50)
"""Factor larger than any rounding of roots: a budget from `Gaussian.budget_at` never exceeds the cost of its ratio."""


class Laplace:
    """Discrete Laplace noise: needs no delta, uses L1 sensitivity.

    Attributes:
        power: the cost of a part is proportional to this power of its ratio; also the norm of sensitivities.
        deviation: standard deviation of noise of scale 1, except for the step to integers.
        pure: whether it needs no delta.
        fine: whether counts are on the fine grid, so that the step to integers is negligible.
        dense: whether strategies that move many nodes a little are worthwhile.
        in_advance: whether noise may be used before its node is complete if data react to published numbers.
        restarts: whether AboveThreshold samples a new threshold after each answer `above`.
        unit: unit of costs.
        accounting: the default composition.
        adaptively: how parts that look at the data compose with the rest; the first is the default.
    """

    name: ClassVar[Mechanism] = "laplace"
    distribution: ClassVar[type[DiscreteLaplace]] = DiscreteLaplace
    power: ClassVar[int] = 1
    deviation: ClassVar[float] = math.sqrt(2)
    pure: ClassVar[bool] = True
    fine: ClassVar[bool] = False
    dense: ClassVar[bool] = False
    in_advance: ClassVar[bool] = True
    restarts: ClassVar[bool] = False
    unit: ClassVar[Literal["epsilon", "rho"]] = "epsilon"
    accounting: ClassVar[Accounting] = "naive"
    adaptively: ClassVar[tuple[Accounting, ...]] = ("naive",)

    def of_norms(self, l1: float, l2: float) -> float:
        """Return the sensitivity that counts for this kind, of the L1 and L2 one."""
        return l1

    def cost(self, ratio: Fraction) -> Fraction:
        """Return the cost of a part of this ratio, in `unit`."""
        return ratio

    def scale_for(self, cost: Fraction) -> Fraction:
        """Return the least scale at which sensitivity 1 costs at most `cost`; rounded up."""
        return 1 / cost

    def budget_at(self, scale: float) -> float:
        """Return the cost of sensitivity 1 at this scale; rounded down."""
        return below(1 / Fraction(scale))

    def ratio_of(self, cost: Fraction) -> Fraction:
        """Return the ratio that has this cost; rounded up."""
        return cost

    def mean_size(self, scale: float) -> float:
        """Return the mean absolute value of one sample."""
        inverse = 1 / scale
        return -2 * math.exp(-inverse) / math.expm1(-2 * inverse)  # 1 / sinh(inverse), which may overflow

    def mean_largest(self, scale: float, samples: int) -> float:
        """Return a bound on the mean of the largest absolute value of `samples` samples, in steps.

        For Laplace variables it is the harmonic number of `samples` times the scale; for Gaussian ones at most
        sqrt(2 ln(2 samples)) times sigma. Rounding to whole steps adds at most one.
        """
        return scale * math.fsum(1 / place for place in range(1, samples + 1)) + 1

    def widened(self, scale: Fraction, parts: Fraction) -> Fraction:
        """Return the scale of noise that has one of `parts` equal parts of the budget; rounded up."""
        return scale * parts


class Gaussian:
    """Discrete Gaussian noise: needs a delta, uses L2 sensitivity. Attributes as for `Laplace`."""

    name: ClassVar[Mechanism] = "gaussian"
    distribution: ClassVar[type[DiscreteGaussian]] = DiscreteGaussian
    power: ClassVar[int] = 2
    deviation: ClassVar[float] = 1.0
    pure: ClassVar[bool] = False
    fine: ClassVar[bool] = True
    dense: ClassVar[bool] = True
    in_advance: ClassVar[bool] = False
    restarts: ClassVar[bool] = True
    unit: ClassVar[Literal["epsilon", "rho"]] = "rho"
    accounting: ClassVar[Accounting] = "pld"
    adaptively: ClassVar[tuple[Accounting, ...]] = ("zcdp", "rdp")

    def of_norms(self, l1: float, l2: float) -> float:
        return l2

    def cost(self, ratio: Fraction) -> Fraction:
        return ratio**2 / 2

    def scale_for(self, cost: Fraction) -> Fraction:
        return Fraction(root_above(1 / (2 * cost)))

    def budget_at(self, scale: float) -> float:
        return below(1 / (2 * Fraction(scale) ** 2 * ROUNDING))

    def ratio_of(self, cost: Fraction) -> Fraction:
        return Fraction(root_above(2 * cost))

    def mean_size(self, scale: float) -> float:
        return scale * math.sqrt(2 / math.pi)  # of the continuous distribution: scales are many steps

    def mean_largest(self, scale: float, samples: int) -> float:
        return scale * math.sqrt(2 * math.log(2 * samples)) + 1

    def widened(self, scale: Fraction, parts: Fraction) -> Fraction:
        return Fraction(root_above(scale**2 * parts))


NoiseKind = Laplace | Gaussian

NOISE: dict[Mechanism, NoiseKind] = {"laplace": Laplace(), "gaussian": Gaussian()}
"""Kinds in the order in which they are tried if the spec leaves the mechanism open."""

PURE: Mechanism = next(name for name, kind in NOISE.items() if kind.pure)
"""The kind that needs no delta."""
