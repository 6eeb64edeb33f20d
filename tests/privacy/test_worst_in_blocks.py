"""Exact charges of two blocks, compared with all neighbours of small sizes, and with a search among larger ones."""

from fractions import Fraction

import numpy as np
import pytest

from privacy.measure import Component
from privacy.planning.sensitivity import of_events, of_net
from privacy.planning.worst_in_blocks import _longest, worst
from privacy.states import States, in_l1, in_l2_squared
from privacy.strategies.direct.direct import Direct
from privacy.strategies.tree.tree import Tree
from tests.privacy.test_blocks import held, leaves_of, neighbours, unit

SUMS = ("level", "change", "entered", "left")


def terms(of: str, one: np.ndarray, other: np.ndarray, vectors: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Return what `worst` sums, [boundaries, courses, coordinates], for counted states [boundaries, courses].

    Args:
        of: what is summed.
        one, other: numbers of states.
        vectors: the vector of each state, [states, coordinates].
        cell: the cell of each state, 0 for none.
    """
    if of in ("level", "change"):
        apart = vectors[one] - vectors[other]
        return apart if of == "level" else np.diff(apart, axis=0, prepend=0)

    def events(states: np.ndarray) -> np.ndarray:
        now, before = (states[1:], states[:-1]) if of == "entered" else (states[:-1], states[1:])
        return vectors[now] * (cell[now] != cell[before])[..., None]

    return events(one) - events(other)


def charged(of: str, block: int, changes: int, cells: int, *, windows: int | None = None) -> tuple[float, float]:
    """Return the charge in L1, and squared in L2."""
    disjoint = Tree(branching=2, height=1, refine="none", windows=windows, initial_level=False)
    strategy = Direct(windows=windows) if of == "level" else disjoint
    asked = unit(changes, block, cells, strategy)
    found = of_net(strategy, asked) if of in ("level", "change") else of_events(of, strategy, asked)
    return found.l1, found.l2**2


@pytest.mark.parametrize(("block", "changes", "cells"), [(2, 2, 1), (3, 2, 1), (4, 3, 1), (3, 3, 1), (3, 2, 2)])
def test_counts_are_charged_what_the_worst_neighbours_need_and_no_more(block, changes, cells):
    """A charge that is 1 % smaller would be exceeded in each norm of each sum."""
    one, other = (held(states, changes, block) for states in neighbours(block, cells))
    vectors = np.eye(cells + 1, dtype=int)[:, 1:]
    for of in SUMS:
        apart = terms(of, one, other, vectors, np.arange(cells + 1))
        largest = np.abs(apart).sum(axis=(0, 2)).max(), (apart**2).sum(axis=(0, 2)).max()
        assert charged(of, block, changes, cells) == pytest.approx(largest, rel=1e-9), of


def test_spans_that_are_shorter_than_a_block_cost_no_more():
    """A unit that is present in both outside the span; its changes may be used up at different times."""
    for span in (1, 2):
        one, other = (held(states, 2, 3) for states in neighbours(3, 2, span))
        for of in SUMS:
            apart = terms(of, one, other, np.eye(3, dtype=int)[:, 1:], np.arange(3))
            largest = np.abs(apart).sum(axis=(0, 2)).max(), (apart**2).sum(axis=(0, 2)).max()
            most = charged(of, 3, 2, 2)
            assert largest[0] <= most[0] * (1 + 1e-12), (of, span)
            assert largest[1] <= most[1] * (1 + 1e-12), (of, span)
            assert span == 1 or largest[0] > most[0] / 2, of  # so half of the charge would be exceeded


def test_blocks_in_which_all_changes_count_cost_what_a_span_costs():
    assert charged("level", 5, 5, 9)[0] == charged("level", 5, 1000, 9)[0] == 5


@pytest.mark.parametrize(("block", "changes"), [(9, 2), (13, 3)])
def test_long_blocks_are_charged_at_least_as_if_nothing_was_removed(block, changes):
    for diameter, squared in ((2, False), (4, True)):
        states = States(radius=Fraction(1), diameter=Fraction(diameter), hulls=(), squared=squared)
        for plain in (False, True):
            for of in SUMS:
                whole = Fraction(_longest(of, block, changes, (diameter << 20, squared), None, plain, False), 1 << 20)
                found = worst(of, states, changes=changes, block=block, windows=None, plain=plain, alone=False)
                assert found is not None
                assert whole <= found, of
                if of != "level":
                    assert whole == found, of


def test_a_release_that_ends_is_charged_for_its_windows_alone():
    one, other = (held(states, 2, 3) for states in neighbours(3, 2))
    for of in SUMS:
        apart = np.abs(terms(of, one, other, np.eye(3, dtype=int)[:, 1:], np.arange(3))).sum(axis=2)
        for windows in range(1, 8):
            ends = windows + (of in ("level", "change"))
            assert apart[:ends].sum(axis=0).max() <= charged(of, 3, 2, 2, windows=windows)[0], (of, windows)
        assert charged(of, 3, 2, 2, windows=2)[0] < charged(of, 3, 2, 2)[0]


def test_leaves_of_two_windows_cost_no_more_than_the_windows():
    direct, disjoint = (
        Direct(windows=None),
        Tree(branching=2, height=1, refine="none", windows=None, initial_level=False),
    )
    for strategy in (direct, disjoint):
        asked = unit(2, 3, 2, strategy)
        assert of_net(strategy, leaves_of(asked, 2)).l1 <= of_net(strategy, asked).l1


VALUES = (Component(name="sum", grid=1.0, low=-4, high=10),)
WAYS, STEPS = 600, 50


@pytest.mark.parametrize(("block", "changes", "entries"), [(9, 2, 1), (5, 3, 2)])
def test_a_search_finds_no_neighbours_further_apart_than_charged(block, changes, entries):
    """Entries with values from -4 to 10 in two cells; pairs are changed at random, and kept if not closer."""
    rng = np.random.default_rng(5)
    one_entry = np.array([(0, 0), (-0.4, 0), (1, 0), (0, -0.4), (0, 1)])
    vectors, cell = one_entry, np.array([0, 1, 1, 2, 2])
    if entries == 2:
        vectors = (one_entry[:, None] + one_entry[None]).reshape(-1, 2)
        cell = np.arange(len(vectors))  # each change is an event of both entries
    none, states = 0, len(vectors)
    found = dict.fromkeys(((of, power) for of in SUMS for power in (1, 2)), 0.0)
    for of, power in found:
        sizes = (in_l1 if power == 1 else in_l2_squared)(VALUES, 2)
        bound = worst(of, sizes, changes=changes, block=block, windows=None, plain=False, alone=False)
        assert bound is not None
        best, pairs = np.full(WAYS, -1.0), _drawn(rng, block, states)
        for _ in range(STEPS):
            moved = np.where(rng.random(pairs.shape) < 1.5 / len(pairs), _drawn(rng, block, states), pairs)
            first, where = moved[-1] % (block + 1), np.arange(2 * block + 1)[:, None]
            inside = (where >= first) & (where < first + block)
            true, absent = moved[:-1] % states, moved[:-1] // states % 3
            one, other = (held(np.where(inside & (absent != side), none, true), changes, block) for side in (0, 1))
            apart = np.abs(terms(of, one, other, vectors, cell)) ** power
            total = apart.sum(axis=(0, 2))
            better = total >= best
            best, pairs = np.where(better, total, best), np.where(better, moved, pairs)
        found[of, power] = best.max() / float(bound * entries**power)
    assert max(found.values()) <= 1 + 1e-9, found
    assert found["change", 1] > 0.5, found  # otherwise the search tries too little


def _drawn(rng: np.random.Generator, block: int, states: int) -> np.ndarray:
    """Return numbers that give a state at each boundary, which of two courses has it in the span, and its start."""
    return rng.integers(0, 3 * states * (block + 1), size=(2 * block + 2, WAYS))
