"""Keys that nobody lists: the exact loss of the product's own step, and what reaches the public side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Measure
from privacy.noise.distributions import DiscreteLaplace
from privacy.planning.discovered_part import DiscoveredPart
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.problems import RuleError
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.base import Nodes
from privacy.strategies.choice import Choice
from transforms.aggregation.discovered_key import DiscoveredKey, KeySums, decode_sums, layers_of
from transforms.aggregation.node_sums import BOUNDED, Aggregation, NodeKey, dense, gathered
from transforms.aggregation.queries import Query, Timeline, planned
from transforms.aggregation.shard_kernel import advance_shard
from transforms.aggregation.shard_state import ShardState, state_from_bytes, state_to_bytes
from transforms.common.ipc import from_bytes
from transforms.release import discovered_chunk, noise
from transforms.release.discovered_chunk import DiscoveredChunk, NewSums, layers, publish
from transforms.release.release import ESTIMATES, ReleasePlan, chunk_of, protect, remember, tables

DAY = 86_400_000_000
KEY: NodeKey = (BOUNDED, 0, "net", 0)
EPSILON, DELTA = 3.0, 0.08
TOWNS = Query(
    name="towns",
    measure=Measure(kind="count"),
    by=(("town", DiscoveredKey()),),
    publish=(Series(kind="level"),),
    strategy=Choice(name="disjoint"),
)


def release_of(promise: Promise, *, query: Query = TOWNS, delta: float = DELTA) -> ReleasePlan:
    plan = make_plan(
        [query.demand],
        promise,
        budget=Budget(epsilon=EPSILON, delta=delta),
        mechanism="laplace",
        accounting=None,
    )
    windows = promise.windows or 3
    return ReleasePlan(
        plan=plan,
        aggregation=Aggregation(
            queries=planned([query], plan),
            timeline=Timeline(start=0, every=DAY, windows=windows),
            constraint=promise.constraint,
            owner="person" if promise.owner else None,
        ),
    )


def part_of(release: ReleasePlan) -> DiscoveredPart:
    part = release.plan.discovered_of(0)
    assert part is not None
    return part


def everything(changes: int, windows: int, *, owner: bool = False) -> Promise:
    return Promise(constraint=AtMost(changes), window=DAY, windows=windows, owner=owner)


Leaves = Sequence[int] | Sequence[tuple[int, ...]]
"""Leaf sums of a key, the initial level first: a number, or one for each of its cells."""


def outcomes(
    part: DiscoveredPart,
    leaves: Leaves,
    reach: int,
    patch: pytest.MonkeyPatch,
    *,
    runs: Sequence[int] = (),
    dies: int | None = None,
) -> dict[int, float]:
    """Return the probability of everything that is published of one key, up to noise beyond `reach`.

    Each realisation of the noise is a key of the product's step. An outcome has a digit for each window and cell: its
    noisy level, or 0 without a row.

    Args:
        part: Part of the plan.
        leaves: Leaf sums of the key.
        reach: Largest noise that is enumerated.
        patch: Replaces the source of noise.
        runs: Windows at which earlier runs end, each of which leaves its state in a file.
        dies: The run that first dies between noise and publication, and is started again.
    """
    exact = np.array(leaves).reshape(len(leaves), part.cells)
    if not exact.any():
        return {0: 1.0}
    distribution = part.noise[0]
    assert isinstance(distribution, DiscreteLaplace)
    once = np.arange(-reach, reach + 1)
    chance = np.exp(-np.abs(once) / distribution.scale)
    chance *= np.tanh(1 / (2 * distribution.scale))
    windows = len(leaves) - 1
    every = names_of(part.strategy.nodes(windows))
    nodes = len(every)
    drawn = np.stack([axis.ravel() for axis in np.meshgrid(*[once] * nodes * part.cells, indexing="ij")])
    odds = np.prod([chance[row + reach] for row in drawn], axis=0)
    realisations = pa.array([f"{number:09d}" for number in range(drawn.shape[1])])
    sampled = np.moveaxis(drawn.reshape(nodes, part.cells, -1), 1, 2).reshape(nodes, -1)

    def sample(_: object, asked: Nodes, **__: int) -> np.ndarray:
        return sampled[[every.index(name) for name in names_of(asked)]]

    patch.setattr(discovered_chunk, "AT_ONCE", 2**40)
    held, since, public = None, 0, []
    for run, until in enumerate((*runs, windows)):
        window, cell = np.nonzero(exact[since : until + 1] if since == 0 else exact[since + 1 : until + 1])
        window += since + 1 if since else 0
        there = len(realisations) if len(window) else 0
        sums = KeySums(
            realisations[:there],
            np.repeat(np.arange(there), len(window)),
            np.tile(window, there),
            np.tile(exact[window, cell], there),
            np.tile(cell, there),
        )
        if run == dies:
            patch.setattr(noise, "sample_noise", lambda *asked, **how: sample(*asked, **how)[:, ::-1])
            publish((part,), held, NewSums(windows=until, sums=sums))
        patch.setattr(noise, "sample_noise", sample)
        after, shown = publish((part,), held, NewSums(windows=until, sums=sums))
        content = DiscoveredChunk((part,)).kept(after, windows=until, plan="p")
        held, since = DiscoveredChunk((part,)).opened(content, windows=until, plan="p"), until
        public.append(shown)
    shown = pa.concat_tables(public)
    digit = shown["value"].to_numpy().astype(np.int64) + 4 * reach + 1
    assert 0 < digit.min(initial=1) <= digit.max(initial=1) < 256
    place = (shown["window"].to_numpy() - 1) * part.cells + np.arange(len(digit)) % part.cells
    codes = np.zeros(len(odds), dtype=np.int64)
    np.add.at(codes, shown["key"].cast(pa.int64()).to_numpy(), digit * 256**place)
    found, outcome = np.unique(codes, return_inverse=True)
    return dict(zip(found.tolist(), np.bincount(outcome, odds).tolist(), strict=True))


def names_of(nodes: Nodes) -> list[tuple[int, int, int]]:
    return list(zip(nodes.layer.tolist(), nodes.begin.tolist(), nodes.end.tolist(), strict=True))


def loss(
    part: DiscoveredPart,
    one: Sequence[Leaves],
    other: Sequence[Leaves],
    reach: int,
    patch: pytest.MonkeyPatch,
) -> float:
    """Return the exact delta at `EPSILON` between two contents of some keys, the larger one of both directions.

    Args:
        part: Part of the plan.
        one, other: Leaf sums of each key, the initial level first.
        reach: Largest noise that is enumerated; the rest counts as lost.
        patch: Replaces the source of noise.
    """
    both = np.ones((2, 1))
    lost = 0.0
    for keys in zip(one, other, strict=True):
        found = [outcomes(part, leaves, reach, patch) for leaves in keys]
        names = list(dict.fromkeys([*found[0], *found[1]]))
        odds = np.array([[of.get(name, 0.0) for name in names] for of in found])
        lost += 1 - odds.sum(axis=1).min()
        both = (both[:, :, None] * odds[:, None, :]).reshape(2, -1)
    x, y = both
    deltas = [np.maximum(a - np.exp(EPSILON) * b, 0).sum() for a, b in ((x, y), (y, x))]
    return float(max(deltas) + lost)


CASES = {
    "alone in one key": (2, [[0, 1, 0]], [[0, 0, 0]]),
    "present at the start": (2, [[1, 0, 0]], [[0, 0, 0]]),
    "leaves again": (2, [[0, 1, -1]], [[0, 0, 0]]),
    "leaves and comes again": (3, [[1, -1, 1]], [[0, 0, 0]]),
    "moves between two keys": (2, [[0, 1, -1], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]]),
    "moves from others to a separate key": (2, [[0, 3, -1], [0, 0, 1]], [[0, 2, 0], [0, 0, 0]]),
    "others come later": (2, [[0, 1, 2]], [[0, 0, 2]]),
    "others leave": (2, [[0, 3, -2]], [[0, 2, -2]]),
    "never alone": (2, [[2, 0, 1]], [[2, 0, 0]]),
    "moves between found keys": (2, [[12, 1, -1], [12, 0, 1]], [[12, 0, 0], [12, 0, 0]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_exact_loss_is_at_most_the_claim(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, one, other = CASES[case]
    part = part_of(release_of(everything(changes, 2)))

    assert loss(part, one, other, 11 if len(one) == 1 else 8, monkeypatch) <= DELTA


def test_a_unit_that_is_alone_in_several_keys_at_once_is_within_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(release_of(everything(2, 1, owner=True)))

    for one in ([[0, 1], [0, 1]], [[0, 2], [0, 0]], [[1, 0], [0, 1]]):
        assert loss(part, one, [[0, 0], [0, 0]], 18, monkeypatch) <= DELTA


BY_SEX = replace(TOWNS, by=(("sex", ("f", "m")), *TOWNS.by))
OF_CELLS = {
    "two entries alone in two cells": ([[(0, 0), (1, 1)]], [[(0, 0), (0, 0)]]),
    "two entries in two keys": ([[(0, 0), (0, 1)], [(0, 0), (1, 0)]], [[(0, 0)] * 2] * 2),
    "in two cells of others": ([[(5, 5), (1, 1)]], [[(5, 5), (0, 0)]]),
}


@pytest.mark.slow
def test_the_exact_loss_of_keys_with_several_cells_is_at_most_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    query = replace(BY_SEX, measure=Measure(kind="units"))
    part = part_of(release_of(everything(2, 1, owner=True), query=query))

    losses = {name: loss(part, *case, 6, monkeypatch) for name, case in OF_CELLS.items()}
    halved = replace(part, threshold=1 + (part.threshold - 1) // 2)

    assert max(losses.values()) <= DELTA, losses
    assert loss(halved, *OF_CELLS["two entries alone in two cells"], 6, monkeypatch) > DELTA


@pytest.mark.slow
@pytest.mark.parametrize("runs", [(1,), (1, 2)])
def test_a_run_that_dies_between_noise_and_publication_changes_no_chance(runs, monkeypatch) -> None:
    part = replace(part_of(release_of(everything(3, 3))), threshold=1)

    once = outcomes(part, [1, 0, -1, 1], 3, monkeypatch)

    assert len(once) > 50
    for dies in (None, *range(len(runs) + 1)):
        assert outcomes(part, [1, 0, -1, 1], 3, monkeypatch, runs=runs, dies=dies) == once


def test_a_key_that_had_entries_must_not_stay_a_candidate_under_a_span(monkeypatch: pytest.MonkeyPatch) -> None:
    span = Promise(constraint=AtOnce(1), window=DAY, windows=None, owner=False, protects=Span(DAY))
    part = part_of(release_of(span, query=replace(TOWNS, strategy=Choice(name="direct")), delta=0.05))
    alone, nobody = [0, 1, -1, 0], [0, 0, 0, 0]

    assert loss(part, [alone], [nobody], 5, monkeypatch) <= 0.05
    monkeypatch.setattr(discovered_chunk, "candidates", lambda levels: np.logical_or.accumulate(levels > 0))
    assert loss(part, [alone], [nobody], 5, monkeypatch) > 0.05


def owned(entries: Sequence[tuple[str, str, int, str | None, str | None]]) -> pa.Table:
    """Return projected rows (person, entry, day, town before, town after); a change of owner is two of them."""
    return rows([row[1:] for row in entries]).add_column(0, "unit", pa.array([row[0] for row in entries], pa.string()))


ROWS = {
    "an entry changes its owner": (
        [(3, [("p", "e", 0, None, "A"), ("p", "e", 1, "A", None), ("q", "e", 1, None, "A")])],
        [(3, [("q", "e", 1, None, "A")])],
    ),
    "an entry comes late and leaves late": (
        [(1, [("q", "f", 2, None, "A")]), (2, [("p", "e", 0, None, "A")]), (3, [("p", "e", 1, "A", None)])],
        [(1, [("q", "f", 2, None, "A")]), (2, []), (3, [])],
    ),
    "an entry moves late": (
        [(2, [("p", "e", 0, None, "A")]), (3, [("p", "e", 1, "A", "B")])],
        [(2, []), (3, [])],
    ),
}
"""For both neighbours the windows at which runs end, with their new rows."""


@pytest.mark.slow
@pytest.mark.parametrize("case", ROWS)
def test_the_exact_loss_of_rows_is_at_most_the_claim(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    release = release_of(everything(2, 3, owner=True))
    part, leaves = part_of(release), []
    for runs in ROWS[case]:
        summed, state, since = np.zeros((4, 2), dtype=np.int64), None, 0
        for until, new in runs:
            timeline = Timeline(start=0, every=DAY, windows=until, released=since)
            sums, after = advance_shard(owned(new), state, replace(release.aggregation, timeline=timeline))
            summed[: until + 1] += decode_sums([own for _, own in sums]).dense(pa.array(["A", "B"]), until)
            state, since = state_from_bytes(state_to_bytes(after)), until
        leaves.append([column.tolist() for column in summed.T])

    assert leaves[0] != leaves[1]
    assert loss(part, *leaves, 7, monkeypatch) <= DELTA


def test_half_of_the_margin_of_the_threshold_breaks_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(release_of(everything(2, 2)))

    halved = replace(part, threshold=1 + (part.threshold - 1) // 2)

    assert loss(halved, *CASES["alone in one key"][1:], 11, monkeypatch) > 1.5 * DELTA


def test_half_of_the_noise_breaks_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(release_of(everything(2, 2)))

    halved = replace(part, noise=(DiscreteLaplace(part.noise[0].scale / 2),))

    assert loss(halved, [[12, 1, -1], [12, 0, 1]], [[12, 0, 0], [12, 0, 0]], 8, monkeypatch) > DELTA


def at(windows: Mapping[int, int]) -> Callable[..., np.ndarray]:
    """Return a source of noise: a number for each window in which a node ends, otherwise 0; the same for all keys."""

    def sample(_: object, nodes: Nodes, *, component: int, cells: int) -> np.ndarray:
        ends = [windows.get(end, 0) for end in nodes.end.tolist()]
        return np.repeat(np.array(ends, dtype=np.int64)[:, None], cells, axis=1)

    return sample


def sums_of(keys: Mapping[str, Mapping[int, int]], since: int, until: int) -> NewSums:
    """Return the sums of the windows after `since`, up to `until`; those of a first run from the start on."""
    rows = [
        (place, window, number)
        for place, (_, leaves) in enumerate(keys.items())
        for window, number in leaves.items()
        if (since < window or since == 0) and window <= until
    ]
    key, window, number = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    there = np.unique(key)  # keys without a sum are not in a run's sums
    return NewSums(
        windows=until,
        sums=KeySums(pa.array([*keys], pa.string()).take(pa.array(there)), np.searchsorted(there, key), window, number),
    )


def test_a_key_whose_entries_left_is_not_found_by_later_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a span, the rule "once a candidate, always a candidate" would have no delta."""
    span = Promise(constraint=AtOnce(1), window=DAY, windows=None, owner=False, protects=Span(DAY))
    query = replace(TOWNS, strategy=Choice(name="direct"))
    part = part_of(release_of(span, query=query))
    large = 10 * part.threshold

    monkeypatch.setattr(noise, "sample_noise", at({2: large, 3: large, 4: large}))
    held, shown = publish((part,), None, sums_of({"a": {1: 1, 2: -1}}, 0, 3))
    assert shown.num_rows == 0
    held, shown = publish((part,), held, sums_of({"a": {4: 1}}, 3, 4))
    assert shown.to_pylist() == [{"series": 0, "window": 4, "key": "a", "value": 1.0 + large}]


