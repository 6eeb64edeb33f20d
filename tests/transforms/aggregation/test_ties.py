"""Changes of one entry at one time, against plain Python that tries every order in which they can have happened.

If several orders are possible, the sums must be those of one of them, and they must not depend on other queries or on
`where`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, groupby, pairwise, permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from privacy.constraint import AtMost
from privacy.measure import Measure
from tests.dense import dense
from tests.searches import examples
from transforms.aggregation.expression import Condition
from transforms.aggregation.node_sums import Aggregation, NodeKey
from transforms.aggregation.projection import Projection, project
from transforms.aggregation.queries import Query, Timeline
from transforms.aggregation.shard_kernel import advance_shard
from transforms.aggregation.shard_state import state_from_bytes, state_to_bytes
from transforms.aggregation.sharding import shard_table
from transforms.common.batches import FILE, POSITION, ROW_BITS
from transforms.common.ipc import from_bytes

State = tuple[str, int, str] | None
"""(ward, x, owner)"""

TIMELINE = Timeline(start=0, every=2, windows=4)
WARDS = ("medicine", "reception", "surgery")
COUNT = Measure(kind="count")
OPERATED = Query(name="operated", measure=COUNT, where=Condition.parse("ward = 'surgery'"))
BEDS = Query(name="beds", measure=COUNT, by=(("ward", ("reception", "other")),))
SCORE = Query(name="score", measure=Measure(kind="sum", low=-4, high=4), column="x")
QUERIES = (OPERATED, BEDS, SCORE)


@dataclass(frozen=True)
class Row:
    """A change; `order` is None if there is no such column, `before` is ignored if files have no before images."""

    entry: str
    time: int
    order: int | None
    before: State
    after: State
    place: int = 0  # position in the files, if nothing else orders rows


@dataclass(frozen=True)
class Form:
    """Columns that the files have."""

    before: bool
    order: bool
    owner: bool


Runs = list[tuple[list[Row], int]]
"""The rows that arrived before each run, and the number of windows closed after it."""

Event = tuple[tuple[Any, ...], int, str, State]
"""(place in its unit, effective time, entry, new state); a time of -99 is before all others."""


def project_state(state: State, query: Query) -> tuple[int, int] | None:
    if state is None or (query is OPERATED and state[0] != "surgery"):
        return None
    return (0 if state[0] == "reception" else 1 if query is BEDS else 0), (state[1] if query is SCORE else 0)


# The plain version


def orders(rows: list[Row], start: State | str) -> list[list[Row]]:
    """Return all orders in which changes of one time and order are possible, with the fewest lost changes."""

    def lost(order: list[Row]) -> int:
        return (order[0].before != start) + sum(one.after != two.before for one, two in pairwise(order))

    found = [list(order) for order in permutations(rows)]
    fewest = min(map(lost, found))
    found = [order for order in found if lost(order) == fewest]
    circles = [order for order in found if fewest == 1 and order[0].before == order[-1].after != start]
    # A circle begins at the absent state if possible.
    return [order for order in circles if order[0].before is None] or found


def chains(rows: list[Row], start: State | str, form: Form) -> Iterator[list[Row]]:
    """Return an entry's rows in all possible orders after the state `start`."""
    if not form.before:  # rows are in the order of the files
        yield sorted(rows, key=lambda row: (row.time, row.order or 0))
        return
    distinct = sorted(dict.fromkeys(rows), key=lambda row: (row.time, row.order or 0))
    told: list[list[Row]] = [[]]
    for _, tied in groupby(distinct, key=lambda row: (row.time, row.order)):
        group = list(tied)
        told = [chain + order for chain in told for order in orders(group, chain[-1].after if chain else start)]
        assume(len(told) <= 200)
    yield from told


def histories(entry: str, runs: Runs, form: Form) -> Iterator[list[Event]]:
    """Return the possible histories of an entry, run after run."""

    def source(row: Row) -> tuple[int, ...]:
        return (row.time, row.order) if row.order is not None else (row.time,)

    def go_on(number: int, waiting: list[Row], known: Any, last: tuple[int, ...]) -> Iterator[list[Event]]:
        if number == len(runs):
            yield []
            return
        arrived, windows = runs[number]
        closed, until = (None if number == 0 else runs[number - 1][1] * 2), windows * 2
        rows = waiting + [row for row in arrived if row.entry == entry]
        rows = [row for row in rows if source(row) > last]
        due = rows if number == 0 else [row for row in rows if row.time < until]
        for chain in chains(due, known, form):
            state, at, events = known, last, []
            if known == "unknown" and form.before and chain and chain[0].before is not None:
                time = -99 if closed is None else max(chain[0].time, closed)
                place = (0, entry) if closed is None else (number + 1, *source(chain[0]), 0, entry, 0)
                events.append((place, time, entry, chain[0].before))
                state = chain[0].before
            for nth, row in enumerate(row for row in chain if row.time < until):
                time = row.time if closed is None else max(row.time, closed)
                events.append(((number + 1, *source(row), row.place, entry, nth + 1), time, entry, row.after))
                state, at = row.after, source(row)
            for rest in go_on(number + 1, [row for row in rows if row.time >= until], state, at):
                yield events + rest

    yield from go_on(0, [], "unknown", ())


