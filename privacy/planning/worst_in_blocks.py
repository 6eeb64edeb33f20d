"""Largest difference of two counted trajectories of a unit in two blocks, by dynamic programming over windows.

Neighbours (privacy.protection.Span): the unit's states s and s' are the same at all ends of windows except at most v
consecutive ones, and there the unit is absent in one of the two; absence is a state, too. v is also the number of
windows in a block. The counted states h and h' follow s and s' for k - 1 changes in a block, are then held, and take
the true state at the block's end (privacy.planning.sensitivity_in_blocks). Let g = h - h', and let r and D be the
largest size of a state and the largest distance of two states. Bounded are the sums over all ends of windows b of

    level     |g_b|: 0 if h_b = h'_b, at most r if one of them is absence, and at most D otherwise
    change    |g_b - g_(b-1)|
    entered   the difference of the events of both: h_b if h has changed to it, and h'_b likewise
    left      the same with h_(b-1) and h'_(b-1)

in L1, or of their squares in L2. Each term is bounded by r and D from which of h_(b-1), h'_(b-1), h_b, h'_b are equal
or absences; for counts it is known exactly. So the sum is at most the cost of the most expensive path through a finite
automaton, which `worst` computes. The automaton's states are: which of h and h' are equal or absences, the numbers of
changes of both in the block, and the first end of a window at which s and s' differ. A state that is equal to neither
h nor h' needs no other description. The span may end earlier, after any number of ends of windows.

In blocks of more than 4 k windows some windows are without a change of h or h', and can be removed: `worst` charges
blocks of 4 k windows, and for levels D for each removed window. Proof: docs/proofs/strategies.md#exactly.

Source: own result.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from privacy.series import Ints
from privacy.states import States

Sum = Literal["level", "change", "entered", "left"]

MOST_CHANGES = 16
"""Largest number of changes in a block for which paths are searched: the time is of the order of its fifth power."""

_UNIT = 1 << 20
"""Cost of r; D is rounded upward to a multiple of r / _UNIT."""

_IMPOSSIBLE = -(1 << 50)

_Pair = tuple[int, int]
_PAIRS: tuple[_Pair, ...] = ((0, 0), (1, 1), (1, 0), (0, 1), (1, 2))
"""States h and h' up to names: 0 is absence, equal numbers are equal states."""

_NEW = 3
"""A state other than h and h'."""


