"""Layer: adaptive queries, whose data decide which windows are sampled: exact losses on small histograms.

Two streams of levels that neighbours may have are compared on the same published flags and values. The probability of
each comes from the decisions of the program itself (privacy.evidence.decisions), so the loss is exact. The search
begins with streams that are made to cost as much as the plan states, one for each order of sampled and repeated
windows, whose single decisions are checked, too: it does not depend on chance whether an error of a decision is seen.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from time import process_time

import numpy as np

from pipelines.audit.findings import LayerResult
from pipelines.audit.stages import Stages
from privacy.adaptive.base import Rule
from privacy.adaptive.scales import Scales
from privacy.cells.each import Each
from privacy.evidence.decisions import log_chance, work, wrong_decisions
from privacy.noise.kinds import NOISE
from privacy.series import Ints

CELLS = 2
MOST_WINDOWS = 6
LONGEST = 40
"""Most windows of streams that are made in a few orders only."""

FIRSTS = (1, 2, 3, 4)
"""Windows in which a protected span begins."""

TOLERANCE = 1e-6

FAR = 4096
"""Distance, in widths of the widest noise, at which a window is surely sampled."""

MOST_WORK = 2**22
"""Largest number of values of a threshold's noise over which a loss is added up."""

Stream = tuple[Ints, Ints, tuple[bool, ...], Ints]
"""Levels of both neighbours, flags and published values."""


def check_adaptive(stages: Stages, *, seconds: float, choose: Random) -> Iterator[LayerResult]:
    """Search for streams whose loss exceeds the share of an adaptive query; nothing without such a query.

    Args:
        stages: Stages of the copy.
        seconds: Processor time.
        choose: Source of random choices.
    """
    adaptive = stages.job.plan.adaptive
    tried, total, faults, found, untested = 0, 0.0, dict[str, None](), [], []
    for part in adaptive:
        name = stages.job.aggregation.queries[part.query].name
        rule, scales = part.rule, part.scales
        if not (rule.publication.repeats and part.over.alone):
            untested.append(f"{name}: decisions by policy {rule.name} with these samples.")
            continue
        made = [*_made(rule, scales)]
        tried += len(made)
        for one, two, flags, values in made:
            found_wrong = wrong_decisions(rule, scales, Each(cells=CELLS), (one, two), flags, values)
            faults |= dict.fromkeys(f"{name}: {wrong}" for wrong in found_wrong)
        if not NOISE[scales.noise].pure or work(scales) > MOST_WORK:
            untested.append(f"{name}: the exact loss of all windows together, with noise of this kind or size.")
            continue
        worst, number = _worst(rule, scales, choose, process_time() + seconds / len(adaptive), made)
        tried += number
        share = stages.job.plan.share(part) * stages.job.plan.budget.epsilon
        total += worst
        found.append(f"{name}: the worst loss is {worst:.4f}, and its share of the budget is {share:.4f}")
        if worst > share * (1 + TOLERANCE):
            faults[f"{name}: a loss of {worst:.4f} exceeds its share of {share:.4f}"] = None
    if adaptive:
        yield LayerResult(
            name="decisions",
            question="Do decisions and samples of adaptive queries cost more than the plan says?",
            tried={"adaptive queries": len(adaptive), "pairs of streams": tried},
            found=tuple(found),
            faults=(*faults,),
            untested=tuple(untested),
            measures={"loss": total},
        )


def _worst(rule: Rule, scales: Scales, choose: Random, until: float, made: Sequence[Stream]) -> tuple[float, int]:
    """Return the largest loss of these streams and of those that climbing finds, and how many were tried."""
    losses = sorted(((_loss(rule, scales, stream), place) for place, stream in enumerate(made)), reverse=True)
    best, tried = losses[0][0], 0
    while process_time() < until and not math.isinf(best):
        stream = made[losses[tried % len(losses)][1]] if tried % 2 == 0 else _stream(rule, scales, choose)
        loss, failed = _loss(rule, scales, stream), 0
        tried += 1
        while failed < 25 and process_time() < until:
            other = _changed(stream, rule, scales, choose)
            now = _loss(rule, scales, other)
            tried += 1
            failed = 0 if now > loss else failed + 1
            if now >= loss:
                stream, loss = other, now
        best = max(best, loss)
    return best, tried


