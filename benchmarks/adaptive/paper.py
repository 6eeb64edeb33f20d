"""True privacy cost of the algorithms of Li et al. 2015 (DSFT, DSAT) as printed; nothing else uses those forms.

Noise is Laplace noise as in the paper, sensitivity 1, decisions at eps_1 = 1. A loss is the logarithm of the ratio of
the probabilities of one sequence of answers under two neighbours, integrated over the noise of the threshold on a fine
grid. The sequences are chosen to be bad, so every number is a lower bound; the cap is the upper bound of composition.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]


class Answers(NamedTuple):
    """Answers at one distance from the threshold.

    Attributes:
        above: whether the answers are "above the threshold".
        times: number of answers.
        distance: from the threshold.
        moved: by how much the neighbour's distance is larger.
    """

    above: bool
    times: float
    distance: float
    moved: float


def _below(gap: Floats, b: float) -> Floats:
    """Return ln Pr[Laplace noise of scale b < gap]."""
    return np.where(gap < 0, np.log(0.5) + gap / b, np.log1p(-0.5 * np.exp(-np.abs(gap) / b)))


def loss(b1: float, b2: float, runs: Sequence[Answers], *, clamp: bool = False) -> float:
    """Return the privacy loss of AboveThreshold for a sequence of answers.

    Args:
        b1: scale of the noise of the threshold, which is sampled once.
        b2: scale of the noise of each distance.
        runs: the answers.
        clamp: whether the noisy threshold is clamped to its value without noise, as at an end of the paper's range.
    """
    reach = 40 * (b1 + b2)
    rho = np.linspace(-reach, reach, 400_001)
    chances = []
    for moved in (False, True):
        total = -np.abs(rho) / b1
        for run in runs:
            gap = (0 * rho if clamp else rho) - run.distance - (run.moved if moved else 0)
            total += run.times * (_below(gap, b2) if not run.above else _below(-gap, b2))
        chances.append(float(logsumexp(total)))
    return chances[0] - chances[1]


def rows() -> list[tuple[str, float, float]]:
    """Return rows of the table: the form's name, its loss per eps_1, and the cap."""
    found = []
    for c in (1, 5):
        pinning = Answers(above=False, times=1e6, distance=0.0, moved=1.0)
        asked = Answers(above=True, times=c, distance=-20 * c, moved=-1.0)
        for name, b1, b2 in (
            (f"algorithm 1, b1 = b2 = 2 C, C = {c}", 2 * c, 2 * c),
            (f"its text, b1 = 2, b2 = 2 C, C = {c}", 2, 2 * c),
            (f"corrected, b1 = 2, b2 = 4 C, C = {c}", 2, 4 * c),
        ):
            found.append((name, loss(b1, b2, [pinning, asked]), 1 / b1 + 2 * c / b2))
    c, n = 5, 500
    # At the upper end of the range, which no distance exceeds.
    far = [Answers(above=False, times=n, distance=-1.0, moved=1.0)]
    found.append(("algorithm 2, clamped threshold, C = 5, N = 500", loss(2 * c, 2 * c, far, clamp=True), n / (2 * c)))
    for told in (1e2, 1e4, 1e6):
        outside = [Answers(above=above, times=told / 2, distance=0.0, moved=0.0) for above in (False, True)]
        inside = Answers(above=False, times=n, distance=40.0 * c, moved=1.0)
        name = f"algorithm 3, C = 5, w = 500, {told:.0f} answers before the span"
        found.append((name, loss(2 * c, 2 * c, [*outside, inside]), n / (2 * c)))
    return found
