"""Levels that are published adaptively where samples are made with sums over cells: on their way they are sketches.

A sketch (privacy.adaptive.sketch) is whole numbers, which take a quarter of the room of the cells that are made of it,
and the windows that repeat it need no other. Cells are made where tables are.

Neighbours, sensitivity, guarantee and source: privacy.adaptive.step and privacy.adaptive.scales.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from privacy.adaptive.sketch import Over, read
from privacy.adaptive.step import step_over
from privacy.noise.choices import Choice
from privacy.noise.distributions import NoiseDistribution
from privacy.planning.adaptive_part import AdaptivePart
from privacy.series import Ints
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.parquet_state import list_of
from transforms.release.adaptive_groups import publish_groups
from transforms.release.adaptive_levels import PublishedLevels, RunningLevel, SampleAt, publish_levels


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSketches:
    """What some windows make public.

    Attributes:
        units: [windows], how many units of the budget its sample took; 0: what was published before is repeated.
        sketches: different ones, in their order.
        of: [windows], which of these each has.
    """

    units: Ints
    sketches: tuple[Ints, ...]
    of: Ints


def publish_sketches(
    part: AdaptivePart, over: Over, held: RunningLevel | None, leaves: Ints, sample: SampleAt
) -> tuple[RunningLevel, PublishedSketches]:
    """Decide about some windows, one after another; as transforms.release.adaptive_levels.publish_levels."""
    level, rows = (leaves[0], leaves[1:]) if held is None else (held.level, leaves)
    carry = None if held is None else held.carry
    reading = None if held is None else held.reading
    sketches: list[Ints] = []
    units, of = np.zeros((2, len(rows)), dtype=np.int64)
    for row, change in enumerate(rows):
        level = level + change
        window = 1 if carry is None else carry.windows + 1
        units[row], reading, carry = step_over(
            part.adaptive, part.scales, over, carry, level, partial(sample, window), reading
        )
        if units[row] or not sketches:
            sketches.append(carry.published)
        of[row] = len(sketches) - 1
    published = PublishedSketches(units=units, sketches=tuple(sketches), of=of)
    return RunningLevel(level=level.copy(), carry=carry, reading=reading), published


def levels_of(over: Over, published: PublishedSketches) -> PublishedLevels:
    """The cells of each window."""
    readings = [read(over, sketch) for sketch in published.sketches]
    each = [readings[place] for place in published.of.tolist()]
    values = np.array([reading.cells for reading in each]).reshape(-1, over.cells)
    if not each or each[0].spread is None:
        return PublishedLevels(units=published.units, values=values)
    return PublishedLevels(
        units=published.units,
        values=values,
        deviations=np.array([reading.deviations for reading in each]),
        spread=np.array([reading.spread for reading in each]),
    )


def released_anew(part: AdaptivePart, leaves: Ints) -> PublishedLevels:
    """What all windows publish with noise of their own, which is shown to nobody: for evaluations."""

    def sample(_: int, distribution: NoiseDistribution | Choice, size: int) -> Ints:
        return distribution.noise(size)

    if part.grouped:
        return publish_groups(part, None, leaves, sample)[1]
    if part.over is None:
        return publish_levels(part, None, leaves, sample)[1]
    return levels_of(part.over, publish_sketches(part, part.over, None, leaves, sample)[1])


def sketches_to_bytes(published: PublishedSketches) -> bytes:
    """One row, a list for each array."""
    arrays = {
        "units": published.units,
        "of": published.of,
        "sizes": np.array([len(sketch) for sketch in published.sketches], dtype=np.int64),
        "sketches": np.concatenate([np.zeros(0, dtype=np.int64), *published.sketches]),
    }
    return to_bytes(pa.table({name: list_of(rows) for name, rows in arrays.items()}))


def sketches_from_bytes(payload: bytes) -> PublishedSketches:
    """What `sketches_to_bytes` was given.

    >>> given = PublishedSketches(
    ...     units=np.array([1, 0, 1]), sketches=(np.array([5, 6]), np.array([7])), of=np.array([0, 0, 1]))
    >>> [sketch.tolist() for sketch in sketches_from_bytes(sketches_to_bytes(given)).sketches]
    [[5, 6], [7]]
    """
    table = from_bytes(payload)
    names = ("units", "of", "sizes", "sketches")
    units, of, sizes, numbers = (table[name].combine_chunks().values.to_numpy(zero_copy_only=False) for name in names)
    sketches = np.split(numbers, np.cumsum(sizes)[:-1]) if len(sizes) else []
    return PublishedSketches(units=units, sketches=tuple(sketches), of=of)
