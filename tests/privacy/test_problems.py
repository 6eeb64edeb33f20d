"""Broken rules keep their place in the spec."""

import pytest

from privacy.problems import RuleError, enforce, placed


def test_each_level_puts_its_own_place_in_front() -> None:
    says = pytest.raises(RuleError, match=r"^queries\.1\.strategy\.samples: at most 7$")
    with says as raised, placed("queries", 1), placed("strategy"):
        raise RuleError("at most 7", "samples")

    assert (raised.value.path, raised.value.message) == (("queries", 1, "strategy", "samples"), "at most 7")


def test_an_error_without_a_path_is_placed_where_it_was_raised() -> None:
    with pytest.raises(RuleError, match=r"^strategy: no such tree$"), placed("strategy"):
        raise ValueError("no such tree")


def test_the_first_of_several_problems_is_raised() -> None:
    enforce([])
    with pytest.raises(RuleError, match="first"):
        enforce([RuleError("first"), RuleError("second")])
