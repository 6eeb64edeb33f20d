"""Best estimate of each number of a series from the published ones up to it, if the true number is a random walk.

Post-processing: a function of published numbers and of the public covariance of their noise only. It costs no privacy,
and a smoothed number never changes, since it does not use later ones.

*The model.* From number to number the truth moves by independent steps of one variance q, from any starting value. For
a given q, published y_0, ..., y_t and noise n with covariance K, all information on the noise is in the contrasts d_s =
y_s - y_0 = (x_s - x_0) + (n_s - n_0): the estimate is y_t - E[n_t | d_1, ..., d_t]. If K is diagonal, this is the
Kalman filter with a diffuse start; otherwise it also uses the common noise of numbers. With S = L L^T the covariance of
d, the innovations are L^-1 d, and the estimate of n_t from the numbers up to t is a sum over the innovations up to t.

*The size of steps* is not known. The values of a grid, `SPEEDS`, are tried in parallel, and the estimates are averaged
with the likelihood of the published numbers so far as weights. If each number has independent noise, a small weight,
`RESTART`, is redistributed at each number, after its likelihood, so that the estimate follows a calm series that jumps.
It is not redistributed if numbers share noise: a size that is too small takes part of a jump for shared noise, which
agrees with all later numbers, so weight must not return to it. Sources: Magill, "Optimal adaptive estimation of sampled
stochastic processes", IEEE Transactions on Automatic Control 10 (1965), for the average; Herbster and Warmuth,
"Tracking the best expert", Machine Learning 32 (1998), for the redistribution.

*If the model is wrong*, which noisy numbers alone cannot show, the estimate is biased. So

- it is kept inside the published interval of its number, which contains the truth at its stated confidence for any
  data. Whenever it does, the error of the estimate is at most that interval's width. Source: Efron and Morris,
  "Limiting the risk of Bayes and empirical Bayes estimators", Journal of the American Statistical Association 66
  (1971).
- the interval of the model is labelled as such and is published in addition to the other one. No interval that holds
  for any data can be much shorter than the published one: under normal noise none is shorter by more than 15 % on
  average, even for the data that it suits best (Pratt, "Length of confidence intervals", Journal of the American
  Statistical Association 56 (1961)).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privacy.estimates import CONFIDENCE, Floats
from privacy.smoothing.segments import Segment

SPEEDS = 4.0 ** np.arange(-6, 5)
"""Variances of a step, in units of the noise variance of one number: from almost constant to almost no smoothing."""

RESTART = 1 / 200
"""Share of the weights that is redistributed at each number if each number has independent noise."""

LEAST = 1e-300
"""Share that is redistributed if numbers share noise: it only keeps weights from rounding to zero."""

BLOCK = 256
"""Number of cells that are smoothed at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothedNumbers:
    """Smoothed numbers, float64 arrays of one shape.

    Attributes:
        value: the estimate, within the published interval.
        low, high: the interval of the model; it has the coverage `CONFIDENCE` only for data that follow the model.
    """

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filter:
    """Filter of the contrasts of a segment for one size of steps.

    Attributes:
        whiten: float64 [contrasts, contrasts], L^-1.
        scale: float64 [contrasts], standard deviations of the innovations, as steps of L.
        gain: float64 [numbers, contrasts], weights of the contrasts up to each number in the estimate of its noise.
        variance: float64 [numbers], remaining variance of the noise.
    """

    whiten: Floats
    scale: Floats
    gain: Floats
    variance: Floats