def sums_of(units: dict[str, list[str]], events: list[Event], query: Query, most: int) -> tuple[int, ...]:
    """Return the contribution of each window and cell from the first changes of each unit."""
    sums = np.zeros((TIMELINE.windows + 1, query.cells), dtype=np.int64)
    for entries in units.values():
        current: dict[str, tuple[int, int] | None] = {}
        used = 0
        for _, time, entry, state in sorted((e for e in events if e[2] in entries), key=lambda event: event[0]):
            old, new = current.get(entry), project_state(state, query)
            current[entry] = new
            if old == new:
                continue
            used += 1
            if used > most:
                continue
            window = 0 if time < 0 else time // 2 + 1
            for sign, told in ((1, new), (-1, old)):
                if told is not None:
                    steps = 1 if query.column is None else round(told[1] / query.measure.grid)
                    sums[window, told[0]] += sign * steps
    return tuple(sums.ravel().tolist())


def charged(runs: Runs, form: Form) -> tuple[Runs, dict[str, list[str]]]:
    """Return rows by unit, with a separate name for each entry of a unit, and the units' entries."""
    if not form.owner:
        return runs, {row.entry: [row.entry] for rows, _ in runs for row in rows}
    units: dict[str, list[str]] = {}
    told: Runs = []
    for rows, windows in runs:
        mine: list[Row] = []
        for row in rows:
            before = row.before if form.before else None
            for owner in dict.fromkeys(state[2] for state in (before, row.after) if state is not None):
                sides = [state if state is not None and state[2] == owner else None for state in (before, row.after)]
                name = f"{owner}/{row.entry}"
                mine.append(Row(name, row.time, row.order, sides[0], sides[1], row.place))
                if name not in units.setdefault(owner, []):
                    units[owner].append(name)
        told.append((mine, windows))
    return told, units


def possible(runs: Runs, form: Form, query: Query, most: int) -> set[tuple[int, ...]]:
    if not form.before and not form.order:
        numbers = count()
        runs = [([replace(row, place=next(numbers)) for row in rows], windows) for rows, windows in runs]
    told, units = charged(runs, form)
    entries = sorted({entry for names in units.values() for entry in names})
    found = [list(histories(entry, told, form)) for entry in entries]
    assume(np.prod([len(each) for each in found]) <= 500)
    return {sums_of(units, [event for history in each for event in history], query, most) for each in product(*found)}


# The program


def table_of(rows: list[Row], form: Form, file: int) -> pa.Table:
    """Return a normalised table of the rows of one file."""
    columns: dict[str, Any] = {
        "entry": pa.array([row.entry for row in rows], pa.string()),
        "time": pa.array([row.time for row in rows], pa.int64()),
    }
    if form.order:
        columns["order.0"] = pa.array([row.order for row in rows], pa.int64())
    if not form.before:
        columns[POSITION] = pa.array(file << ROW_BITS | np.arange(1, 1 + len(rows)))
        columns[FILE] = pa.repeat(pa.scalar(file, pa.uint32()), len(rows))
    for side in ("before", "after") if form.before else ("after",):
        states = [getattr(row, side) for row in rows]
        columns[side] = pa.array([state is not None for state in states], pa.bool_())
        for place, (name, kind) in enumerate([("ward", pa.string()), ("x", pa.float64()), ("owner", pa.string())]):
            columns[f"{side}.{name}"] = pa.array([None if s is None else s[place] for s in states], kind)
    return pa.table(columns)


def kernel(
    runs: Runs, form: Form, queries: tuple[Query, ...], most: int, files: tuple[int, ...] = (1, 2)
) -> list[tuple[int, ...]]:
    """Return sums of each query over all runs, each of which reads one file."""
    whole = Aggregation(queries=queries, timeline=TIMELINE, constraint=AtMost(most))
    payloads: dict[NodeKey, list[bytes]] = {key: [] for key in whole.node_keys()}
    state, released = None, 0
    for (rows, windows), file in zip(runs, files, strict=False):
        now = replace(whole, timeline=replace(TIMELINE, windows=windows, released=released))
        table, dead, _ = project(
            table_of(rows, form, file), Projection(queries=queries, owner="owner" if form.owner else None)
        )
        assert len(dead) == 0
        arrived = [from_bytes(part) for _, part in shard_table(table, shards=1)]
        sums, after = advance_shard(arrived[0] if arrived else None, state, now)
        for key, payload in sums:
            payloads[key].append(payload)
        state, released = state_from_bytes(state_to_bytes(after)), windows
    return [tuple(dense(payloads[key], whole, key)[0].ravel().tolist()) for key in whole.node_keys()]


STATES = st.none() | st.tuples(st.sampled_from(WARDS), st.integers(-2, 2), st.just("p"))
OWNED = st.none() | st.tuples(st.sampled_from(WARDS), st.integers(-1, 1), st.sampled_from("pq"))


