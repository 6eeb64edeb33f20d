"""Cost of given noise for a whole release: the measurements of a unit, composed in one of six ways.

A release is a few measurements, one for each query family. A measurement is everything that one
unit can move in it over all time, with its joint sensitivity, so that the guarantee does not depend on
the number of windows. Neighbours are changelogs that differ by all mutations of one privacy unit.

    naive      epsilons add up (Laplace: in exact arithmetic, and at delta 0)
    advanced   Laplace: Kairouz, Oh, Viswanath 2015, theorem 3.5; Gaussian: as pld, since a theorem
               for any mechanism ignores the properties of these
    zcdp       rho adds up; an epsilon-DP measurement is epsilon^2 / 2-zCDP
    rdp        Renyi curves add up; an epsilon-DP one has at most randomised response's
    pld        Gaussian: exactly one Gaussian of sensitivity / sigma = mu, mu^2 = sum of mu_i^2;
               Laplace: privacy loss distributions of the worst epsilon-DP measurements
    paper      every node that a unit touches is charged separately and epsilons add up (the k-fold
               composition of the paper on continual releases, for comparison)

Laplace noise is charged the naive sum if that is less. Gaussian noise is discrete: naive, advanced,
pld and paper assume the continuous distribution, and part of delta pays for the difference
(docs/proofs/discrete_gaussian.md); zcdp and rdp hold for the discrete distribution itself (Canonne,
Kamath, Steinke 2020, theorem 4).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.curves import (
    advanced_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_renyi,
    pure_renyi,
    renyi_epsilon,
    rounding_gap,
    zcdp_epsilon,
)
from privacy.checks import at_least, positive
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.upward import above

ACCOUNTINGS: tuple[Accounting, ...] = get_args(Accounting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One query family; every component is divided by its largest value (normalised units).

    Neighbours are changelogs that differ by all mutations of one privacy unit, or as the protection defines.

    Attributes:
        l1, l2: joint sensitivity of all nodes to a unit's whole bounded changelog.
        nodes: largest number of nodes that a unit can touch.
        node_l1, node_l2: largest change of one node, all its components and cells, by one unit.
        coordinates: largest number of noisy values that differ between neighbours.
        weight: share of the budget, any positive number. Laplace: epsilon in proportion to it;
            Gaussian: (sensitivity / sigma)^2 in proportion to it.
    """

    l1: float
    l2: float
    nodes: int
    node_l1: float
    node_l2: float
    coordinates: int
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "node_l1", "node_l2", "weight"):
            positive(name, getattr(self, name))
        at_least("nodes", self.nodes, 1)
        at_least("coordinates", self.coordinates, 1)

    def charged(self, mechanism: Mechanism, accounting: Accounting) -> float:
        """Return the charged sensitivity: joint, or for the paper number of nodes times one node's; rounded up."""
        return above(self.charged_exactly(mechanism, accounting))

    def charged_exactly(self, mechanism: Mechanism, accounting: Accounting) -> Fraction:
        """Return the charged sensitivity before it is rounded upward."""
        if accounting == "paper":
            return self.nodes * Fraction(NOISE[mechanism].of_norms(self.node_l1, self.node_l2))
        return Fraction(NOISE[mechanism].of_norms(self.l1, self.l2))


def epsilon_spent(
    measurements: Sequence[Measurement],
    scales: Sequence[float],
    *,
    mechanism: Mechanism,
    accounting: Accounting,
    delta: float,
    steps: float,
) -> float:
    """Return the epsilon, at `delta`, that is proved for noise of these scales; infinite if there is no bound.

    Guarantee: a release whose measurements have these sensitivities and independent noise of these scales is
    (epsilon, delta)-differentially private. Sources: the module's table of compositions.

    Args:
        measurements: sensitivities to one unit.
        scales: b (Laplace) or sigma (Gaussian) of each measurement, in normalised units.
        mechanism: the distribution of the noise.
        accounting: one of `ACCOUNTINGS`.
        delta: at least 0; naive and paper Laplace do not use it.
        steps: grid steps in one normalised unit, the least over the components.

    >>> one = Measurement(l1=4, l2=2, nodes=4, node_l1=1, node_l2=1, coordinates=4)
    >>> epsilon_spent([one], [8.0], mechanism="laplace", accounting="naive", delta=0, steps=1)
    0.5
    """
    charged = [m.charged(mechanism, accounting) for m in measurements]
    exact = [Fraction(c) / Fraction(s) for c, s in zip(charged, scales, strict=True)]
    ratios = [above(e) for e in exact]
    if NOISE[mechanism].pure:
        return min(above(sum(exact, Fraction(0))), _pure(ratios, accounting, delta))
    if accounting == "zcdp":
        return zcdp_epsilon(math.fsum(r * r for r in ratios) / 2, delta)
    if accounting == "rdp":
        return renyi_epsilon(gaussian_renyi(ratios), delta)
    return _with_discretisation(
        lambda rest: _continuous(measurements, ratios, accounting, rest),
        gap=discretisation_gap(measurements, scales, steps=steps),
        delta=delta,
    )