def _loss(rule: Rule, scales: Scales, stream: Stream) -> float:
    one, two, flags, values = stream
    left, right = (log_chance(rule, scales, Each(cells=CELLS), levels, flags, values) for levels in (one, two))
    if (math.isinf(left) and math.isinf(right)) or math.isnan(left + right):
        return 0.0  # neither is ever published so, or so rarely that the sum is not exact
    return abs(left - right)


def _made(rule: Rule, scales: Scales) -> Iterator[Stream]:
    """Yield, for each order of sampled and repeated windows, neighbours that these windows tell apart most.

    In each window the second level is one sensitivity above the first. A sampled window has the last published values
    as its first level, and publishes the second one: the second distance and the second level are more likely. A
    repeated window has its levels far below the last published values: the second distance is smaller.
    """
    far = FAR * math.ceil(max(scales.test or 1, scales.threshold or 1, _widest(scales)))
    for first, flags in _orders(rule):
        windows = len(flags)
        one, two, values = (np.zeros((windows, CELLS), dtype=np.int64) for _ in range(3))
        published = np.zeros(CELLS, dtype=np.int64)
        for window, sampled in enumerate(flags):
            one[window] = published
            one[window, 0] -= 0 if sampled else far
            two[window] = one[window]
            two[window, 0] += scales.sensitivity if window >= first else 0
            if sampled:
                published = values[window] = two[window]
        yield one, two, flags, values


def _orders(rule: Rule) -> Iterator[tuple[int, tuple[bool, ...]]]:
    """Yield windows in which neighbours begin to differ, with orders of sampled windows: of few windows, all orders."""
    for first in (0,) if rule.period.span is None else FIRSTS:
        windows = first + rule.period.among
        for later in product((False, True), repeat=min(windows, MOST_WINDOWS) - 1):
            yield first, (True, *later)
        if windows > MOST_WINDOWS:
            last = min(windows, LONGEST) - 1
            yield from ((first, tuple(place % step == 0 for place in range(last + 1))) for step in (1, 2, 4, last))


def _stream(rule: Rule, scales: Scales, choose: Random) -> Stream:
    """Return random levels of neighbours: apart by the sensitivity in the windows in which they may differ."""
    among = rule.period.among
    windows = min(among if rule.period.windows is not None else among + 2, MOST_WINDOWS)
    one = np.array([[choose.randint(0, 3) * scales.sensitivity for _ in range(CELLS)] for _ in range(windows)])
    flags = tuple(choose.random() < 0.5 for _ in range(windows))
    values = one + np.array([[_far(scales, choose) for _ in range(CELLS)] for _ in range(windows)])
    first = choose.randint(0, windows - 1) if rule.period.span is not None else 0
    return one, _apart(one, first, among, scales, choose), flags, values


def _apart(one: Ints, first: int, among: int, scales: Scales, choose: Random) -> Ints:
    two = one.copy()
    for window in range(first, min(len(one), first + among)):
        two[window, choose.randrange(CELLS)] += choose.choice([-1, 1]) * scales.sensitivity
    return two


def _changed(stream: Stream, rule: Rule, scales: Scales, choose: Random) -> Stream:
    """Return a stream with one change: of a flag, of a published value, or of both levels of a window."""
    one, two, flags, values = stream[0].copy(), stream[1].copy(), [*stream[2]], stream[3].copy()
    window, cell = choose.randrange(len(flags)), choose.randrange(CELLS)
    kind = choose.randrange(3)
    if kind == 0:
        flags[window] = not flags[window]
    elif kind == 1:
        values[window, cell] = one[window, cell] + _far(scales, choose)
    else:
        moved = choose.choice([-1, 1, 2, 10]) * scales.sensitivity
        one[window, cell] += moved
        two[window, cell] += moved
    return one, two, tuple(flags), values


def _far(scales: Scales, choose: Random) -> int:
    return round(choose.choice([-8, -1, 0, 0, 1, 8]) * max(_widest(scales), scales.test or 1.0))


def _widest(scales: Scales) -> float:
    return scales.sample(1).scale if scales.units < 1000 else scales.whole * 4
