"""Rows of published marginals, from the plan of a query to its table: exact deviations, sums and intervals.

A correct release fails a statistical test here with probability below 1e-6: single numbers are within 10 deviations,
and bounds of coverage five and a half deviations away.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.cells.layers import Layers
from privacy.cells.nested import Nested
from privacy.cells.product import Product
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.planning.linear_part import LinearPart
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Series, totals
from privacy.strategies.choice import Choice
from tests.transforms.plans import laplace_plan
from transforms.aggregation.hierarchy_key import Node, hierarchy_of, values_of
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline, planned
from transforms.release.linear_chunk import add_noise, step
from transforms.release.marginal_tables import (
    Rows,
    marginal_estimates,
    marginals_of,
    noise_of_rows,
    over_rows,
    weights_over_cells,
)
from transforms.release.node_tables import nodes_table
from transforms.release.published_tables import estimates_table, truth_table

LEVEL = Series(kind="level")
SERIES = (LEVEL, Series(kind="sliding", width=2, every=2), Series(kind="entered"))
BY = (("age", (1, 2, 3)), ("sex", ("f", "m")), ("ward", ("a", "b", "c", "other")))
SHAPE, CELLS = (3, 2, 4), 24
MARGINALS = ((), ("ward",), ("age", "ward"))
PLACED = ((), (2,), (0, 2))
SUMS = {(): (1, 2, 3), ("ward",): (1, 2), ("age", "ward"): (2,)}
WINDOWS = 4


def setting(
    measure: Measure,
    *,
    windows: int = WINDOWS,
    publish: tuple[Series, ...] = SERIES,
    delta: float = 0.0,
    alone: bool = False,
    strategy: Choice = Choice(),  # noqa: B008 - a frozen value
) -> tuple[Aggregation, LinearPart]:
    """Return an aggregation and the part of levels; `alone`: each cell has separate noise."""
    query = Query(name="beds", measure=measure, by=BY, publish=publish, marginals=MARGINALS, strategy=strategy)
    query = replace(query, over=CellChoice() if alone else CellChoice(marginals=PLACED))
    other = Query(name="all", measure=Measure(kind="count"), by=(("age", (1, 2)),), publish=(LEVEL,))
    constraint, promised = AtMost(2), windows
    plan = make_plan(
        [one.demand for one in (query, other)],
        promise=Promise(constraint=constraint, window=10, windows=promised, owner=False),
        budget=Budget(epsilon=2.0, delta=delta),
        mechanism="gaussian" if delta else "laplace",
        accounting=None,
    )
    timeline = Timeline(start=0, every=10, windows=windows)
    aggregation = Aggregation(queries=planned((query, other), plan), timeline=timeline, constraint=constraint)
    return aggregation, plan.linear(0, "net")[0]


def of_kind(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table["kind"], kind))


def of_marginal(table: pa.Table, marginal: tuple[str, ...], kind: str = "level_marginal") -> pa.Table:
    """Return the rows of a marginal by the text in their keys."""
    for name, _ in BY:
        added_up = pc.equal(table[name], "all")
        table = table.filter(pc.invert(added_up) if name in marginal else added_up)
    return of_kind(table, kind)


def summed(values: np.ndarray, marginal: tuple[str, ...]) -> np.ndarray:
    """Return the rows of a marginal, [numbers, rows], of cells [numbers, cells]."""
    return values.reshape(-1, *SHAPE).sum(axis=SUMS[marginal]).reshape(len(values), -1)


@pytest.mark.parametrize("alone", [False, True])
def test_marginals_add_up_to_the_last_bit_and_have_the_deviation_of_their_noise(alone: bool) -> None:
    aggregation, released = setting(Measure(kind="count"), alone=alone)
    leaves = np.random.default_rng(5).integers(0, 9_000, (1, 1 + WINDOWS, CELLS))

    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    (noise,) = released.noise
    covariance = np.eye(CELLS) if released.over is None else released.over.solve(np.eye(CELLS))
    assert (released.over is None) == alone
    for series in SERIES[:2]:
        numbers = len(series.ends(WINDOWS))
        cells = of_kind(table, series.kind)["value"].to_numpy().reshape(numbers, CELLS)
        in_time = released.strategy.variances(series, WINDOWS) * noise.variance
        for marginal in MARGINALS:
            rows = of_marginal(table, marginal, f"{series.kind}_marginal")
            values, deviations = (rows[name].to_numpy().reshape(numbers, -1) for name in ("value", "stddev"))
            assert (values == summed(cells, marginal)).all()
            matrix = summed(np.eye(CELLS), marginal).T
            expected = np.sqrt(np.outer(in_time, np.diag(matrix @ covariance @ matrix.T)))
            assert deviations == pytest.approx(expected)
            assert (abs(values - summed(totals(series, leaves[0]), marginal)) < 10 * expected).all()
            half = (rows["ci_high"].to_numpy() - rows["ci_low"].to_numpy()).reshape(numbers, -1) / 2
            assert ((half > 1.9 * expected) & (half < 2.3 * expected)).all()
    ward, both = (of_marginal(table, one)["value"].to_numpy().reshape(WINDOWS, -1) for one in MARGINALS[1:])
    assert (both.reshape(WINDOWS, 3, 4).sum(axis=1) == ward).all()
    assert (ward.sum(axis=1) == of_marginal(table, ())["value"].to_numpy()).all()
    ages = of_marginal(table, MARGINALS[2])
    assert ages["age"].to_pylist()[:5] == ["1"] * 4 + ["2"]
    assert ages["ward"].to_pylist()[:5] == ["a", "b", "c", "other", "a"]


@pytest.mark.parametrize("alone", [False, True])
def test_consistent_marginals_are_the_sums_of_consistent_cells(alone: bool) -> None:
    """Without data, one of 96 noisy cells at least is below zero, except with a probability below 1e-6."""
    disjoint = Choice(name="disjoint")
    aggregation, released = setting(Measure(kind="count"), alone=alone, publish=(LEVEL,), strategy=disjoint)
    raw = add_noise(np.zeros((1, 1 + WINDOWS, CELLS), dtype=np.int64), released)
    plain = estimates_table(raw, aggregation, released, 0)
    first, *others = aggregation.queries
    aggregation = replace(aggregation, queries=(replace(first, consistent=True), *others))

    table = estimates_table(raw, aggregation, released, 0)

    cells = of_kind(table, "level")["value"].to_numpy().reshape(WINDOWS, CELLS)
    assert (of_kind(plain, "level")["value"].to_numpy() < 0).any()
    assert (cells >= 0).all()
    for marginal in MARGINALS:
        rows, before = (of_marginal(one, marginal) for one in (table, plain))
        value, low, high = (rows[name].to_numpy() for name in ("value", "ci_low", "ci_high"))
        assert (value.reshape(WINDOWS, -1) == summed(cells, marginal)).all()
        assert ((low >= 0) & (low <= value) & (value <= high)).all()
        assert (low <= np.maximum(before["ci_low"].to_numpy(), 0)).all()
        assert (high >= before["ci_high"].to_numpy()).all()
        assert rows["stddev"].equals(before["stddev"])
    # Rounding may move a sum up to a power of two: its unit is that of slightly less.
    _, exponent = np.frexp(cells.sum(axis=1, keepdims=True) * (1 - 1e-12))
    assert (cells == np.rint(cells * np.ldexp(1.0, 52 - exponent)) * np.ldexp(1.0, exponent - 52)).all()


def test_the_truth_has_the_same_rows_as_the_estimates() -> None:
    aggregation, released = setting(Measure(kind="count"), strategy=Choice(name="disjoint"))
    leaves = np.random.default_rng(6).integers(0, 9, (1, 1 + WINDOWS, CELLS))
    found = truth_table(leaves, 2 * leaves, aggregation, 0, SERIES[:2], 0)
    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    keys = found.schema.names[:7]
    assert keys == ["query", "kind", "window_start", "window_end", "age", "sex", "ward"]
    assert found.select(keys).equals(table.select(keys))
    rows = of_marginal(found, ("ward",))
    assert rows["exact"].to_pylist() == summed(totals(LEVEL, leaves[0]), ("ward",)).ravel().tolist()
    assert rows["bounded"].to_pylist() == (2 * rows["exact"].to_numpy()).tolist()


def test_numbers_are_the_same_at_once_and_in_steps() -> None:
    _, released = setting(Measure(kind="count"), strategy=Choice(name="tree", branching=2, height=2))
    leaves = np.random.default_rng(7).integers(0, 9_000, (1, 1 + WINDOWS, CELLS))
    quiet = replace(released, noise=(replace(released.noise[0], scale=1e-9),))
    whole, held, parts = add_noise(leaves, quiet), None, []
    for rows in (leaves[:, :2], leaves[:, 2:3], leaves[:, 3:]):
        held, protected = step(quiet, held, rows)
        parts.append(protected)
    for place in range(len(released.series)):
        assert (np.concatenate([part.sums[place][0] for part in parts]) == whole.sums[place][0]).all()


def test_nodes_state_the_keys_over_which_they_add_up() -> None:
    aggregation, released = setting(Measure(kind="count"), strategy=Choice(name="disjoint"))
    assert released.over is not None
    leaves = np.random.default_rng(8).integers(0, 9_000, (1, 1 + WINDOWS, CELLS))
    protected = add_noise(leaves, replace(released, noise=(replace(released.noise[0], scale=1e-9),)))

    table = nodes_table(protected, aggregation, released, 0)

    first = table.slice(0, released.over.nodes)
    sums = {tuple(row[name] for name, _ in BY): row["noisy_value"] for row in first.to_pylist()}
    exact = leaves[0, 0].reshape(SHAPE)
    assert len(sums) == released.over.nodes
    assert sums["2", "f", "b"] == exact[1, 0, 1]
    assert sums["all", "all", "all"] == exact.sum()


@pytest.mark.slow
def test_means_of_a_marginal_are_those_of_all_its_entries() -> None:
    """Each component's noise exceeds 10 deviations with probability below 1e-6."""
    disjoint = Choice(name="disjoint")
    aggregation, released = setting(Measure(kind="mean", low=0, high=10), publish=(LEVEL,), strategy=disjoint)
    grid = aggregation.queries[0].measure.components[1].grid
    leaves = np.zeros((2, 1 + WINDOWS, CELLS), dtype=np.int64)
    leaves[0, 0] = 10**6
    leaves[1, 0] = np.arange(CELLS) % 5 * int(10**6 / grid)

    rows = of_marginal(estimates_table(add_noise(leaves, released), aggregation, released, 0), ("ward",))

    count, total = (summed(totals(LEVEL, component), ("ward",)).ravel() for component in leaves)
    mean = 5 + total * grid / count
    value, stddev, low, high = (rows[name].to_numpy() for name in ("value", "stddev", "ci_low", "ci_high"))
    assert (abs(value - mean) < 10 * stddev).all()
    assert ((low < value) & (value < high) & (high - low < 7 * stddev)).all()


