"""Lower bounds on epsilon and mu from guesses, valid at any time (e-processes).

A fair coin chooses one of two neighbours, the mechanism runs, and a rule that was fixed before guesses the coin from
the published numbers, or abstains. Each guess that is made is correct with probability at most

    e^epsilon / (1 + e^epsilon)     if the mechanism is (epsilon, 0)-DP, given the published numbers and so any guess
    Phi(mu / 2)                     if it is mu-GDP and the rule never abstains

Against a bound p0 on this probability, the wealth of a gambler who bets on correct guesses at any fixed odds is a
supermartingale: E[(p / p0)^correct ((1 - p) / (1 - p0))^wrong] <= 1 for p > p0. So is the mean over several p. By
Ville's inequality it ever exceeds 1 / failure with probability at most `failure`: the bound holds whenever the test
stops.

Under (epsilon, 0)-DP this holds given the published numbers, so the odds of a bet may depend on them. With a
log-likelihood ratio of s, a guess of its sign is correct with probability 1 / (1 + e^-|s|), and these are the odds at
which the wealth grows fastest. `epsilon_of_tally` bets at the odds of |s|, 2 |s|, ...: larger ones win if the ratio
understates the loss, since the mechanism is not what it claims to be.

Source: Ramdas, Grunwald, Vovk, Shafer (2023), "Game-theoretic statistics and safe anytime-valid inference".
"""

import math
from statistics import NormalDist

import numpy as np

from privacy.bisection import last_holding
from privacy.series import Ints
from privacy.strategies.base import Floats

_ODDS = np.concatenate([np.linspace(0.505, 0.995, 99), 1 - np.logspace(-3, -7, 9)])
"""Probabilities of correct guesses on which the gambler bets."""

BINS = 200
"""Sizes of log-likelihood ratios that are distinguished."""

_FACTORS = (1, 2, 4, 8, 16)
"""Multiples of a ratio at whose odds the gambler bets."""


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


def tally(scores: Floats, largest: float) -> Ints:
    """Return the numbers of correct and of wrong guesses by size of their ratio, int64 [2, BINS].

    Args:
        scores: log-likelihood ratios in favour of the neighbour that was released, float64 [guesses].
        largest: largest size that a ratio can have.
    """
    size = np.minimum(np.abs(scores) * (BINS / largest), BINS - 1).astype(np.int64)
    return np.stack([np.bincount(size[told], minlength=BINS) for told in (scores > 0, scores < 0)])


def epsilon_of_tally(counts: Ints, largest: float, failure: float) -> float:
    """Return a lower bound on epsilon, for a mechanism with delta 0.

    Args:
        counts: sums of `tally`.
        largest: as of `tally`.
        failure: probability that the bound, over all times, is ever too high.

    >>> epsilon_of_tally(tally(np.array([1.0, -1.0]), 1.0), 1.0, 1e-3)
    0.0
    """
    shares = np.concatenate([np.linspace(0, 1, 1000), np.geomspace(1, _FACTORS[-1], 200)[1:]])
    bounds = np.asarray(largest * shares, dtype=np.float64)
    sizes = np.asarray((np.arange(BINS) + 0.5) * (largest / BINS), dtype=np.float64)
    logs = np.stack([_wealth_of_tally(counts, factor * sizes, bounds) for factor in _FACTORS])
    refuted = np.logaddexp.reduce(logs, axis=0) - math.log(len(_FACTORS)) >= -math.log(failure)
    good = len(bounds) if refuted.all() else int(np.argmin(refuted))  # all smaller bounds are refuted, too
    return float(bounds[good - 1]) if good else 0.0


def _wealth_of_tally(counts: Ints, bets: Floats, bounds: Floats) -> Floats:
    """Return the logarithm of the wealth against each bound on epsilon; bets that are not above it are not made.

    Args:
        counts: sums of `tally`.
        bets: log odds of the bet on each size, increasing.
        bounds: bounds on epsilon, increasing.
    """
    correct, wrong = (np.append(np.cumsum(number[::-1])[::-1], 0) for number in counts)
    gains = np.append(np.cumsum((counts[0] * _log_odds(bets) + counts[1] * _log_odds(-bets))[::-1])[::-1], 0)
    first = np.searchsorted(bets, bounds, side="right")
    found: Floats = gains[first] - correct[first] * _log_odds(bounds) - wrong[first] * _log_odds(-bounds)
    return found


def _log_odds(odds: Floats) -> Floats:
    """Return ln(1 / (1 + e^-odds))."""
    found: Floats = -np.logaddexp(0, -odds)
    return found


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
