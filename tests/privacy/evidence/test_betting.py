"""Lower bounds from guesses hold for mechanisms of known parameters, and come near them."""

import numpy as np
import pytest

from privacy.evidence.betting import at_least, epsilon_of, mu_at, mu_of

FAILURE = 1e-6


def guesses(probability, number=20_000):
    correct = int(np.random.default_rng().binomial(number, probability))
    return correct, number - correct


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_bound_on_epsilon_is_below_it_and_above_half_of_it(epsilon):
    bound = epsilon_of(at_least(*guesses(np.exp(epsilon) / (1 + np.exp(epsilon))), FAILURE))

    assert epsilon / 2 < bound <= epsilon or epsilon == 0.1  # 20,000 guesses do not suffice for less
    assert bound <= epsilon


def test_a_bound_on_mu_is_below_it_and_above_half_of_it():
    assert 0.5 < mu_of(at_least(*guesses(0.6914624612740131), FAILURE)) <= 1  # Phi(1 / 2)


def test_a_wrong_claim_is_refuted():
    assert epsilon_of(at_least(*guesses(0.88), FAILURE)) > 1.5


def test_few_or_bad_guesses_give_no_bound():
    assert at_least(0, 0, FAILURE) == at_least(5, 5, FAILURE) == at_least(10, 90, FAILURE) == 0.5


def test_the_wealth_of_a_fair_gambler_rarely_grows():
    """By Ville's inequality the bound exceeds 1/2 for a fair coin, at any time, with probability at most `failure`."""
    coins = np.random.default_rng(5).integers(0, 2, (60, 300))  # a seed: the coins are not under test
    above = [any(at_least(int(c), int(n - c), 0.05) > 0.5 for n, c in enumerate(np.cumsum(row), 1)) for row in coins]

    assert sum(above) / len(above) <= 0.05 + 0.05


def test_mu_of_a_budget_reaches_its_delta():
    assert 0.18 < mu_at(1.0, 1e-9) < 0.185
    assert mu_at(1.0, 0.1) > mu_at(1.0, 1e-9) > mu_at(0.5, 1e-9)
