"""Measured columns of states in grid steps, clamped to the bounds of their query (privacy.measure)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.queries import Query
from transforms.common.kinds import one_chunk, unmasked, valid


def grid_steps(column: pa.ChunkedArray, query: Query) -> tuple[np.ndarray, np.ndarray]:
    """Return grid steps of each value, and whether it counts: null and NaN as `invalid` states, infinity as a bound."""
    given = one_chunk(column)
    if (steps := _of_few_integers(given, query)) is not None:
        return steps, valid(given)
    # Whole numbers beyond 2^53 are rounded, but they are far beyond the bounds.
    values = given.cast(pa.float64(), safe=False)
    numbers = unmasked(values)
    missing = np.isnan(numbers)
    if values.null_count:
        missing |= ~valid(values)
    if not missing.any():
        return query.measure.project(numbers), ~missing
    if query.invalid == "drop":  # any number works; this takes a fifth of the time of np.where
        return query.measure.project(np.fmax(numbers, query.measure.low)), ~missing
    stand_in = {"min": query.measure.low, "max": query.measure.high}[query.invalid]
    return query.measure.project(np.where(missing, stand_in, numbers)), np.ones(len(numbers), dtype=bool)


def _of_few_integers(values: pa.Array, query: Query) -> np.ndarray | None:
    """Return grid steps of integers, each different integer projected once; undefined at nulls, which do not count.

    None if the values are no integers, are far apart, or if nulls count. This takes a third of the time of floats.
    """
    if not pa.types.is_int64(values.type) or (values.null_count and query.invalid != "drop"):
        return None
    low, high = pc.min_max(values).values()
    if not low.is_valid or high.as_py() - low.as_py() >= min(2**16, len(values)):
        return None
    each = query.measure.project(np.arange(low.as_py(), high.as_py() + 1))
    return each.take(unmasked(values) - low.as_py(), mode="clip")
