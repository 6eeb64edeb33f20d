"""The collector's part: from reports to unbiased numbers of people, with variances. Reads nothing that is not public.

Reports of a node are tallied as they come; tallies add up, in any order. A node's estimate is scaled from those who
have reported on it to all people: an absent report counts as if it were like those that came, so what is absent must
not depend on the answers. Layers and turns are drawn by chance, so with all reports there the estimate is unbiased.

    change of a node    signs      (people / reports) basis.decoded(sums) / gain
                        symbols    (people / reports) M P^-1 O, O the tally of symbols, P their probabilities, M what
                                   each means for the answers
    level, change       of all nodes together by least squares (privacy.local.least_squares), or what is reported once

**Variances.** For symbols on one layer with every report there, M (P^-1 diag(O) P^-T - diag(P^-1 O)) M^T is an unbiased
estimate of the exact covariance M (P^-1 diag(P N) P^-T - diag(N)) M^T, N being the true numbers of symbols: linear in
N. (The paper's appendix C mixes proportions and counts and takes people for draws from one distribution.) P^-1 is
(I - p 1 1^T) / (q - p), so no matrix of symbols is made. Where people are in several layers or reports are absent the
second term is left out, which covers the drawing of people too. For signs it is at most
people^2 / reports * basis.variance / gain^2 for each node, whatever people do, times the square of the node's weight;
what one person's signs have in common, less as a rule, is part of the intervals alone (docs/proofs/local.md,
privacy.local.intervals).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacy.local.basis import Floats
from privacy.local.chance import Ints
from privacy.local.client import Reports
from privacy.local.design import Design, variance_of_change
from privacy.local.intervals import FAILURE, Bounds, Heard, of_changes, of_once, shares_of_coins
from privacy.local.least_squares import node_weights
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import Signs
from privacy.local.symbols import Symbols

MOST_WEIGHTS = 1 << 22
"""Of nodes in numbers that are worked on together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What has been reported on a node.

    Attributes:
        reports: how many.
        sums: [questions] sums of signs; or [2, answers] how many symbols lead away from each answer and to it; or
            [1, answers] how many have reported each once.
    """

    reports: int
    sums: Ints

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(reports=self.reports + other.reports, sums=self.sums + other.sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Numbers of people by answer; [windows, answers]. No reports: NaN, and an infinite variance.

    Attributes:
        lows, highs: ends of 95 % intervals, each of which holds at least as often, however few people there are.
    """

    values: Floats
    variances: Floats
    lows: Floats
    highs: Floats


def tally(design: Design, reports: Reports) -> dict[int, Tally]:
    """By layer; reports of one window, each person's once."""
    found = {}
    for number in np.unique(reports.layer).tolist():
        mine = reports.layer == number
        symbol, sign = reports.symbol[mine].astype(np.int64), reports.sign[mine]
        randomiser = design.layers[number].randomiser
        if isinstance(randomiser, Signs):
            ups = np.bincount(symbol[sign > 0], minlength=design.basis.questions)
            sums = ups - np.bincount(symbol[sign < 0], minlength=design.basis.questions)
        elif design.reported == "once":
            sums = np.bincount(symbol, minlength=design.answers + 1)[None, : design.answers]
        else:
            before, after = design.space.ends(symbol[symbol > 0])
            least = design.answers + 1
            sums = np.stack([np.bincount(ends, minlength=least)[:-1] for ends in (before, after)])
        found[number] = Tally(reports=len(symbol), sums=sums)
    return found


def empty(design: Design, layer: int) -> Tally:
    """Of a node that nobody has reported on."""
    shape: tuple[int, ...] = (design.basis.questions,)
    if isinstance(design.layers[layer].randomiser, Symbols):
        shape = (1 if design.reported == "once" else 2, design.answers)
    return Tally(reports=0, sums=np.zeros(shape, dtype=np.int64))


def levels(design: Design, tallies: Mapping[tuple[int, int], Tally], *, people: int, windows: int) -> Estimates:
    """At the ends of the first `windows` windows.

    Args:
        tallies: by layer and node.
    """
    if design.reported == "once":
        return _levels_once(design, tallies, people, windows)
    return _of_nodes(design, tallies, people, windows, np.tri(windows))


def changes(design: Design, tallies: Mapping[tuple[int, int], Tally], *, people: int, windows: int) -> Estimates:
    """In each of the first `windows` windows."""
    if design.reported == "once":
        return _changes_once(design, tallies, people, windows)
    return _of_nodes(design, tallies, people, windows, np.eye(windows))


