"""Source of all fresh noise of releases, in one step of a pipeline."""

import numpy as np

from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution
from privacy.series import BEFORE_ALL, Ints
from privacy.strategies.base import Nodes


def sample_noise(distribution: NoiseDistribution | PrivateChoice, nodes: Nodes, *, component: int, cells: int) -> Ints:
    """Return fresh independent noise, int64 [nodes, cells].

    Args:
        distribution: Distribution of each number.
        nodes: Nodes for which the noise is sampled.
        component: Component of the measure.
        cells: Columns of the nodes.
    """
    return distribution.noise(len(nodes.end) * cells).reshape(-1, cells)


def sample_level(window: int, distribution: NoiseDistribution | PrivateChoice, size: int) -> Ints:
    """Return fresh independent noise, int64 [size], for the level at the end of a window, or for questions about it.

    Args:
        window: Number of the window, from 1.
        distribution: Distribution of each number.
        size: How many numbers to sample.
    """
    ends = np.array([window])
    level = Nodes(layer=np.zeros_like(ends), begin=np.full_like(ends, BEFORE_ALL), end=ends)
    return sample_noise(distribution, level, component=0, cells=size).ravel()