def worst(
    of: Sum, states: States, *, changes: int, block: int, windows: int | None, plain: bool, alone: bool
) -> Fraction | None:
    """Return the largest sum, L1 or squared L2 as `states` are, for one entry in normalised units; None if not known.

    Neighbours and guarantee: no two neighbours of the module docstring have a larger sum. For an owner's n entries at
    once, the sum is at most n times as large in L1, and n^2 times in squared L2.

    Args:
        of: what is summed.
        states: sizes r and D of a state.
        changes: number k of changes in a block, at least 2.
        block: number v of windows in a block, at least the span.
        windows: number of windows of the release; None if it has no end.
        plain: whether each state of a unit is one entry in one cell, with the same values in all cells, and each cell
            has its own noise.
        alone: whether such a unit has no state but one, or absence.

    >>> count = States(radius=Fraction(1), diameter=Fraction(2), hulls=())
    >>> worst("level", count, changes=2, block=3, windows=None, plain=True, alone=False)
    Fraction(6, 1)
    """
    kept = min(block, 4 * changes)
    changes = min(changes, kept)  # all count
    if changes > MOST_CHANGES or not states.radius:
        return None
    far = -((-states.diameter * _UNIT / states.radius) // 1)
    last = None if windows is None or kept < block else min(windows, 2 * kept)
    found = _longest(of, kept, changes, (int(far), states.squared), last, plain, alone)
    removed = 2 * (block - kept) * states.diameter if of == "level" else 0
    return Fraction(found, _UNIT) * states.radius + removed


@lru_cache(maxsize=512)
def _longest(
    of: Sum, block: int, changes: int, sizes: tuple[int, bool], last: int | None, plain: bool, alone: bool
) -> int:
    """Return the cost of the most expensive path, in units of r / _UNIT, up to the end of window `last`."""
    moves = {
        (inside, *follow): _moves(of, sizes, inside=inside, follow=follow, plain=plain, alone=alone)
        for inside in (False, True)
        for follow in ((True, True), (True, False), (False, True), (False, False))
    }
    # [first end of a window at which the states differ, pair, changes of h, changes of h']; last row: the span is over
    best = np.full((block + 2, len(_PAIRS), changes, changes), _IMPOSSIBLE)
    best[1:, :2, 0, 0] = 0
    best[0, 2, 0, 0] = _UNIT  # apart at the start of the schedule
    for end in range(1, 1 + (2 * block if last is None else last)):
        found = np.full_like(best, _IMPOSSIBLE)
        low, high = max(0, end - block + 1), min(block, end) + 1
        np.maximum(best[-1], best[: min(block + 1, end)].max(axis=0), out=best[-1])  # any span may end before this end
        for inside, rows in ((True, slice(low, high)), (False, slice(high, None))):
            if end % block:
                for follow in ((True, True), (True, False), (False, True), (False, False)):
                    _follow(best[rows], found[rows], moves[inside, *follow], follow)
            else:
                _catch_up(best[rows], found[rows], moves[inside, True, True])
        best = found
    return int(best.max())


_Moves = dict[tuple[int, int, int, int], int]
"""Largest cost of each step: pair before, pair after, and whether h and h' change."""


def _follow(best: Ints, found: Ints, moves: _Moves, follow: tuple[bool, bool]) -> None:
    """Take a step within a block, for those that may still change or have used up their changes."""
    most = best.shape[2] - 1
    first, second = (range(most) if may else range(most, most + 1) for may in follow)
    for (before, after, one, other), cost in moves.items():
        came = best[:, before, first.start : first.stop, second.start : second.stop] + cost
        to = found[:, after, first.start + one : first.stop + one, second.start + other : second.stop + other]
        np.maximum(to, came, out=to)


def _catch_up(best: Ints, found: Ints, moves: _Moves) -> None:
    """Take the step to the end of a block, after which no change is used up."""
    most = best.max(axis=(2, 3))
    for (before, after, _, _), cost in moves.items():
        found[:, after, 0, 0] = np.maximum(found[:, after, 0, 0], most[:, before] + cost)


def _moves(
    of: Sum, sizes: tuple[int, bool], *, inside: bool, follow: tuple[bool, bool], plain: bool, alone: bool
) -> _Moves:
    """Return the steps inside or outside the span, if h or h' may follow its true state."""
    found: _Moves = {}
    for before, old in enumerate(_PAIRS):
        for true in _true_states(inside, 1 if alone else _NEW):
            now = tuple(s if may else h for s, h, may in zip(true, old, follow, strict=True))
            one, other = (int(n != h) for n, h in zip(now, old, strict=True))
            step = before, _pair(now[0], now[1]), one, other
            found[step] = max(found.get(step, 0), _cost(of, old, (now[0], now[1]), sizes, plain))
    return found


def _true_states(inside: bool, states: int) -> Iterator[_Pair]:
    """Yield s and s': inside the span one of them is absence, and outside both are the same."""
    for state in range(states + 1):
        if inside:
            yield state, 0
            yield 0, state
        else:
            yield state, state


def _pair(one: int, other: int) -> int:
    """Return the number of the pair in _PAIRS.

    >>> [_pair(*states) for states in ((0, 0), (3, 3), (2, 0), (0, 2), (3, 1))]
    [0, 1, 2, 3, 4]
    """
    if one == other:
        return min(one, 1)
    return 2 + (one == 0) + 2 * (one * other > 0)


def _cost(of: Sum, old: _Pair, now: _Pair, sizes: tuple[int, bool], plain: bool) -> int:
    changed = [h != n for h, n in zip(old, now, strict=True)]
    there = now if of == "entered" else old
    events = tuple(state if moved else 0 for state, moved in zip(there, changed, strict=True))
    if plain:  # states are unit vectors
        places = np.zeros(1 + _NEW, dtype=np.int64)
        one, other = events if of in ("entered", "left") else now
        np.add.at(places, [one, other], [1, -1])
        if of == "change":
            np.add.at(places, [*old], [-1, 1])
        return int((places[1:] ** 2 if sizes[1] else np.abs(places[1:])).sum()) * _UNIT
    if of == "level":
        return _apart(*now, sizes)
    if of == "change":
        moved = _added(_apart(old[0], now[0], sizes), _apart(old[1], now[1], sizes), sizes)
        return min(moved, _added(_apart(*old, sizes), _apart(*now, sizes), sizes))
    if old[0] == old[1] and now[0] == now[1]:
        return 0
    if there[0] == there[1]:  # of an owner some entries, or only a value, may have changed
        return _UNIT if any(events) else 0
    return _apart(events[0], events[1], sizes)


def _apart(one: int, other: int, sizes: tuple[int, bool]) -> int:
    return 0 if one == other else sizes[0] if one and other else _UNIT


def _added(one: int, other: int, sizes: tuple[int, bool]) -> int:
    """Return a bound for a sum of two vectors: |x + y|^2 is at most 2 |x|^2 + 2 |y|^2."""
    return 2 * (one + other) if one and other and sizes[1] else one + other
