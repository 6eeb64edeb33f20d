"""Lives that use a whole bound: all changes that count, in as many nodes and cells as possible.

They depend on the spec alone. So an error of a sensitivity or of a bound is seen in each audit, and the worst of them
are the neighbours that a reader can tell apart best.
"""

from collections.abc import Iterator, Sequence

from pipelines.audit.lives import Life, Move, Surroundings
from pipelines.audit.synthetic import State

AT_ONCE = 1000
"""Microseconds that hold all changes of a window."""

MOST_PHASES = 4
"""Windows of a block in which a span begins."""


def whole_bounds(setting: Surroundings) -> Iterator[tuple[str, Life]]:
    """Yield lives that use a whole bound: all changes, far apart in time, or all cells in each window of its time."""
    windows, first, second = setting.timeline.windows, setting.corners[0], setting.corners[-1]
    constraint, cuts = setting.promise.constraint, halves(setting)
    for place, part in enumerate(constraint.parts):
        of_class = {} if constraint.column is None else {constraint.column: constraint.names[place]}
        one, two = ({**state, **of_class} for state in (first, second))
        if part.changes is None:
            begin = setting.end(1) - AT_ONCE
            met = sum(setting.end(w - 1) <= begin + part.span for w in range(1, windows + 1))
            times = [max(begin, setting.end(w - 1)) for w in range(1, min(met + 2, windows) + 1)]  # two beyond it
            for cells, epochs in (([{**state, **of_class} for state in setting.cells], 2), ([one, two], 7)):
                visits = zip(times, _visits(cells, len(times)), strict=True)
                moves = [Move(time + n, 0, state) for time, visit in visits for n, state in visit]
                yield "all cells in each window", Life((*moves,), False, even_cuts(setting, min(windows, epochs)))
            continue
        counted = min(part.changes, 2 * windows)
        spread = [setting.inside(1 + n * windows // (counted + 1)) + n for n in range(counted + 1)]
        third = {**setting.cells[1 % len(setting.cells)], **of_class}
        for other in (two, third, None):
            there = [Move(setting.end(0) - 1, 0, two)] if other is third else []
            moves = [*there, *(Move(time, 0, other if n % 2 else one) for n, time in enumerate(spread))]
            yield "all changes, far apart", Life((*moves,), False, cuts)
        each = [Move(setting.inside(min(windows, 1 + n)), 0, two if n % 2 else one) for n in range(counted + 4)]
        yield "one change in each epoch", Life((*each,), False, even_cuts(setting, min(windows, 7)))
    if constraint.column is not None:
        states = [
            {**state, constraint.column: setting.columns[constraint.column].beyond[0]} for state in (first, second)
        ]
        moves = [Move(setting.inside(w), 0, states[w % 2]) for w in range(1, windows + 1)]
        yield "a class that is not listed", Life((*moves,), False, cuts)


def _visits(cells: Sequence[State], windows: int) -> Iterator[Iterator[tuple[int, State]]]:
    """Yield for each window numbered states that enter and leave every cell, and end in another one than before."""
    ends = [*cells, None] if len(cells) == 1 else [*cells]
    for window in range(windows):
        before, after = ends[(window - 1) % len(ends)], ends[window % len(ends)]
        yield enumerate([*(state for state in ends if state != before), before, after])


def whole_spans(setting: Surroundings) -> Iterator[tuple[str, Life]]:
    """Yield lives with another state in each window of a span, which begins in each window of a block."""
    span = setting.promise.span
    assert span is not None
    every, bound = setting.timeline.every, setting.promise.constraint.at_once
    block = 1 if bound is None or bound.block is None else bound.block // every
    states = (
        [*setting.cells, setting.corners[-1]] if len(setting.cells) > 2 else [setting.corners[0], setting.corners[-1]]
    )
    for first in range(1, 1 + min(block, MOST_PHASES)):
        since = setting.end(first) - 1
        met = [w for w in range(first, setting.timeline.windows) if setting.end(w) - 1 < since + span.length]
        moves = [
            Move(setting.end(w) - 1, entry, states[n % len(states)])
            for n, w in enumerate(met)
            for entry in range(setting.entries)
        ]
        for restored in (None, 0, 1):
            yield (
                "another state in each window",
                Life((*moves,), False, halves(setting), since=since, restored=restored),
            )
        if block > 1:  # the unit is there before, and its changes after the span are held back in one course only
            one, two, last = setting.corners[0], setting.corners[-1], first + len(met) - 1
            seen = [
                (first - 1, one),
                *((w, (one, two)[n % 2]) for n, w in enumerate(met)),
                (last + 2, two),
                (last + 3, None),
            ]
            moves = [Move(setting.end(w) - 1, entry, state) for w, state in seen for entry in range(setting.entries)]
            yield "another state in each window", Life((*moves,), False, halves(setting), since=since)
    yield from _events_of_span(setting, span.length)


def _events_of_span(setting: Surroundings, length: int) -> Iterator[tuple[str, Life]]:
    """Yield lives that enter and leave all cells in each window of a span, which ends as soon as a window has begun."""
    last = -(-length // setting.timeline.every) + 1
    since = setting.end(last) + AT_ONCE - length
    met = [w for w in range(1, last + 2) if setting.end(w) > since]
    visits = zip(met, _visits([*setting.cells], len(met)), strict=True)
    times = [(max(since, setting.end(w - 1)) + 1 + n, state) for w, visit in visits for n, state in visit]
    for before in (None, setting.cells[0]):
        for restored in (0, 1):
            moves = [
                Move(time, entry, state)
                for time, state in ((since - 1, before), *times)
                for entry in range(setting.entries)
            ]
            life = Life((*moves,), False, halves(setting), since=since, restored=restored)
            yield "all cells in each window", life


def even_cuts(setting: Surroundings, epochs: int) -> tuple[int, ...]:
    """Return the ends of epochs of which all but the last have one window."""
    return (*range(1, epochs), setting.timeline.windows) if epochs > 1 else (setting.timeline.windows,)


def halves(setting: Surroundings) -> tuple[int, ...]:
    """Return the ends of two epochs."""
    windows = setting.timeline.windows
    return (max(1, windows // 2), windows) if windows > 1 else (1,)