PLACES = (
    Node("South", (Node("Upper", (Node("u"), Node("v"))), Node("w"))),
    Node("North", (Node("x"), Node("y"), Node("z"))),
    Node("other"),
)
INNER = {"Upper": [0, 1], "South": [0, 1, 2], "North": [3, 4, 5], "all": [*range(7)]}


def in_places(publish: tuple[Series, ...] = (LEVEL,)) -> tuple[Aggregation, LinearPart]:
    """Return an aggregation by places with a hierarchy and by sex, and the part of levels."""
    query = Query(
        name="people",
        measure=Measure(kind="count"),
        by=(("place", values_of(PLACES)), ("sex", ("f", "m"))),
        publish=publish,
        hierarchies=(("place", hierarchy_of(PLACES, root="all")),),
        over=CellChoice(workload="levels"),
    )
    timeline = Timeline(start=0, every=10, windows=WINDOWS)
    plan, aggregation = laplace_plan((query,), AtMost(2), timeline)
    return aggregation, plan.linear(0, "net")[0]


def test_inner_nodes_of_a_hierarchy_add_up_and_have_the_deviation_of_their_noise() -> None:
    aggregation, released = in_places()
    leaves = np.random.default_rng(5).integers(0, 9_000, (1, 1 + WINDOWS, 14))

    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    assert released.over is not None
    covariance, (noise,) = released.over.solve(np.eye(14)), released.noise
    cells = of_kind(table, "level")["value"].to_numpy().reshape(WINDOWS, 7, 2)
    in_time = released.strategy.variances(LEVEL, WINDOWS) * noise.variance
    rows = of_kind(table, "level_marginal")
    assert rows.num_rows == WINDOWS * len(INNER) * 2
    truth = truth_table(leaves, leaves, aggregation, 0, (LEVEL,), 0)
    for name, places in INNER.items():
        for column, sex in enumerate("fm"):
            one, exact = (
                found.filter(pc.and_(pc.equal(found["place"], name), pc.equal(found["sex"], sex)))
                for found in (rows, of_kind(truth, "level_marginal"))
            )
            query = np.zeros((7, 2))
            query[places, column] = 1
            expected = np.sqrt(in_time * (query.ravel() @ covariance @ query.ravel()))
            assert one["value"].to_pylist() == cells[:, places, column].sum(axis=1).tolist()
            assert one["stddev"].to_numpy() == pytest.approx(expected)
            assert (abs(one["value"].to_numpy() - exact["exact"].to_numpy()) < 10 * expected).all()
            held = totals(LEVEL, leaves[0]).reshape(WINDOWS, 7, 2)[:, places, column].sum(axis=1)
            assert exact["exact"].to_pylist() == held.tolist()


