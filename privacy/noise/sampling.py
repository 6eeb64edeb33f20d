"""Integer noise from OpenDP's exact samplers: the only place where randomness enters a release.

OpenDP takes its randomness from OpenSSL and computes in exact rational arithmetic, so a sample has
exactly the distribution that its docstring states. There is no seed: nothing here can be repeated, and
forked workers do not share a stream (tests/statistical/test_worker_noise.py holds that against it).

Noise is sampled for a vector of zeros and added by the caller. OpenDP saturates a sample at the ends of
int64. Scales up to 2^55 are allowed, for which a sample saturates with probability below 1e-110
(2 exp(-2^63 / scale) <= 2 exp(-256)); larger ones are refused.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain  # not its prelude, which takes six times as long to import
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import max_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import enable_features

from privacy.checks import at_least, positive

Integers = NDArray[np.int64]

LARGEST_SCALE = 2.0**55
"""Largest scale, in integer steps, for which saturation at 2^63 is negligible."""

CHUNK = 65_536
"""Samples in one call: OpenDP hands back a Python list, so this bounds memory."""

# OpenDP's constructors for measurements proved on paper only are behind this switch.
enable_features("contrib")


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
    return _sample(_laplace, scale, size)


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
    return _sample(_gaussian, scale, size)


def permute_and_flip(*, scores: Integers, scale: float) -> int:
    """The place of one of some scores: that of the largest with independent exponential noise of mean `scale`.

    Places are gone through in a random order, as it were, and each is taken with the chance exp((score - largest) /
    scale), until one is. OpenDP compares the noisy scores exactly.

    Args:
        scores: at least one, none beyond 2^60.
        scale: above 0.

    >>> permute_and_flip(scores=np.array([-90, 0, -90]), scale=1.0)
    1
    """
    positive("scale", scale)
    at_least("scores", len(scores), 1)
    return int(_noisy_max(scale)(scores))


Sampler = Callable[[Integers], list[int]]


def _sample(build: Callable[[float], Sampler], scale: float, size: int) -> Integers:
    positive("scale", scale)
    at_least("size", size, 0)
    if scale > LARGEST_SCALE:
        raise ValueError(f"scale={scale} must be at most 2^55 steps, or noise would overflow; use a coarser grid")
    sampler = build(scale)
    samples = np.empty(size, dtype=np.int64)
    zeros = np.zeros(min(size, CHUNK), dtype=np.int64)
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        samples[start:stop] = sampler(zeros[: stop - start])
    return samples


@lru_cache(maxsize=256)
def _laplace(scale: float) -> Sampler:
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    sampler: Sampler = make_laplace(*space, scale=scale)
    return sampler


@lru_cache(maxsize=256)
def _gaussian(scale: float) -> Sampler:
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="i64")
    sampler: Sampler = make_gaussian(*space, scale=scale)
    return sampler


@lru_cache(maxsize=256)
def _noisy_max(scale: float) -> Callable[[Integers], int]:
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    sampler: Callable[[Integers], int] = make_noisy_max(*space, max_divergence(), scale=scale)
    return sampler
