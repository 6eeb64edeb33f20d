"""Probabilities of answers and of private choices, from the stated distributions of their noise.

An answer of a rule with a noisy threshold is 'above' if nu >= least + rho: `least` is the least noise of the distance
with which the program answers so if the noise of the threshold is 0. The answers that share one rho are added up over
its values, exactly up to the tails beyond `REACH` scales.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privacy.adaptive.scales import Scales
from privacy.noise.choices import PrivateChoice
from privacy.series import Ints
from privacy.strategies.base import Floats

CERTAIN = 2**50
"""Noise that decides any comparison."""

MOVED = 1000
"""Noise of a threshold that must move a decision by as much."""

REACH = 60

_NO_SHIFT = np.zeros(1, dtype=np.int64)

NEGLIGIBLE = 30
"""Logarithm of the share of a sum that its last terms may have at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one window adds to the probability of a transcript.

    Attributes:
        fresh: Whether the noise of a threshold is sampled.
        least: Least noise with which the answer is 'above'; None: the window has no question.
        above: The answer.
        numbers: Logarithm of the probability of the published numbers, given the answer.
        last: Whether the noise of the threshold is not used after this window.
    """

    fresh: bool
    least: int | None
    above: bool
    numbers: float
    last: bool


def log_chance_of(answers: Iterable[Answer], scales: Scales) -> float:
    """Return the logarithm of the probability of all answers and numbers, by window.

    Args:
        answers: One for each window.
        scales: Scales of the noise.

    Returns:
        Not a number if it is too small for the sum over a threshold's noise.
    """
    total, held, shift = 0.0, None, _NO_SHIFT
    for answer in answers:
        total += answer.numbers
        if answer.fresh:
            shift = _support(scales)
            held = log_mass(shift, scales.threshold or 1)
        if answer.least is not None:
            least = answer.least + (_NO_SHIFT if held is None else shift)
            chance = log_at_least(least if answer.above else 1 - least, scales.test or 1)
            held = chance if held is None else held + chance
            if scales.threshold is None:
                total, held = total + float(held[0]), None
        if held is not None and answer.last:
            total, held = total + _log_sum(held), None
    return total if held is None else total + _log_sum(held)


def work(scales: Scales) -> int:
    """Return the number of values of a threshold's noise over which `log_chance_of` adds up."""
    return 2 * REACH * math.ceil(max(scales.threshold or 0, scales.test or 0, 1)) + 1


def _support(scales: Scales) -> Ints:
    reach = work(scales) // 2
    return np.arange(-reach, reach + 1)


def log_mass(n: Ints, scale: float) -> Floats:
    """Return ln Pr[N = n] of discrete Laplace noise."""
    found: Floats = math.log(math.tanh(1 / (2 * scale))) - np.abs(n) / scale
    return found


def log_at_least(k: Ints, scale: float) -> Floats:
    """Return ln Pr[N >= k] of discrete Laplace noise."""
    lost = -math.log1p(math.exp(-1 / scale))
    found: Floats = np.where(k >= 1, lost - k / scale, np.log1p(-np.exp(lost - (1 - np.minimum(k, 1)) / scale)))
    return found


def log_pick(choice: PrivateChoice, place: int) -> float:
    """Return the logarithm of the probability that a place is chosen by permute and flip.

    Let each place get a uniform time, and accept at its time with probability q_j = exp((score - largest) / scale). The
    first place that accepts is chosen: Pr[i] = q_i times the integral over u of the product over j != i of 1 - u q_j. A
    Gauss rule integrates this polynomial exactly, and all of its terms are positive.

    >>> two = PrivateChoice(np.array([0, -3]), 3.0)
    >>> [round(math.exp(log_pick(two, place)), 6) for place in (0, 1)], round(1 - math.exp(-1) / 2, 6)
    ([0.81606, 0.18394], 0.81606)
    """
    logs = (choice.scores - choice.scores.max()) / choice.scale
    times, weights = _gauss(len(logs) // 2 + 1)
    others = np.log1p(-np.outer((1 + times) / 2, np.exp(np.delete(logs, place)))).sum(axis=1)
    return float(logs[place] + np.log((weights / 2 * np.exp(others)).sum()))


@lru_cache(maxsize=256)
def _gauss(points: int) -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(points)


def _log_sum(logs: Floats) -> float:
    """Return the logarithm of a sum over a threshold's noise; not a number if terms beyond `REACH` would matter.

    The terms are log-concave in the noise, so those beyond an end are negligible if the last one is.
    """
    top = float(logs.max())
    if max(float(logs[0]), float(logs[-1])) > top - NEGLIGIBLE:
        return math.nan
    return top + math.log(float(np.exp(logs - top).sum()))