def test_nodes_of_a_hierarchy_have_its_names() -> None:
    aggregation, released = in_places()
    leaves = np.random.default_rng(8).integers(0, 9_000, (1, 1 + WINDOWS, 14))
    over = Product(
        axes=(Nested(children=aggregation.queries[0].axes[0].children, weights=(1, 2, 1, 1)), Layers(cells=2))
    )
    exactly = replace(released, over=over, noise=(replace(released.noise[0], scale=1e-9),))

    table = nodes_table(add_noise(leaves, exactly), aggregation, exactly, 0).slice(0, over.nodes)

    sums = {(row["place"], row["sex"]): row["noisy_value"] for row in table.to_pylist()}
    exact = leaves[0, 0].reshape(7, 2)
    assert len(sums) == over.nodes
    for name, places in INNER.items():
        assert sums[name, "m"] == exact[places, 1].sum()
    assert sums["w, level 1", "f"] == sums["w", "f"] == exact[2, 0]


AGES = OrderedKey(start=0, step=10, steps=2)
TOWNS = hierarchy_of((Node("A", (Node(1), Node(2))), Node("B", (Node(3),))), root="all")
BOXES = (((0, 2),), ((1, 4),))
TABLES = {"sex": {"f": [0], "m": [1], "all": [0, 1]}, "town": {"A": [0, 1], "B": [2], "all": [0, 1, 2]}}
CROSSED = (2, 4, 3)


