"""Releases with a strategy over cells: numbers, errors and intervals of cells, and the columns of nodes.

A correct release fails a statistical test here with probability below 1e-6: bounds are six standard deviations away,
and bounds of coverage five and a half.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.cells.nonnegative import project_over
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.series import Series, totals
from privacy.strategies.choice import Choice
from transforms.aggregation import node_sums
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline
from transforms.release.estimated_numbers import estimates_of
from transforms.release.linear_chunk import add_noise, step
from transforms.release.node_tables import nodes_table
from transforms.release.release import ReleasePlan

CONSTRAINT = AtMost(4)
CHANGE, LEVEL = Series(kind="change"), Series(kind="level")
AGES = OrderedKey(start=0, step=10, steps=5)
CELLS = 2 * len(AGES)


def query(**others) -> Query:
    return Query(
        name="people",
        measure=Measure(kind="count"),
        by=(("ward", ("a", "b")), ("age", AGES)),
        publish=(CHANGE,),
        strategy=Choice(name="disjoint"),
        over=CellChoice(name="optimised", workload="ranges"),
        **others,
    )


@cache
def plan_for(asked: Query, windows: int, *, epsilon: float = 1.0, delta: float = 0.0) -> Plan:
    return make_plan(
        [asked.demand],
        promise=Promise(constraint=CONSTRAINT, window=1, windows=windows, owner=False),
        budget=Budget(epsilon=epsilon, delta=delta),
        mechanism="gaussian" if delta else "laplace",
        accounting=None,
    )


def aggregation_of(plan: Plan, asked: Query, windows: int) -> Aggregation:
    measured = replace(asked, measure=plan.demands[0].measure)
    timeline = Timeline(start=0, every=1, windows=windows)
    return Aggregation(queries=(measured,), timeline=timeline, constraint=CONSTRAINT)


def test_cells_without_noise_are_exact_at_once_and_in_steps():
    asked = replace(query(), publish=(CHANGE, LEVEL), strategy=Choice(name="tree", branching=2, height=3))
    plan = plan_for(asked, 9, epsilon=1e12)
    released = plan.parts[0]
    exact = np.random.default_rng(1).integers(-50, 50, (1, 10, CELLS))
    whole = add_noise(exact, released)
    held, parts = None, []
    for rows in (exact[:, :3], exact[:, 3:4], exact[:, 4:]):
        held, protected = step(released, held, rows)
        parts.append(protected)
    for place, series in enumerate(released.series):
        assert whole.sums[place][0] == pytest.approx(totals(series, exact[0]), abs=1e-6)
        assert (np.concatenate([part.sums[place][0] for part in parts]) == whole.sums[place][0]).all()
    assert (np.concatenate([part.nodes[0] for part in parts]) == whole.nodes[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_each_cell_has_its_stated_error_and_its_interval_covers(delta):
    asked, windows = query(), 3000
    plan = plan_for(asked, windows, delta=delta)
    aggregation = aggregation_of(plan, asked, windows)
    (released,) = plan.parts
    exact = np.random.default_rng(2).integers(0, 1000, (1, 1 + windows, CELLS)) * released.noise[0].scale.__trunc__()
    found = estimates_of(CHANGE, add_noise(exact, released).sums[0], aggregation, released)
    grid = plan.demands[0].measure.components[0].grid
    errors = found.value - exact[0, 1:] * grid
    spread = errors.std(axis=0) / found.stddev[0]
    assert (np.abs(spread**2 - 1) < 6 * np.sqrt(5 / windows)).all()
    assert (np.abs(errors.mean(axis=0)) < 6 * found.stddev[0] / windows**0.5).all()
    covered = ((found.ci_low <= exact[0, 1:] * grid) & (exact[0, 1:] * grid <= found.ci_high)).mean(axis=0)
    assert (covered > 0.95 - 5.5 * np.sqrt(0.05 * 0.95 / windows)).all()
    ages = errors.reshape(windows, 2, len(AGES))[:, 0, 1:4].sum(axis=1)  # a range of one ward
    asked_for = np.zeros((2, len(AGES)))
    asked_for[0, 1:4] = 1
    assert released.over is not None
    predicted = released.over.variance(asked_for.ravel()) * released.noise[0].variance * grid**2
    assert abs(ages.var() / predicted - 1) < 6 * np.sqrt(5 / windows)


def test_no_cell_has_less_noise_than_the_sensitivity_over_all_cells_requires():
    """Noise that is scaled for single cells would be smaller."""
    in_layers = replace(query(), over=CellChoice(name="tree", branching=3, workload="ranges"))
    (released,) = plan_for(in_layers, 9).parts
    (alone,) = plan_for(replace(query(), over=CellChoice()), 9).parts
    assert released.over is not None
    whole = sum(axis.matrix.corners(1)[0][0] for axis in released.over.axes[1:])
    assert released.sensitivity.l1 > 3 * whole > alone.sensitivity.l1 == 7
    assert released.noise[0].scale == pytest.approx(released.sensitivity.l1, rel=1e-9)


def test_nodes_state_their_cells():
    asked = replace(query(), over=CellChoice(name="tree", branching=3, workload="ranges"))
    plan = plan_for(asked, 2, epsilon=1e12)
    (released,) = plan.parts
    exact = np.arange(3 * CELLS).reshape(1, 3, CELLS)
    table = nodes_table(add_noise(exact, released), aggregation_of(plan, asked, 2), released, 0)
    rows = {
        (row["ward"], row["age"]): row["noisy_value"] for row in table.to_pylist() if row["node_end"].microsecond == 1
    }
    assert released.over is not None
    assert len(rows) == released.over.nodes
    assert rows["b", "[0, 10) to [0, 10), layer 0"] == exact[0, 1, 8]
    assert rows["a", "below to [10, 20), layer 1"] == exact[0, 1, :3].sum()
    assert len(set(table["scale"].to_pylist())) == 1


def test_nodes_of_a_quadtree_state_their_cells():
    by = (("x", AGES), ("y", OrderedKey(start=0, step=1, steps=1)))
    asked = replace(query(), by=by, over=CellChoice(name="quadtree", workload="ranges"))
    plan = plan_for(asked, 2, epsilon=1e12)
    (released,) = plan.parts
    exact = np.arange(3 * 21).reshape(1, 3, 21)
    table = nodes_table(add_noise(exact, released), aggregation_of(plan, asked, 2), released, 0)
    rows = {(row["x"], row["y"]): row["noisy_value"] for row in table.to_pylist() if row["node_end"].microsecond == 1}
    whole = exact[0, 1].reshape(7, 3)
    assert released.over is not None
    assert len(rows) == released.over.nodes
    assert rows["[0, 10) to [0, 10), layer 0", "above to above, layer 0"] == whole[1, 2]
    assert rows["[10, 20) to [20, 30), layer 1", "above to above, layer 1"] == whole[2:4, 2].sum()
    assert rows["below to above, layer 3", "below to above, layer 3"] == pytest.approx(whole.sum())
    # A sum with weight w has 1 / w of the noise.
    grid = asked.measure.components[0].grid
    expected = released.noise[0].scale * grid / np.tile(released.over.weights(), len(table) // released.over.nodes)
    assert table["scale"].to_numpy() == pytest.approx(expected, rel=1e-9, abs=0)


def test_a_plan_for_another_arrangement_of_cells_is_refused():
    """Else cells that are near in the query would be far apart in the plan."""
    asked = query()
    turned = replace(asked, by=tuple(reversed(asked.by)))
    with pytest.raises(ValueError, match="demands and the aggregation's queries differ"):
        ReleasePlan(plan=plan_for(asked, 3), aggregation=aggregation_of(plan_for(asked, 3), turned, 3))


def test_levels_over_cells_are_made_consistent_by_their_nodes():
    asked = replace(query(), publish=(LEVEL,), consistent=True)
    plan = plan_for(asked, 3)
    (released,) = plan.linear(0, "net")
    assert released.over is not None
    assert not released.over.trivial
    (raw,) = add_noise(np.zeros((1, 4, CELLS), dtype=np.int64), released).sums
    found = estimates_of(LEVEL, raw, aggregation_of(plan, asked, 3), released)
    grid = plan.demands[0].measure.components[0].grid
    assert (raw[0] < 0).any()
    assert found.value == pytest.approx(project_over(raw[0] * grid, released.over))
    assert (found.ci_low >= 0).all()


def test_a_strategy_over_all_cells_is_not_cut_into_chunks(monkeypatch):
    asked = query()
    plan = plan_for(asked, 3)
    monkeypatch.setattr(node_sums, "CHUNK_CELLS", 4)
    assert aggregation_of(plan, asked, 3).chunks(0) == 1
    in_chunks = aggregation_of(plan, replace(asked, over=CellChoice()), 3)
    with pytest.raises(ValueError, match="works on all of them at once"):
        ReleasePlan(plan=plan, aggregation=in_chunks)
