"""The formulas of one mechanism: advanced composition by hand, and the step to discrete noise."""

import math

import mpmath
import numpy as np
import pytest

from privacy.accounting.accounting import Budget, Measurement, calibrate
from privacy.accounting.curves import ORDERS, advanced_epsilon, renyi_epsilon, rounding_gap, zcdp_epsilon

STEPS = 2.0**24
ONE = Measurement(l1=1, l2=1, nodes=1, node_l1=1, node_l2=1, coordinates=1)


def calibrated(measurements, budget, mechanism, accounting, steps=STEPS):
    return calibrate(measurements, budget=budget, mechanism=mechanism, accounting=accounting, steps=steps)


@pytest.mark.parametrize(
    ("count", "epsilon", "slack", "expected"),
    [
        # 40 x 0.01 x tanh(0.005) + sqrt(2 x 40 x 0.01^2 x log(e + 0.0632 / 0.001))
        (40, 0.01, 1e-3, 0.002 + math.sqrt(0.008 * math.log(math.e + 63.2455532))),
        # 40 x 0.2 x tanh(0.1) + sqrt(2 x 40 x 0.2^2 x log(1000))
        (40, 0.2, 1e-3, 8 * 0.0996679946 + math.sqrt(3.2 * math.log(1000))),
        # Few measurements: adding up is the least.
        (2, 0.5, 1e-6, 1.0),
    ],
)
def test_advanced_composition_is_the_least_of_three_bounds(count, epsilon, slack, expected):
    assert advanced_epsilon([epsilon] * count, slack) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rho", [1e-4, 0.05, 1.0])
def test_searching_all_orders_is_never_worse_than_a_list_of_orders(rho):
    searched, listed = zcdp_epsilon(rho, 1e-6), renyi_epsilon(ORDERS * rho, 1e-6)

    assert searched <= listed + 1e-9
    # The textbook bound (Bun, Steinke 2016, proposition 1.3) is weaker.
    assert searched < rho + 2 * math.sqrt(rho * math.log(1e6))


def discrete_gaussian(scale: float) -> tuple[np.ndarray, np.ndarray]:
    values = np.arange(-math.ceil(15 * scale), math.ceil(15 * scale) + 1)
    weights = np.exp(-((values / scale) ** 2) / 2)
    return values, weights / weights.sum()


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("scale", [10, 10.3, 17, 50, 123.4, 500, 1000])
def test_the_gap_between_discrete_and_rounded_noise_is_below_its_bound(scale):
    values, discrete = discrete_gaussian(scale)
    rounded = np.array(
        [
            float(mpmath.ncdf((y + 0.5) / scale) - mpmath.ncdf((y - 0.5) / scale))
            for y in map(int, -abs(values[: len(values) // 2 + 1]))
        ]
    )
    rounded = np.concatenate([rounded, rounded[-2::-1]])

    apart = float(np.abs(discrete - rounded).sum()) / 2

    assert 0.8 * rounding_gap(scale) < apart < rounding_gap(scale)


@pytest.mark.parametrize("accounting", ["naive", "advanced", "pld", "zcdp", "rdp"])
@pytest.mark.parametrize("budget", [Budget(epsilon=e, delta=0.03) for e in (0.3, 1.0, 3.0)])
def test_noise_on_a_coarse_grid_keeps_the_budget_exactly(accounting, budget):
    # A grid so coarse that the step to discrete noise is visible: every event is summed.
    steps = 40
    found = calibrated([ONE], budget, "gaussian", accounting, steps)
    values, here = discrete_gaussian(found.scales[0] * steps)
    there = np.exp(-(((values - steps) / (found.scales[0] * steps)) ** 2) / 2) * here.max()

    delta = float(np.maximum(0, there - math.exp(budget.epsilon) * here).sum())

    assert 0.001 < delta <= budget.delta


@pytest.mark.slow
def test_the_step_to_discrete_noise_costs_more_noise():
    fine, coarse = (
        calibrated([ONE], Budget(epsilon=1, delta=0.01), "gaussian", "pld", steps).scales[0] for steps in (STEPS, 20)
    )

    assert coarse > fine * 1.0001


@pytest.mark.parametrize("accounting", ["naive", "advanced", "pld", "paper"])
def test_a_delta_too_small_for_the_grid_is_refused(accounting):
    with pytest.raises(ValueError, match="too small for noise on a grid of 1024 steps"):
        calibrated([ONE], Budget(epsilon=1, delta=1e-9), "gaussian", accounting, 1024)


@pytest.mark.parametrize("accounting", ["zcdp", "rdp"])
def test_the_discrete_laws_own_zcdp_needs_no_fine_grid(accounting):
    budget = Budget(epsilon=1, delta=1e-9)

    coarse = calibrated([ONE], budget, "gaussian", accounting, 1).scales
    assert coarse == calibrated([ONE], budget, "gaussian", accounting).scales
