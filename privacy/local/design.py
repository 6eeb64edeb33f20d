"""Design of a local release, which all devices and the collector share: who reports what and when. It is public.

    changes     each person is in one layer of a tree over time and reports on each of its nodes at the node's end: the
                change from the node's beginning to its end. One layer: a report in every window
    once        each person reports the answer itself, in one window, and changes do not matter

Each device draws its layer and window, independent of all answers, and sends them along. So the times of a device's
reports, and their numbers of bytes, follow from public draws.

    neighbours   all answers that one person ever gives, replaced by those of another person or by none. The device
                 bounds any answers
    guarantee    (epsilon, delta) for everything that a device ever sends: that of a row of signs as in
                 privacy.local.signs, or of the reports in which two people can differ together in
                 privacy.local.symbols. Layers do not add up: a person is in one
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from privacy.checks import DELTA, between, positive
from privacy.local.basis import Basis
from privacy.local.bound import LocalBound, ReportTerms, differing
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import Signs
from privacy.local.symbols import Symbols

ReportedAs = Literal["changes", "once"]

SHARES = 1 << 16
"""Denominator of the shares of layers."""

MOST_EPSILON = 50
"""Largest epsilon: odds over 2^62 cannot represent more."""

MOST_WINDOWS = 10_000_000
"""Largest number of windows: reports number windows by 32 bits, and layers, whose spans at least double, by 8."""


def check_parameters(epsilon: float, delta: float) -> None:
    """Refuse privacy parameters that no design can have.

    Raises:
        RuleError: a parameter is outside its range.
    """
    positive("epsilon", epsilon)
    between("epsilon", epsilon, 0, MOST_EPSILON)
    DELTA.check("delta", delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Nodes of one length, and the randomiser of their reports.

    Attributes:
        span: number of windows of a node.
        share: share of people who are in this layer, in parts of 2^16.
        randomiser: signs, with a basis; or symbols, with a space of mutations if changes are reported.
    """

    span: int
    share: int
    randomiser: Signs | Symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Public parameters of a local release.

    Attributes:
        survey: digest of the question, the people and the times; part of the design's own digest
            (privacy.local.document).
        space: the answers and their possible changes.
        windows: number of windows.
        epsilon, delta: parameters of everything that a device ever sends; without a delta, two people whose changes
            have enough separate windows reach epsilon.
        reported: changes, or answers once.
        basis: the questions, if layers have signs.
        layers: in ascending order of their spans, each a multiple of the one before; the first has single windows.
    """

    space: MutationSpace
    windows: int
    bound: LocalBound
    reported: ReportedAs
    basis: Basis
    layers: tuple[Layer, ...]
    epsilon: float
    delta: float = 0.0
    survey: str = ""

    def __post_init__(self) -> None:
        between("windows", self.windows, 1, MOST_WINDOWS)
        check_parameters(self.epsilon, self.delta)
        if self.basis.answers != self.answers:
            raise ValueError(f"questions: for {self.basis.answers} answers, but the design has {self.answers}")
        self._check_layers()
        for number, layer in enumerate(self.layers):
            if not self._fits(layer):
                raise ValueError(
                    f"layers[{number}]: its randomiser does not cover the reports on it, or not at this epsilon and "
                    "delta"
                )

    @property
    def answers(self) -> int:
        return self.space.answers

    @property
    def signs(self) -> tuple[Signs, ...]:
        """Randomisers of the layers if they are signs, which all or none are."""
        return tuple(layer.randomiser for layer in self.layers if isinstance(layer.randomiser, Signs))

    @property
    def symbols(self) -> tuple[Symbols, ...]:
        """Randomisers of the layers if they are symbols, which all or none are."""
        return tuple(layer.randomiser for layer in self.layers if isinstance(layer.randomiser, Symbols))

    @property
    def most_signs(self) -> int:
        """Largest number of signs of a layer; the state of a device has room for them."""
        return max(1, *(layer.randomiser.most for layer in self.layers))

    def nodes(self, layer: int) -> int:
        """Return the number of nodes of a layer that are complete at the end."""
        return self.windows // self.layers[layer].span

    def differing(self, layer: Layer) -> int:
        """Return the largest number of reports on a layer in which two people can differ."""
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
        if self.signs and self.symbols:
            raise ValueError("layers: all must have signs, or all symbols")

    def _fits(self, layer: Layer) -> bool:
        """Return whether a randomiser covers the reports of the layer, at the privacy parameters of the design."""
        once = self.reported == "once"
        add_up = layer.span == 1 or self.space.transitions is None
        terms = ReportTerms(
            changed=1 if once else self.bound.changed(layer.span, self.windows // layer.span),
            symbols=self.answers + 1 if once else self.space.count if add_up else None,
            epsilon=Fraction(self.epsilon),
            of_each=per_report(self.epsilon, self.delta, self.differing(layer)),
        )
        return layer.randomiser.fits(terms)


def per_report(epsilon: float, delta: float, reports: int) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta of each report in which two people can differ, for randomised response.

    Args:
        epsilon, delta: parameters of all reports together.
        reports: number of reports in which two people can differ.
    """
    return Fraction(epsilon) / reports, Fraction(delta) / reports
