"""Every accounting proves its claim and uses its whole budget, compared with exact references and numbers by hand."""

import itertools
import math
from functools import lru_cache
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.accounting import (
    ACCOUNTINGS,
    TOLERANCE,
    Budget,
    Measurement,
    calibrate,
    epsilon_spent,
    paper_epsilon,
)
from privacy.accounting.curves import gaussian_epsilon
from tests.searches import examples

STEPS = 2.0**24
BUDGETS = (Budget(epsilon=0.1, delta=1e-9), Budget(epsilon=1, delta=1e-6), Budget(epsilon=6, delta=1e-4))


def measurement(changes: int = 1, cells: int = 1, weight: float = 1.0) -> Measurement:
    """Return a measurement of at most `changes` changes of a unit, each in a separate window and in `cells` cells."""
    return Measurement(
        l1=changes * cells,
        l2=math.sqrt(changes * cells),
        nodes=changes,
        node_l1=cells,
        node_l2=math.sqrt(cells),
        coordinates=changes * cells,
        weight=weight,
    )


FAMILY = (measurement(4), measurement(4, 2, weight=2), measurement(1, weight=0.5))
MANY = tuple(measurement() for _ in range(40))


COARSE = 1e-3
"""Tolerance of the noise in tests that check only whether the claim is true."""


@lru_cache(maxsize=128)
def calibrated(measurements, budget, mechanism, accounting, steps=STEPS, tolerance=TOLERANCE):
    with patch("privacy.accounting.accounting.TOLERANCE", tolerance):
        return calibrate(measurements, budget=budget, mechanism=mechanism, accounting=accounting, steps=steps)


def test_pure_epsilon_adds_up_by_weight():
    found = calibrated(FAMILY, Budget(epsilon=0.7), "laplace", "naive")

    # Weights 1 : 2 : 0.5 of 0.7 are 0.2, 0.4 and 0.1.
    assert found.scales == pytest.approx([4 / 0.2, 8 / 0.4, 1 / 0.1], rel=1e-9)
    assert found.shares == pytest.approx([0.2, 0.4, 0.1], rel=1e-9)
    assert found.unit == "epsilon"
    assert found.budget.epsilon == pytest.approx(0.7, rel=1e-9)
    assert found.budget.delta == 0


def test_one_gaussian_at_one_and_a_millionth_has_the_known_sigma():
    found = calibrated((measurement(),), Budget(epsilon=1, delta=1e-6), "gaussian", "pld")

    assert found.scales[0] == pytest.approx(4.2247, abs=1e-4)
    assert found.shares == pytest.approx([1 / (2 * 4.2247**2)], rel=1e-4)
    assert found.unit == "rho"


def test_gaussian_families_share_one_mu():
    alone = calibrated((measurement(9),), BUDGETS[1], "gaussian", "pld").scales[0]
    together = calibrated(
        (
            measurement(9),
            measurement(9),
        ),
        BUDGETS[1],
        "gaussian",
        "pld",
    ).scales

    assert together == pytest.approx([alone * math.sqrt(2)] * 2, rel=1e-6)


def test_the_paper_charges_every_node_alone():
    pure = calibrated((measurement(4, 2),), Budget(epsilon=1), "laplace", "paper")
    basic = calibrated((measurement(4, 2),), BUDGETS[1], "gaussian", "paper")

    assert pure.scales == pytest.approx([8.0], rel=1e-9)
    # Each of 4 nodes moves by sqrt(2) in L2 and has (1/4, 1e-6/4).
    sigma = math.sqrt(2) / basic.scales[0]
    assert gaussian_epsilon(sigma, 0.25e-6) == pytest.approx(0.25, rel=1e-6)
    assert paper_epsilon([measurement(4, 2)], basic.scales, mechanism="gaussian", delta=1e-6) == pytest.approx(
        1, rel=1e-6
    )


def test_the_paper_states_more_than_joint_sensitivity_proves():
    # A histogram entry moves 2 cells by each change but its first one: L1 = 2k - 1, not 2k.
    histogram = Measurement(l1=7, l2=math.sqrt(7), nodes=4, node_l1=2, node_l2=math.sqrt(2), coordinates=7)
    found = calibrated((histogram,), Budget(epsilon=1), "laplace", "naive")

    stated = paper_epsilon([histogram], found.scales, mechanism="laplace", delta=0)
    assert stated == pytest.approx(8 / 7, rel=1e-9)


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Return the delta of mu-GDP at epsilon, to 60 digits (Balle, Wang 2018, theorem 8)."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("mu", [1e-3, 0.02, 0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-30])
def test_epsilon_of_gaussian_noise_is_the_smallest_valid_one(mu, delta):
    found = gaussian_epsilon(mu, delta)

    assert gaussian_delta(mu, found) <= delta
    less = found * (1 - 1e-8)
    assert gaussian_delta(mu, less) > delta or (gaussian_delta(mu, 0) <= delta and found <= 1e-11)


