"""Layer: adaptive queries, whose data decide which windows are sampled: exact losses on small histograms.

Two streams of levels that neighbours may have are compared on the same published flags and values. The probability of
each comes from the decisions of the program itself (privacy.evidence.decisions), so the loss is exact.
"""

import math
from collections.abc import Iterator
from random import Random
from time import process_time

import numpy as np

from pipelines.audit.findings import LayerResult
from pipelines.audit.stages import Stages
from privacy.adaptive.base import Rule
from privacy.adaptive.scales import Scales
from privacy.cells.each import Each
from privacy.evidence.decisions import log_chance
from privacy.noise.kinds import NOISE
from privacy.series import Ints

CELLS = 2
MOST_WINDOWS = 6
TOLERANCE = 1e-6

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
    tried, faults, found, untested = 0, [], [], []
    for part in adaptive:
        name = stages.job.aggregation.queries[part.query].name
        if not (part.rule.publication.repeats and part.over.alone and NOISE[part.scales.noise].pure):
            untested.append(f"{name}: the exact loss of decisions by policy {part.rule.name} with these samples.")
            continue
        worst, number = _worst(part.rule, part.scales, choose, process_time() + seconds / len(adaptive))
        tried += number
        share = stages.job.plan.share(part) * stages.job.plan.budget.epsilon
        found.append(f"{name}: the worst loss is {worst:.4f}, and its share of the budget is {share:.4f}")
        if worst > share * (1 + TOLERANCE):
            faults.append(f"{name}: a loss of {worst:.4f} exceeds its share of {share:.4f}")
    if adaptive:
        yield LayerResult(
            name="decisions",
            question="Do decisions and samples of adaptive queries cost more than the plan says?",
            tried={"adaptive queries": len(adaptive), "pairs of streams": tried},
            found=tuple(found),
            faults=tuple(faults),
            untested=tuple(untested),
        )


def _worst(rule: Rule, scales: Scales, choose: Random, until: float) -> tuple[float, int]:
    """Return the largest loss that random streams and climbing find, and the number of streams."""
    best, tried = 0.0, 0
    while process_time() < until and not math.isinf(best):
        stream = _stream(rule, scales, choose)
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
    if math.isinf(left) and math.isinf(right):
        return 0.0  # neither is ever published so
    return abs(left - right)


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
    widest = max(scales.sample(1).scale if scales.units < 1000 else scales.whole * 4, scales.test or 1.0)
    return round(choose.choice([-8, -1, 0, 0, 1, 8]) * widest)