def test_one_key_of_a_query_is_found() -> None:
    with pytest.raises(RuleError, match="of each found key"):
        release_of(everything(2, 2), query=replace(TOWNS, by=(*TOWNS.by, ("street", DiscoveredKey()))))


def test_a_found_key_has_rows_for_all_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(release_of(everything(2, 4), query=BY_SEX))
    half = part.threshold // 2
    monkeypatch.setattr(noise, "sample_noise", at({}))
    monkeypatch.setattr(discovered_chunk, "AT_ONCE", 4)
    counts = [("b", 0, 1, half), ("b", 1, 1, half), ("a", 1, 0, half), ("b", 1, 2, part.threshold), ("b", 0, 4, -half)]

    shown, held = [], None
    for since, until in ((0, 1), (1, 4)):
        key, cell, window, number = zip(*[row for row in counts if (since or -1) < row[2] <= until], strict=True)
        place = np.array([["a", "b"].index(one) for one in key])
        sums = KeySums(pa.array(["a", "b"]), place, np.array(window), np.array(number), np.array(cell))
        held, rows = publish((part,), held, NewSums(windows=until, sums=sums))
        held = DiscoveredChunk((part,)).opened(
            DiscoveredChunk((part,)).kept(held, windows=until, plan="p"), windows=until, plan="p"
        )
        shown += rows.to_pylist()

    more = half + part.threshold
    assert 2 * half < part.threshold  # both cells together are not enough in the first window
    expected = {2: (half, more), 3: (half, more), 4: (0, more)}
    assert [(row["window"], row["key"], row["value"]) for row in shown] == [
        (window, "b", value) for window, values in expected.items() for value in values
    ]