def crossed(measure: Measure, over: CellChoice) -> tuple[Aggregation, LinearPart]:
    """Return an aggregation by sex, ages and towns with a hierarchy, with marginals, ranges and quantiles."""
    query = Query(
        name="people",
        measure=measure,
        by=(("sex", ("f", "m")), ("age", AGES), ("town", (1, 2, 3))),
        publish=(LEVEL,),
        marginals=((), ("age",), ("sex", "town")),
        hierarchies=(("town", TOWNS),),
        ranges=BOXES,
        quantiles=(0.5,),
        over=over,
    )
    plan, aggregation = laplace_plan((query,), AtMost(2), Timeline(start=0, every=10, windows=WINDOWS))
    return aggregation, plan.linear(0, "net")[0]


def places(row: dict[str, object]) -> np.ndarray:
    """Return the cells of a row, [sexes, ages, towns], from the texts of its keys."""
    found = np.zeros(CROSSED)
    ages = {"below": [0], "[0, 10)": [1], "[10, 20)": [2], "above": [3], "all": [0, 1, 2, 3], None: [0, 1, 2, 3]}
    ages |= {"(-inf, 10)": [0, 1], "[0, inf)": [1, 2, 3]}
    towns = TABLES["town"] | {"1": [0], "2": [1], "3": [2]}
    found[np.ix_(TABLES["sex"][row["sex"]], ages[row["age"]], towns[row["town"]])] = 1
    return found.ravel()


