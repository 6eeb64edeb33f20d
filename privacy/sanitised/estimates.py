"""Estimates from sanitised records: shares, joint shares and means, unbiased and with intervals.

For an attribute with few values the expected counts of outputs are P^T times those of inputs, P being the table of its
response. So a linear map gives unbiased estimates of the counts of inputs. Here (`Channel`) it acts along one axis of a
table of counts, so joint shares of several attributes are one map after the other, and the table of all combinations of
inputs and outputs is never built. For randomised response the map is a multiple and a shift, for any number of values.

Every estimate is a mean over records of a score, which is unbiased for each record separately, and scores are
independent. No private data are read: only sanitised records and public parameters.

Intervals hold for two readings of the truth: the given records, and the population from which they were drawn
independently. Those of randomised response (`shares`) are never too short, for any number of records: the count of a
value is a sum of independent coins, whose spread is at most that of a binomial number of the same mean (Hoeffding 1956,
theorem 5), for which Clopper and Pearson's interval holds. Those of means have the stated coverage for the given
records, since their noise has a known distribution. For the population, and for other shares, intervals are normal,
with the scores' own variance: accurate for hundreds of records, and nearly so for fewer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from privacy.estimates import CONFIDENCE
from privacy.noise.distributions import NoiseDistribution
from privacy.sanitised.attributes import Category, Subset
from privacy.sanitised.channel import Channel, Counts, Floats
from privacy.sanitised.randomised_response import RandomisedResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimates with their standard deviations and intervals; float64 arrays of one shape."""

    value: Floats
    stddev: Floats
    low: Floats
    high: Floats


def joint_shares(counts: Counts, channels: Sequence[Channel]) -> Estimate:
    """Return the shares of all combinations of several attributes' values among the records.

    Args:
        counts: number of records with each combination of outputs; an axis for each attribute.
        channels: map of each axis.
    """
    records = float(counts.sum())
    if records < 1:
        raise ValueError("no records, so no estimate")
    value, squares = np.asarray(counts, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    for axis, channel in enumerate(channels):
        value, squares = channel.unbiased(value, axis=axis), channel.squares(squares, axis=axis)
    value, squares = value / records, squares / records
    own, least, reach = (
        reduce(np.multiply.outer, parts)
        for parts in zip(
            *((c.scores[:, 0], c.scores[:, :2].min(axis=1), c.scores[:, 2]) for c in channels), strict=True
        )
    )
    # The variance of a score is at least that of the noise, even if the records had equal outputs.
    variance = np.maximum((squares - value**2) * records / max(records - 1, 1), np.clip(own - 1, 0, least))
    found = _normal(value, np.sqrt(variance / records))
    # Each end is moved by one record's score: scores of few records are far from normal.
    return replace(found, low=found.low - reach / records, high=found.high + reach / records)


def shares(counts: Counts, attribute: Category) -> Estimate:
    """Return the share of each value of a category among the records.

    Args:
        counts: number of records with each output, [values].
        attribute: the category.
    """
    channel = attribute.response.channel()
    return joint_shares(counts, [channel]) if channel.coin is None else _of_coins(counts, counts.sum(), *channel.coin)


def element_shares(counts: Counts, records: int, attribute: Subset) -> Estimate:
    """Return, for each element of sets, the share of records whose bounded set contains it.

    Args:
        counts: number of sanitised sets that contain each element, [elements].
        records: number of records.
        attribute: the sets.
    """
    coin = RandomisedResponse(values=2, other=attribute.response.turned)
    return _of_coins(counts, records, *coin.chances)


def means(values: Floats, noise: NoiseDistribution, step: float) -> Estimate:
    """Return means of sanitised numbers, or of each point of curves.

    Args:
        values: float64 [records] or [records, points].
        noise: noise of each number, in grid steps; the sum over all records has known quantiles.
        step: length of a grid step.
    """
    records = len(values)
    if records < 1:
        raise ValueError("no records, so no estimate")
    value, known = np.asarray(values.mean(axis=0)), noise.variance * step**2
    spread = np.maximum(values.var(axis=0, ddof=1), known) if records > 1 else np.full(value.shape, known)
    found = _normal(value, np.asarray(np.sqrt(spread / records)))
    half = noise.half_width(records, CONFIDENCE) * step / records
    return replace(found, low=np.minimum(found.low, value - half), high=np.maximum(found.high, value + half))


def _of_coins(counts: Counts, count: float, keep: float, other: float) -> Estimate:
    """Return shares of values that a record outputs with probability `keep` if it has them, and `other` if not."""
    from scipy.special import betaincinv  # slow to import

    if count < 1:
        raise ValueError("no records, so no estimate")
    records = float(count)
    found = np.asarray(counts, dtype=np.float64)
    # Each end is moved by one count, so that the mean itself is always covered by Hoeffding's theorem.
    fewer, more = np.maximum(found - 1, 0), np.minimum(found + 1, records)
    tail = (1 - CONFIDENCE) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(fewer > 0, betaincinv(np.maximum(fewer, 1), records - fewer + 1, tail), 0.0)
        high = np.where(more < records, betaincinv(more + 1, np.maximum(records - more, 1), 1 - tail), 1.0)
    share = found / records
    likely = np.clip(share, other, keep)  # outputs cannot be rarer, or more common
    deviation = np.sqrt(likely * (1 - likely) / records)
    return Estimate(
        value=(share - other) / (keep - other),
        stddev=deviation / (keep - other),
        low=(low - other) / (keep - other),
        high=(high - other) / (keep - other),
    )


def _normal(value: Floats, stddev: Floats) -> Estimate:
    from scipy.special import ndtri  # slow to import

    half = float(ndtri((1 + CONFIDENCE) / 2)) * stddev
    return Estimate(value=value, stddev=stddev, low=value - half, high=value + half)