@st.composite
def changelogs(draw: st.DrawFn, form: Form) -> list[Row]:
    """Return walks of a few entries, up to four steps at a time; a step may be lost or repeated."""
    rows: list[Row] = []
    for entry in draw(st.sampled_from(["a", "ab"])):
        state = draw(OWNED if form.owner else STATES)
        for time in draw(st.lists(st.integers(-1, 8), max_size=3, unique=True).map(sorted)):
            for _ in range(draw(st.integers(1, 4))):
                after = draw(OWNED if form.owner else STATES)
                if form.owner and (after if not form.before else after or state) is None:
                    continue  # a row without an owner is a dead letter
                row = Row(entry, time, draw(st.integers(0, 1)) if form.order else None, state, after)
                rows += [row] * draw(st.sampled_from([0, 1, 1, 1, 1, 1, 2]))
                state = after
    return draw(st.permutations(rows))


@st.composite
def splits(draw: st.DrawFn, rows: list[Row]) -> Runs:
    """Return all rows in one run, or each row in one of two, or in both."""
    windows = draw(st.sampled_from([0, 1, 2, 3]))
    if windows == 0:
        return [(rows, TIMELINE.windows)]
    runs: Runs = [([], windows), ([], TIMELINE.windows)]
    for row in rows:
        for number in draw(st.sampled_from([[0], [0], [1], [0, 1]])):
            runs[number][0].append(row)
    return runs


FORMS = [
    pytest.param(Form(before=before, order=order, owner=owner), id=f"{before=}, {order=}, {owner=}")
    for before, order, owner in product([True, False], repeat=3)
]


@pytest.mark.few(4)
@pytest.mark.parametrize("form", FORMS)
@given(st.data(), st.sampled_from([1, 2, 3, 50]))
@examples(5)
def test_tied_changes_count_in_a_possible_order_for_any_queries(form: Form, data: st.DataObject, most: int) -> None:
    runs = data.draw(splits(data.draw(changelogs(form))))

    together = kernel(runs, form, QUERIES, most)

    for query, found in zip(QUERIES, together, strict=True):
        assert kernel(runs, form, (query,), most) == [found]
        assert found in possible(runs, form, query, most)
    if form.before:
        backwards = [(rows[::-1], windows) for rows, windows in runs]
        assert kernel(backwards, form, QUERIES, most) == together


@pytest.mark.parametrize("order", [None, 0])
def test_with_new_values_only_the_order_of_files_decides_and_no_row_is_dropped(order: int | None) -> None:
    form = Form(before=False, order=order is not None, owner=False)
    wards = ["surgery", "reception", "surgery", "reception", "medicine"]
    rows = [Row("a", 1, order, None, (ward, 0, "p")) for ward in wards]

    for length, inside in ((3, 1), (4, 0), (5, 0)):
        [found] = kernel([(rows[:length], 4)], form, (OPERATED,), 50)
        assert found == (0, inside, 0, 0, 0)
    assert kernel([(rows[:3], 4)], form, (OPERATED,), 2) == [(0, 0, 0, 0, 0)]  # in, out, and not in again


@pytest.mark.parametrize("order", [None, 0])
def test_rows_that_wait_while_their_file_is_read_again_count_once(order: int | None) -> None:
    """A stream ended before all shards had taken the file, whose position among the files can then change."""
    form = Form(before=False, order=order is not None, owner=False)
    rows = [Row("a", 5, order, None, (ward, 0, "p")) for ward in ("surgery", "reception", "surgery", "medicine")]

    once = kernel([(rows, 1), ([], 4)], form, (OPERATED,), 5)

    assert once == [(0, 0, 0, 0, 0)]  # in, out, in, out
    assert kernel([(rows, 1), (rows, 4)], form, (OPERATED,), 5, files=(1, 1)) == once
    assert kernel([(rows, 1), (rows, 4)], form, (OPERATED,), 5, files=(1, 2)) != once  # other rows, although equal


def test_a_circle_begins_at_the_absent_state_for_any_sign_of_values() -> None:
    """An entry is inserted by p and passed to q at once: for p, a circle from the absent state and back."""
    form = Form(before=True, order=False, owner=True)
    grid = SCORE.measure.grid
    for score in (-2, 0, 2):
        mine, other = (("surgery", score, owner) for owner in "pq")
        rows = [Row("a", 1, None, None, mine), Row("a", 1, None, mine, other)]

        assert kernel([(rows, 4)], form, (SCORE, OPERATED), 9) == [(0, round(score / grid), 0, 0, 0), (0, 1, 0, 0, 0)]


def test_two_opposite_changes_are_no_repetition_although_a_query_reads_no_other_column() -> None:
    form = Form(before=True, order=False, owner=False)
    states = [None, *((ward, 0, "p") for ward in ("surgery", "reception", "surgery", "medicine", "surgery"))]
    rows = [Row("a", 1, None, before, after) for before, after in pairwise(states)]

    assert kernel([(rows, 4)], form, (OPERATED,), 9) == [(0, 1, 0, 0, 0)]
    assert kernel([(rows * 2, 4)], form, (OPERATED,), 5) == [(0, 1, 0, 0, 0)]
