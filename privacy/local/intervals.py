"""Intervals with at least their stated coverage, for any number of people; proofs are in docs/proofs/local.md.

The error of an estimate has two parts: the noise of the reports, given who reports on what, and the random choice of
who does. Bounds for both that hold for any answers (`Bounds`) give two half widths, and the smaller one is used:

    normal      from a normal distribution, wider by the error that Berry and Esseen's theorem allows; nearly 1.96
                deviations from some hundred thousand reports on
    Bernstein   for fewer reports; 2.7 deviations and more

An answer that each person reports once, as a symbol, is a sum of independent coins: for these Clopper and Pearson's
interval holds, and is no wider than necessary (`shares_of_coins`).
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from privacy.local.basis import Floats
from privacy.local.chance import Ints
from privacy.local.design import Design
from privacy.local.symbols import Symbols

FAILURE = 0.05
"""Largest probability that an interval misses."""

COUNTED = 0.005
"""Part of it for the number of changes, on which the variance of symbols depends."""

BERRY_ESSEEN = 0.56
"""Constant for independent summands with different distributions: Shevtsova, Doklady Mathematics 82 (2010)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of the errors of estimates, in people; float64 arrays of shapes that broadcast.

    Attributes:
        variance: the largest possible variance.
        least: lower bound of the variance of the reports' noise alone, given who reports on what.
        block: largest absolute value of an independent summand.
        swing: the moments of the random choice of who reports are at most those of a normal distribution of this
            variance.
        failure: largest probability that an interval misses.
    """

    variance: Floats
    least: Floats
    block: Floats
    swing: Floats
    failure: float = FAILURE

    def half_widths(self) -> Floats:
        return np.minimum(self.normal(), self.bernstein())

    def normal(self) -> Floats:
        """Half widths by the normal distribution; infinite if too little is known of the distance from it.

        >>> sizes = {"variance": 4e6, "least": 4e6, "block": 5.0, "swing": 0.0}
        >>> of = Bounds(**{name: np.array(size) for name, size in sizes.items()})
        >>> round(float(of.normal() / 2000), 2), round(float(of.bernstein() / 2000), 2)
        (1.98, 2.72)
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            far = BERRY_ESSEEN * self.block / np.sqrt(np.maximum(self.least, 0))
        tail = np.asarray(self.failure / 2 - far)
        known = tail > 0
        deviations = np.ones(tail.shape)
        deviations[known] = [-NormalDist().inv_cdf(each) for each in tail[known].tolist()]
        return np.where(known, deviations * np.sqrt(self.variance), np.inf)

    def bernstein(self) -> Floats:
        return bernstein(self.variance + self.swing, self.block, self.failure / 2)

    def __add__(self, other: "Bounds") -> "Bounds":
        """Return bounds of sums of estimates from reports of different people, in one random choice."""
        return replace(
            self,
            variance=self.variance + other.variance,
            least=self.least + other.least,
            block=np.maximum(self.block, other.block),
            swing=(np.sqrt(self.swing) + np.sqrt(other.swing)) ** 2,
        )