def covariance(space: MutationSpace, randomiser: Symbols, tallied: Ints) -> Floats:
    """Of the estimated changes of all answers, [answers, answers], from the tally of symbols of every person.

    The diagonal is what `changes` says. Its size is that of the answers, never that of the symbols.
    """
    p, spread, n = float(randomiser.other), float(randomiser.spread), int(tallied.sum())
    before, after = space.ends(np.arange(1, space.count))
    away, to = space.degrees()

    def moved(weights: Floats) -> Floats:
        """M diag(weights) M^T, from the symbols that are changes."""
        square = np.zeros((space.answers + 1, space.answers + 1))
        np.add.at(square, (before, before), weights)
        np.add.at(square, (after, after), weights)
        np.add.at(square, (before, after), -weights)
        np.add.at(square, (after, before), -weights)
        return square[:-1, :-1]

    observed = tallied[1:].astype(float)
    least = space.answers + 1
    change = (np.bincount(after, observed, least) - np.bincount(before, observed, least))[:-1]
    degree = (to - away).astype(float)
    spun = (
        moved(observed)
        - p * (np.outer(degree, change) + np.outer(change, degree))
        + p**2 * n * np.outer(degree, degree)
    )
    return spun / spread**2 - moved((observed - p * n) / spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes:
    """Those of a layer that have closed, [nodes] and [nodes, answers]; zeros where there are no reports.

    Attributes:
        counted: of symbols, [nodes, 2, answers] unbiased estimates of how many of those who report have come to an
            answer, and have left it.
    """

    reports: Ints
    values: Floats
    variances: Floats
    counted: Floats


def _of_nodes(
    design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int, sums: Floats
) -> Estimates:
    """Sums of windows, [sums, windows], from all nodes that have closed, by least squares."""
    layers = [_nodes(design, layer, tallies, people, windows) for layer in range(len(design.layers))]
    whole = people == sum(int(each.reports.min()) for each in layers if len(each.reports))
    precisions = [
        each.reports / variance_of_change(design.basis, design.space, layer.randomiser)
        for each, layer in zip(layers, design.layers, strict=True)
    ]
    spans = [layer.span for layer in design.layers]
    rows = max(1, MOST_WEIGHTS // sum(len(each.reports) for each in layers))
    parts = [
        _summed(design, layers, node_weights(spans, precisions, sums[start : start + rows]), people, whole=whole)
        for start in range(0, len(sums), rows)
    ]
    return Estimates(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in Estimates.__slots__},
    )


def _summed(design: Design, layers: list[_Nodes], weights: list[Floats], people: int, *, whole: bool) -> Estimates:
    unknown = np.isnan(weights[0][:, 0])
    weights = [np.nan_to_num(each) for each in weights]
    pairs = list(zip(weights, layers, strict=True))
    values = np.sum([weight @ each.values for weight, each in pairs], axis=0)
    variances = np.sum([weight**2 @ each.variances for weight, each in pairs], axis=0)
    scaled = [weight * (people / np.maximum(each.reports, 1)) for weight, each in pairs]
    sizes = [np.abs(each) for each in scaled]
    heard = Heard(
        nodes=_by_layer([(each > 0).sum(axis=1) for each in sizes]),
        weight=_by_layer([each.max(axis=1, initial=0) for each in sizes]),
        squares=_by_layer([each**2 @ layer.reports for each, layer in zip(scaled, layers, strict=True)]),
        sway=_by_layer([_sway(each) for each in scaled]),
        even=_by_layer([((each == 0) | (each == each.max(axis=1, initial=0)[:, None])).all(axis=1) for each in scaled]),
        people=_by_layer([np.full(len(values), each.reports.max(initial=1)) for each in layers]),
        whole=whole,
    )
    counted = np.stack(
        [np.einsum("sn,nka->ska", each**2, layer.counted) for each, layer in zip(scaled, layers, strict=True)], axis=2
    )
    bounds = of_changes(design, heard, people, counted[:, 0], counted[:, 1])
    values[unknown], variances[unknown] = np.nan, np.inf
    return _around(values, variances, bounds)


def _nodes(design: Design, layer: int, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int) -> _Nodes:
    count, answers = windows // design.layers[layer].span, design.answers
    randomiser = design.layers[layer].randomiser
    reports = np.zeros(count, dtype=np.int64)
    values, variances, counted = np.zeros((count, answers)), np.zeros((count, answers)), np.zeros((count, 2, answers))
    for node in range(count):
        tallied = tallies.get((layer, node))
        if tallied is None or tallied.reports == 0:
            continue
        reports[node] = n = tallied.reports
        values[node], variances[node] = _change(design, layer, tallied, people)
        if isinstance(randomiser, Symbols):
            degrees = np.stack(design.space.degrees())
            by_symbols = (tallied.sums - float(randomiser.other) * n * degrees) / float(randomiser.spread)
            counted[node] = by_symbols[::-1]  # tallies have who has left first
    return _Nodes(reports=reports, values=values, variances=variances, counted=counted)


def _sway(weights: Floats) -> Floats:
    """The largest size of a sum of some of the weights of a row, the first added, the next taken away, and so on."""
    ends_up, ends_down = np.zeros(len(weights)), np.zeros(len(weights))  # also those that begin the other way round
    for weight in weights.T:
        ends_up, ends_down = np.maximum(ends_up, ends_down + weight), np.maximum(ends_down, ends_up - weight)
    return np.maximum(ends_up, ends_down)


def _by_layer(columns: list[Any]) -> Any:
    return np.stack(columns, axis=1)


def _around(values: Floats, variances: Floats, bounds: Bounds) -> Estimates:
    half = np.where(np.isfinite(variances), bounds.half_widths(), np.nan)
    return Estimates(values=values, variances=variances, lows=values - half, highs=values + half)


def _change(design: Design, layer: int, tallied: Tally, people: int) -> tuple[Floats, Floats]:
    """A node's estimate and its variance."""
    randomiser, n = design.layers[layer].randomiser, tallied.reports
    scale = people / n
    if isinstance(randomiser, Signs):
        gain = float(randomiser.gain)
        variance = people * scale * design.basis.variance / gain**2
        return scale * design.basis.decoded(tallied.sums) / gain, np.full(design.answers, variance)
    p, spread = float(randomiser.other), float(randomiser.spread)
    (away, to), degrees = tallied.sums, design.space.degrees()
    degree = degrees[1] - degrees[0]
    value = (to - away - p * n * degree) / spread
    variances = (to + away - 2 * p * degree * (to - away) + p**2 * n * degree**2) / spread**2
    if n == people:
        variances = np.maximum(variances - (to + away - p * n * (degrees[0] + degrees[1])) / spread, 0)
    else:  # few reports may show no noise, but there is some
        variances = np.maximum(variances, n * (p * (degrees[0] + degrees[1]) - (p * degree) ** 2) / spread**2)
    return scale * value, scale**2 * variances


def _levels_once(design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int) -> Estimates:
    numbers = [_once(design, tallies.get((0, node)), people) for node in range(windows)]
    values = np.array([value for value, _ in numbers])
    variances = np.array([variance for _, variance in numbers])
    reports = _reports(tallies, windows)
    if isinstance(design.layers[0].randomiser, Signs):
        return _around(values, variances, of_once(design, reports, people))
    lows, highs = _coins(design, tallies, people, windows, FAILURE)
    return Estimates(values=values, variances=variances, lows=lows, highs=highs)


def _changes_once(design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int) -> Estimates:
    """From one level to the next; before the first window nobody is there."""
    once = _levels_once(design, tallies, people, windows)
    none = np.zeros((1, design.answers))
    values = np.diff(once.values, axis=0, prepend=none)
    variances = once.variances + np.concatenate([none, once.variances[:-1]])
    reports = _reports(tallies, windows)
    bounds = of_once(design, reports[1:], people) + of_once(design, reports[:-1], people)
    found = _around(values[1:], variances[1:], bounds)
    lows, highs = found.lows, found.highs
    if isinstance(design.layers[0].randomiser, Symbols):
        # Where that is not close enough to normal: an interval for each of the two, either of which may miss half as
        # often. Which it is does not depend on what was reported.
        low, high = _coins(design, tallies, people, windows, FAILURE / 2)
        close = np.isfinite(bounds.normal())
        lows, highs = np.where(close, lows, low[1:] - high[:-1]), np.where(close, highs, high[1:] - low[:-1])
    return Estimates(
        values=values,
        variances=variances,
        lows=np.concatenate([once.lows[:1], lows]),
        highs=np.concatenate([once.highs[:1], highs]),
    )


def _reports(tallies: Mapping[tuple[int, int], Tally], windows: int) -> Ints:
    """On each window; 1 where there are none, and no estimate."""
    return np.array([max(1, tallies[0, node].reports) if (0, node) in tallies else 1 for node in range(windows)])


def _coins(
    design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int, failure: float
) -> tuple[Floats, Floats]:
    """Ends of intervals of levels that are reported once, as symbols."""
    (layer,) = design.layers
    assert isinstance(layer.randomiser, Symbols)
    heard = [tallies.get((0, node), empty(design, 0)) for node in range(windows)]
    reports = np.array([[each.reports] for each in heard])
    low, high = shares_of_coins(np.array([each.sums[0] for each in heard]), reports, layer.randomiser, failure)
    known = reports > 1
    return np.where(known, people * low, np.nan), np.where(known, people * high, np.nan)


def _once(design: Design, tallied: Tally | None, people: int) -> tuple[Floats, Floats]:
    """A level from those who have reported in its window, and its variance."""
    if tallied is None or tallied.reports < 2:
        return _unknown(design)
    (layer,), n = design.layers, tallied.reports
    scale = people / n
    if isinstance(layer.randomiser, Signs):
        gain = float(layer.randomiser.gain)
        value = people * design.basis.share + scale * design.basis.decoded(tallied.sums) / 2 / gain
        return value, np.full(design.answers, people * scale * design.basis.variance / 4 / gain**2)
    p, spread = float(layer.randomiser.other), float(layer.randomiser.spread)
    (given,) = tallied.sums
    least = n * min(p * (1 - p), (p + spread) * (1 - p - spread))
    spun = np.maximum(given * (1 - given / n) * n / (n - 1), least)
    return scale * (given - p * n) / spread, scale**2 * spun / spread**2


def _unknown(design: Design) -> tuple[Floats, Floats]:
    return np.full(design.answers, np.nan), np.full(design.answers, np.inf)
