"""The collector's part: from reports to unbiased numbers of people, with variances. Reads nothing that is not public.

Reports of a node are tallied as they come; tallies add up, in any order. A node's estimate is scaled from those who
have reported on it to all people: an absent report counts as if it were like those that came, so what is absent must
not depend on the answers. Layers and turns are drawn by chance, so with all reports there the estimate is unbiased.

    change of a node    signs      (people / reports) basis.decoded(sums) / gain
                        symbols    (people / reports) M P^-1 O, O the tally of symbols, P their probabilities, M what
                                   each means for the answers
    level               the sum of the changes of the fewest nodes, or what is reported once

**Variances.** For symbols on one layer with every report there, M (P^-1 diag(O) P^-T - diag(P^-1 O)) M^T is an unbiased
estimate of the exact covariance M (P^-1 diag(P N) P^-T - diag(N)) M^T, N being the true numbers of symbols: linear in
N. (The paper's appendix C mixes proportions and counts and takes people for draws from one distribution.) P^-1 is
(I - p 1 1^T) / (q - p), so no matrix of symbols is made. Where people are in several layers or reports are absent the
second term is left out, which covers the drawing of people too. For signs it is at most
people^2 / reports * basis.variance / gain^2 for each node, whatever people do, and adds up over the nodes of a level:
what one person's signs have in common lowers it (docs/proofs/local.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from privacy.local.basis import Floats
from privacy.local.chance import Ints
from privacy.local.client import Reports
from privacy.local.design import Design
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import Signs
from privacy.local.symbols import Symbols

Z95 = NormalDist().inv_cdf(0.975)


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
    """Numbers of people by answer; [windows, answers]. No reports: NaN, and an infinite variance."""

    values: Floats
    variances: Floats

    @property
    def half_widths(self) -> Floats:
        """Of 95 % intervals, sums of many independent reports being close to normal."""
        return Z95 * np.sqrt(self.variances)


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
        return _stacked([_once(design, tallies.get((0, node)), people) for node in range(windows)])
    spans = [layer.span for layer in design.layers]
    nothing = np.zeros(design.answers)
    numbers = [(nothing, nothing)]
    for end in range(1, windows + 1):
        # The last of the fewest nodes that make up all windows so far, and the level before it.
        layer = max(number for number, span in enumerate(spans) if end % span == 0)
        value, variance = _change(design, layer, tallies.get((layer, end // spans[layer] - 1)), people)
        before = numbers[end - spans[layer]]
        numbers.append((before[0] + value, before[1] + variance))
    return _stacked(numbers[1:])


def changes(design: Design, tallies: Mapping[tuple[int, int], Tally], *, people: int, windows: int) -> Estimates:
    """In each of the first `windows` windows."""
    if design.reported == "once":
        once = levels(design, tallies, people=people, windows=windows)
        before = np.zeros((1, design.answers))
        return Estimates(
            values=np.diff(once.values, axis=0, prepend=before),
            variances=once.variances + np.concatenate([before, once.variances[:-1]]),
        )
    return _stacked([_change(design, 0, tallies.get((0, node)), people) for node in range(windows)])


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


def _change(design: Design, layer: int, tallied: Tally | None, people: int) -> tuple[Floats, Floats]:
    """A node's estimate and its variance."""
    if tallied is None or tallied.reports == 0:
        return _unknown(design)
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


def _stacked(numbers: list[tuple[Floats, Floats]]) -> Estimates:
    return Estimates(
        values=np.array([value for value, _ in numbers]), variances=np.array([variance for _, variance in numbers])
    )
