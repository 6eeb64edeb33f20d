"""Lower bounds from guesses hold for mechanisms of known parameters, and come near them."""

import numpy as np
import pytest

from privacy.evidence.betting import at_least, epsilon_of, epsilon_of_tally, mu_at, mu_of, tally

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


def released(losses, number, wider=1.0):
    """Return ratios in favour of the released one of two neighbours, which Laplace noise hides: one loss for a node."""
    random, ratios = np.random.default_rng(), np.zeros(number)
    for loss in losses:
        noise = random.laplace(scale=wider / loss, size=number)
        ratios += (np.abs(noise + 1) - np.abs(noise)) * loss
    return ratios


@pytest.mark.slow
@pytest.mark.parametrize("losses", [[1.0], [0.25] * 4, [0.1] * 10], ids=["one node", "four nodes", "ten nodes"])
def test_a_bound_from_ratios_is_below_the_loss_and_above_half_of_it(losses):
    bound = epsilon_of_tally(tally(released(losses, 1_000_000), 1.0), 1.0, FAILURE)

    assert 0.5 <= bound <= 1.0


def test_noise_that_is_narrower_than_claimed_is_refuted():
    scores = released([0.2] * 5, 200_000, wider=0.5)

    assert epsilon_of_tally(tally(scores, 1.0), 1.0, FAILURE) > 1.0
    assert epsilon_of_tally(tally(np.full(100, 1.0), 1.0), 1.0, FAILURE) > 1.5


@pytest.mark.slow
def test_the_wealth_of_a_gambler_against_the_true_loss_rarely_grows():
    """The wealth against epsilon is 1 on average, and exceeds 20 with probability at most 1/20, at any epsilon."""
    scores = released([0.5, 0.5], 400 * 500).reshape(400, 500)  # 400 gamblers; 48 false alarms have probability 1e-6
    high = [epsilon_of_tally(tally(row, 1.0), 1.0, 0.05) > 1.0 for row in scores]

    assert sum(high) <= 48
    assert epsilon_of_tally(tally(-np.abs(scores.ravel()), 1.0), 1.0, FAILURE) == 0.0


def test_few_or_bad_guesses_give_no_bound():
    assert at_least(0, 0, FAILURE) == at_least(5, 5, FAILURE) == at_least(10, 90, FAILURE) == 0.5


@pytest.mark.slow
def test_the_wealth_of_a_fair_gambler_rarely_grows():
    """By Ville's inequality the bound exceeds 1/2 for a fair coin, at any time, with probability at most `failure`."""
    coins = np.random.default_rng(5).integers(0, 2, (60, 300))  # a seed: the coins are not under test
    above = [any(at_least(int(c), int(n - c), 0.05) > 0.5 for n, c in enumerate(np.cumsum(row), 1)) for row in coins]

    assert sum(above) / len(above) <= 0.05 + 0.05


def test_mu_of_a_budget_reaches_its_delta():
    assert 0.18 < mu_at(1.0, 1e-9) < 0.185
    assert mu_at(1.0, 0.1) > mu_at(1.0, 1e-9) > mu_at(0.5, 1e-9)
