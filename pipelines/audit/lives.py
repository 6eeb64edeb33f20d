"""Neighbouring changelogs: synthetic lives of one privacy unit, in two versions, among the rows of other units."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pipelines.audit.stages import Epochs
from pipelines.audit.synthetic import MARK, Mutation, Pools, State, state_of
from privacy.planning.promise import Promise
from transforms.aggregation.queries import Timeline

ME, OTHERS = f"{MARK}-unit", "other-"

LATEST = 2
"""Most epochs by which a row is late."""


@dataclass(frozen=True, slots=True)
class Move:
    """A change of one entry of the unit.

    Attributes:
        time: Microseconds since 1970, UTC.
        entry: Number of the entry.
        state: The new state; None if the entry is deleted.
        late: Number of epochs by which its row arrives after the first one that could read it; negative: before.
        again: Whether the row is delivered a second time, with the last epoch.
        given: Whether ownership of the entry passes to another unit with this state, if owners are in the states.
    """

    time: int
    entry: int
    state: State
    late: int = 0
    again: bool = False
    given: bool = False


@dataclass(frozen=True, slots=True)
class Life:
    """Activity of a unit, and the runs that read it.

    Attributes:
        moves: Its changes, in any order of time; those of one time count in this order.
        there: Whether the first change of each entry says that the entry existed before.
        cuts: Number of windows after each epoch.
        since: First moment of the protected span in which neighbours differ; None: in everything.
        times: Length of the difference, or its distance, as a multiple of the protected one.
        away: Under a distance, its direction for each move in the span.
        restored: Number of the corner that entries are in after the span; None: the last state in it.
    """

    moves: tuple[Move, ...]
    there: bool
    cuts: tuple[int, ...]
    since: int | None = None
    times: int = 1
    away: tuple[int, ...] = (1, -1)
    restored: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Facts about a spec that lives depend on.

    Attributes:
        columns: Columns of states.
        corners: States inside all queries.
        cells: States inside all queries, in different cells, with the largest values.
        promise: The promise.
        timeline: All windows.
        owner: Name of the owner's column; None if the unit is the entry.
        in_states: Whether owners are columns of the states.
        expires: Time after which states end without a deletion; None: they do not.
        ordered: Whether the order of rows in a file has no effect.
        near: Largest distance of states, by column; empty if presence is protected.
        others: Rows of other units.
    """

    columns: Pools
    corners: tuple[dict[str, Any], ...]
    cells: tuple[dict[str, Any], ...]
    promise: Promise
    timeline: Timeline
    owner: str | None
    in_states: bool
    expires: int | None
    ordered: bool
    near: tuple[tuple[str, float], ...] = ()
    others: tuple[Mutation, ...] = ()

    @property
    def entries(self) -> int:
        """Number of entries of the unit."""
        return 1 if self.owner is None else 4

    @property
    def moves(self) -> int:
        """Number of changes of a life: more than the bound lets count."""
        constraint = self.promise.constraint
        if constraint.at_once is not None:
            return 6 + 2 * (constraint.at_once.changes or 4)
        return min(60, 4 + 2 * max(part.changes or 8 for part in constraint.parts))

    def end(self, window: int) -> int:
        """Return the end of a window; 0: the start."""
        return self.timeline.bounds.end(max(0, min(window, self.timeline.windows)))

    def inside(self, window: int) -> int:
        """Return a moment in the middle of a window."""
        return (self.end(window - 1) + self.end(window)) // 2

    def until(self, life: Life) -> int:
        """Return the end of the span in which neighbours differ."""
        assert self.promise.span is not None
        assert life.since is not None
        return life.since + (1 if self.near else life.times) * self.promise.span.length


def neighbours(life: Life, setting: Surroundings) -> tuple[Epochs, Epochs]:
    """Return the two changelogs of a life, epoch by epoch, with the rows of other units in both.

    Without a span, the rows of the unit are missing in the second one; of rows that another unit shares, its half is.
    With a span, the unit is absent from the second one in that time, or elsewhere, and otherwise in the same states.
    """
    moves = sorted(life.moves, key=lambda move: move.time)
    if life.since is None:
        mine = _rows(moves, setting, there=life.there)
        halves = [(move, _half(row, setting)) for move, row in mine] if setting.in_states else []
        theirs = [(move, row) for move, row in halves if row is not None]
    else:
        until = setting.until(life)
        mine = _rows(_spanned(moves, life, setting, until), setting, there=life.there)
        theirs = _rows(_apart(moves, life, setting, until), setting, there=life.there)
    return _delivered(mine, life.cuts, setting), _delivered(theirs, life.cuts, setting)


Sent = list[tuple[Move, Mutation]]


