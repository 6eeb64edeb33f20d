"""Levels that are published in every window and smoothed over windows in which they hardly changed.

Neighbours, sensitivity, guarantee and source: privacy.adaptive.grouping.
"""

from functools import partial

import numpy as np
import pyarrow as pa

from privacy.adaptive.grouping import step_grouped
from privacy.planning.adaptive_part import AdaptivePart
from privacy.series import Ints
from privacy.strategies.base import Floats
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.parquet_state import list_of
from transforms.release.adaptive_levels import PublishedLevels, RunningLevel, SampleAt


def publish_groups(
    part: AdaptivePart, held: RunningLevel | None, leaves: Ints, sample: SampleAt
) -> tuple[RunningLevel, PublishedLevels]:
    """Publish some windows, one after another; as transforms.release.adaptive_levels.publish_levels."""
    level, rows = (leaves[0], leaves[1:]) if held is None else (held.level, leaves)
    carry = None if held is None else held.carry
    values, lengths = np.empty(rows.shape), np.empty_like(rows)
    for row, change in enumerate(rows):
        level = level + change
        window = 1 if carry is None else carry.windows + 1
        values[row], lengths[row], carry = step_grouped(
            part.adaptive, part.scales, carry, level, partial(sample, window)
        )
    return RunningLevel(level=level.copy(), carry=carry), _published(part, values, lengths)


def groups_to_bytes(published: PublishedLevels) -> bytes:
    """One row, a list for each array."""
    lengths = np.zeros(0, dtype=np.int64) if published.spread is None else published.spread.ravel()
    return to_bytes(pa.table({"values": list_of(published.values.ravel()), "lengths": list_of(lengths)}))


def groups_from_bytes(payload: bytes, part: AdaptivePart, cells: int) -> PublishedLevels:
    """What `groups_to_bytes` was given."""
    table = from_bytes(payload)
    values, lengths = (
        table[name].combine_chunks().values.to_numpy(zero_copy_only=False).reshape(-1, cells)
        for name in ("values", "lengths")
    )
    return _published(part, values, lengths)


def _published(part: AdaptivePart, values: Floats, lengths: Ints) -> PublishedLevels:
    """With the standard deviation of the noise in each mean; of other smoothers none is known."""
    deviations = 1 / np.sqrt(lengths)
    if part.adaptive.smooth != "mean":
        deviations[lengths > 1] = np.nan
    units = np.ones(len(values), dtype=np.int64)
    return PublishedLevels(units=units, values=values, deviations=deviations, spread=lengths)
