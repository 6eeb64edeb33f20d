"""Claimed sensitivities compared with exact node vectors of units that try to break every bound.

Neighbours differ by all mutations of one unit, and sums add over units, so the difference of two neighbours'
exact node vectors is the unit's own vector: `test_neighbours_differ_by_the_units_own_vector` checks this with whole
changelogs, the other tests use the unit alone. All arithmetic is on integers; only the cases are random.
"""

import dataclasses
import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from privacy.constraint import AtMost, Constraint, Within
from privacy.measure import Measure
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events, of_net
from privacy.series import Family
from privacy.strategies.tree.tree import Tree
from tests.reference import Mutation
from tests.searches import examples
from tests.strategies import COUNT, QUERIES, STATES, TIMELINE, changelogs
from tests.transforms.aggregation.test_contribution_bounding import CONSTRAINTS, kernel
from transforms.aggregation.node_sums import BOUNDED, NodeKey
from transforms.aggregation.queries import Query


def disjoint(windows: int | None, *, initial_level: bool = False) -> Tree:
    return Tree(branching=2, height=1, refine="none", windows=windows, initial_level=initial_level)


@lru_cache(maxsize=256)
def claim(
    query: Query, family: Family, constraint: Constraint, *, initial_level: bool, owner: bool
) -> Sensitivity | None:
    """Return the plan's claim; None if a family cannot be released."""
    tree = disjoint(TIMELINE.windows, initial_level=initial_level)
    unit = Contribution(
        promise=Promise(constraint=constraint, window=TIMELINE.every, windows=None, owner=owner),
        components=query.measure.components,
        cells=query.cells,
    )
    if family == "net":
        return of_net(tree, unit)
    try:
        return of_events(family, tree, unit)
    except ValueError:
        return None


def norms(query: Query, nodes: np.ndarray, *, initial_level: bool) -> tuple[float, float, int]:
    """Return L1, L2 and the number of non-zero windows of a node vector, in normalised units."""
    largest = np.array([c.largest for c in query.measure.components], dtype=float)[:, None, None]
    used = nodes if initial_level else nodes[:, 1:]
    scaled = used / largest
    return (
        float(np.abs(scaled).sum()),
        float(np.sqrt((scaled**2).sum())),
        int(np.count_nonzero(used.any(axis=(0, 2)))),
    )


def check(sums: Mapping[NodeKey, np.ndarray], constraint: Constraint, *, owner: bool) -> None:
    """Assert that one unit's bounded node vectors are not longer than the plan claims."""
    for (variant, number, family, _), nodes in sums.items():
        if variant != BOUNDED:
            continue
        query = QUERIES[number]
        for initial_level in (True, False) if family == "net" else (False,):
            claimed = claim(query, family, constraint, initial_level=initial_level, owner=owner)
            l1, l2, touched = norms(query, nodes, initial_level=initial_level)
            if claimed is None:
                assert l1 == 0
                continue
            label = f"{query.name} {family} initial_level={initial_level}"
            assert l1 <= claimed.l1 * (1 + 1e-12), label
            assert l2 <= claimed.l2 * (1 + 1e-12), label
            assert touched <= claimed.nodes, label
            changed = int(np.count_nonzero(nodes if initial_level else nodes[:, 1:]))
            assert changed <= claimed.coordinates, label


@st.composite
def wild_units(draw: st.DrawFn, entries: int = 1) -> list[Mutation]:
    """Yield one unit's changelog: long, broken chains, contradictory images, any times, repeated mutations."""
    mutations = []
    for seq in range(draw(st.integers(1, 40))):
        entry = f"e{draw(st.integers(0, entries - 1))}"
        time = draw(st.integers(-30, 90))
        mutations.append(
            Mutation(
                entry,
                time,
                draw(st.integers(0, seq)),
                draw(STATES),
                draw(STATES),
                "p" if entries > 1 else None,
            )
        )
    return mutations


@pytest.mark.few(5)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(wild_units())
@examples(15)
def test_no_entry_moves_the_nodes_further_than_claimed(constraint, mutations):
    check(kernel(mutations, constraint), constraint, owner=False)


