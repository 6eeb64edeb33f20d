"""Noise that occurs twice: streams that are equal, shifted against each other, or that repeat themselves.

A run is some consecutive samples. If no value has a probability above p, two given runs of length r are equal with
probability at most p^r, so any two of n runs with probability at most n^2 p^r. A zero noise is a repeated run, too.
"""

import math
from collections.abc import Sequence

import numpy as np

from privacy.noise.distributions import NoiseDistribution
from privacy.series import Ints


def run_length(distribution: NoiseDistribution, runs: int, failure: float) -> int:
    """Return a length with which any of `runs` runs repeats with at most this probability.

    Args:
        distribution: distribution of each sample.
        runs: number of runs.
        failure: the probability.

    >>> from privacy.noise.distributions import DiscreteLaplace
    >>> run_length(DiscreteLaplace(3.0), 1000, 1e-9)
    20
    """
    likeliest = math.log(likeliest_of(distribution))
    if likeliest == 0:
        return runs + 1
    return max(1, math.ceil((math.log(failure) - 2 * math.log(max(2, runs))) / likeliest))


def likeliest_of(distribution: NoiseDistribution) -> float:
    """Return the probability of 0, the likeliest value, or a bound on it.

    For Gaussian noise the sum of the weights is at least scale sqrt(2 pi), by Poisson summation.

    >>> from privacy.noise.distributions import DiscreteLaplace
    >>> round(likeliest_of(DiscreteLaplace(3.0)), 4)
    0.1651
    """
    scale = distribution.scale
    if distribution.stable:
        return min(1 / (scale * math.sqrt(2 * math.pi)), 1 / (1 + 2 * math.exp(-1 / (2 * scale**2))))
    return math.tanh(1 / (2 * scale))


def repeated(streams: Sequence[Ints], length: int) -> int:
    """Return how many runs of this length repeat earlier ones, in any stream, at any distance.

    >>> repeated([np.array([5, 6, 7]), np.array([6, 7, 8])], 2)
    1
    """
    whole = [np.lib.stride_tricks.sliding_window_view(one, length) for one in streams if len(one) >= length]
    if not whole:
        return 0
    runs = np.ascontiguousarray(np.concatenate(whole))
    return len(runs) - len(np.unique(runs.view(f"V{runs.itemsize * length}")))