def smooth(
    published: Floats, low: Floats, high: Floats, *, parts: Sequence[Segment], covariances: Sequence[Floats]
) -> SmoothedNumbers:
    """Return the smoothed numbers of all cells of a series.

    Args:
        published: float64 [numbers, cells].
        low, high: published intervals, float64 [numbers, cells].
        parts: segments of the series (privacy.smoothing.segments).
        covariances: covariance of the numbers' noise in each segment, in the square of the numbers' unit.

    >>> level, part = np.array([[9.0], [11.0], [10.0]]), Segment(first=0, kept=0, last=3)
    >>> found = smooth(level, level - 2, level + 2, parts=[part], covariances=[np.eye(3)])
    >>> bool(abs(found.value[2] - 10) < 0.2), bool(found.high[2] - found.low[2] < 4)
    (True, True)
    """
    from scipy.special import ndtri  # slow to import

    mean, deviation = np.empty_like(published), np.empty_like(published)
    filters: list[_Filter] = []
    for place, (part, covariance) in enumerate(zip(parts, covariances, strict=True)):
        if place == 0 or not np.array_equal(covariance, covariances[place - 1]):
            filters = list(_filters(covariance))
        restart = RESTART if np.count_nonzero(covariance) == np.count_nonzero(np.diag(covariance)) else LEAST
        known = published[part.first : part.last]
        kept = slice(part.kept - part.first, len(known))
        for begin in range(0, published.shape[1], BLOCK):
            block = slice(begin, begin + BLOCK)
            noise, spread = _noise(known[:, block], filters, len(covariance), restart)
            mean[part.kept : part.last, block] = (known[:, block] - noise)[kept]
            deviation[part.kept : part.last, block] = spread[kept]
    value = np.clip(mean, low, high)
    reach = float(ndtri((1 + CONFIDENCE) / 2)) * deviation
    return SmoothedNumbers(value=value, low=np.minimum(mean - reach, value), high=np.maximum(mean + reach, value))


def _filters(covariance: Floats) -> Iterator[_Filter]:
    """Yield a filter for each of `SPEEDS`; no filter if all noise is equal, so that contrasts are exact."""
    from scipy.linalg import solve_triangular  # slow to import

    numbers = len(covariance)
    moved = np.diag(covariance)[1:] + np.diag(covariance)[:-1] - 2 * np.diag(covariance, 1)
    noise = float(np.median(moved)) / 2 if numbers > 1 else 0.0
    if noise <= 0:
        return
    of_noise = covariance[:, 1:] - covariance[:, :1]
    contrasts = of_noise[1:] - of_noise[0]
    place = np.arange(1, numbers)
    walked = np.minimum.outer(place, place)
    for speed in SPEEDS:
        factor = np.linalg.cholesky(contrasts + speed * noise * walked)
        whiten = solve_triangular(factor, np.eye(numbers - 1), lower=True)
        told = np.tril(of_noise @ whiten.T, -1)
        variance = np.maximum(np.diag(covariance) - (told**2).sum(axis=1), 0.0)
        yield _Filter(whiten=whiten, scale=np.diag(factor), gain=told @ whiten, variance=variance)


def _noise(known: Floats, filters: Sequence[_Filter], numbers: int, restart: float) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each number's noise, by the model, float64 [known numbers, cells].

    The arithmetic is that of the whole segment, so the result is equal, bit by bit, however many numbers are published.
    """
    if not filters or not len(known):
        return np.zeros_like(known), np.zeros_like(known)
    contrasts = np.zeros((numbers - 1, known.shape[1]))
    contrasts[: len(known) - 1] = known[1:] - known[0]
    means = np.empty((len(filters), len(known), known.shape[1]))
    weights = np.empty_like(means)
    fits = np.empty((len(filters), len(known) - 1, known.shape[1]))
    for place, one in enumerate(filters):
        innovations = (one.whiten @ contrasts)[: len(known) - 1]
        means[place] = (one.gain @ contrasts)[: len(known)]
        fits[place] = -(innovations**2) / 2 - np.log(one.scale[: len(known) - 1, None])
    fits -= fits.max(axis=0)
    np.exp(fits, out=fits)
    weights[:, 0] = 1 / len(filters)
    for number in range(1, len(known)):
        now = weights[:, number - 1] * fits[:, number - 1]
        weights[:, number] = (1 - restart) * now / now.sum(axis=0) + restart / len(filters)
    mean = (weights * means).sum(axis=0)
    left = np.array([one.variance[: len(known), None] for one in filters])
    variance = (weights * (left + (means - mean) ** 2)).sum(axis=0)
    return mean, np.sqrt(variance)