def bernstein(variance: Floats, block: Floats, failure: float) -> Floats:
    """Return a number that a sum of independent numbers of mean 0 exceeds with at most this probability, float64 [..].

    Args:
        variance: variance of the sum, float64 [..].
        block: largest value of a summand, float64 [..].
        failure: the probability.
    """
    log = -math.log(failure)
    return block * log / 3 + np.sqrt((block * log / 3) ** 2 + 2 * variance * log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Weights of the reports from which estimates are made, [numbers, layers].

    Attributes:
        nodes: number of nodes with a weight.
        weight: largest absolute weight of a report.
        squares: sum of the squares of the weights of all reports.
        sway: largest effect of the changes of one person who has reported on all nodes: a person who has arrived leaves
            next, so weights are added and subtracted in turn.
        even: whether all nodes with a weight have the same.
        people: number of people of a layer, if `whole`.
        whole: whether everybody has reported on every closed node of a layer.
    """

    nodes: Ints
    weight: Floats
    squares: Floats
    sway: Floats
    even: NDArray[np.bool_]
    people: Ints
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Common values for signs and symbols, [numbers, layers]; `swing` [numbers].

    Attributes:
        changed: number of nodes that one person can change.
        picked: largest sum of squares of the weights of reports on nodes that their people change.
        means: largest sum of squares of the sums of one person's weights on these, with its signs.
        steady: whether the sum of one person's changes is at most one of them.
    """

    changed: Ints
    weight: Floats
    squares: Floats
    picked: Floats
    means: Floats
    steady: NDArray[np.bool_]
    swing: Floats

    def bounds(self, variance: Floats, least: Floats, block: Floats) -> Bounds:
        """Return bounds of numbers from those of layers, axis 1.

        Args:
            variance, least, block: bounds of layers, float64 [numbers, layers, ..].
        """
        return Bounds(
            variance=variance.sum(axis=1),
            least=least.sum(axis=1),
            block=block.max(axis=1),
            swing=self.swing[:, None],
        )


def of_changes(design: Design, heard: Heard, people: int, arrived: Floats, left: Floats) -> Bounds:
    """Return bounds of sums of the changes of nodes, [numbers, answers or 1].

    Args:
        design: the design of the release.
        heard: weights of the reports.
        people: number of people who are enrolled.
        arrived, left: for symbols, [numbers, layers, answers]: unbiased estimates of how many of those who report on a
            node have arrived at an answer, and have left it; times the square of the weight, added up over the nodes.
    """
    drawn = _drawn(design, heard, people)
    return _of_signs(design, drawn) if design.signs else _of_symbols(design, drawn, arrived, left)


def of_once(design: Design, reports: Ints, people: int) -> Bounds:
    """Return bounds of levels that are reported once, [windows, 1].

    Args:
        design: the design of the release.
        reports: number of reports on each window, int64 [windows].
        people: number of people who are enrolled.
    """
    randomiser = design.layers[0].randomiser
    weight = people / reports[:, None].astype(float)
    variance, least, block = randomiser.once(design.basis)
    return Bounds(
        variance=people * weight * variance,
        least=people * weight * least,
        block=weight * block,
        swing=people * weight / 4 * (reports < people)[:, None],
    )


def shares_of_coins(
    counts: Ints, reports: Ints, randomiser: Symbols, failure: float = FAILURE
) -> tuple[Floats, Floats]:
    """Return the ends of intervals of shares, by Clopper and Pearson, float64 of the shape of `counts`.

    Args:
        counts: number of reports with one symbol, int64.
        reports: number of reports, int64.
        randomiser: randomised response over the symbols.
        failure: largest probability that an interval misses.

    >>> low, high = shares_of_coins(np.array([30]), np.array([60]), Symbols(count=2, parts=1 << 61))
    >>> low.round(3), high.round(3)
    (array([0.236]), array([0.764]))
    """
    from scipy.special import betaincinv  # slow to import, and not needed by devices

    given, n = counts.astype(float), np.maximum(reports, 1).astype(float)  # without reports the ends are 0 and 1
    low = np.where(given > 0, betaincinv(np.maximum(given, 1), n - given + 1, failure / 2), 0.0)
    high = np.where(given < n, betaincinv(given + 1, np.maximum(n - given, 1), 1 - failure / 2), 1.0)
    # Near the ends Hoeffding's theorem does not help; the probability of any coin, or of not all, is at most a sum.
    low = np.where(given == 1, np.minimum(low, failure / 2 / n), low)
    high = np.where(given == n - 1, np.maximum(high, 1 - failure / 2 / n), high)
    p, spread = float(randomiser.other), float(randomiser.spread)
    return (low - p) / spread, (high - p) / spread


def _drawn(design: Design, heard: Heard, people: int) -> _Drawn:
    most = np.array([design.bound.changed(layer.span, design.windows // layer.span) for layer in design.layers])
    changed = np.minimum(most, heard.nodes)
    members = heard.people if heard.whole else np.full(heard.people.shape, people)
    one = heard.nodes <= 1
    sway = heard.sway if heard.whole else heard.weight * changed
    picked = np.minimum(heard.squares, changed * members * heard.weight**2)
    means = np.where(one, heard.squares, np.minimum(members * sway**2, changed * picked))
    swings = np.sqrt(np.where(one | heard.whole, means, heard.nodes * heard.squares))
    everybody = heard.whole and len(design.layers) == 1  # nothing is drawn
    return _Drawn(
        changed=changed,
        weight=heard.weight,
        squares=heard.squares,
        picked=picked,
        means=means,
        steady=one | (heard.even & heard.whole),
        swing=swings.sum(axis=1) ** 2 * (not everybody),
    )


def _of_signs(design: Design, drawn: _Drawn) -> Bounds:
    gains = np.array([float(signs.gain) for signs in design.signs])
    pairs = np.array([float(signs.together) for signs in design.signs]) / gains**2
    variance, size = design.basis.variance / gains**2, design.basis.factor / gains
    most = drawn.squares * variance + np.where(drawn.steady, 0, drawn.means * pairs)
    least = drawn.squares * variance - drawn.picked * np.where(drawn.changed > 1, pairs, 0) - drawn.means
    block = drawn.weight * drawn.changed * (size + 1)
    return drawn.bounds(most[..., None], least[..., None], block[..., None])


def _of_symbols(design: Design, drawn: _Drawn, arrived: Floats, left: Floats) -> Bounds:
    away, to = (each.astype(float) for each in design.space.degrees())
    found = []
    for number, symbols in enumerate(design.symbols):
        p, spread = float(symbols.other), float(symbols.spread)
        kinds = ((p * to + up, p * away + down) for up, down in ((0, 0), (spread, 0), (0, spread)))
        none, comes, goes = ((up + down - (up - down) ** 2) / spread**2 for up, down in kinds)
        squares, picked, weight = (each[:, number, None] for each in (drawn.squares, drawn.picked, drawn.weight))
        least = squares * none - picked * np.maximum(none - np.minimum(comes, goes), 0)
        if drawn.swing.any():  # who reports adds the square of what is drawn
            times = np.where(drawn.steady, 1, np.maximum(drawn.changed, 1))[:, number, None]
            comes, goes = (each + times for each in (comes, goes))
        told = (comes - none) * arrived[:, number] + (goes - none) * left[:, number]
        apart = np.maximum(np.abs(comes - none), np.abs(goes - none)) / spread
        told_variance = (weight * apart) ** 2 * squares * (p * (to + away) + spread)
        told = told + bernstein(told_variance, 2 * weight**2 * apart, COUNTED / len(design.layers))
        extra = np.clip(told, 0, picked * np.maximum(np.maximum(comes, goes) - none, 0))
        block = weight * (1 + p * np.abs(to - away) + spread) / spread
        found.append((squares * none + extra, least, np.where(squares > 0, block, 0)))
    variance, leasts, blocks = (np.stack(each, axis=1) for each in zip(*found, strict=True))
    return replace(drawn.bounds(variance, leasts, blocks), failure=FAILURE - COUNTED)