def pure_delta(epsilons, epsilon: float) -> float:
    """Return the delta at epsilon of composed randomised responses: the sum over all their outcomes."""
    signs = np.array(list(itertools.product((1, -1), repeat=len(epsilons))))
    likely = np.log(1 / (1 + np.exp(-np.array(epsilons))))
    here = np.where(signs > 0, likely, likely - epsilons).sum(axis=1)
    there = np.where(signs < 0, likely, likely - epsilons).sum(axis=1)
    return float(np.maximum(0, np.exp(here) - np.exp(epsilon + there)).sum())


measurements = st.lists(
    st.builds(
        measurement,
        changes=st.integers(1, 30),
        cells=st.integers(1, 3),
        weight=st.floats(0.05, 20),
    ),
    min_size=1,
    max_size=6,
).map(tuple)
budgets = st.builds(
    lambda epsilon, power: Budget(epsilon=epsilon, delta=10.0**-power),
    st.floats(0.05, 5),
    st.floats(2, 9),
)


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@examples(5)
@given(measurements=measurements, budget=budgets)
def test_no_gaussian_claim_is_below_the_exact_loss(accounting, measurements, budget):
    found = calibrated(measurements, budget, "gaussian", accounting, tolerance=COARSE)

    mu = math.hypot(*(m.l2 / s for m, s in zip(measurements, found.scales, strict=True)))
    assert found.budget.epsilon <= budget.epsilon
    assert found.budget.delta <= budget.delta
    assert gaussian_delta(mu, found.budget.epsilon) <= found.budget.delta


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@examples(8)
@given(measurements=measurements, budget=budgets)
def test_no_laplace_claim_is_below_the_exact_loss(accounting, measurements, budget):
    found = calibrated(measurements, budget, "laplace", accounting)

    epsilons = [m.l1 / s for m, s in zip(measurements, found.scales, strict=True)]
    assert found.budget.epsilon <= budget.epsilon
    assert found.budget.delta <= budget.delta
    # The reference sums up to 2^6 floats: allow for their rounding.
    assert pure_delta(epsilons, found.budget.epsilon * (1 + 1e-12)) <= found.budget.delta + 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_halving_any_scale_exceeds_the_budget(accounting, mechanism, budget):
    found = calibrated(FAMILY, budget, mechanism, accounting)

    for index in range(len(FAMILY)):
        halved = list(found.scales)
        halved[index] /= 2
        spent = epsilon_spent(
            FAMILY,
            halved,
            mechanism=mechanism,
            accounting=accounting,
            delta=budget.delta,
            steps=STEPS,
        )
        assert spent > budget.epsilon * 1.01


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_nearly_all_of_the_budget_is_used(accounting, mechanism):
    for budget in BUDGETS:
        found = calibrated(FAMILY, budget, mechanism, accounting)

        assert found.budget.epsilon == pytest.approx(budget.epsilon, rel=1e-3)


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_larger_budget_never_asks_for_more_noise(accounting, mechanism):
    scales = [
        calibrated(FAMILY, Budget(epsilon=e, delta=1e-6), mechanism, accounting, tolerance=COARSE).scales[0]
        for e in (0.01, 0.1, 0.5, 1, 2, 8)
    ]

    assert scales == sorted(scales, reverse=True)
    assert len(set(scales)) == len(scales)


@pytest.mark.parametrize("budget", BUDGETS)
def test_pld_needs_the_least_gaussian_noise_and_the_paper_the_most(budget):
    noise = {a: calibrated(FAMILY, budget, "gaussian", a).scales[0] for a in ACCOUNTINGS}

    assert noise["pld"] == min(noise.values())
    assert noise["paper"] == max(noise.values())
    assert noise["zcdp"] <= noise["rdp"] * (1 + 1e-9)


def test_many_pure_measurements_gain_from_a_delta():
    budget = Budget(epsilon=1, delta=1e-6)
    noise = {a: calibrated(MANY, budget, "laplace", a).scales[0] for a in ACCOUNTINGS}

    assert noise["pld"] < noise["rdp"] <= noise["zcdp"] < noise["advanced"] < noise["naive"]


