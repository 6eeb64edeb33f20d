"""Samples of the exact samplers, compared with their distributions and with OpenDP's samples.

Numbers are counted in cells of the distribution. With n numbers, cells of probability p_j and counts c_j:

    chi-square           sum of (c_j - n p_j)^2 / (n p_j)
    Anderson-Darling     sum of p_j (C_j - n H_j)^2 / (n H_j (1 - H_j)), C and H cumulative (Choulakian, Lockhart,
                         Stephens, "Cramer-von Mises statistics for discrete distributions", 1994)

Both are quadratic forms of the counts, which are asymptotically normal. With the normal limit, for each a below
1 / (2 max w), Pr[sum of w_i Z_i^2 > t] <= exp(-a t) product of (1 - 2 a w_i)^(-1/2). This bound is set to 1e-9 for each
statistic, and each cell expects at least 100 numbers: a test fails by chance with probability below 1e-6 even if the
limit's tail were a hundred times too small.

`make search` looks at 10^8 numbers of each distribution, `make test` at 10^5.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from privacy.noise.exact.sampler import make_sampler
from tests.privacy.noise.oracle import LAWS
from tests.searches import TIMES

# `make search` selects by this mark.
pytestmark = pytest.mark.hypothesis

N = 100_000 if TIMES == 1 else 100_000_000
BLOCK = 1_000_000
FALSE_ALARM = 1e-9
CELLS = 64
SCALES = (0.3, 1.0, 2.5, 7.3, 16.0, 30.0, 31.9, 32.0, 100.5, 1e3, 1e6, 2.0**40)
CASES = [(kind, scale) for kind in LAWS for scale in SCALES]


def distribution(kind, scale, y):
    """Return Pr[N <= y]."""
    y = np.asarray(y, dtype=float)
    if kind == "laplace":
        tail = np.exp(-np.where(y >= 0, y + 1, -y) / scale) / (1 + math.exp(-1 / scale))
        return np.where(y >= 0, 1 - tail, tail)
    if scale > 10_000:
        return ndtr((y + 0.5) / scale)  # within 1 / (42 scale^2)
    reach = math.ceil(40 * scale)
    weights = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2)
    return (np.cumsum(weights) / weights.sum())[np.clip(y, -reach, reach).astype(int) + reach]


def cells_of(kind, scale, n):
    """Return last integers of cells that expect at least 100 of n numbers each, and the cells' probabilities."""
    spread = scale * math.log(n) if kind == "laplace" else scale * math.sqrt(2 * math.log(n))
    shares = np.linspace(-1, 1, 4 * CELLS)
    ends = np.unique(np.rint(shares * abs(shares) * max(spread, 3)).astype(np.int64))
    kept, before = [], 0.0
    for end, below in zip(ends.tolist(), distribution(kind, scale, ends).tolist(), strict=True):
        if min(below - before, 1 - below) * n >= 100:
            kept.append(end)
            before = below
    cumulative = np.append(distribution(kind, scale, np.array(kept)), 1.0)
    return np.array(kept), np.diff(cumulative, prepend=0.0)


def allowed(weights, failure):
    """Return some t with Pr[sum of w_i Z_i^2 > t] <= failure for independent standard normal Z_i."""
    weights = np.asarray(weights)
    rates = np.linspace(0.05, 0.99, 200) / (2 * weights.max())
    logs = -0.5 * np.log1p(-2 * np.outer(rates, weights)).sum(axis=1)
    return float(((logs - math.log(failure)) / rates).min())


def statistics(counts, p):
    """Return both statistics, each divided by its limit."""
    n, size = counts.sum(), len(p)
    chi_square = ((counts - n * p) ** 2 / (n * p)).sum() / allowed(np.ones(size - 1), FALSE_ALARM)
    h = np.cumsum(p)[:-1]
    factors = p[:-1] / (h * (1 - h))
    covariance = np.minimum.outer(h, h) - np.outer(h, h)
    root = np.sqrt(factors)
    weights = np.linalg.eigvalsh(root[:, None] * covariance * root)
    off = np.cumsum(counts)[:-1] - n * h
    return chi_square, (factors * off**2).sum() / n / allowed(np.maximum(weights, 0), FALSE_ALARM)


def counted(kind, scale, n, ends):
    sampler = make_sampler(LAWS[kind], scale)
    counts = np.zeros(len(ends) + 1, dtype=np.int64)
    for start in range(0, n, BLOCK):
        drawn = sampler.sample(min(BLOCK, n - start))
        counts += np.bincount(np.searchsorted(ends, drawn), minlength=len(counts))
    return counts


@pytest.mark.parametrize(("kind", "scale"), CASES)
def test_samples_have_their_distribution(kind, scale):
    ends, p = cells_of(kind, scale, N)

    chi_square, anderson_darling = statistics(counted(kind, scale, N, ends), p)

    assert chi_square <= 1
    assert anderson_darling <= 1


@pytest.mark.parametrize(("kind", "scale"), CASES)
def test_samples_of_half_the_scale_would_be_found(kind, scale):
    """Noise of this scale, where noise of twice the scale is expected."""
    ends, p = cells_of(kind, 2 * scale, 100_000)

    chi_square, anderson_darling = statistics(counted(kind, scale, 100_000, ends), p)

    assert min(chi_square, anderson_darling) > 10


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [1e3, 1e6, 2.0**40, 2.0**55])
@pytest.mark.parametrize("modulus", [2, 17, 64])
def test_low_digits_of_wide_noise_are_uniform(kind, scale, modulus):
    """Up to exp(-scale / modulus); for Laplace noise of scale 1000 up to 2e-4 / modulus."""
    drawn = make_sampler(LAWS[kind], scale).sample(min(N, BLOCK))

    counts = np.bincount(drawn % modulus, minlength=modulus)

    assert statistics(counts, np.full(modulus, 1 / modulus))[0] <= 1


@pytest.mark.parametrize("kind", LAWS)
def test_the_largest_scale_has_its_spread(kind):
    """Shares within one scale, by Hoeffding's inequality with a false alarm below 1e-9."""
    drawn = np.abs(make_sampler(LAWS[kind], 2.0**55).sample(min(N, BLOCK))) / 2.0**55
    truth = 1 - math.exp(-1) if kind == "laplace" else math.erf(math.sqrt(0.5))

    assert abs((drawn <= 1).mean() - truth) <= math.sqrt(math.log(2e9) / (2 * len(drawn)))


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.7, 2.5, 40.0, 1e6])
def test_samples_are_distributed_like_those_of_opendp(kind, scale):
    """Two samples are compared by the chi-square test of homogeneity: no distribution is computed."""
    theirs = opendp(kind, scale, 20_000)
    ours = make_sampler(LAWS[kind], scale).sample(100_000)
    ends, _ = cells_of(kind, scale, 5_000)

    tables = np.array([np.bincount(np.searchsorted(ends, each), minlength=len(ends) + 1) for each in (theirs, ours)])
    expected = tables.sum(axis=1, keepdims=True) * tables.sum(axis=0) / tables.sum()

    assert expected.min() > 50
    assert ((tables - expected) ** 2 / expected).sum() <= allowed(np.ones(len(ends)), FALSE_ALARM)


def opendp(kind, scale, size):
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if kind == "laplace":
        measurement = make_laplace(domain, l1_distance(T="i64"), scale=scale)
    else:
        measurement = make_gaussian(domain, l2_distance(T="i64"), scale=scale)
    return np.array(measurement(np.zeros(size, dtype=np.int64)))
