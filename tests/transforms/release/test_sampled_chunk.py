"""Levels that are sampled or repeated: all steps of a release except files and runners.

A correct release fails a statistical test here with probability at most FALSE_ALARM of test_release.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from privacy.accounting.accounting import Budget
from privacy.adaptive.ba import Ba
from privacy.adaptive.base import Policy
from privacy.adaptive.bd import Bd
from privacy.adaptive.dsat import Dsat
from privacy.adaptive.dsft import Dsft
from privacy.adaptive.fixed import Fixed
from privacy.adaptive.pegasus import SMOOTHS, Pegasus, Smooth
from privacy.cells.choice import CellChoice
from privacy.cells.each import Each
from privacy.constraint import AtOnce
from privacy.measure import Measure
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace
from privacy.planning.document import CODEC
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Ints, Series
from privacy.strategies.base import Nodes
from tests.transforms.release.test_release import FALSE_ALARM, agrees
from transforms.aggregation import node_sums
from transforms.aggregation.leaf_sums import LeafSums
from transforms.aggregation.node_sums import BOUNDED, Aggregation, NodeKey, encode
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline, planned
from transforms.common.ipc import from_bytes
from transforms.release import noise
from transforms.release.published_columns import estimates_types
from transforms.release.release import ESTIMATES, NODES, ReleasePlan, protect, remember, tables
from transforms.release.sampled_chunk import SampledChunk

KEY: NodeKey = (BOUNDED, 0, "net", 0)
DAY = 86_400_000_000
WINDOWS = 12
NO_NOISE = 1e12
FIXED = Fixed(interval=1)
POLICIES = [
    Fixed(interval=3),
    Dsft(samples=4, threshold=30.0),
    Dsat(samples=4),
    Bd(),
    Ba(),
]
MAP = (("ward", ("a", "b")), ("x", OrderedKey(start=0, step=1, steps=2)), ("y", OrderedKey(start=0, step=1, steps=3)))
CELLS = 40
SUM = Measure(kind="sum", low=-2, high=4)


def made(
    choice: Policy,
    *,
    cells: int = 3,
    windows: int = WINDOWS,
    epsilon: float = 1.0,
    delta: float = 0.0,
    measure: Measure = SUM,
    over: CellChoice = CellChoice(),  # noqa: B008 - a frozen value
) -> ReleasePlan:
    """Return the release of one query, with Gaussian noise if there is a delta."""
    query = Query(
        name="hours",
        measure=measure,
        by=MAP if over.asks else (("ward", tuple(range(cells))),),
        over=over,
        publish=(Series(kind="level"),),
        adaptive=choice,
    )
    plan = make_plan(
        [query.demand],
        promise=Promise(constraint=AtOnce(), window=DAY, windows=windows, owner=False),
        budget=Budget(epsilon=epsilon, delta=delta),
        mechanism="gaussian" if delta else "laplace",
        accounting=None,
    )
    timeline = Timeline(start=0, every=DAY, windows=windows)
    aggregation = Aggregation(queries=planned([query], plan), timeline=timeline, constraint=AtOnce())
    return ReleasePlan(plan=plan, aggregation=aggregation)


def closing(whole: ReleasePlan, released: int, windows: int) -> ReleasePlan:
    timeline = replace(whole.aggregation.timeline, released=released, windows=windows)
    return replace(whole, aggregation=replace(whole.aggregation, timeline=timeline))


def leaves(windows: int, cells: int) -> Ints:
    """Return exact changes: some at the start, some in every window, many in some windows."""
    rng = np.random.default_rng(5)
    return (
        rng.integers(-3, 4, (windows + 1, cells))
        * np.array([1, 40])[(np.arange(windows + 1) % 5 == 0).astype(int), None]
    )


def told(whole: ReleasePlan, changes: Ints | None, runs: list[tuple[int, int]], folder: Path) -> pa.Table:
    """Return the published tables of successive runs, each from the state of the previous one."""
    found, past = [], None
    for released, windows in runs:
        one = closing(whole, released, windows)
        rows = np.arange(released + bool(released), windows + 1)
        sums = [] if changes is None else [part(changes, rows)]
        for noisy in protect(one, KEY, sums, past=past, keep=True):
            found += [from_bytes(table) for _, table in tables(noisy, one, ESTIMATES)]
            assert list(tables(noisy, one, NODES)) == []
            for name, content in remember(noisy):
                past = str(folder / f"state-{windows}")
                Path(past).mkdir()
                Path(past, name).write_bytes(content)
    return pa.concat_tables(found)


def part(changes: Ints, rows: Ints) -> bytes:
    cells = changes.shape[1]
    node = (rows[:, None] * cells + np.arange(cells)).ravel()
    return encode(LeafSums(node=node, sums=changes[rows].reshape(1, -1)))


def column(table: pa.Table, name: str, cells: int = 3) -> np.ndarray:
    return np.array(table[name].to_pylist(), dtype=object).reshape(-1, cells)


@pytest.mark.parametrize("choice", POLICIES, ids=lambda choice: choice.name)
def test_without_noise_sampled_windows_have_the_exact_level_and_the_others_repeat_it(
    choice: Policy, tmp_path: Path
) -> None:
    whole = made(choice, epsilon=NO_NOISE)
    changes = leaves(WINDOWS, 3)
    grid = whole.aggregation.queries[0].measure.components[0].grid
    exact = changes.cumsum(axis=0)[1:] * grid

    table = told(whole, changes, [(0, WINDOWS)], tmp_path)

    sampled = column(table, "sampled")[:, 0].astype(bool)
    value = column(table, "value").astype(float)
    assert 1 < sampled.sum() < WINDOWS or choice.name in ("bd", "ba")
    assert sampled[0]
    last = np.maximum.accumulate(np.where(sampled, np.arange(WINDOWS), 0))
    assert value.tolist() == exact[last].tolist()


@pytest.mark.parametrize("choice", POLICIES, ids=lambda choice: choice.name)
def test_every_window_and_cell_has_a_row_and_sampled_ones_have_their_error(choice: Policy, tmp_path: Path) -> None:
    """Also for an empty changelog."""
    whole = made(choice)
    (policy,) = whole.plan.parts
    grid = whole.aggregation.queries[0].measure.components[0].grid

    table = told(whole, None, [(0, 5), (5, WINDOWS)], tmp_path)

    assert table.column_names == [
        *("query", "kind", "window_start", "window_end", "ward"),
        *("value", "stddev", "ci_low", "ci_high", "sampled"),
    ]
    assert table.schema == pa.schema(estimates_types(whole.aggregation.queries))
    ends = [(window + 1) * DAY for window in range(WINDOWS) for _ in range(3)]
    assert table["window_end"].cast(pa.int64()).to_pylist() == ends
    assert table["ward"].to_pylist() == [0, 1, 2] * WINDOWS
    sampled = table["sampled"].to_numpy()
    for name in ("stddev", "ci_low", "ci_high"):
        assert (np.array([number is not None for number in table[name].to_pylist()]) == sampled).all()
    known = table.filter(table["sampled"])
    value, low, high = (known[name].to_numpy() for name in ("value", "ci_low", "ci_high"))
    np.testing.assert_allclose(value - low, high - value)
    # The first sample takes the policy's units for any data.
    first = policy.scales.sample(policy.rule.units // 2 if choice.name == "bd" else 1)
    assert known["stddev"][0].as_py() == pytest.approx(first.variance**0.5 * grid)
    assert policy.deviation == first.variance**0.5  # the error that `plan` states
    assert high[0] - value[0] == pytest.approx(first.half_width(1) * grid)


@pytest.mark.parametrize("name", ["tree", "quadtree", "kdtree"])
def test_samples_of_sums_over_cells_without_noise_are_exact_and_continue_from_run_to_run(
    name: str, tmp_path: Path
) -> None:
    whole = made(Dsat(samples=4), epsilon=NO_NOISE, over=CellChoice(name=name))
    changes = leaves(WINDOWS, CELLS)
    grid = whole.aggregation.queries[0].measure.components[0].grid
    exact = changes.cumsum(axis=0)[1:] * grid

    table = told(whole, changes, [(0, 5), (5, WINDOWS)], tmp_path)

    assert table.schema == pa.schema(estimates_types(whole.aggregation.queries))
    (policy,) = whole.plan.parts
    value, sampled = column(table, "value", CELLS).astype(float), column(table, "sampled", CELLS)[:, 0].astype(bool)
    last = exact[np.maximum.accumulate(np.where(sampled, np.arange(WINDOWS), 0))]
    assert 1 < sampled.sum() < WINDOWS
    known = {
        side: np.array([number is not None for number in table[side].to_pylist()]).reshape(-1, CELLS)
        for side in ("stddev", "ci_low", "ci_high")
    }
    assert (known["stddev"] == sampled[:, None]).all()
    assert policy.deviation * grid < 1e-6
    if name != "kdtree":
        assert value == pytest.approx(last)
        assert (known["ci_low"] == sampled[:, None]).all()
        assert "spread_over" not in table.column_names
        return
    spread = column(table, "spread_over", CELLS).astype(int)
    assert value.sum(axis=1) == pytest.approx(last.sum(axis=1))
    assert (known["ci_low"] == (sampled[:, None] & (spread == 1))).all()
    assert (known["ci_low"] == known["ci_high"]).all()
    assert 1 < spread.max() < CELLS / 2
    alone = (spread == 1) & sampled[:, None]
    assert alone.any()
    assert value[alone] == pytest.approx(last[alone])
    assert "The data choose where regions of cells are split" in whole.plan.statement


@pytest.mark.parametrize("smooth", SMOOTHS)
def test_groups_of_windows_continue_from_run_to_run(smooth: Smooth, tmp_path: Path) -> None:
    """Without noise a group ends when a cell jumps; within a group nothing moves, so all smoothers agree."""
    choice = Pegasus(threshold=SUM.components[0].grid, smooth=smooth)
    whole = made(choice, epsilon=NO_NOISE)
    changes = leaves(WINDOWS, 3)
    changes[[2, 3, 4, 7, 8]] = 0
    grid = whole.aggregation.queries[0].measure.components[0].grid

    table = told(whole, changes, [(0, 3), (3, 4), (4, WINDOWS)], tmp_path)

    assert table.schema == pa.schema(estimates_types(whole.aggregation.queries))
    grouped = column(table, "grouped").astype(int)
    assert column(table, "value").astype(float) == pytest.approx(changes.cumsum(axis=0)[1:] * grid, abs=1e-6)
    assert (grouped[:4] == [[1], [2], [3], [4]]).all()
    assert (grouped[5] < 5).any()
    known = {name: column(table, name) for name in ("stddev", "ci_low", "ci_high")}
    assert all(((known[name] == None) == (grouped > 1)).all() for name in ("ci_low", "ci_high"))  # noqa: E711
    assert ((known["stddev"] == None) == (grouped > (WINDOWS if smooth == "mean" else 1))).all()  # noqa: E711
    assert table["sampled"].to_pylist() == [True] * 3 * WINDOWS


def test_the_mean_of_a_group_has_the_noise_of_its_windows(tmp_path: Path) -> None:
    whole = made(Pegasus(threshold=1e9, smooth="mean"))
    (policy,) = whole.plan.parts
    grid = whole.aggregation.queries[0].measure.components[0].grid

    table = told(whole, None, [(0, 5), (5, WINDOWS)], tmp_path)

    assert (column(table, "grouped") == np.arange(1, WINDOWS + 1)[:, None]).all()
    alone = policy.scales.sample(1).variance ** 0.5 * grid
    assert alone > 0
    assert table["stddev"].to_numpy() == pytest.approx(alone / np.sqrt(np.repeat(np.arange(1, WINDOWS + 1), 3)))


@pytest.mark.slow
@pytest.mark.parametrize("halved", [False, True])
def test_the_noise_of_nodes_follows_the_distribution_of_the_plan(halved: bool, tmp_path: Path) -> None:
    """Cells of a prefix strategy are differences of two nodes, so their sums are nodes."""
    whole = made(FIXED, windows=100, measure=Measure(kind="count"), over=CellChoice(name="prefix"))
    (policy,) = whole.plan.parts
    assert policy.scales.column == 20
    stated = policy.scales.sample(1)
    if halved:
        louder = replace(policy.scales, whole=policy.scales.whole / 2)
        whole = replace(whole, plan=replace(whole.plan, parts=(replace(policy, scales=louder),)))

    table = told(whole, None, [(0, 100)], tmp_path)

    values = table["value"].to_numpy().reshape(-1, 4, 5)
    along = np.outer([1, 2, 2, 2], [1, 2, 2, 2, 2]).ravel()  # nodes in each cell of a ward
    of_node = whole.plan.parts[0].scales.sample(1).variance
    assert table["stddev"].to_numpy() == pytest.approx(np.sqrt(np.tile(along * of_node, 200)))
    width, deviation = table["ci_high"].to_numpy() - table["ci_low"].to_numpy(), table["stddev"].to_numpy()
    assert ((width > 2 * 1.95 * deviation) & (width < 2 * 2.6 * deviation)).all()
    nodes = np.rint(values.reshape(-1, 2, 4, 5).cumsum(axis=2).cumsum(axis=3)).astype(np.int64).ravel()
    assert agrees(nodes, stated) is not halved


def test_the_error_of_a_sample_follows_its_units_of_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Policy bd gives each sample half of the remaining budget."""
    always = recorded(decisions=1 << 50, cells=0)
    monkeypatch.setattr(noise, "sample_noise", always)
    whole = made(Bd())
    scales = whole.plan.parts[0].scales

    table = told(whole, leaves(WINDOWS, 3), [(0, 3), (3, 6)], tmp_path)

    assert table["sampled"].to_pylist() == [True] * 18
    grid = whole.aggregation.queries[0].measure.components[0].grid
    expected = [scales.sample(scales.units >> (window + 1)).variance ** 0.5 * grid for window in range(6)]
    assert column(table, "stddev")[:, 1].astype(float) == pytest.approx(expected)


