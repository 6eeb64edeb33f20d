"""Scales of the noise of adaptive publication. For their cost see privacy.adaptive.budget."""

from dataclasses import dataclass
from fractions import Fraction

from privacy.checks import at_least
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.kinds import NOISE, Mechanism
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Scales of noise, in grid steps.

    Attributes:
        sensitivity: r, the largest L1 norm of one unit at any one time.
        threshold: b1, scale of the threshold's noise; None if it has no noise.
        test: b2, scale of each distance's noise; None if there are no decisions.
        whole: scale of each cell, or node, of a sample that takes all units. A sample that takes u of n units has n / u
            times this scale with Laplace noise, and sqrt(n / u) times this scale with Gaussian noise.
        units: n.
        noise: noise of samples.
        column: how much the noisy values of a sample move if cells move by 1: in L1, or with Gaussian noise in squared
            L2.
        splits: scale of the choice of splits by a sample that takes all units; None if it splits nothing.
        rounds: number of splits that a cell takes part in.
    """

    sensitivity: int
    threshold: float | None
    test: float | None
    whole: float
    units: int
    noise: Mechanism = "laplace"
    column: int = 1
    splits: float | None = None
    rounds: int = 0

    def __post_init__(self) -> None:
        for name in ("sensitivity", "units", "column"):
            at_least(name, getattr(self, name), 1)
        if (self.splits is None) != (self.rounds == 0):
            raise ValueError("scales: splits and rounds belong together")

    def sample(self, units: int) -> NoiseDistribution:
        """Return the noise of each cell of a sample that takes `units` units.

        >>> Scales(sensitivity=1, threshold=None, test=None, whole=3.0, units=4, noise="gaussian").sample(1)
        DiscreteGaussian(scale=6.0)
        """
        kind = NOISE[self.noise]
        return kind.distribution(above(kind.widened(Fraction(self.whole), Fraction(self.units, units))))

    def split(self, units: int) -> float:
        """Return the scale of choices of splits, of a sample that takes `units` units.

        Raises:
            ValueError: the scales are for samples without splits.
        """
        if self.splits is None:
            raise ValueError("scales: for samples without splits")
        return above(NOISE[self.noise].widened(Fraction(self.splits), Fraction(self.units, units)))
