"""Probabilities of discrete Laplace and Gaussian noise, computed by another method than `privacy.noise.exact`.

The method uses 70 decimal digits, `decimal`'s correctly rounded exponential of each weight, and closed forms of the
Laplace distribution's tails. Errors are below 1e-60 (`ERROR`), which every comparison allows for.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, cached_property
from typing import Literal

from privacy.noise.exact.bounds import gaussian, laplace
from privacy.noise.exact.sampler import make_sampler
from privacy.noise.exact.table import Table
from privacy.noise.exact.words import LENGTHS, Lengths

Kind = Literal["laplace", "gaussian"]

LAWS = {"laplace": laplace, "gaussian": gaussian}
DIGITS = Context(prec=70, Emin=-(10**12))
ERROR = Decimal("1e-60")

SCALES = (
    *(2.0**-10, 0.1, 1 / 3, 0.5, 1.0, 1.5, 2.5, math.pi, 7.3, 15.9, 16.0, 30.0),
    *(math.nextafter(32, 0), 32.0, math.nextafter(32, 64), 45.25, math.nextafter(64, 0), 100.0),
    *(1e3, 1e6, 3.0 * 2**40, math.nextafter(2.0**55, 0), 2.0**55),
)
"""Extremes, floats that are no short fractions, and both sides of changes of the method or the size of blocks."""

PAIRS: list[tuple[Kind, float]] = [(kind, scale) for kind in ("laplace", "gaussian") for scale in SCALES]


def exponential(x: Fraction) -> Decimal:
    """Return exp(-x)."""
    return DIGITS.exp(DIGITS.divide(Decimal(-x.numerator), Decimal(x.denominator)))


class Oracle:
    """Distribution of |N|, or of N >= 0 if not folded."""

    def __init__(self, kind: Kind, scale: float, *, folded: bool = True) -> None:
        self.kind, self.scale, self.folded = kind, Fraction(scale), folded
        self.weight, self.below = cache(self._weight), cache(self._below)

    def _weight(self, n: int) -> Decimal:
        return exponential(n / self.scale if self.kind == "laplace" else n * n / (2 * self.scale**2))

    @cached_property
    def _gaussian_sums(self) -> list[Decimal]:
        sums = [Decimal("0.5") if self.folded else Decimal(1)]
        n = 0
        while (weight := self.weight(n := n + 1)) > Decimal("1e-66"):
            sums.append(DIGITS.add(sums[-1], weight))
        return sums

    def _below(self, k: int) -> Decimal:
        """Return Pr[|N| <= k]."""
        if k < 0:
            return Decimal(0)
        if self.kind == "gaussian":
            sums = self._gaussian_sums
            return DIGITS.divide(sums[min(k, len(sums) - 1)], sums[-1])
        tail = self.weight(k + 1)
        if self.folded:
            tail = DIGITS.divide(2 * tail, 1 + self.weight(1))
        return DIGITS.subtract(Decimal(1), tail)

    def probability(self, n: int) -> Decimal:
        """Return Pr[N = n] of the symmetric distribution."""
        both = DIGITS.subtract(self.below(abs(n)), self.below(abs(n) - 1))
        return both / 2 if n else both


@cache
def oracle_of(kind: Kind, blocks: float, folded: bool) -> Oracle:
    """Return an oracle, cached because several tests use the same probabilities."""
    return Oracle(kind, blocks, folded=folded)


def table_of(kind: Kind, scale: float, lengths: Lengths = LENGTHS) -> tuple[Table, Oracle]:
    """Return the table in use for this noise, and its expected probabilities."""
    sampler = make_sampler(LAWS[kind], scale, lengths=lengths)
    blocks = scale / 2**sampler.place_bits
    assert sampler.table.folded == (sampler.place_bits == 0) == (scale < 32)
    assert blocks == scale or 16 <= blocks < 32
    return sampler.table, oracle_of(kind, blocks, sampler.table.folded)
