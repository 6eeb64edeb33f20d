"""Exact integer noise: the only place where randomness enters a release.

Laplace and Gaussian noise come from `privacy.noise.exact`, with randomness from the operating system
(docs/proofs/samplers.md), and permute and flip from OpenDP, with randomness from OpenSSL. Both compute exactly, so a
sample has exactly the distribution that its docstring states. There is no seed: nothing here can be repeated, and
forked workers do not share a stream (tests/statistical/test_worker_noise.py holds that against it).

The caller adds the noise. A sample beyond +-(2^63 - 1) is given as that number. Scales up to 2^55 are allowed, for
which this has probability below 1e-110 (2 exp(-2^63 / scale) <= 2 exp(-256)); larger ones are refused.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least, positive
from privacy.noise.exact.bounds import Law, gaussian, laplace
from privacy.noise.exact.sampler import make_sampler

Integers = NDArray[np.int64]

SAMPLERS = 1
"""Version of the samplers: it changes with the numbers that a sequence of random words gives."""

LARGEST_SCALE = 2.0**55
"""Largest scale, in integer steps, for which saturation at 2^63 is negligible."""


def discrete_laplace(*, scale: float, size: int) -> Integers:
    """Independent samples N with Pr[N = n] = (1 - q) / (1 + q) * q^|n|, q = exp(-1 / scale).

    Args:
        scale: in integer steps, 0 < scale <= 2^55.
        size: number of samples.

    Raises:
        ValueError: a scale or size outside its range.

    >>> discrete_laplace(scale=2.5, size=3).shape
    (3,)
    """
    return _sample(laplace, scale, size)


def discrete_gaussian(*, scale: float, size: int) -> Integers:
    """Independent samples N with Pr[N = n] proportional to exp(-n^2 / (2 scale^2)).

    Args:
        scale: in integer steps, 0 < scale <= 2^55; just above the standard deviation.
        size: number of samples.

    Raises:
        ValueError: a scale or size outside its range.

    >>> discrete_gaussian(scale=0.01, size=3).tolist()
    [0, 0, 0]
    """
    return _sample(gaussian, scale, size)


def permute_and_flip(*, scores: Integers, scale: float) -> int:
    """Return the index of the largest score, after independent exponential noise of mean `scale` is added to each.

    The distribution is that of permute and flip: visit the scores in random order, accept each with probability
    exp((score - largest) / scale), and stop at the first accepted one. OpenDP compares the noisy scores exactly.

    Args:
        scores: at least one, none beyond 2^60.
        scale: above 0.

    >>> permute_and_flip(scores=np.array([-90, 0, -90]), scale=1.0)
    1
    """
    positive("scale", scale)
    at_least("scores", len(scores), 1)
    return int(_noisy_max(scale)(scores))


def _sample(law: Callable[[float], Law], scale: float, size: int) -> Integers:
    positive("scale", scale)
    at_least("size", size, 0)
    if scale > LARGEST_SCALE:
        raise ValueError(f"scale={scale} must be at most 2^55 steps, or noise would overflow; use a coarser grid")
    return make_sampler(law, scale).sample(size)


@lru_cache(maxsize=256)
def _noisy_max(scale: float) -> Callable[[Integers], int]:
    # Slow to import, and few releases need it; its prelude takes six times as long.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")  # constructors of measurements that are proved on paper only
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    sampler: Callable[[Integers], int] = make_noisy_max(*space, max_divergence(), scale=scale)
    return sampler