def test_a_found_key_stays_listed_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(release_of(everything(2, 4)))
    entries = part.threshold
    monkeypatch.setattr(noise, "sample_noise", at({}))

    held, first = publish((part,), None, sums_of({"a": {1: entries - 1, 2: 1, 3: -entries}, "b": {1: 1}}, 0, 2))
    _, later = publish((part,), held, sums_of({"a": {3: -entries}}, 2, 4))

    assert first.to_pylist() == [{"series": 0, "window": 2, "key": "a", "value": float(entries)}]
    assert later.to_pylist() == [{"series": 0, "window": w, "key": "a", "value": 0.0} for w in (3, 4)]


def test_changes_and_sliding_sums_are_published_if_they_begin_after_the_discovery(monkeypatch) -> None:
    series = (*TOWNS.publish, Series(kind="change"), Series(kind="sliding", width=3, every=2))
    release = release_of(everything(2, 9), query=replace(TOWNS, publish=series))
    part = part_of(release)
    many = part.threshold
    monkeypatch.setattr(noise, "sample_noise", at({}))

    counts = {"a": {1: 1, 3: many, 4: 5, 7: 2}}
    shown, held = [], None
    for since, until in ((0, 4), (4, 9)):
        held, rows = publish((part,), held, sums_of(counts, since, until))
        shown.append(rows)

    found: list[list[tuple[int, float]]] = [[], [], []]
    for row in pa.concat_tables(shown).to_pylist():
        found[row["series"]].append((row["window"], row["value"]))
    assert found[0][0] == (3, many + 1)
    assert len(found[0]) == 7
    assert found[1] == [(4, 5), (5, 0), (6, 0), (7, 2), (8, 0), (9, 0)]
    assert found[2] == [(7, 2), (9, 2)]  # the first one of three windows that begins after window 3 ends with window 7