def recorded(*, decisions: int, cells: int) -> Callable[..., Ints]:
    """Return known noise: of decisions, which are one number, and of cells."""

    def sample(_: object, nodes: Nodes, *, component: int, cells: int, of_cells: int = cells) -> Ints:
        return np.full((1, cells), decisions if cells == 1 else of_cells)

    return sample


WIDE = 1500


@pytest.mark.slow
@pytest.mark.parametrize("halved", [False, True])
def test_the_noise_of_samples_follows_the_distribution_of_the_plan(halved: bool, tmp_path: Path) -> None:
    whole = made(FIXED, cells=WIDE, windows=100, measure=Measure(kind="count"))
    (policy,) = whole.plan.parts
    stated = policy.scales.sample(1)
    if halved:
        louder = replace(policy.scales, whole=policy.scales.whole / 2)
        whole = replace(whole, plan=replace(whole.plan, parts=(replace(policy, scales=louder),)))

    table = told(whole, None, [(0, 100)], tmp_path)

    assert isinstance(stated, DiscreteLaplace)
    assert agrees(table["value"].to_numpy().astype(np.int64), stated) is not halved


@pytest.mark.parametrize("halved", [False, True])
def test_gaussian_noise_is_added_if_the_plan_states_it(halved: bool, tmp_path: Path) -> None:
    """Squares add up to a chi-square; the grid is so fine that its steps have no measurable effect."""
    whole = made(FIXED, cells=WIDE, windows=6, delta=1e-9, measure=Measure(kind="count"))
    (policy,) = whole.plan.parts
    stated = policy.scales.sample(1)
    if halved:
        louder = replace(policy.scales, whole=policy.scales.whole / 2)
        whole = replace(whole, plan=replace(whole.plan, parts=(replace(policy, scales=louder),)))

    table = told(whole, None, [(0, 2), (2, 6)], tmp_path)

    grid = whole.aggregation.queries[0].measure.components[0].grid
    assert grid == 2.0**-24
    assert isinstance(stated, DiscreteGaussian)
    squares = float(((table["value"].to_numpy() / grid / stated.scale) ** 2).sum())
    tails = chi2.cdf(squares, 6 * WIDE), chi2.sf(squares, 6 * WIDE)
    assert (min(tails) > FALSE_ALARM / 2) is not halved
    if not halved:
        assert table["stddev"][0].as_py() == pytest.approx(stated.scale * grid)