@pytest.mark.parametrize("constraint", [c for c in CONSTRAINTS if all(isinstance(p, AtMost) for p in c.parts)], ids=str)
@given(wild_units(entries=4))
@examples(15)
def test_no_owner_of_several_entries_moves_the_nodes_further_than_claimed(constraint, mutations):
    check(kernel(mutations, constraint), constraint, owner=True)


@pytest.mark.slow
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_a_thousand_mutations_with_broken_values_stay_within_the_claim(constraint):
    values = [0.0, math.nan, math.inf, -math.inf, 1e308, None, 5.0, -3.0]
    mutations = [
        Mutation(
            "e",
            -40 + i // 8,
            i,
            None,
            {"ward": "abc"[i % 3], "x": values[i % 8], "fare": ["multi", "pass"][i // 7 % 2]},
        )
        for i in range(1000)
    ]
    check(kernel(mutations, constraint), constraint, owner=False)
    owned = [dataclasses.replace(m, owner="p", entry=f"e{m.seq % 5}") for m in mutations]
    if all(isinstance(part, AtMost) for part in constraint.parts):
        check(kernel(owned, constraint), constraint, owner=True)


@given(changelogs(), wild_units(), st.sampled_from(CONSTRAINTS))
@examples(10)
def test_neighbours_differ_by_the_units_own_vector(others, mine, constraint):
    mine = [dataclasses.replace(m, entry="mine") for m in mine]
    assume(all(m.entry != "mine" for m in others))

    with_me, without_me, alone = (kernel(rows, constraint) for rows in (others + mine, others, mine))

    for key, nodes in with_me.items():
        np.testing.assert_array_equal(nodes - without_me[key], alone[key])


def swing(query: Query, changes: int, *, first: int = 5, every: int = 10) -> list[Mutation]:
    """Return an entry that moves as far as possible once in each window."""
    low, high = {"ward": "a", "x": query.measure.low}, {"ward": "a", "x": query.measure.high}
    other = {"ward": "b", "x": query.measure.high}
    far: list = [high, other] if query.cells > 1 else [high, None]
    if query.measure.valued and query.cells == 1:
        far = [high, low]
    states = [far[i % 2] for i in range(changes)]
    states = [None if s is None else {**s, "fare": "multi"} for s in states]
    before = [None, *states]
    return [Mutation("e", first + every * i, i, before[i], states[i]) for i in range(changes)]


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("query", [q for q in QUERIES if q.name in ("beds", "all", "mean")], ids=lambda q: q.name)
def test_the_claim_for_net_changes_is_reached(query, k):
    nodes = kernel(swing(query, 9), AtMost(k))[(BOUNDED, QUERIES.index(query), "net", 0)]
    claimed = claim(query, "net", AtMost(k), initial_level=True, owner=False)

    l1, l2, touched = norms(query, nodes, initial_level=True)

    # The middle of the range falls on the grid, so a mean's two ends are exactly as large as each other.
    assert (l1, touched) == (pytest.approx(claimed.l1, rel=1e-6), claimed.nodes)
    assert l2 == pytest.approx(claimed.l2, rel=1e-6)


def test_the_claim_for_a_time_span_is_reached_with_the_node_of_the_initial_level():
    """An entry that was present, moves at once, and again in every window that the span meets: 9, 10, 20, 30."""
    wards = ["a", "b", "a", "b", "a"]
    states = [{"ward": ward, "x": 0.0, "fare": "pass"} for ward in wards]
    mutations = [Mutation("e", time, i, states[i], states[i + 1]) for i, time in enumerate((9, 10, 20, 30))]
    nodes = kernel(mutations, Within(21))[(BOUNDED, 0, "net", 0)]
    claimed = claim(COUNT, "net", Within(21), initial_level=True, owner=False)

    assert norms(COUNT, nodes, initial_level=True) == (claimed.l1, pytest.approx(claimed.l2), claimed.nodes)


def test_an_entry_from_before_the_start_may_move_its_whole_diameter_in_every_window():
    """Its state at the start is not released and costs nothing, so it reaches (2) and exceeds (1)."""
    wards = "ababababa"
    states = [{"ward": ward, "x": 0.0, "fare": "multi"} for ward in wards]
    mutations = [Mutation("e", 10 * i + 5, i, states[i], states[i + 1]) for i in range(TIMELINE.windows)]
    nodes = kernel(mutations, AtMost(9))[(BOUNDED, 0, "net", 0)]
    claimed = claim(COUNT, "net", AtMost(9), initial_level=False, owner=False)

    assert norms(COUNT, nodes, initial_level=False) == (claimed.l1, pytest.approx(claimed.l2), claimed.nodes)
    assert claimed.l1 == 2.0 * TIMELINE.windows


def test_the_claim_for_owners_is_reached_when_entries_move_together():
    query = QUERIES[1]
    mutations = [Mutation(f"e{i}", 5, i, None, {"ward": "a", "x": 0.0, "fare": "multi"}, "p") for i in range(6)]
    nodes = kernel(mutations, AtMost(4))[(BOUNDED, 1, "net", 0)]

    assert norms(query, nodes, initial_level=True)[:2] == (4.0, 4.0)
    entered = kernel(mutations, AtMost(4))[(BOUNDED, 1, "entered", 0)]
    assert norms(query, entered, initial_level=False)[:2] == (4.0, 4.0)
    for family in ("net", "entered"):
        claimed = claim(query, family, AtMost(4), initial_level=family == "net", owner=True)
        assert (claimed.l1, claimed.l2) == (4.0, 4.0)


@pytest.mark.parametrize(("k", "family", "expected"), [(5, "entered", 3.0), (5, "left", 2.0), (4, "left", 2.0)])
def test_the_claim_for_entered_and_left_is_reached(k, family, expected):
    query = QUERIES[1]
    nodes = kernel(swing(query, 9), AtMost(k))[(BOUNDED, 1, family, 0)]

    assert norms(query, nodes, initial_level=False)[0] == expected
    assert claim(query, family, AtMost(k), initial_level=False, owner=False).l1 == expected


def test_entered_and_left_need_leaves_of_one_window():
    promise = Promise(constraint=AtMost(4), window=1, windows=None, owner=False)
    unit = Contribution(promise=promise, components=QUERIES[1].measure.components, cells=1, leaf=4)

    with pytest.raises(ValueError, match="left: each leaf of the strategy must be one window, not 4"):
        of_events("left", disjoint(16), unit)


def test_insertion_costs_the_largest_value_not_the_range():
    """Pan takes |b - a|, but f in [5, 6] moves the sum by 6 when an entry appears."""
    measure = Measure(kind="sum", low=5, high=6)
    unit = Contribution(
        promise=Promise(constraint=AtMost(1), window=1, windows=None, owner=False),
        components=measure.components,
        cells=1,
    )
    claimed = of_net(disjoint(10), unit)
    component = measure.components[0]

    assert claimed.l1 * component.largest * component.grid == 6.0


@pytest.mark.parametrize(("k", "cells", "squared"), [(1, 1, 1), (4, 1, 4), (1, 20, 1), (4, 20, 7), (8, 20, 15)])
def test_counts_have_the_sensitivities_of_the_theory(k, cells, squared):
    """The theory: L2^2 = k for one cell and 2k - 1 for a histogram, over disjoint windows."""
    measure = Measure(kind="count")
    unit = Contribution(
        promise=Promise(constraint=AtMost(k), window=1, windows=None, owner=False),
        components=measure.components,
        cells=cells,
    )
    claimed = of_net(disjoint(None), unit)

    assert (claimed.l1, claimed.l2**2) == (squared, pytest.approx(squared))


@pytest.mark.parametrize(("span", "window", "windows"), [(1, 1, 2), (30, 1, 31), (0, 10, 1), (15, 10, 3), (20, 10, 3)])
def test_a_time_span_meets_the_corrected_number_of_windows(span, window, windows):
    """Pan (theorem 4.3) omits a ceiling; the number is ceil(B / W) + 1, compared with all placements."""
    measure = Measure(kind="count")
    unit = Contribution(
        promise=Promise(constraint=Within(span), window=window, windows=None, owner=False),
        components=measure.components,
        cells=1,
    )
    claimed = of_net(disjoint(None), unit)

    met = max((start + span) // window - start // window + 1 for start in range(window))

    assert claimed.nodes == met == windows
