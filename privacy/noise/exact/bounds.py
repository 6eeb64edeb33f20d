"""Integer bounds of the probabilities of a distribution: exact arithmetic, rounded outward at each step.

A number x >= 0 is enclosed by integers lower <= 2^bits x <= upper. Proofs: docs/proofs/samplers.md#bounds.
"""

from dataclasses import dataclass
from fractions import Fraction

Enclosure = tuple[int, int]

GUARD = 16
"""Extra bits while an exponential is computed."""


@dataclass(frozen=True, slots=True)
class Law:
    """A distribution on the integers with weights exp(-(linear |n| + square n^2)).

    Attributes:
        linear: at least 0.
        square: at least 0; not both are 0.
    """

    linear: Fraction
    square: Fraction


def laplace(scale: float) -> Law:
    """Return the discrete Laplace distribution with exactly this scale: weights exp(-|n| / scale)."""
    return Law(1 / Fraction(scale), Fraction(0))


def gaussian(scale: float) -> Law:
    """Return the discrete Gaussian distribution with exactly this scale: weights exp(-n^2 / (2 scale^2))."""
    return Law(Fraction(0), 1 / (2 * Fraction(scale) ** 2))


def exponential(x: Fraction, bits: int) -> Enclosure:
    """Return bounds of exp(-x) for x >= 0.

    >>> exponential(Fraction(1), 20)  # 2^20 / e = 385749.5
    (385749, 385750)
    """
    if x >= bits:
        return 0, 1  # exp(-x) < 2^-x
    halvings = (x.numerator // x.denominator + 1).bit_length()  # x / 2^halvings < 1
    precise = bits + halvings + GUARD
    one = 1 << precise
    lower, upper = series(x / (1 << halvings), precise)
    bounds = (one << precise) // upper, -(-(one << precise) // lower)
    for _ in range(halvings):
        bounds = product(bounds, bounds, precise)
    extra = precise - bits
    return bounds[0] >> extra, -(-bounds[1] >> extra)


def series(y: Fraction, bits: int) -> Enclosure:
    """Return bounds of exp(y) for 0 <= y < 1, by its series, whose terms are not negative.

    >>> series(Fraction(1, 2), 20)  # 2^20 exp(1 / 2) = 1728809.6
    (1728807, 1728814)
    """
    lower = upper = least = most = 1 << bits
    n = 1
    while most > 1 or n < 3:
        least = least * y.numerator // (y.denominator * n)
        most = -(-most * y.numerator // (y.denominator * n))
        lower, upper, n = lower + least, upper + most, n + 1
    # From the third on, each term is below half of the one before it. So the terms that are left out add up to less
    # than the last one, and the bound of that one is added again.
    return lower, upper + most


def product(one: Enclosure, other: Enclosure, bits: int) -> Enclosure:
    """Return bounds of a product of two numbers between 0 and 1.

    Args:
        one, other: bounds of the numbers, in units of 2^-bits.
        bits: number of bits of the fractions, also of the result.
    """
    return one[0] * other[0] >> bits, -(-one[1] * other[1] >> bits)


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Bounds of the distribution function of |N| at 0, 1, ..., and of the ratios of weights.

    Attributes:
        lower: [k] of Pr[|N| <= k], in units of 2^-(bits + margin).
        upper: [k] of the same probability.
        ratios: [k] lower bounds of weight(k + 1) / weight(k), which does not grow with k.
    """

    lower: list[int]
    upper: list[int]
    ratios: list[int]


def cumulative(law: Law, *, folded: bool, bits: int, margin: int) -> Cumulative:
    """Return bounds of the distribution function of |N| under `law`, at least up to the first weight below 2^-bits.

    Args:
        law: with a ratio of weights below 1 - 2^-bits.
        folded: whether N has both signs, so that 0 has half of its weight; else N >= 0.
        bits: of the probabilities that are needed.
        margin: further bits, so that the bounds are close to each other.

    >>> cumulative(laplace(0.1), folded=True, bits=16, margin=16).upper[:2]  # 1 - 2 exp(-10) / (1 + exp(-10))
    [4294577334, 4294967283]
    """
    precise = bits + margin
    one = 1 << precise
    weight: Enclosure = (one, one)
    ratio = exponential(law.linear + law.square, precise)
    step = exponential(2 * law.square, precise)
    geometric = not law.square
    sums = [(one >> folded, one >> folded)]
    ratios = [ratio[0]]
    # With a constant ratio the sum of all later weights is known; otherwise continue until they are negligible.
    while weight[0] >> margin if geometric else weight[0]:
        weight = product(weight, ratio, precise)
        sums.append((sums[-1][0] + weight[0], sums[-1][1] + weight[1]))
        ratio = ratio if geometric else product(ratio, step, precise)
        ratios.append(ratio[0])
    beyond = weight[0] * ratio[0] // (one - ratio[0]) if geometric else 0, -(-weight[1] * ratio[1] // (one - ratio[1]))
    least, most = sums[-1][0] + beyond[0], sums[-1][1] + beyond[1]
    return Cumulative(
        [(lower << precise) // most for lower, _ in sums],
        [min(one, -(-(upper << precise) // least)) for _, upper in sums],
        ratios,
    )
