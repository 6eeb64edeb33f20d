"""Charged sensitivities of `entered` and `left` in a span of time, compared with all neighbours of small sizes.

States are those of each instant, so that visits within one window are among them. A window has two instants.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from privacy.cells.layers import Layers
from privacy.cells.product import Product
from privacy.constraint import AtOnce
from privacy.measure import Component
from privacy.planning.contribution import Contribution
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events
from privacy.protection import Span
from privacy.strategies.tree.tree import Tree
from tests.privacy.test_apart import COUNT

SIGNED = (Component(name="sum", grid=1.0, low=-1, high=1),)
Course = tuple[tuple[int, ...], ...]
"""For each instant the cell of each entry; 0 for none."""


def entered(course: Course, most: int, values: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the sum of each (window, cell): the first `most` arrivals of a window, once for each entry and cell.

    An entry's place is 1 + cell * len(values) + value, so that each cell has all values.
    """
    found: dict[tuple[int, int], int] = {}
    before = (0,) * len(course[0])
    for window in range(len(course) // 2):
        seen: set[tuple[int, int]] = set()
        for now in course[2 * window : 2 * window + 2]:
            for entry, (was, place) in enumerate(zip(before, now, strict=True)):
                cell, value = divmod(place - 1, len(values))
                moved = place > 0 and (was == 0 or (was - 1) // len(values) != cell)
                if moved and (entry, cell) not in seen and len(seen) < most:
                    seen.add((entry, cell))
                    found[window, cell] = found.get((window, cell), 0) + values[value]
            before = now
    return found


def differences(instants: int, span: int, *, cells: int, entries: int, most: int, values: Sequence[int]) -> np.ndarray:
    """Return the differences of the leaves of all neighbours, [pairs, windows, cells]."""
    places = list(itertools.product(range(cells * len(values) + 1), repeat=entries))
    courses = list(itertools.product(places, repeat=instants))
    number = {course: n for n, course in enumerate(courses)}
    leaves = np.zeros((len(courses), instants // 2, cells), dtype=int)
    for course, n in number.items():
        for (window, cell), total in entered(course, most, values).items():
            leaves[n, window, cell] = total
    absent = ((0,) * entries,) * span
    pairs = {
        (number[course], number[course[:s] + absent + course[s + span :]])
        for course in courses
        for s in range(instants - span + 1)
    }
    one, other = np.array(sorted(pairs)).T
    return np.unique(leaves[one] - leaves[other], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instants", "span", "cells", "entries", "most", "values"),
    [
        (6, 2, 1, 1, 1, (1,)),
        (8, 4, 1, 1, 1, (1,)),
        (6, 2, 2, 1, 1, (1,)),
        (4, 1, 2, 2, 1, (1,)),
        (4, 1, 2, 2, 2, (1,)),
        (4, 2, 1, 1, 1, (-1, 1)),
        (4, 2, 2, 1, 1, (-1, 1)),
    ],
)
@pytest.mark.parametrize("height", [1, 2])
def test_no_neighbours_are_further_apart_than_charged_and_some_are_as_far(
    instants, span, cells, entries, most, values, height
):
    """Mirrored in time, the departures of a unit are the arrivals, and the last of them the first ones."""
    leaves = differences(instants, span, cells=cells, entries=entries, most=most, values=values)
    tree = Tree(branching=2, height=height, refine="none", windows=instants // 2, initial_level=False)
    unit = Contribution(
        promise=Promise(constraint=AtOnce(most), window=2, windows=None, owner=entries > 1, protects=Span(span)),
        components=COUNT if len(values) == 1 else SIGNED,
        cells=cells,
    )

    complete = instants // 2 // 2 * 2
    layers = [leaves] if height == 1 else [leaves, leaves[:, :complete].reshape(len(leaves), -1, 2, cells).sum(axis=2)]
    one = sum(np.abs(layer).sum(axis=(1, 2)) for layer in layers).max()
    two = sum((layer**2).sum(axis=(1, 2)) for layer in layers).max()

    for family in ("entered", "left"):
        claimed = of_events(family, tree, unit)
        assert one <= claimed.l1
        assert two <= claimed.l2**2 * (1 + 1e-12)
        assert max(np.abs(layer).sum(axis=2).max() for layer in layers) <= claimed.node_l1
        assert max((layer**2).sum(axis=2).max() for layer in layers) <= claimed.node_l2**2 * (1 + 1e-12)
        assert sum((layer != 0).sum(axis=(1, 2)) for layer in layers).max() <= claimed.coordinates
        if height == 1 and (cells, values) != (1, (-1, 1)):  # in one cell, opposite values need three instants
            assert one >= 0.99 * claimed.l1
            assert two >= 0.99 * claimed.l2**2


def test_sums_over_cells_reach_the_charge_in_l1():
    """The weights of a row are not negative, so that squares of arrivals of both signs add up at most."""
    leaves = differences(6, 2, cells=2, entries=1, most=1, values=(1,))
    over = Product(axes=(Layers(cells=2, sizes=(1, 2), weights=(1, 2)),))
    unit = Contribution(
        promise=Promise(constraint=AtOnce(), window=2, windows=None, owner=False, protects=Span(2)),
        components=COUNT,
        cells=2,
        over=over,
    )
    nodes = leaves @ over.spread(np.eye(2, dtype=np.int64))
    claimed = of_events("entered", Tree(branching=2, height=1, refine="none", windows=3, initial_level=False), unit)

    assert np.abs(nodes).sum(axis=(1, 2)).max() == claimed.l1 == 6.0
    assert (nodes**2).sum(axis=(1, 2)).max() <= claimed.l2**2