CHOICES = (
    CellChoice(),
    CellChoice(
        marginals=((), (1,), (0, 2)), shares=(1.0, 1.0, 2.0, 4.0), workload="listed", listed=((None, (0, 2), None),)
    ),
    CellChoice(name="tree", workload="ranges", marginals=((), (1,), (0, 2))),
)


@pytest.mark.slow
@pytest.mark.parametrize("over", CHOICES, ids=["separate", "listed", "tree"])
def test_marginals_of_trees_and_ordered_keys_are_exact_sums_with_the_deviation_of_their_noise(over: CellChoice) -> None:
    aggregation, released = crossed(Measure(kind="count"), over)
    leaves = np.random.default_rng(5).integers(0, 9_000, (1, 1 + WINDOWS, 24))

    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    covariance = np.eye(24) if released.over is None else released.over.solve(np.eye(24))
    in_time = released.strategy.variances(LEVEL, WINDOWS) * released.noise[0].variance
    cells = of_kind(table, "level")["value"].to_numpy().reshape(WINDOWS, 24)
    rows = table.filter(pc.is_in(table["kind"], pa.array(["level_marginal", "level_range"]))).to_pylist()
    truth = truth_table(leaves, leaves, aggregation, 0, (LEVEL,), 0)
    exact = truth.filter(pc.invert(pc.equal(truth["kind"], "level"))).to_pylist()
    assert sorted(map(_key, rows)) == sorted(map(_key, exact))
    assert len(set(map(_key, rows))) == len(rows)
    sexes_and_towns = 2 * (3 + 2 + 1) + 1 * 1
    assert len([row for row in rows if row["kind"] == "level_range"]) == WINDOWS * 2 * sexes_and_towns
    others = 4 * 2 * (2 + 1) + 1 + 4 + 2 * (3 + 2 + 1)
    assert len([row for row in rows if row["kind"] == "level_marginal"]) == WINDOWS * others
    of_exact = {_key(row): row["exact"] for row in exact}
    for row in rows:
        window, query = row["window_end"].microsecond // 10 - 1, places(row)
        assert row["value"] == sum(cells[window][query > 0].tolist())
        deviation = np.sqrt(in_time[window] * (query @ covariance @ query))
        assert row["stddev"] == pytest.approx(deviation)
        assert of_exact[_key(row)] == totals(LEVEL, leaves[0])[window] @ query
        assert 1.9 * deviation < row["ci_high"] - row["value"] < 2.4 * deviation


def _key(row: dict[str, object]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("kind", "window_end", "sex", "age", "town"))


