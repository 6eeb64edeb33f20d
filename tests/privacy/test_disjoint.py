"""Windows as nodes of their own: what is published from them, and how much noise it holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from privacy import disjoint
from privacy.disjoint import KINDS

MATRICES = arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-1000, 1000))


@given(MATRICES)
def test_every_window_is_a_node(leaves):
    nodes, carry = disjoint.advance(None, leaves)

    np.testing.assert_array_equal(nodes, leaves)
    assert carry is None


@given(MATRICES)
def test_a_level_is_the_opening_and_all_changes_so_far(nodes):
    levels = disjoint.combine("level", nodes)

    assert levels.tolist() == [nodes[: end + 1].sum(axis=0).tolist() for end in range(1, len(nodes))]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "level"])
@given(MATRICES)
def test_other_numbers_are_their_window_alone(kind, nodes):
    np.testing.assert_array_equal(disjoint.combine(kind, nodes), nodes[1:])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("windows", [1, 2, 7])
def test_terms_count_the_draws_that_each_number_holds(kind, windows):
    """Node i alone changes the numbers that hold its draw."""
    held = sum(
        disjoint.combine(kind, np.eye(windows + 1, dtype=np.int64)[:, [node]])[:, 0] for node in range(windows + 1)
    )

    assert disjoint.terms(kind, windows).tolist() == held.tolist()


def test_change_and_level_share_their_nodes():
    assert [disjoint.family_of(kind) for kind in KINDS] == ["net", "net", "entered", "left"]
