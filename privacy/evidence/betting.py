"""Lower bounds on epsilon and mu from guesses, valid at any time (e-processes).

A fair coin chooses one of two neighbours, the mechanism runs, and a rule that was fixed before guesses the coin from
the published numbers, or abstains. Each guess that is made is correct with probability at most

    e^epsilon / (1 + e^epsilon)     if the mechanism is (epsilon, 0)-DP, given the published numbers and so any guess
    Phi(mu / 2)                     if it is mu-GDP and the rule never abstains

Against a bound p0 on this probability, the wealth of a gambler who bets on correct guesses at any fixed odds is a
supermartingale: E[(p / p0)^correct ((1 - p) / (1 - p0))^wrong] <= 1 for p > p0. So is the mean over several p. By
Ville's inequality it ever exceeds 1 / failure with probability at most `failure`: the bound holds whenever the test
stops. Source: Ramdas, Grunwald, Vovk, Shafer (2023), "Game-theoretic statistics and safe anytime-valid inference".
"""

import math
from statistics import NormalDist

import numpy as np

from privacy.bisection import last_holding

_ODDS = np.concatenate([np.linspace(0.505, 0.995, 99), 1 - np.logspace(-3, -7, 9)])
"""Probabilities of correct guesses on which the gambler bets."""


def at_least(correct: int, wrong: int, failure: float) -> float:
    """Return a lower bound on the probability of a correct guess, at least 1/2.

    Args:
        correct: number of correct guesses so far.
        wrong: number of wrong guesses so far.
        failure: probability that the bound, over all times, is ever too high.

    >>> at_least(0, 0, 1e-3), 0.7 < at_least(900, 100, 1e-3) < 0.9
    (0.5, True)
    """

    def refuted(bound: float) -> bool:
        return _wealth(correct, wrong, bound) >= -math.log(failure)

    if not refuted(0.5):
        return 0.5
    return last_holding(refuted, 0.5, 1.0, near=lambda good, bad: bad - good < 1e-9)


def epsilon_of(probability: float) -> float:
    """Return the epsilon of which this is the largest probability of a correct guess, given that one is made."""
    return math.log(probability / (1 - probability))


def mu_of(probability: float) -> float:
    """Return the mu of which this is the largest probability of a correct guess, if a guess is always made."""
    return 2 * NormalDist().inv_cdf(probability)


def mu_at(epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP implies (epsilon, delta)-DP.

    >>> round(mu_at(1.0, 1e-9), 3)
    0.182
    """

    def holds(mu: float) -> bool:
        if mu == 0:
            return True
        above, below = (-epsilon / mu + mu / 2) / math.sqrt(2), (-epsilon / mu - mu / 2) / math.sqrt(2)
        return math.erfc(-above) / 2 - math.exp(epsilon) * math.erfc(-below) / 2 <= delta

    return last_holding(holds, 0.0, 100.0, near=lambda good, bad: bad - good < 1e-9)


def _wealth(correct: int, wrong: int, bound: float) -> float:
    """Return the logarithm of the gambler's wealth; bets that are not above the bound are not made."""
    odds = _ODDS[bound < _ODDS]
    if len(odds) == 0:
        return 0.0
    logs = correct * np.log(odds / bound) + wrong * np.log((1 - odds) / (1 - bound))
    top = max(float(logs.max()), 0.0)
    made = float(np.exp(logs - top).sum()) + (len(_ODDS) - len(odds)) * math.exp(-top)
    return top + math.log(made / len(_ODDS))