def _rows(moves: Sequence[Move], setting: Surroundings, *, there: bool) -> Sent:
    """Return a row for each move, with the state before it as the row before left it."""
    found: Sent = []
    states: dict[int, State] = {}
    first = setting.corners[-1] if there else None
    for order, move in enumerate(moves):
        before, after = states.get(move.entry, first), move.state
        if move.entry not in states and before is not None and setting.in_states and setting.owner:
            before = {**before, setting.owner: ME}
        if after is not None and setting.in_states and setting.owner is not None:
            after = {**after, setting.owner: f"{OTHERS}owner" if move.given else ME}
        states[move.entry] = after
        if (after is None and before is None) or (after is None and setting.expires is not None):
            continue
        row = Mutation(f"{ME}-{move.entry}", move.time, 100 + order, before, after, setting.owner and ME)
        found.append((move, row))
    return found


def _half(row: Mutation, setting: Surroundings) -> Mutation | None:
    """Return the state of a row without the unit: that of another owner."""
    sides = [None if s is None or s.get(setting.owner or "") == ME else s for s in (row.before, row.after)]
    if sides == [None, None]:
        return None
    return replace(row, before=sides[0], after=sides[1])


def _spanned(moves: Sequence[Move], life: Life, setting: Surroundings, until: int) -> list[Move]:
    """Return the moves of the first version: after the span, each entry is in a state that both versions share."""
    assert life.since is not None
    found = [_on_time(move) for move in moves if _may(move, life.since, until, setting)]
    return _with_restored(found, moves, until, setting, life)


def _apart(moves: Sequence[Move], life: Life, setting: Surroundings, until: int) -> list[Move]:
    """Return the moves of the second version: absent in the span, or at a distance."""
    assert life.since is not None
    kept = [_on_time(move) for move in moves if _may(move, life.since, until, setting)]
    if setting.near:
        found = []
        for place, move in enumerate(kept):
            inside = move.state is not None and life.since <= move.time < until
            away = life.away[place % len(life.away)] * life.times
            found.append(replace(move, state=_moved(move.state, setting, away)) if inside else move)
        return _with_restored(found, moves, until, setting, life)
    before = [move for move in kept if move.time < life.since]
    after = [move for move in kept if move.time >= until]
    gone = [Move(life.since, entry, None) for entry in sorted({move.entry for move in before})]
    return _with_restored([*before, *gone, *after], moves, until, setting, life)


def _may(move: Move, since: int, until: int, setting: Surroundings) -> bool:
    """Return whether a move leaves states outside the span alone: states that expire must do so within it."""
    if setting.expires is None:
        return True
    return move.time + setting.expires <= since or since <= move.time <= until - setting.expires or move.time >= until


def _with_restored(
    found: list[Move], moves: Sequence[Move], until: int, setting: Surroundings, life: Life
) -> list[Move]:
    if setting.expires is not None:
        return found
    last = {move.entry: move.state for move in moves if move.time < until}
    if life.restored is not None:
        last = dict.fromkeys(last, setting.corners[life.restored % len(setting.corners)])
    restored = [Move(until, entry, state) for entry, state in sorted(last.items(), key=lambda item: item[0])]
    return [*(m for m in found if m.time < until), *restored, *(m for m in found if m.time >= until)]


def _on_time(move: Move) -> Move:
    """Return the move with a row that is not late: a late row takes effect after the span."""
    return replace(move, late=min(0, move.late), given=False)


def _moved(state: State, setting: Surroundings, away: int) -> State:
    found = dict(state or {})
    for name, far in setting.near:
        if isinstance(found.get(name), float):
            found[name] = found[name] + away * far
    return found


def _delivered(sent: Sent, cuts: Sequence[int], setting: Surroundings) -> Epochs:
    """Return the rows of each epoch, in the order of its file: those of the unit between those of others."""
    ends = [setting.end(windows) for windows in cuts]
    epochs: list[list[Mutation]] = [[] for _ in cuts]
    for move, row in sent if not setting.ordered else reversed(sent):
        first = min(bisect_right(ends, row.time), len(cuts) - 1)
        epochs[max(0, min(len(cuts) - 1, first + move.late))].append(row)
        if move.again:
            epochs[-1].append(row)
    found = []
    for number, rows in enumerate(epochs):
        others = [row for row in setting.others if min(bisect_right(ends, row.time), len(cuts) - 1) == number]
        half = len(others) // 2
        found.append(([*others[:half], *rows, *others[half:]], cuts[number]))
    return found


def background(
    columns: Pools, timeline: Timeline, owner: str | None, choose: Random, *, truncates: bool
) -> list[Mutation]:
    """Return rows of a few other units, some of which exist from the start."""
    start, until = timeline.bounds.start, timeline.until
    rows: list[Mutation] = []
    for number in range(6):
        state: State = state_of(columns, choose) if number < 2 else None
        for order, time in enumerate(sorted(choose.randint(start - 10, until) for _ in range(3))):
            after = None if order == 2 and state is not None else state_of(columns, choose)
            key = f"{OTHERS}{number % 3}"
            states = [s if s is None or owner is None else {**s, owner: key} for s in (state, after)]
            rows.append(Mutation(f"{OTHERS}{number}", time, order, states[0], states[1], owner and key))
            state = after
    if truncates:
        rows.append(Mutation(None, choose.randint(start, until), 50))
    return sorted(rows, key=lambda row: (row.time, row.order))
