"""Covariance of the noise of published numbers: numbers that share noisy nodes have correlated noise.

A published number is A x + W z (privacy.strategies.base), with W public and z independent noise of one variance, so the
covariance of the numbers' noise is W W^T times that variance. The strategy's step computes W from unit vectors in place
of noise, so this works for every strategy whose nodes have noise of one width.
"""

from collections.abc import Sequence

import numpy as np

from privacy.series import Ints, Series
from privacy.smoothing.segments import Segment
from privacy.strategies.base import Floats, Nodes, Strategy

COLUMNS = 512
"""Number of nodes that are processed at a time."""

UNIT = 2**20
"""Value that represents one in place of noise: strategies may compute fractions of it."""


def noise_covariances(strategy: Strategy, series: Series, parts: Sequence[Segment]) -> list[Floats]:
    """Return W W^T of the numbers of each segment, float64 [last - first, last - first].

    Args:
        strategy: the strategy that publishes the series.
        series: the series, in the strategy's windows.
        parts: segments of the series.

    >>> from privacy.strategies.sliding import Sliding
    >>> each_by_itself = Sliding(width=7, every=1, windows=None)
    >>> part = Segment(first=0, kept=0, last=2)
    >>> noise_covariances(each_by_itself, Series(kind="sliding", width=7), [part])[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    found = [np.zeros((part.last - part.first,) * 2) for part in parts]
    windows = (max(part.last for part in parts) - 1) * series.every + series.width
    begin, nodes = 0, 1
    while begin < nodes:
        noise = _Unit(begin)
        nothing = np.zeros((1 + windows, COLUMNS), dtype=np.int64)
        weights = strategy.step(None, nothing, series=[series], sample=noise)[1][0] / UNIT
        for covariance, part in zip(found, parts, strict=True):
            rows = weights[part.first : part.last]
            covariance += rows @ rows.T
        begin, nodes = begin + COLUMNS, noise.asked
    return found


def noise_weights(strategy: Strategy, series: Series, numbers: Sequence[int]) -> Floats:
    """Return the rows of W of some numbers of a series, float64 [numbers, nodes], followed by zero columns.

    Args:
        strategy: the strategy that publishes the series.
        series: the series, in the strategy's windows.
        numbers: indices of the numbers.

    >>> from privacy.strategies.direct.direct import Direct
    >>> noise_weights(Direct(windows=4), Series(kind="change"), [2])[:, :4].tolist()
    [[0.0, 0.0, -1.0, 1.0]]
    """
    windows = max(numbers) * series.every + series.width
    rows: list[Floats] = []
    begin, nodes = 0, 1
    while begin < nodes:
        noise = _Unit(begin)
        nothing = np.zeros((1 + windows, COLUMNS), dtype=np.int64)
        weights = strategy.step(None, nothing, series=[series], sample=noise)[1][0] / UNIT
        rows.append(weights[np.array(numbers)])
        begin, nodes = begin + COLUMNS, noise.asked
    return np.concatenate(rows, axis=1)


class _Unit:
    """Known noise: one for node `begin` in the first column, for the next node in the second, and so on."""

    def __init__(self, begin: int) -> None:
        self.begin, self.asked = begin, 0

    def __call__(self, nodes: Nodes) -> Ints:
        rows = np.zeros((len(nodes.layer), COLUMNS), dtype=np.int64)
        column = np.arange(len(rows)) + self.asked - self.begin
        there = (column >= 0) & (column < COLUMNS)
        rows[there, column[there]] = UNIT
        self.asked += len(rows)
        return rows
