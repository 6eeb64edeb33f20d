"""The best guess at each number of a series from the published ones up to it, if the true number walks at random.

Post-processing: a function of published numbers, of the public covariance of their noise and of nothing else. It costs
no privacy, and a smoothed number never changes, since no later one is used.

*The model.* From number to number the truth moves by independent steps of one variance q, beginning anywhere. For a
given q, published y_0, ..., y_t and noise n with covariance K, all that can be known of the noise is in the contrasts
d_s = y_s - y_0 = (x_s - x_0) + (n_s - n_0): the estimate is y_t - E[n_t | d_1, ..., d_t]. Where K is diagonal this is
the Kalman filter with a diffuse beginning; elsewhere it knows what numbers have in common. With S = L L^T the
covariance of d, the innovations are L^-1 d, and what the numbers up to t say of n_t is a sum over the innovations up to
t.

*The steps' size* is not known. A grid of `SPEEDS` is tried side by side, and the estimates are averaged with the
likelihood of what was published so far as weights. Where each number has noise of its own, a little weight, `RESTART`,
is dealt out anew at each number, so that a calm series that jumps is followed. Not where numbers share noise: a size
that is too small takes part of a jump for shared noise, which agrees with all that follows, so weight must not come
back to it. Sources: Magill, "Optimal adaptive estimation of sampled stochastic processes", IEEE Transactions on
Automatic Control 10 (1965), for the average; Herbster and Warmuth, "Tracking the best expert", Machine Learning 32
(1998), for what is dealt out.

*If the model is wrong*, and nobody can tell from noisy numbers alone, the estimate is biased. So

- it is kept inside the published interval of its number, which holds the truth as often as it says whatever the data
  do. Whenever it does, the estimate is off by no more than that interval's width. Source: Efron and Morris, "Limiting
  the risk of Bayes and empirical Bayes estimators", Journal of the American Statistical Association 66 (1971).
- the interval of the model is named so and stands beside the published one, not in its place. No interval that holds
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
"""Variances of a step, in those of the noise of one number: from all but at rest to next to no smoothing."""

RESTART = 1 / 200
"""Share of the weights that is dealt out anew at each number, where each has noise of its own."""

LEAST = 1e-300
"""The same where numbers share noise: so little that it only keeps weights from rounding to nothing."""

BLOCK = 256
"""Cells that are smoothed in one go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothed:
    """Smoothed numbers, arrays of one shape.

    Attributes:
        value: the estimate, within the published interval.
        low, high: the interval of the model; only data that move as it says are in it as often as `CONFIDENCE`.
    """

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filter:
    """What one size of steps makes of the contrasts of a segment.

    Attributes:
        whiten: [contrasts, contrasts], L^-1.
        scale: [contrasts], the innovations' standard deviations, as steps of L.
        gain: [numbers, contrasts], what the contrasts up to each number say of its noise.
        variance: [numbers], of what they leave open.
    """

    whiten: Floats
    scale: Floats
    gain: Floats
    variance: Floats


def smooth(
    published: Floats, low: Floats, high: Floats, *, parts: Sequence[Segment], covariances: Sequence[Floats]
) -> Smoothed:
    """Smooth all cells of a series.

    Args:
        published: [numbers, cells].
        low, high: their published intervals, likewise.
        parts: see privacy.smoothing.segments.
        covariances: of the numbers' noise, of each part, in the square of the numbers' unit.

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
    return Smoothed(value=value, low=np.minimum(mean - reach, value), high=np.maximum(mean + reach, value))


def _filters(covariance: Floats) -> Iterator[_Filter]:
    """One for each of `SPEEDS`; none where all noise is the same, so that contrasts are exact."""
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
    """Mean and standard deviation of each number's noise, by the model, [known numbers, cells].

    All arithmetic is that of the whole segment, so that it is the same, to the last bit, whatever is published of it.
    """
    if not filters:
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
