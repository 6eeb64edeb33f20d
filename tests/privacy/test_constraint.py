"""Constraints as values, and their enforcement at the ends of the range of times."""

import numpy as np
import pytest

from privacy.constraint import AtMost, AtOnce, ByClass, Within
from tests.reference import Mutation
from tests.transforms.aggregation.test_contribution_bounding import kernel
from transforms.aggregation.node_sums import BOUNDED

LONG_AGO, FAR_OFF = np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max


def restless(first: int | None = None) -> list[Mutation]:
    """Return an entry that changes its ward in every window; with `first`, it has an earlier state."""
    states = [{"ward": "ab"[i % 2], "x": 0.0, "fare": "pass"} for i in range(6)]
    moves = [Mutation("e", 5 + 10 * i, i + 1, states[i - 1] if i else None, states[i]) for i in range(6)]
    return moves if first is None else [Mutation("e", first, 0, None, None), *moves]


def moved(mutations: list[Mutation], constraint: AtMost | Within) -> int:
    """Return the L1 norm of a count's changes by ward."""
    return int(np.abs(kernel(mutations, constraint)[(BOUNDED, 0, "net", 0)]).sum())


@pytest.mark.parametrize("changes", [0, -1])
def test_at_most_below_one_is_refused(changes):
    with pytest.raises(ValueError, match="at_most"):
        AtMost(changes)


def test_a_span_may_be_zero_but_not_less():
    assert Within(0).span == 0
    with pytest.raises(ValueError, match="within"):
        Within(-1)


def test_classes_are_listed_once_and_at_least_one():
    with pytest.raises(ValueError, match="once"):
        ByClass("fare", (("pass", AtMost(1)), ("pass", AtMost(2))))
    with pytest.raises(ValueError, match="classes"):
        ByClass("fare", ())


def test_a_unit_falls_under_one_part():
    both = ByClass("fare", (("multi", AtMost(3)), ("pass", Within(12))))

    assert both.parts == (AtMost(3), Within(12))
    assert Within(5).parts == (Within(5),)


@pytest.mark.parametrize(("span", "expected"), [(0, 1), (9, 1), (10, 3), (20, 5), (FAR_OFF, 11)])
def test_a_span_keeps_the_changes_up_to_its_end(span, expected):
    assert moved(restless(), Within(span)) == expected


@pytest.mark.parametrize("span", [0, 10, 2**62, FAR_OFF])
def test_a_span_ends_even_if_the_first_mutation_is_as_early_as_times_can_be(span):
    """The time since then exceeds 64 bits: a difference that wrapped would let every change count permanently."""
    assert moved(restless(LONG_AGO), Within(span)) == 0


def test_a_mutation_at_the_end_of_time_changes_nothing_before_it():
    late = [*restless(), Mutation("e", FAR_OFF, 9, None, None)]

    assert moved(late, Within(20)) == moved(restless(), Within(20))
    assert moved(late, AtMost(3)) == moved(restless(), AtMost(3))


def test_a_bound_at_one_time_has_no_constraints_on_changes():
    """With an empty list of them a sum over constraints, and so a sensitivity, would be 0."""
    with pytest.raises(ValueError, match="at one time"):
        _ = AtOnce(2).parts
