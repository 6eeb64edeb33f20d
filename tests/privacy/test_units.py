"""Charged sensitivities of `measure: units`, compared with all neighbours of small sizes.

A unit is in a cell if at least one of its entries is. Its course is an indicator of each cell at each boundary.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.constraint import AtMost, AtOnce, Constraint
from privacy.measure import Measure
from privacy.planning.adaptive_part import at_once
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events, of_net
from privacy.protection import EVERYTHING, Span
from privacy.strategies.base import Strategy
from privacy.strategies.direct.direct import Direct
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from tests.privacy.test_apart import COUNT, FINE, nodes_of
from tests.privacy.test_blocks import held

WINDOWS = 4


def unit(cells: int, constraint: Constraint, *, span: int | None = None, fine: bool = False) -> Contribution:
    protects = EVERYTHING if span is None else Span(span)
    promise = Promise(constraint=constraint, window=1, windows=None, owner=True, protects=protects)
    return Contribution(promise=promise, components=FINE if fine else COUNT, cells=cells, distinct=True)


def courses(cells: int, boundaries: int = WINDOWS + 1) -> np.ndarray:
    """Return all indicators, [boundaries, courses, cells]."""
    codes = np.array(list(itertools.product(range(2**cells), repeat=boundaries))).T
    return (codes[..., None] >> np.arange(cells)) & 1


def changes(course: np.ndarray) -> np.ndarray:
    """Return the fewest changes of entries that make each course: a move makes one cell rise and another one fall."""
    step = np.diff(course, axis=0, prepend=0)
    return np.maximum((step > 0).sum(axis=2), (step < 0).sum(axis=2)).sum(axis=0)


def strategies(windows: int) -> list[Strategy]:
    trees = [
        Tree(branching=c, height=h, refine="none", windows=windows, initial_level=initial)
        for c, h in ((2, 1), (2, 3), (3, 2))
        for initial in (True, False)
    ]
    filters = [Factorised(kernel=Coefficients(), windows=windows, initial_level=initial) for initial in (True, False)]
    return [*trees, *filters, Sliding(width=2, every=1, windows=windows), Direct(windows=windows)]


def farthest(strategy: Strategy, g: np.ndarray, claimed: Sensitivity) -> tuple[float, float]:
    """Return the largest norms of the nodes of differences [boundaries, ways, cells]; no bound is exceeded."""
    scale = 1 if strategy.sparse else 2**24
    nodes = nodes_of(strategy, g.reshape(len(g), -1), scale).reshape(-1, *g.shape[1:])
    one, two = np.abs(nodes).sum(axis=(0, 2)).max(), (nodes**2).sum(axis=(0, 2)).max()
    assert two <= claimed.l2**2 * (1 + 1e-12), strategy
    assert (nodes != 0).sum(axis=(0, 2)).max() <= claimed.coordinates, strategy
    if strategy.sparse:
        assert one <= claimed.l1, strategy
        assert (nodes != 0).any(axis=2).sum(axis=0).max() <= claimed.nodes, strategy
        assert np.abs(nodes).sum(axis=2).max() <= claimed.node_l1, strategy
        assert (nodes**2).sum(axis=2).max() <= claimed.node_l2**2 * (1 + 1e-12), strategy
    return one, two


def test_changes_of_courses_are_the_fewest_of_any_entries():
    """Two entries, each in one of two cells or in none, at three boundaries."""
    places = list(itertools.product(range(3), repeat=2))
    fewest: dict[bytes, int] = {}
    for path in itertools.product(places, repeat=3):
        made = sum(a != b for was, now in itertools.pairwise([(0, 0), *path]) for a, b in zip(was, now, strict=True))
        course = np.array([[cell in now for cell in (1, 2)] for now in path], dtype=int)
        fewest[course.tobytes()] = min(made, fewest.get(course.tobytes(), made))
    found = courses(2, 3)
    assert fewest == {found[:, n].tobytes(): made for n, made in enumerate(changes(found).tolist())}


@pytest.mark.slow
@pytest.mark.few(11)
@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("entries", [None, 1, 2])
def test_no_unit_of_few_changes_is_further_than_charged_and_some_are_as_far(cells, most, entries):
    every = courses(cells)
    every = every[:, (changes(every) <= most) & (every.sum(axis=2).max(axis=0) <= (entries or cells))]
    for strategy in strategies(WINDOWS):
        claimed = of_net(strategy, unit(cells, AtMost(most, entries=entries), fine=not strategy.sparse))
        one, two = farthest(strategy, every, claimed)
        if isinstance(strategy, Tree) and strategy.height == 1:
            assert one == claimed.l1, strategy
            assert two >= 0.99 * claimed.l2**2, strategy
        if isinstance(strategy, Direct) and entries == 1:
            assert (one, two) == pytest.approx((claimed.l1, claimed.l2**2)), strategy


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 3, 8, 100])
def test_without_cells_the_charge_is_that_of_one_entry(most):
    for strategy in strategies(WINDOWS):
        one = unit(1, AtMost(most), fine=not strategy.sparse)
        entry = replace(one, distinct=False, promise=replace(one.promise, owner=False))
        assert of_net(strategy, one).l2 == pytest.approx(of_net(strategy, entry).l2, rel=1e-9), strategy
        if strategy.sparse:
            assert of_net(strategy, one).l1 == of_net(strategy, entry).l1, strategy
            assert of_net(strategy, one).node_l1 == of_net(strategy, entry).node_l1 == 1, strategy


def test_with_cells_units_cost_less_than_entries():
    """Four entries in one cell move one number by four, but only four numbers by one."""
    tree = Tree(branching=2, height=1, refine="none", windows=365, initial_level=False)
    of_units = unit(20, AtMost(4))
    assert of_net(tree, of_units).l2 ** 2 == pytest.approx(7)
    assert of_net(tree, replace(of_units, distinct=False)).l2 ** 2 == pytest.approx(16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "entries", "span"), [(1, 1, 2), (1, 4, 2), (2, 1, 2), (2, 2, 2), (3, 2, 1), (3, 4, 2)]
)
def test_no_unit_in_a_span_is_further_than_charged_and_some_are_as_far(cells, entries, span):
    inside = courses(cells, span)
    inside = inside[:, inside.sum(axis=2).max(axis=0) <= entries]
    ways = [
        np.concatenate(
            [np.zeros((first, *inside.shape[1:])), inside, np.zeros((WINDOWS + 1 - span - first, *inside.shape[1:]))]
        )
        for first in range(WINDOWS + 2 - span)
    ]
    signs = np.array(list(itertools.product((-1, 1), repeat=WINDOWS + 1))).T[..., None, None]
    g = (np.concatenate(ways, axis=1)[:, None] * signs).reshape(WINDOWS + 1, -1, cells)
    for strategy in strategies(WINDOWS):
        claimed = of_net(strategy, unit(cells, AtOnce(entries), span=span, fine=not strategy.sparse))
        one, two = farthest(strategy, g, claimed)
        if isinstance(strategy, Direct):
            assert (one, two) == pytest.approx((claimed.l1, claimed.l2**2))


@pytest.mark.parametrize(("block", "cells", "entries"), [(2, 1, 2), (2, 2, 1), (2, 2, 2)])
def test_no_unit_whose_changes_are_deferred_is_further_than_charged(block, cells, entries):
    """Neighbours differ in one block, in which one of them is absent."""
    codes = [n for n in range(2**cells) if n.bit_count() <= entries]
    course = np.array(list(itertools.product(codes, repeat=2 * block + 1))).T
    found = []
    for first in range(block + 2):
        other = course.copy()
        other[first : first + block] = 0
        one, two = held(course, 2, block), held(other, 2, block)
        found.append(np.unique(np.stack([one, two]), axis=2))
    one, two = ((np.concatenate([f[n] for f in found], axis=1)[..., None] >> np.arange(cells)) & 1 for n in (0, 1))
    constraint = AtOnce(entries, changes=2, block=block)
    for strategy in strategies(2 * block):
        farthest(strategy, one - two, of_net(strategy, unit(cells, constraint, span=block, fine=not strategy.sparse)))


def events(course: np.ndarray, family: str, most: int | None = None) -> np.ndarray:
    """Return the first `most` events [ways, windows, cells] of a course with two instants a window, each once."""
    step = np.diff(course, axis=0, prepend=0)
    rises = step > 0 if family == "entered" else step < 0
    found = np.zeros((course.shape[1], len(course) // 2, course.shape[2]), dtype=int)
    left = np.full(found.shape[:2], course.shape[2] if most is None else most)
    for instant, cell in itertools.product(range(len(course) // 2 * 2), range(course.shape[2])):
        window = instant // 2
        counts = rises[instant, :, cell] & (found[:, window, cell] == 0) & (left[:, window] > 0)
        found[counts, window, cell] = 1
        left[counts, window] -= 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "most"), [(1, 1), (1, 3), (1, 4), (2, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize("family", ["entered", "left"])
def test_arrivals_of_few_changes_are_those_of_one_entry(cells, most, family):
    every = courses(cells, 6 if cells < 3 else 4)
    every = every[:, changes(every) <= most]
    leaves = events(every, family)
    for height in (1, 2):
        tree = Tree(branching=3, height=height, refine="none", windows=3, initial_level=False)
        if most == 1 and family == "left":
            with pytest.raises(ValueError, match="never leaves"):
                of_events(family, tree, unit(cells, AtMost(most)))
            continue
        claimed = of_events(family, tree, unit(cells, AtMost(most)))
        layers = [leaves] if height == 1 else [leaves, leaves.sum(axis=1, keepdims=True)]
        one = sum(np.abs(layer).sum(axis=(1, 2)) for layer in layers).max()
        two = sum((layer**2).sum(axis=(1, 2)) for layer in layers).max()
        assert one <= claimed.l1
        assert two <= claimed.l2**2 * (1 + 1e-12)
        if cells < 3:
            assert one >= 0.99 * claimed.l1
            assert height > 1 or two >= 0.99 * claimed.l2**2


@pytest.mark.parametrize(("cells", "entries"), [(1, 2), (2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("height", [1, 2])
def test_arrivals_in_a_span_reach_the_charge(cells, entries, height):
    """Three windows of two instants, and a span of two instants. Departures are the same with time reversed."""
    course = courses(cells, 6 if cells < 3 else 4)
    found = []
    for first in range(len(course) - 1):
        other = course.copy()
        other[first : first + 2] = 0
        found.append(np.subtract(*(events(c, "entered", min(entries, cells)) for c in (course, other))))
    leaves = np.concatenate(found)
    tree = Tree(branching=2, height=height, refine="none", windows=len(course) // 2, initial_level=False)
    asked = unit(cells, AtOnce(entries), span=2)
    asked = replace(asked, promise=replace(asked.promise, window=2))
    claimed = of_events("entered", tree, asked)
    layers = [leaves] if height == 1 else [leaves, leaves[:, :2].sum(axis=1, keepdims=True)]
    one = sum(np.abs(layer).sum(axis=(1, 2)) for layer in layers).max()
    two = sum((layer**2).sum(axis=(1, 2)) for layer in layers).max()
    assert one <= claimed.l1
    assert two <= claimed.l2**2 * (1 + 1e-12)
    if height == 1:
        assert (one, two) == pytest.approx((claimed.l1, claimed.l2**2))
    assert of_events("left", tree, asked) == claimed


@pytest.mark.parametrize(
    ("constraint", "cells", "units", "entries"),
    [(AtMost(4), 1, 1, 4), (AtMost(4), 3, 3, 4), (AtMost(4, entries=2), 9, 2, 2), (AtOnce(3), 1, 1, 3)],
)
def test_histograms_of_units_differ_by_at_most_the_cells(constraint, cells, units, entries):
    promise = unit(cells, constraint, span=1 if isinstance(constraint, AtOnce) else None).promise
    assert at_once(Measure(kind="units"), promise, cells) == units
    assert at_once(Measure(kind="count"), promise, cells) == entries


def test_near_units_may_have_one_entry_at_a_time_alone():
    over, near = Product(axes=(Prefixes(cells=4),)), Span(2, near=(("x", "4"),))
    promise = Promise(constraint=AtOnce(1), window=1, windows=None, owner=True, protects=near)
    one = Contribution(promise=promise, components=COUNT, cells=4, over=over, apart=(1,), distinct=True)
    assert of_net(Direct(windows=None), one) == of_net(Direct(windows=None), replace(one, distinct=False))
    with pytest.raises(ValueError, match="near entries of one unit"):
        replace(one, promise=replace(promise, constraint=AtOnce(2)))
