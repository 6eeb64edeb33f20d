"""Bisection returns a number that was checked, for either end, so privacy bounds are never crossed."""

import pytest

from privacy.bisection import last_holding


@pytest.mark.parametrize("limit", [0.1, 1 / 3, 0.999, 1.0])
@pytest.mark.parametrize("rising", [False, True])
def test_the_returned_number_holds_and_is_near_the_limit(limit: float, rising: bool) -> None:
    good, bad = (0.0, 2.0) if rising else (2.0, 0.0)
    checked = {good: True}

    def holds(x: float) -> bool:
        checked[x] = x <= limit if rising else x >= limit
        return checked[x]

    found = last_holding(holds, good, bad, near=lambda good, bad: abs(good - bad) <= 1e-6)

    assert checked[found]
    assert abs(found - limit) <= 1e-6


@pytest.mark.parametrize("limit", [1, 2, 1000, 2**62 - 1])
def test_integers_are_found_exactly(limit: int) -> None:
    def near(good: int, bad: int) -> bool:
        return abs(good - bad) <= 1

    assert last_holding(lambda x: x >= limit, 2**62, 0, near=near, whole=True) == limit
    assert last_holding(lambda x: x <= limit, 0, 2**62, near=near, whole=True) == limit


def test_the_number_of_halvings_is_bounded() -> None:
    tried: list[float] = []

    def holds(x: float) -> bool:
        tried.append(x)
        return False

    assert last_holding(holds, 1.0, 0.0, near=lambda *_: False, steps=7) == 1.0
    assert len(tried) == 7