def test_blocks_hold_few_windows_if_there_are_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_sums, "BLOCK_LEAVES", 6)
    whole = made(Ba())

    blocks = list(protect(whole, KEY, [], past=None, keep=False))

    assert len(blocks) == WINDOWS / 2


def states(whole: ReleasePlan, windows: int) -> Iterator[bytes]:
    for noisy in protect(closing(whole, 0, windows), KEY, [], past=None, keep=True):
        for _, content in remember(noisy):
            yield content


GIVEN: dict[str, Any] = {"windows": 5, "plan": "a digest"}


def test_a_state_is_read_again_and_refused_with_other_windows_plan_or_shape() -> None:
    whole = made(Dsat(samples=4))
    (content,), (part,) = states(whole, 5), whole.plan.parts
    chunk = SampledChunk(part)
    held = chunk.opened(content, windows=5, plan=digest_in(content))
    assert held.carry is not None

    again = chunk.kept(held, **GIVEN)
    assert again is not None

    back = chunk.opened(again, **GIVEN)
    assert back.carry is not None
    assert CODEC.write(back.carry) == CODEC.write(held.carry)
    assert (back.level.tolist(), back.carry.published.tolist()) == (held.level.tolist(), held.carry.published.tolist())
    for change, says in [
        ({"windows": 4}, "is not that after 4 windows"),
        ({"plan": "another"}, "was sampled under another plan"),
    ]:
        with pytest.raises(ValueError, match=re.escape(says)):
            chunk.opened(again, **{**GIVEN, **change})
    with pytest.raises(ValueError, match="the state of levels is incomplete"):
        SampledChunk(replace(part, over=Each(cells=4))).opened(again, **GIVEN)
    middle = again.index(b"PAR1") + 8
    damaged = again[:middle] + bytes([again[middle] ^ 255]) + again[middle + 1 :]
    with pytest.raises(ValueError):  # noqa: PT011 - Arrow's words
        chunk.opened(damaged, **GIVEN)


def digest_in(content: bytes) -> str:
    return pa.parquet.read_schema(pa.BufferReader(content)).metadata[b"plan"].decode()


def test_a_plan_with_another_policy_is_refused() -> None:
    whole = made(FIXED)
    (query,) = whole.aggregation.queries
    for other, says in [
        (replace(query, adaptive=Ba()), "make both from the same queries"),
        (replace(query, adaptive=None), "make both from the same queries"),
        (replace(query, consistent=True), "cannot be combined with consistent"),
    ]:
        with pytest.raises(ValueError, match=says):
            ReleasePlan(plan=whole.plan, aggregation=replace(whole.aggregation, queries=(other,)))
