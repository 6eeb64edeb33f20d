"""Hard lives: a corpus for every spec, and small changes of lives."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from pipelines.audit.lives import LATEST, Life, Move, Surroundings
from pipelines.audit.synthetic import State, state_of
from pipelines.audit.whole_bounds import even_cuts, whole_bounds, whole_spans

RANDOM = 40
"""Random lives of a corpus."""


def corpus(setting: Surroundings, choose: Random) -> Iterator[tuple[str, Life]]:
    """Yield lives that are hard for some part of the program, with their kinds, the hardest first."""
    yield from _of_spans(setting, choose) if setting.promise.span is not None else _of_bounds(setting, choose)
    for _ in range(RANDOM):
        yield "random", random_life(setting, choose)


def always(setting: Surroundings, choose: Random) -> Iterator[tuple[str, Life]]:
    """Yield lives that every search tries, in any time: those that use a whole bound, and short ones.

    The short ones are some entries together, many changes at once, and values beyond bounds.
    """
    yield from whole_spans(setting) if setting.promise.span is not None else whole_bounds(setting)
    first, second = setting.corners[0], setting.corners[-1]
    half = setting.timeline.every // 2
    since = None if setting.promise.span is None else setting.end(0) + half
    begin = setting.end(0) + half + 1

    def life(moves: Sequence[Move]) -> Life:
        return Life((*moves,), False, cuts_of(setting, choose), since=since)

    for number in range(2, setting.entries + 1):
        together = [Move(begin, entry, first) for entry in range(number)]
        later = begin + (setting.timeline.every if since is None else 1)
        yield "some entries together", life([*together, *(Move(later, entry, second) for entry in range(number))])
    yield "many changes in a window", life([Move(begin + n, 0, second if n % 2 else first) for n in range(8)])
    if setting.promise.span is not None:
        windows = range(min(setting.timeline.windows, 2 + setting.promise.span.length // setting.timeline.every))
        several = [Move(setting.end(w) + half + n, 0, second if n % 2 else first) for w in windows for n in (1, 2, 3)]
        yield (
            "many changes in each window",
            life([move for move in several if move.time < begin - 1 + setting.promise.span.length]),
        )
    for name, pool in setting.columns.items():
        for value in pool.beyond:
            state = {**first, name: value}
            yield "values beyond bounds", life([Move(begin + n, 0, None if n % 2 else state) for n in range(3)])


def _of_bounds(setting: Surroundings, choose: Random) -> Iterator[tuple[str, Life]]:
    """Yield lives under a bound on everything that a unit does: to and fro between far states, at many distances."""
    windows, moves = setting.timeline.windows, setting.moves
    pairs = _pairs(setting, choose)
    for first, second in pairs:
        for there in (False, True):
            for step in (1, max(1, windows // moves), 0):
                begin = 1 if step else choose.randint(1, windows)
                times = [
                    setting.inside(min(windows, begin + step * place)) + place * (step == 0) for place in range(moves)
                ]
                states = [first if place % 2 == 0 else second for place in range(moves)]
                if there:
                    states = states[::-1] if moves % 2 else [second, first] * (moves // 2)
                for entries in {1, setting.entries}:
                    life = _toggles(times, states, entries, there, cuts_of(setting, choose))
                    yield ("to and fro" if step else "in one window"), life
        together = [Move(setting.inside(1), entry, first) for entry in range(setting.entries)]
        together += [Move(setting.inside(min(2, windows)), entry, second) for entry in range(setting.entries)]
        yield "entries that move together", Life((*together,), False, cuts_of(setting, choose))
        late = [
            Move(
                setting.inside(1) + place,
                0,
                first if place % 2 == 0 else second,
                late=place % (LATEST + 1),
                again=place % 3 == 0,
            )
            for place in range(moves)
        ]
        yield "late and repeated rows", Life((*late,), False, even_cuts(setting, min(4, windows)))
        edges = [Move(setting.end(place // 2) - place % 2, 0, first if place % 2 else second) for place in range(moves)]
        yield "on the edges of windows", Life((*edges,), False, cuts_of(setting, choose))


def _of_spans(setting: Surroundings, choose: Random) -> Iterator[tuple[str, Life]]:
    """Yield lives that differ within one span, which begins at several phases of a window, its edges among them."""
    span = setting.promise.span
    assert span is not None
    every = setting.timeline.every
    pairs = _pairs(setting, choose)
    phases = [0, 1, every - 1, every // 2, (-span.length) % every, (1 - span.length) % every]
    for place, phase in enumerate(phases):
        for first, second in pairs:
            for times in (1, 2):
                window = choose.randint(0, max(0, setting.timeline.windows - 3))
                since = setting.end(window) + phase
                after = (None, 0, 1)[place % 3]
                life = Life((), False, cuts_of(setting, choose), since=since, times=times, restored=after)
                until = setting.until(life)
                every_boundary = [setting.end(w) - 1 for w in range(window, setting.timeline.windows + 1)]
                inside = [since, *(t for t in every_boundary if since < t < until)]
                states = [first if number % 2 == 0 else second for number in range(len(inside))]
                moves = [
                    Move(time, entry, state)
                    for time, state in zip(inside, states, strict=True)
                    for entry in range(setting.entries)
                ]
                if place % 2:  # the unit is there before and after
                    moves += [
                        Move(max(setting.end(0) - 5, since - every), entry, second) for entry in range(setting.entries)
                    ]
                kind = (
                    "twice the span"
                    if times == 2 and not setting.near
                    else "at a distance"
                    if setting.near
                    else "a span"
                )
                yield kind, replace(life, moves=(*moves,))


def random_life(setting: Surroundings, choose: Random) -> Life:
    """Return any life."""
    span, number = setting.promise.span, choose.randint(1, setting.moves)
    low, high = setting.end(0) - setting.timeline.every, setting.timeline.until + setting.timeline.every
    since = None if span is None else choose.randint(setting.end(0) - 1, max(setting.end(0), high - span.length))
    moves = [
        Move(
            _any_time(setting, choose, low, high),
            choose.randrange(setting.entries),
            _any_state(setting, choose),
            late=choose.choice([0, 0, 0, 1, 2, -1]),
            again=choose.random() < 0.1,
            given=setting.in_states and choose.random() < 0.1,
        )
        for _ in range(number)
    ]
    return Life((*moves,), since is None and choose.random() < 0.3, cuts_of(setting, choose), since=since)


def changed(life: Life, setting: Surroundings, choose: Random) -> Life:
    """Return a life with a small change."""
    moves, kind = [*life.moves], choose.randrange(8)
    low, high = setting.end(0) - 2, setting.timeline.until + 2
    place = choose.randrange(len(moves)) if moves else 0
    if kind == 0 or not moves:
        moves.insert(
            place,
            Move(_any_time(setting, choose, low, high), choose.randrange(setting.entries), _any_state(setting, choose)),
        )
    elif kind == 1 and len(moves) > 1:
        moves.pop(place)
    elif kind == 2:
        moves[place] = replace(moves[place], time=_any_time(setting, choose, low, high))
    elif kind == 3:
        moves[place] = replace(moves[place], state=_any_state(setting, choose))
    elif kind == 4:
        moves[place] = replace(moves[place], late=choose.choice([0, 1, 2, -1]), again=choose.random() < 0.2)
    elif kind == 5 and life.since is None:
        return replace(life, there=not life.there)
    elif kind == 6:
        return replace(life, cuts=cuts_of(setting, choose))
    elif life.since is not None and choose.random() < 0.3:
        return replace(life, restored=choose.choice([None, 0, 1, 2]))
    elif life.since is not None:
        since = life.since + choose.choice([-setting.timeline.every, setting.timeline.every, 1, -1])
        return replace(life, since=max(setting.end(0) - 1, since))
    else:
        moves[place] = replace(moves[place], entry=choose.randrange(setting.entries))
    return replace(life, moves=(*moves[: 2 * setting.moves],))


def cuts_of(setting: Surroundings, choose: Random) -> tuple[int, ...]:
    """Return the ends of one to three epochs, in windows; the last epoch ends with the last window."""
    windows = setting.timeline.windows
    number = choose.choice([1, 1, 2, 2, 3])
    return (*sorted({*(choose.randint(1, windows) for _ in range(number - 1)), windows}),)


def _toggles(times: Sequence[int], states: Sequence[State], entries: int, there: bool, cuts: tuple[int, ...]) -> Life:
    moves = [Move(time, place % entries, state) for place, (time, state) in enumerate(zip(times, states, strict=True))]
    return Life((*moves,), there, cuts)


def _pairs(setting: Surroundings, choose: Random) -> list[tuple[State, State]]:
    """Return pairs of states to move between."""
    corners = [*setting.corners]
    last = corners[-1]
    found: list[tuple[State, State]] = [(corners[0], None), (corners[0], last), (last, corners[0]), (last, None)]
    for corner in corners[1:4]:
        found += [(corner, None), (corners[0], corner)]
    name = setting.promise.constraint.column
    if name is not None:  # all states of one class, first of one that is not listed
        pool = setting.columns[name]
        classes = [value for value in (*pool.beyond, *pool.inside) if value is not None]
        found = [
            (
                {**corners[0], name: value},
                {**last, name: value},
            )
            for value in classes
        ] + found
    odd: dict[str, Any] = state_of(setting.columns, choose, 0.0)
    return [*found, (corners[0], odd), (odd, None)]


def _any_time(setting: Surroundings, choose: Random, low: int, high: int) -> int:
    if choose.random() < 0.5:
        return setting.end(choose.randint(0, setting.timeline.windows)) + choose.choice([-1, 0, 1])
    return choose.randint(low, high)


def _any_state(setting: Surroundings, choose: Random) -> State:
    drawn = choose.random()
    if drawn < 0.25:
        return None
    return choose.choice(setting.corners) if drawn < 0.7 else state_of(setting.columns, choose)