@pytest.mark.parametrize("over", CHOICES, ids=["separate", "listed", "tree"])
def test_quantiles_of_marginals_are_those_of_their_counts(over: CellChoice) -> None:
    """With at least 20,000 units in each cell noise, of a deviation below 200, changes no quantile by a cell."""
    aggregation, released = crossed(Measure(kind="count"), over)
    leaves = np.zeros((1, 1 + WINDOWS, 24), dtype=np.int64)
    leaves[0, 0] = np.random.default_rng(6).integers(20_000, 90_000, 24)

    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    rows = table.filter(pc.equal(table["kind"], "level_quantile")).to_pylist()
    assert len(rows) == WINDOWS * (2 * (3 + 2 + 1) + 1)
    for row in rows:
        counts = (leaves[0, 0] * places(row)).reshape(CROSSED).sum(axis=(0, 2))
        cell = int((np.cumsum(counts) >= counts.sum() / 2).argmax())
        assert [0, 0, 10, 20][cell] - 0.5 <= row["value"] <= [0, 10, 20, 20][cell] + 0.5
        assert row["ci_low"] <= row["value"] <= row["ci_high"]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_intervals_of_marginals_hold_in_2000_windows(delta: float) -> None:
    windows = 2000
    change = Series(kind="change")
    aggregation, released = setting(
        Measure(kind="count"), windows=windows, publish=(change,), delta=delta, strategy=Choice(name="disjoint")
    )
    leaves = np.random.default_rng(9).integers(0, 1000, (1, 1 + windows, CELLS))
    (sums,), grid = add_noise(leaves, released).sums, aggregation.queries[0].measure.components[0].grid

    assert released.over is not None
    for kept, marginal in zip(MARGINALS, marginals_of(aggregation.queries[0]), strict=True):
        found = marginal_estimates(change, sums, aggregation, released, marginal, sums[0])
        exact = summed(leaves[0, 1:], kept)[:, 0] * grid  # rows of one window share noise
        held = ((found.ci_low[:, 0] <= exact) & (exact <= found.ci_high[:, 0])).mean()
        slack = 5.5 * np.sqrt(0.05 * 0.95 / windows)
        assert 0.95 - slack < held < 0.975 + slack
        assert abs(((found.value - exact[:, None]) / found.stddev)[:, 0].var() - 1) < 6 * np.sqrt(5 / windows)


@pytest.mark.parametrize("over", CHOICES[1:], ids=["listed", "tree"])
def test_no_node_has_a_larger_share_of_the_noise_of_a_row_than_stated_and_one_has_it(over: CellChoice) -> None:
    """Intervals with Laplace noise follow from this share: 1 would make them up to 8 % too wide."""
    aggregation, released = crossed(Measure(kind="count"), over)
    assert released.over is not None
    query = aggregation.queries[0]
    for marginal in marginals_of(query):
        rows = over_rows(np.eye(query.cells), query, marginal.levels).T
        squares = released.over.spread(released.over.solve(rows)) ** 2  # type: ignore[arg-type]
        stated = noise_of_rows(query, released.over, [marginal.levels])
        share = squares.max(axis=1) / squares.sum(axis=1)
        assert np.broadcast_to(stated.largest, len(rows)) == pytest.approx(share)
        assert np.broadcast_to(stated.squares, len(rows)) == pytest.approx(squares.sum(axis=1))


def test_weights_of_rows_become_those_weights_of_cells_that_have_the_same_sum() -> None:
    """Of values, all values, a level of a hierarchy that leaves one out, and two ranges."""
    top = (Node("x", (Node("a"), Node("b"))), Node("y", (Node("c"), Node("d"))), Node("e"))
    ages = OrderedKey(start=0, step=10, steps=3)
    query = Query(
        name="beds",
        measure=Measure(kind="count"),
        by=(("sex", ("f", "m")), ("place", values_of(top)), ("age", ages)),
        hierarchies=(("place", hierarchy_of(top, root="all")),),
        publish=(LEVEL,),
    )
    generator = np.random.default_rng(3)
    cells = generator.normal(size=(1, query.cells))
    tables: list[list[Rows]] = [[(0, 0, 0)], [(None, 1, 0)], [(0, None, None)], [(0, 1, (1, 3)), (0, 1, (0, 2))]]
    for rows in tables:
        (found,) = np.concatenate([over_rows(cells, query, one) for one in rows], axis=1)
        weights = generator.normal(size=len(found))

        assert weights @ found == pytest.approx(weights_over_cells(weights, query, rows) @ cells[0])
