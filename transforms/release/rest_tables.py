"""The rest of a query whose keys are found: a total over all keys, minus the found ones. Post-processing.

    query, kind (`level_other`), window_start, window_end, <keys>, value, stddev, ci_low, ci_high

A release has this rest if another query counts or sums the same without the found key. A mean or variance has none: a
found key publishes the ratio alone, and neither its noisy count nor its noisy sum, which the rest would need. There is
one row for each window and each combination of the values of listed keys; the found key has the text `other`. So it
counts the entries whose key is not found so far, or that have none. It is made from published numbers alone, and costs
no privacy.

The noise of the total and of each found key is independent, so `stddev` is exact. That keys are found by their noise is
left out of it, as for the numbers of keys (docs/how-to/find-keys.md).
"""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from privacy.estimates import CONFIDENCE, confidence_of
from privacy.noise.weighted import half_width
from privacy.planning.linear_part import LinearPart
from privacy.planning.plan import Plan
from privacy.series import Ints, Series
from privacy.strategies.base import Floats
from transforms.aggregation.listed_key import OTHER
from transforms.aggregation.queries import Query
from transforms.common.errors import InputError
from transforms.common.windows import Windows
from transforms.release.estimated_numbers import new_spreads
from transforms.release.published_columns import constant

LEVEL = Series(kind="level")

REST = f"{LEVEL.kind}_{OTHER}"
"""Kind of the rows."""


def total_of(query: Query, queries: Sequence[Query]) -> Query | None:
    """Return the query that counts the same as a query whose keys are found, over all keys; None: no query."""

    def counts(one: Query) -> object:
        return one.measure, one.column, one.invalid, one.where, one.known

    return next(
        (
            one
            for one in queries
            if query.discovers
            and counts(one) == counts(query)
            and not (one.discovers or one.consistent or one.adaptive is not None)
            and LEVEL in one.publish
            and len(one.measure.components) == 1
        ),
        None,
    )


def no_rest(query: Query) -> str:
    """Return why a query whose keys are found has no rest, as a sentence."""
    if len(query.measure.components) > 1:
        name = query.measure.kind.replace("_", " ")
        return f"The {name} of all keys that are not found is unknown: counts of found keys are not public."
    return f"The release has no total of {query.name}, so the rest without found keys is unknown."


def rest_rows(found: pa.Table, total: pa.Table, queries: tuple[Query, Query], plan: Plan, windows: Windows) -> pa.Table:
    """Return the rows of the rest, in the order of windows and of the values of listed keys.

    Args:
        found: Rows of the levels of found keys, as `transforms.release.discovered_tables.found_rows` returns them.
        total: Rows of the levels of the total, in order.
        queries: The query whose keys are found, and its total.
        plan: Plan of the release.
        windows: Windows of the release.

    Raises:
        InputError: The numbers of the two queries are not of the same windows.
    """
    query, whole = queries
    each, rows = query.each, total.num_rows
    end, known = windows.numbers(found["window_end"].cast(pa.int64()).to_numpy())
    place = (end - 1) * each + np.arange(found.num_rows) % each
    if not known.all() or place.max(initial=-1) >= rows:
        raise InputError(f"query {query.name}: has a window that query {whole.name} does not have")
    value = total["value"].to_numpy() - np.bincount(place, found["value"].to_numpy(), minlength=rows)
    variance = np.bincount(place, found["stddev"].to_numpy() ** 2, minlength=rows)
    deviation = np.sqrt(total["stddev"].to_numpy() ** 2 + variance)
    keys = np.bincount(place, minlength=rows).reshape(-1, each)[:, 0]
    parts = [plan.publishing([one.name for one in plan.demands].index(one.name), LEVEL) for one in queries]
    grid = plan.demands[parts[0].query].measure.components[0].grid
    half = _half_widths((parts[0], parts[1]), keys, deviation.reshape(-1, each) / grid).ravel() * grid
    columns = {
        "query": constant(query.name, rows),
        "kind": constant(REST, rows),
        query.found_by or "": constant(OTHER, rows),
        **{name: pa.array(of) for name, of in (("value", value), ("stddev", deviation))},
        **{name: pa.array(of) for name, of in (("ci_low", value - half), ("ci_high", value + half))},
    }
    for name, column in columns.items():
        total = total.set_column(total.column_names.index(name), name, column)
    return total


def _half_widths(parts: tuple[LinearPart, LinearPart], keys: Ints, deviations: Floats) -> Floats:
    """Return half widths of 95 % intervals in grid steps, float64 [windows, cells].

    Gaussian noise: the larger half width of the two kinds of noise in units of their deviations, times the deviation
    of the sum, since both bounds in `privacy.noise.weighted` hold for sums. Laplace noise: the sum of two half widths
    that hold jointly (Bonferroni).

    Args:
        parts: Part of the query whose keys are found, and of its total.
        keys: Number of found keys at the end of each window.
        deviations: Standard deviations in grid steps, [windows, cells].
    """
    of_keys, of_total = parts
    noises = (of_keys.noise[0], of_total.noise[0])
    if all(noise.stable for noise in noises):
        once = (half_width(noise, np.ones(1), CONFIDENCE) / math.sqrt(noise.variance) for noise in noises)
        return max(once) * deviations
    confidence, windows, over = confidence_of(2), len(keys), of_total.over
    gathered = over is not None and not over.trivial
    whole = new_spreads(noises[1], of_total.strategy, LEVEL, windows, 0, confidence, gathered=gathered)[1]
    cells = np.sqrt(over.variances()) if over is not None and gathered else np.ones(deviations.shape[1])
    samples = np.rint(of_keys.strategy.variances(LEVEL, windows)).astype(np.int64) * keys
    each = {count: noises[0].half_width(count, confidence) if count else 0.0 for count in np.unique(samples).tolist()}
    added: Floats = np.outer(whole, cells) + np.array([each[count] for count in samples.tolist()])[:, None]
    return added