def is_proved(
    measurements: Sequence[Measurement],
    scales: Sequence[float],
    *,
    mechanism: Mechanism,
    accounting: Accounting,
    delta: float,
    steps: float,
    epsilon: float,
) -> bool:
    """Return whether `epsilon` is proved, at `delta`; without a solver if all noise composes to one Gaussian.

    Args: as for `epsilon_spent`.

    >>> one = Measurement(l1=4, l2=2, nodes=4, node_l1=1, node_l2=1, coordinates=4)
    >>> [
    ...     is_proved([one], [8.45], mechanism="gaussian", accounting="pld", delta=1e-6, steps=2**24, epsilon=epsilon)
    ...     for epsilon in (0.999, 1.0)
    ... ]
    [False, True]
    """
    if not NOISE[mechanism].pure and accounting in ("pld", "advanced"):
        ratios = [above(Fraction(m.l2) / Fraction(s)) for m, s in zip(measurements, scales, strict=True)]
        discrete = (1 + math.exp(min(epsilon, 700))) * discretisation_gap(measurements, scales, steps=steps)
        return gaussian_delta(math.hypot(*ratios), epsilon) + discrete <= delta
    found = epsilon_spent(measurements, scales, mechanism=mechanism, accounting=accounting, delta=delta, steps=steps)
    return found <= epsilon


def paper_epsilon(
    measurements: Sequence[Measurement],
    scales: Sequence[float],
    *,
    mechanism: Mechanism,
    delta: float,
) -> float:
    """Return the epsilon that the paper's k-fold composition would state for the same noise.

    For comparison only: like the paper, it treats Gaussian noise as continuous.

    Args:
        measurements: sensitivities to one unit.
        scales: b (Laplace) or sigma (Gaussian) of each measurement, in normalised units.
        mechanism: the distribution of the noise.
        delta: at least 0; Laplace does not use it.

    >>> one = Measurement(l1=7, l2=2.7, nodes=4, node_l1=2, node_l2=1.5, coordinates=7)
    >>> paper_epsilon([one], [8.0], mechanism="laplace", delta=0)
    1.0
    """
    ratios = [m.charged(mechanism, "paper") / s for m, s in zip(measurements, scales, strict=True)]
    if NOISE[mechanism].pure:
        return math.fsum(ratios)
    return _continuous(measurements, ratios, "paper", delta)


def discretisation_gap(measurements: Sequence[Measurement], scales: Sequence[float], *, steps: float) -> float:
    """Return a bound on the total variation between discrete and rounded normal noise on all that a unit can move.

    Args:
        measurements: sensitivities to one unit.
        scales: sigma of each measurement, in normalised units.
        steps: grid steps in one normalised unit, the least over the components.
    """
    return math.fsum(m.coordinates * rounding_gap(s * steps) for m, s in zip(measurements, scales, strict=True))


def _pure(epsilons: Sequence[float], accounting: Accounting, delta: float) -> float:
    """Return a bound for any epsilon_i-DP measurements other than their sum; infinite if there is no bound."""
    if accounting in ("naive", "paper") or delta <= 0 or max(epsilons) > 500:
        return math.inf
    if accounting == "advanced":
        return advanced_epsilon(epsilons, delta)
    if accounting == "zcdp":
        return zcdp_epsilon(math.fsum(e * e for e in epsilons) / 2, delta)
    if accounting == "rdp":
        return renyi_epsilon(pure_renyi(epsilons), delta)
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution  # slow to import, and seldom needed

    # A power of two, so that a smaller epsilon never gets a coarser rounding.
    interval = 2.0 ** math.floor(math.log2(math.fsum(epsilons) / 10_000))
    losses: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    chances: NDArray[np.float64] = np.ones(1)
    for e in epsilons:  # sums of positive numbers, for which a fast transform would lose the far tail
        losses = np.concatenate((losses + math.ceil(e / interval), losses + math.ceil(-e / interval)))
        losses, place = np.unique(losses, return_inverse=True)
        both = np.concatenate((chances / (1 + math.exp(-e)), chances / (1 + math.exp(e))))
        chances = np.bincount(place, weights=both).astype(np.float64)
    rounded = dict(zip(losses.tolist(), chances.tolist(), strict=True))
    composed = PrivacyLossDistribution.create_from_rounded_probability(rounded, 0.0, interval)
    return float(composed.get_epsilon_for_delta(delta * (1 - 1e-9))) * (1 + 1e-12)


def _continuous(
    measurements: Sequence[Measurement],
    ratios: Sequence[float],
    accounting: Accounting,
    delta: float,
) -> float:
    """Return a bound for continuous Gaussian noise with these ratios of sensitivity to sigma."""
    if accounting in ("pld", "advanced"):
        return gaussian_epsilon(math.hypot(*ratios), delta)
    weights = math.fsum(m.weight for m in measurements)
    counts = [m.nodes if accounting == "paper" else 1 for m in measurements]
    epsilons = [
        count * gaussian_epsilon(r / count, delta * m.weight / weights / count)
        for m, r, count in zip(measurements, ratios, counts, strict=True)
    ]
    return math.fsum(epsilons) * (1 + 1e-15)


def _with_discretisation(continuous: Callable[[float], float], *, gap: float, delta: float) -> float:
    """Return the epsilon of the discrete distribution: (epsilon, d)-DP if continuous gives (epsilon, delta).

    d = delta + (1 + e^epsilon) gap. The delta set aside is twice what the first epsilon requires; the result is
    accepted only if that was enough.
    """
    first = continuous(delta)
    if first > 500:
        return math.inf
    reserve = 2 * (1 + math.exp(first)) * gap
    if reserve > delta / 2:
        return math.inf
    epsilon = continuous(delta - reserve)
    return epsilon if (1 + math.exp(min(epsilon, 700))) * gap <= reserve else math.inf
