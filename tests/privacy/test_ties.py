"""Ties choose between candidates, in an order that the last digits of costs do not change, and never change noise."""

import random
from collections.abc import Callable

import pytest

from privacy import ties
from privacy.cells import fitting
from privacy.cells.choice import CellChoice
from privacy.noise.kinds import Mechanism
from privacy.planning.spent import proved
from privacy.ties import cheapest_first
from tests.privacy.cells.test_fitting import plan_of


def test_the_last_digits_of_costs_do_not_change_the_order() -> None:
    costs = {"a": 3.0, "b": 1.0, "c": 3.0, "d": 1.0 + 1e-6, "e": 1.0, "f": 0.0}
    randomness = random.Random(1)
    for _ in range(100):
        computed = {name: cost * (1 + randomness.uniform(-1, 1) * 1e-13) for name, cost in costs.items()}
        assert cheapest_first(costs, computed.__getitem__) == ["f", "b", "e", "d", "a", "c"]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_whichever_of_nearly_equal_candidates_is_chosen_its_noise_covers_the_budget(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch, plan_again: Callable[[], None]
) -> None:
    choice = CellChoice(workload="ranges")
    usual = plan_of(choice, mechanism=mechanism)
    fitting._by_cost.cache_clear()
    fitting._strategies.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(ties, "TOLERANCE", 10.0)
        plan_again()
        other = plan_of(choice, mechanism=mechanism)
    fitting._by_cost.cache_clear()
    fitting._strategies.cache_clear()

    assert other.parts != usual.parts
    for plan in (usual, other):
        assert proved(plan) <= 1 + 1e-12