@pytest.mark.parametrize("budget", BUDGETS)
def test_advanced_composition_of_gaussian_noise_uses_all_of_epsilon(budget):
    """The exact loss of the noise would be two thirds of epsilon if each of two queries were charged an epsilon."""
    for count in (1, 2, 10):
        found = calibrated(MANY[:count], budget, "gaussian", "advanced")
        exact = gaussian_epsilon(math.hypot(*(1 / s for s in found.scales)), budget.delta)

        assert exact <= found.budget.epsilon <= exact * (1 + 1e-6)
        assert "advanced" not in found.sentence


def test_probabilities_in_the_far_tail_are_neither_lost_nor_added():
    """Three losses, 24 times each, against all sums: a fast transform loses everything below 1e-15."""
    groups, times = (0.11, 0.17, 0.23), 24
    parts = [
        Measurement(l1=e, l2=e, nodes=1, node_l1=e, node_l2=e, coordinates=1) for e in groups for _ in range(times)
    ]
    losses, chances, up = np.zeros(1), np.ones(1), np.arange(times + 1)
    for e in groups:
        drawn = np.array([math.comb(times, j) for j in up]) * np.exp(up * e) / (1 + math.exp(e)) ** times
        losses, chances = np.add.outer(losses, (2 * up - times) * e).ravel(), np.outer(chances, drawn).ravel()
    for delta in (1e-9, 1e-16):
        told = epsilon_spent(parts, [1.0] * len(parts), mechanism="laplace", accounting="pld", delta=delta, steps=1)

        exact = float((chances * np.maximum(0, -np.expm1(told - losses))).sum())
        assert delta / 2 < exact <= delta


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS)
def test_gaussian_calibration_agrees_with_dp_accounting(budget):
    exact = calibrated(FAMILY, budget, "gaussian", "pld")
    renyi = calibrated(FAMILY, budget, "gaussian", "rdp")

    def spent(accountant, found):
        events = [GaussianDpEvent(s / m.l2) for m, s in zip(FAMILY, found.scales, strict=True)]
        accountant.compose(ComposedDpEvent(events))
        return accountant.get_epsilon(budget.delta)

    assert spent(PLDAccountant(), exact) == pytest.approx(budget.epsilon, rel=3e-3)
    assert spent(RdpAccountant(), renyi) == pytest.approx(budget.epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("mechanism", "accounting", "message"),
    [
        ("gaussian", "pld", "privacy.delta: missing; Gaussian noise needs one"),
        ("gaussian", "naive", "privacy.delta: missing; Gaussian noise needs one"),
        ("laplace", "pld", "privacy.delta: missing; accounting pld needs one"),
        ("laplace", "zcdp", "privacy.delta: missing; accounting zcdp needs one"),
        ("cauchy", "naive", "mechanism 'cauchy' must be laplace or gaussian"),
        ("laplace", "nave", "accounting 'nave' must be one of naive, advanced, zcdp"),
    ],
)
def test_unprovable_budgets_are_refused(mechanism, accounting, message):
    with pytest.raises(ValueError, match=message):
        calibrated((measurement(),), Budget(epsilon=1), mechanism, accounting)


def test_an_empty_release_is_refused():
    with pytest.raises(ValueError, match="number of measurements: expected at least 1, not 0"):
        calibrated((), Budget(epsilon=1), "laplace", "naive")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_without_a_positive_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"epsilon: expected a (finite )?number"):
        Budget(epsilon=epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_an_invalid_delta_is_refused(delta):
    with pytest.raises(ValueError, match=r"delta: expected"):
        Budget(epsilon=1, delta=delta)


@pytest.mark.parametrize("field", ["l1", "l2", "node_l1", "node_l2", "weight"])
def test_a_measurement_without_sensitivity_is_refused(field):
    values = dict.fromkeys(("l1", "l2", "node_l1", "node_l2", "weight"), 1.0) | {field: 0.0}

    with pytest.raises(ValueError, match=f"{field}: expected a number above 0"):
        Measurement(nodes=1, coordinates=1, **values)


def test_the_sentence_states_the_protection_and_the_mechanism():
    found = calibrated(FAMILY, BUDGETS[1], "gaussian", "pld")

    assert found.sentence.startswith("(1, 1e-06)-differential privacy of the whole release")
    assert "all mutations of one privacy unit" in found.sentence
    assert "discrete Gaussian noise on 3 measurements" in found.sentence
    assert "of delta covers the step from continuous to discrete noise" in found.sentence
