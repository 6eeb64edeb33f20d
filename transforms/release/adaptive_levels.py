"""Levels that are published anew or repeated, as the data decide: from exact sums of windows to what is published.

Neighbours, sensitivity, guarantee and source: privacy.adaptive.step and privacy.adaptive.scales. The exact level and
the carry run on from run to run: all steps together give what one gives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.sketch import Reading
from privacy.adaptive.step import step
from privacy.noise.choices import Choice
from privacy.noise.distributions import NoiseDistribution
from privacy.planning.adaptive_part import AdaptivePart
from privacy.series import Ints
from privacy.strategies.base import Floats
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.parquet_state import list_of

SampleAt = Callable[[int, NoiseDistribution | Choice, int], Ints]
"""So many fresh independent samples of a distribution, for the level at the end of a window, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningLevel:
    """What a step leaves for the next one: private.

    Attributes:
        level: [cells], exact, at the end of the last window.
        carry: None before the first window.
        reading: of the carry's sketch, if it was made already.
    """

    level: Ints
    carry: AdaptiveCarry | None
    reading: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLevels:
    """What some windows make public, in grid steps.

    Attributes:
        units: [windows], how many units of the budget its sample took; 0: what was published before is repeated.
        values: [windows, cells]; whole numbers where each cell has noise of its own, as it has here. Where cells are
            made from sums over them, transforms.release.adaptive_sketches has what these are made of.
        deviations: of the noise of each cell, where that of a node is 1, and `spread`, over how many cells it was
            spread evenly, [windows, cells]: where they depend on what was sampled.
    """

    units: Ints
    values: Ints | Floats
    deviations: Floats | None = None
    spread: Ints | None = None


def publish_levels(
    part: AdaptivePart, held: RunningLevel | None, leaves: Ints, sample: SampleAt
) -> tuple[RunningLevel, PublishedLevels]:
    """Decide about some windows, one after another.

    Args:
        held: what the step before left; None in the first, whose row 0 is the initial level, which is not published by
            itself.
        leaves: [windows, cells], exact sums of all cells of the query, in grid steps.
    """
    level, rows = (leaves[0], leaves[1:]) if held is None else (held.level, leaves)
    carry = None if held is None else held.carry
    units, values = np.zeros(len(rows), dtype=np.int64), np.empty_like(rows)
    for row, change in enumerate(rows):
        level = level + change
        window = 1 if carry is None else carry.windows + 1
        (sampled,), values[row : row + 1], carry = step(
            part.adaptive, part.scales, carry, level[None, :], partial(sample, window)
        )
        units[row] = carry.spent[-1][1] if sampled else 0
    # A view of the leaves would keep all of them in memory.
    return RunningLevel(level=level.copy(), carry=carry), PublishedLevels(units=units, values=values)


def levels_to_bytes(published: PublishedLevels) -> bytes:
    """One row, a list for each array."""
    return to_bytes(pa.table({"units": list_of(published.units), "values": list_of(published.values.ravel())}))


def levels_from_bytes(payload: bytes, cells: int) -> PublishedLevels:
    """What `levels_to_bytes` was given.

    >>> given = PublishedLevels(units=np.array([1, 0]), values=np.array([[5, 6], [5, 6]]))
    >>> levels_from_bytes(levels_to_bytes(given), 2).values.tolist()
    [[5, 6], [5, 6]]
    """
    table = from_bytes(payload)
    units, values = (table[name].combine_chunks().values.to_numpy(zero_copy_only=False) for name in ("units", "values"))
    return PublishedLevels(units=units, values=values.reshape(-1, cells))
