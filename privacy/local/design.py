"""Who reports what and when, in public: the part of a local release that all devices and the collector share.

    changes     each person is in one layer of a tree over time and reports on each of its nodes at its end: what has
                changed from the node's beginning to its end. One layer: a report in every window
    once        each person reports the answer itself, in one window, and changes do not matter

Layer and window are drawn by each device, independent of all answers, and sent along. So when a device reports, and
with how many bytes, follows from public draws.

    neighbours   all that one person ever answers, in place of all that another does or of nothing at all; bounded by
                 the device, whatever it is
    guarantee    (epsilon, delta) for everything that a device ever sends: that of a row of signs as in
                 privacy.local.signs, of the reports in which two people can differ together in privacy.local.symbols.
                 Layers do not add up: a person is in one
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from privacy.checks import between
from privacy.local.basis import Basis
from privacy.local.bound import LocalBound, differing
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import Signs
from privacy.local.symbols import Symbols, best_symbols
from privacy.upward import exp_below

Reported = Literal["changes", "once"]

SHARES = 1 << 16
"""What shares of layers are parts of."""

MOST_EPSILON = 50
"""Odds over 2^62 tell no more."""

MOST_WINDOWS = 10_000_000
"""Reports number windows by 32 bits, and layers, whose spans at least double, by 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Nodes of one length.

    Attributes:
        span: how many windows a node has.
        share: the part of people who are in this layer, times 2^16.
        randomiser: signs, with a basis; or symbols, with a space of mutations if changes are reported.
    """

    span: int
    share: int
    randomiser: Signs | Symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All that is public of a local release.

    Attributes:
        survey: what is asked of whom and when, as a digest; part of the design's own digest (privacy.local.document).
        space: the answers and what can become of them.
        windows: how many there are.
        epsilon, delta: of everything that a device ever sends; without a delta, two people whose changes have windows
            enough of their own reach it.
        reported: changes, or answers once.
        basis: the questions, if layers have signs.
        layers: in ascending order of their spans, each a multiple of the one before; the first has single windows.
    """

    space: MutationSpace
    windows: int
    bound: LocalBound
    reported: Reported
    basis: Basis
    layers: tuple[Layer, ...]
    epsilon: float
    delta: float = 0.0
    survey: str = ""

    def __post_init__(self) -> None:
        between("windows", self.windows, 1, MOST_WINDOWS)
        if not 0 < self.epsilon <= MOST_EPSILON:
            raise ValueError(f"epsilon={self.epsilon} must be above 0 and at most {MOST_EPSILON}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta={self.delta} must be at least 0 and below 1")
        if self.basis.answers != self.answers:
            raise ValueError(f"questions: of {self.basis.answers} answers, and the design has {self.answers}")
        self._check_layers()
        for number, layer in enumerate(self.layers):
            if not self._fits(layer):
                raise ValueError(
                    f"layers[{number}]: its randomiser does not cover what is reported on it, or not at this epsilon "
                    "and delta"
                )

    @property
    def answers(self) -> int:
        return self.space.answers

    @property
    def most_signs(self) -> int:
        """Of a layer; what a device keeps has room for so many."""
        return max(layer.randomiser.most if isinstance(layer.randomiser, Signs) else 1 for layer in self.layers)

    def nodes(self, layer: int) -> int:
        """How many nodes of a layer are complete in the end."""
        return self.windows // self.layers[layer].span

    def differing(self, layer: Layer) -> int:
        """In how many of a person's reports on a layer two people can differ."""
        return 1 if self.reported == "once" else differing(self.bound, layer.span, self.windows // layer.span)

    def _check_layers(self) -> None:
        spans = [layer.span for layer in self.layers]
        if not spans or spans[0] != 1 or any(a >= b or b % a for a, b in pairwise(spans)) or spans[-1] > self.windows:
            raise ValueError("layers: spans must begin with 1, each a multiple of the one before, none above windows")
        shares = [layer.share for layer in self.layers]
        if min(shares) < 1 or sum(shares) != SHARES:
            raise ValueError(f"layers: shares must be positive and add up to {SHARES}")
        if self.reported == "once" and len(spans) > 1:
            raise ValueError("layers: an answer that is reported once has one layer")
        if len({type(layer.randomiser) for layer in self.layers}) > 1:
            raise ValueError("layers: all must have signs, or all symbols")

    def _fits(self, layer: Layer) -> bool:
        """Whether a randomiser covers what the layer reports, at the privacy parameters of the design."""
        once = self.reported == "once"
        match layer.randomiser:
            case Signs(most=most, ratio=ratio):
                fits = most == (1 if once else self.bound.changed(layer.span, self.windows // layer.span))
                return fits and ratio <= exp_below(Fraction(self.epsilon))
            case Symbols(count=count, parts=parts):
                fits = count == (self.answers + 1 if once else self.space.count)
                fits &= once or layer.span == 1 or self.space.transitions is None  # they do not add up
                limits = per_report(self.epsilon, self.delta, self.differing(layer))
                return fits and parts <= best_symbols(count, *limits).parts


def per_report(epsilon: float, delta: float, reports: int) -> tuple[Fraction, Fraction]:
    """What each of the reports that can differ may cost, if randomised response is used."""
    return Fraction(epsilon) / reports, Fraction(delta) / reports


def variance_of_change(basis: Basis, space: MutationSpace, randomiser: Signs | Symbols) -> float:
    """Of a change, for one person who reports on its node and has none; the largest over the answers."""
    if isinstance(randomiser, Signs):
        return basis.variance / float(randomiser.gain) ** 2
    away, to = space.degrees()
    p, spread = float(randomiser.other), float(randomiser.spread)
    return float((p * (away + to) - (p * (to - away)) ** 2).max()) / spread**2
