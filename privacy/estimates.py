"""Estimates from noisy sums: published numbers, each with its standard deviation and 95 % confidence interval.

Post-processing only: in a release this module sees no exact data. Sums are in grid steps, one array for each component
of the measure. Counts and sums are unbiased and their intervals contain the truth (the bounded sums) with at least the
stated probability; privacy.consistency can make histograms of them consistent, at the price of a bias. A mean, second
moment or variance is a ratio of noisy sums: it is clamped to the measure's public range, its standard deviation is that
of the linearised ratio, and its interval is the range of the ratio over a box that contains all component sums with
that probability jointly (Bonferroni), so that it keeps its coverage if the noisy count is small. If the noisy count is
zero or less, nothing is known, and the middle of the range is published.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.measure import Measure

CONFIDENCE = 0.95

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Published numbers, four float64 arrays of one shape, in the measure's units."""

    value: Floats
    stddev: Floats
    ci_low: Floats
    ci_high: Floats


def confidence_of(components: int) -> float:
    """Return the confidence that each component's half width needs, so that all hold jointly with `CONFIDENCE`.

    >>> round(confidence_of(2), 6)
    0.975
    """
    return 1 - (1 - CONFIDENCE) / components


def estimate(
    measure: Measure,
    sums: Sequence[Integers | Floats],
    deviations: Sequence[Floats],
    widths: Sequence[Floats],
) -> Estimates:
    """Return published numbers from noisy sums.

    Args:
        measure: the measure that is estimated.
        sums: noisy component sums in grid steps, each [numbers, cells].
        deviations: standard deviations of their noise, in steps, each [numbers] or [numbers, cells].
        widths: half widths h in steps, in the same shapes: the noise is within h with probability at least
            `confidence_of` the number of components (privacy.noise.weighted.spreads returns both).
    """
    grids = [component.grid for component in measure.components]
    values = [np.asarray(numbers, dtype=np.float64) * grid for numbers, grid in zip(sums, grids, strict=True)]
    spreads = [_by_cell(deviation) * grid for deviation, grid in zip(deviations, grids, strict=True)]
    reaches = [_by_cell(width) * grid for width, grid in zip(widths, grids, strict=True)]
    if len(values) == 1:
        return Estimates(
            value=values[0],
            stddev=np.broadcast_to(spreads[0], values[0].shape),
            ci_low=values[0] - reaches[0],
            ci_high=values[0] + reaches[0],
        )
    return _ratio(measure, sums, values, spreads, reaches)


def _by_cell(sizes: Floats) -> Floats:
    """Return [numbers, cells], or one column for all cells."""
    return sizes[:, None] if sizes.ndim == 1 else sizes


def _ratio(
    measure: Measure,
    sums: Sequence[Integers | Floats],
    values: list[Floats],
    deviations: list[Floats],
    widths: list[Floats],
) -> Estimates:
    low, high = measure.bounds
    count = np.where(values[0] > 0, values[0], np.nan)
    raw = measure.estimate([s.astype(np.float64) for s in sums])
    means = [v / count for v in values[1:]]
    # The gradient of the ratio in its component sums, the count first.
    if measure.kind == "variance":
        slopes = [(2 * means[0] ** 2 - means[1]) / count, -2 * means[0] / count, 1 / count]
    else:
        slopes = [-means[0] / count, 1 / count]
    spread = np.sqrt(sum((slope * d) ** 2 for slope, d in zip(slopes, deviations, strict=True)))

    box = [_quotient_range(v, w, values[0], widths[0]) for v, w in zip(values[1:], widths[1:], strict=True)]
    shifts = measure.shifts
    if measure.kind == "variance":
        least = np.where((box[0][0] <= 0) & (box[0][1] >= 0), 0.0, np.minimum(box[0][0] ** 2, box[0][1] ** 2))
        most = np.maximum(box[0][0] ** 2, box[0][1] ** 2)
        ends = box[1][0] + shifts[1] - most, box[1][1] + shifts[1] - least
    else:
        ends = box[0][0] + shifts[0], box[0][1] + shifts[0]
    unknown = np.isnan(raw)
    certain = values[0] - widths[0] > 0
    return Estimates(
        value=np.where(unknown, (low + high) / 2, np.clip(raw, low, high)),
        stddev=np.where(unknown, (high - low) / 2, np.minimum(spread, (high - low) / 2)),
        ci_low=np.where(certain, np.clip(ends[0], low, high), low),
        ci_high=np.where(certain, np.clip(ends[1], low, high), high),
    )


def _quotient_range(top: Floats, top_width: Floats, bottom: Floats, bottom_width: Floats) -> tuple[Floats, Floats]:
    """Return the least and largest quotient over the box, if the bottom stays positive (otherwise meaningless)."""
    positive = bottom > bottom_width
    bottoms = np.where(positive, bottom - bottom_width, 1.0), np.where(positive, bottom + bottom_width, 1.0)
    corners = [t / b for t in (top - top_width, top + top_width) for b in bottoms]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)