ENTERED = (Series(kind="entered"), *TOWNS.publish)
MEANS = replace(TOWNS, measure=Measure(kind="mean", low=0, high=9), column="n", publish=ENTERED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "asked"), [("tree", TOWNS), ("direct", TOWNS), ("factorised", TOWNS), ("tree", MEANS), ("tree", BY_SEX)]
)
def test_many_runs_publish_what_one_run_publishes(name: str, asked: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    promise = everything(2, 6)
    query = replace(asked, strategy=Choice(name=name))
    plan = make_plan(
        [query.demand],
        promise,
        budget=Budget(epsilon=EPSILON, delta=DELTA),
        mechanism="gaussian" if name == "factorised" else "laplace",
        accounting=None,
    )
    parts = plan.found_parts(0)
    assert parts is not None
    chunk, step = DiscoveredChunk(parts), plan.demands[0].measure.components[0].largest
    every, cells = [layer for *_, layer in layers(parts)], range(query.each)
    assert len(every) == (4 if asked is MEANS else 1)
    rng = np.random.default_rng(3)
    counts = {f"k{key}": {w: int(rng.integers(-4, 40)) * step for w in range(key % 7, 7)} for key in range(20)}
    counts["left"] = {1: step, 2: -step, 5: 2 * step}
    recorded, sampled = at({w: (-1) ** w * 3 * step for w in range(7)}), []

    def sample(distribution: object, nodes: Nodes, *, component: int, cells: int) -> np.ndarray:
        sampled.append(len(nodes.end) * cells)
        return recorded(distribution, nodes, component=component, cells=cells)

    monkeypatch.setattr(noise, "sample_noise", sample)
    monkeypatch.setattr(discovered_chunk, "AT_ONCE", 20)  # a few keys at once

    def sums(since: int, until: int) -> NewSums:
        """Return the sums of the windows in all layers and cells; those of others are a multiple."""
        one = sums_of(counts, since, until)
        sizes = [(layer, cell, 1 + layer + cell) for layer in every for cell in cells]
        own = one.sums
        return replace(
            one,
            sums=KeySums(
                own.keys,
                np.tile(own.key, len(sizes)),
                np.tile(own.window, len(sizes)),
                np.concatenate([own.sum * size for *_, size in sizes]),
                np.repeat([cell for _, cell, _ in sizes], len(own.key)),
                np.repeat([layer for layer, *_ in sizes], len(own.key)),
            ),
        )

    _, whole = publish(parts, None, sums(0, 6))
    once = sum(sampled)
    held, shown = None, []
    for since, until in ((0, 1), (1, 4), (4, 6)):
        held, content = chunk.step(held, sums(since, until))
        held = chunk.opened(chunk.kept(held, windows=until, plan="p"), windows=until, plan="p")
        shown.append(from_bytes(content))

    assert pa.concat_tables(shown).sort_by([(name, "ascending") for name in whole.column_names[:3]]).equals(whole)
    assert sum(sampled) == 2 * once  # also of keys without entries: noise is sampled once for each node and key
    assert 0 < whole.num_rows < 20 * 6 * len(cells) * len(query.publish)
    if asked is MEANS:
        entered = whole.filter(pc.equal(whole["series"], 1))
        first = {row["key"]: row["window"] for row in reversed(whole.to_pylist()) if row["series"] == 0}
        assert entered.num_rows
        for row in entered.to_pylist():
            exact = counts[row["key"]].get(row["window"], 0)
            assert row["window"] > first[row["key"]]
            assert abs(row["value"] - 3 * exact) == abs(row["value.1"] - 4 * exact) == 3 * step


def rows(entries: Sequence[tuple[str, int, str | None, str | None]]) -> pa.Table:
    """Return projected rows (entry, day, town before, town after) in the middle of a day."""
    entry, day, before, after = zip(*entries, strict=True) if entries else ((), (), (), ())
    return pa.table(
        {
            "entry": pa.array(entry, pa.string()),
            "time": pa.array([at * DAY + DAY // 2 for at in day], pa.int64()),
            "image.before": pa.array([0 if one is None else 1 + ord(one[0]) for one in before], pa.uint32()),
            "image.after": pa.array([0 if one is None else 1 + ord(one[0]) for one in after], pa.uint32()),
            "before.0.cell": pa.array(before, pa.string()),
            "after.0.cell": pa.array(after, pa.string()),
        }
    )


def released(
    release: ReleasePlan, runs: Sequence[tuple[int, pa.Table]], folder: object
) -> tuple[list[tuple[str, bytes]], ShardState | None]:
    """Return all public tables of some runs, each with the windows until which it publishes and its new rows."""
    public: list[tuple[str, bytes]] = []
    state, past, since = None, None, 0
    for until, new in runs:
        timeline = Timeline(start=0, every=DAY, windows=until, released=since)
        now = replace(release, aggregation=replace(release.aggregation, timeline=timeline))
        sums, after = advance_shard(new, state, now.aggregation)
        for noisy in protect(now, KEY, [part for key, part in sums if key == KEY], past=past, keep=True):
            public += tables(noisy, now, ESTIMATES)
            for name, content in remember(noisy):
                (folder / name).write_bytes(content)
        state, past, since = state_from_bytes(state_to_bytes(after)), str(folder), until
    return public, state


def test_public_bytes_do_not_depend_on_keys_that_are_not_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = release_of(everything(2, 4), delta=1e-3)
    many = part_of(release).threshold + 3
    monkeypatch.setattr(noise, "sample_noise", at({1: -1, 2: 1, 3: 2}))
    crowd = [(f"e{n}", 0, None, "Aa") for n in range(many)]
    others = [(f"z{n}", 0, None, "Zz") for n in range(many)]
    few = [("f0", 0, None, "B"), ("f1", 1, None, "é"), ("f2", 0, None, "A"), ("f3", 0, None, None)]
    later = [("e0", 1, "Aa", None), ("g0", 2, None, "Aa"), ("g1", 2, None, "C")]
    moved = [("f0", 2, "B", "C"), ("f2", 1, "A", None)]

    found = []
    one, two = crowd + others, [*few[:2], *others, *reversed(crowd), *few[2:]]
    for name, first, second in (("one", one, later[:2]), ("two", two, moved + later)):
        folder = tmp_path / name
        folder.mkdir()
        found.append(released(release, [(1, rows(first)), (4, rows(second))], folder)[0])

    assert found[0] == found[1]
    assert [name for name, _ in found[0]] == ["towns-net-00000", "towns-net-00000"]
    shown = pa.concat_tables([from_bytes(content) for _, content in found[0]])
    assert shown["town"].to_pylist() == ["Aa", "Zz"] * 4
    assert shown["value"].to_pylist()[::2] == [many - 1, many - 1, many + 2, many + 2]


def test_late_rows_count_in_the_keys_that_they_name(tmp_path, monkeypatch) -> None:
    release = release_of(everything(3, 3), delta=1e-3)
    many = part_of(release).threshold
    monkeypatch.setattr(noise, "sample_noise", at({}))
    first = rows([(f"e{n}", 0, None, "A") for n in range(many)] + [("later", 2, None, "A")])
    late = rows([("late", 0, None, "A"), ("e1", 1, "A", "B"), ("e2", 1, "A", None)])

    public, state = released(release, [(1, first), (3, late)], tmp_path)

    shown = pa.concat_tables([from_bytes(content) for _, content in public])
    assert shown["value"].to_pylist() == [many, many - 1, many]
    assert state is not None
    last = dict(zip(state.entries["entry"].to_pylist(), state.entries["after.0.cell"].to_pylist(), strict=True))
    assert last["e1"] == "B"
    assert last["e2"] is None
    assert last["late"] == "A"


def test_a_state_of_keys_that_is_incomplete_is_refused() -> None:
    release = release_of(everything(2, 3))
    chunk = chunk_of(release, KEY)
    held, _ = chunk.step(None, sums_of({"a": {1: 4}, "b": {1: 1}}, 0, 2))
    state = chunk.kept(held, windows=2, plan="p")

    with pytest.raises(ValueError, match="not that after 1 window"):
        chunk.opened(state, windows=1, plan="p")
    with pytest.raises(ValueError, match="incomplete"):
        chunk.opened(chunk.kept(replace(held, found=held.found[:1]), windows=2, plan="p"), windows=2, plan="p")
    empty, content = chunk.step(None, sums_of({}, 0, 2))
    again = chunk.opened(chunk.kept(empty, windows=2, plan="p"), windows=2, plan="p")
    assert len(again.keys) == from_bytes(content).num_rows == 0


def moves(rng: np.random.Generator, towns: Sequence[str], days: int) -> pa.Table:
    """Return rows of entries that come, move between towns and leave, for a listed and a found key."""
    columns: dict[str, list[object]] = {name: [] for name in ("unit", "entry", "time", "before", "after")}
    for entry in range(80):
        state, day = None, float(rng.uniform(-1, days))
        for _ in range(int(rng.integers(1, 6))):
            after = None if state is not None and rng.random() < 0.4 else str(rng.choice(towns))
            values = (f"p{entry % 25}", f"e{entry}", int(day * DAY), state, after)
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
            state, day = after, day + float(rng.uniform(0, 2))
    table = {name: pa.array(values) for name, values in columns.items()}
    for side in ("before", "after"):
        texts = table.pop(side).cast(pa.string())
        codes = pc.index_in(texts, value_set=pa.array(towns)).fill_null(-1)
        table |= {f"{side}.0.cell": codes, f"{side}.1.cell": texts, f"image.{side}": pc.add(codes, 1).cast(pa.uint32())}
        value = np.where(codes.to_numpy() < 0, 0, (1 + np.arange(len(codes)) % 9) * 2**20)
        table |= {f"{side}.{query}.value": pa.array(value) for query in range(2)}
    return pa.table(table)


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["count", "units", "mean"])
@pytest.mark.parametrize("constraint", [AtMost(3), AtMost(4, entries=2), AtOnce(2)])
def test_sums_of_found_keys_are_those_of_listed_cells(constraint, measure) -> None:
    towns, days = ["a", "b", "c", "dé"], 6
    series = (Series(kind="level"), Series(kind="left"), Series(kind="entered"))
    bounds = {"low": 0, "high": 9} if measure == "mean" else {}
    listed = Query(
        name="listed",
        measure=Measure(kind=measure, **bounds),
        column="n" if bounds else None,
        by=(("town", tuple(towns)),),
        publish=series,
    )
    aggregation = Aggregation(
        queries=(listed, replace(listed, name="found", by=(("town", DiscoveredKey()),))),
        timeline=Timeline(start=0, every=DAY, windows=days),
        constraint=constraint,
        owner="person",
    )
    rng = np.random.default_rng(11)
    table = moves(rng, towns, days)
    arrives = np.minimum(table["time"].to_numpy() // DAY + rng.integers(0, 2, len(table)), days - 1)
    state, since = None, 0
    components = len(listed.measure.components)
    found, expected = np.zeros((2, 3, components, 1 + days, len(towns)), dtype=np.int64)
    for until in (2, 3, days):
        now = replace(aggregation, timeline=Timeline(start=0, every=DAY, windows=until, released=since))
        rows = table.filter(pa.array((arrives < until) & (arrives >= (since if since else -9))))
        sums, after = advance_shard(rows, state, now)
        state, since = state_from_bytes(state_to_bytes(after)), until
        by_key = decode_sums([part for key, part in sums if key[1:] == (1, "net", 0)])
        for place, family in enumerate(listed.families):
            own = gathered([part for key, part in sums if key[1:3] == (0, family)])
            expected[place] += dense(own, listed, rows=range(1 + days), cells=range(len(towns)))
            for component, layer in enumerate(layers_of(listed.families, components, family)):
                found[place, component] += by_key.dense(pa.array(towns), days, layer=layer)

    assert np.array_equal(found, expected)
    assert ((np.abs(found).sum(axis=3) > 0).sum(axis=2) >= days - 1).all()
