"""Keys that a release would find, by their size, and the errors of their numbers: private, for the data controller."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.epochs.job import Job
from pipelines.evaluate.error_sums import ErrorSums
from pipelines.spec.series import series_document
from privacy.planning.linear_part import LinearPart
from privacy.series import Family, Series, totals
from transforms.aggregation.discovered_key import KeySums, decode_sums, layers_of
from transforms.aggregation.node_sums import BOUNDED, EXACT, NodeKey
from transforms.aggregation.queries import Query
from transforms.release.discovered_chunk import NewSums, publish
from transforms.release.discovered_tables import found_numbers
from transforms.release.published_tables import truth_table

TOGETHER = 2**22
"""Most leaves that are processed at a time."""


def errors_of_found(job: Job, sums: Mapping[NodeKey, Sequence[bytes]], number: int, *, runs: int) -> dict[str, Any]:
    """Return the errors of the numbers of found keys, and the share of keys that are found, by size.

    Args:
        job: The job of the release.
        sums: Encoded bounded and exact sums, by node.
        number: Number of the query.
        runs: Number of times the noise is sampled.

    Returns:
        `strategy` and `numbers` as for other queries, of the numbers that are published. Also `found`, a list of sizes:
        the largest count of a key in any window, `from` and `to`, the number of `keys`, and the `share` that is found
        by the end, on average over the runs.
    """
    query, windows = job.aggregation.queries[number], job.aggregation.timeline.windows
    parts = job.plan.found_parts(number)
    assert parts is not None
    bounded, exact = _both(sums, number)
    series = [(part, one) for part in parts for one in part.series]
    aims, goals = ([_numbers(of, query, windows, *one) for one in series] for of in (bounded, exact))
    errors, listed = [ErrorSums() for _ in series], np.zeros(len(bounded.keys))
    for run in range(runs):
        _, shown = publish(parts, None, NewSums(windows=windows, sums=bounded))
        key = pc.index_in(shown["key"], value_set=bounded.keys).to_numpy()
        listed[np.unique(key)] += 1
        cell = key * query.each + np.arange(len(key)) % query.each
        for place, ((part, one), found) in enumerate(zip(series, errors, strict=True)):
            own = shown["series"].to_numpy() == place
            rows = shown.filter(pa.array(own))
            numbers = found_numbers(rows, part, one, query.measure, since=0, windows=windows)
            at = (rows["window"].to_numpy() - one.width) // one.every, cell[own]
            aim, goal, value = aims[place][at], goals[place][at], numbers.value.ravel()
            found.add("rmse_observed", value - aim)
            found.add("rmse_total", value - goal)
            if run == 0:
                found.compare(aim[None], goal[None])
                found.add("rmse_predicted", np.where(np.isnan(aim), np.nan, numbers.stddev.ravel()))
    told = [
        {**series_document(one, job.plan), **found.summary()} for (_, one), found in zip(series, errors, strict=True)
    ]
    levels = np.cumsum(bounded.dense(bounded.keys, windows, query.each), axis=0)
    of_keys = levels.reshape(windows + 1, -1, query.each).sum(axis=2) * query.measure.components[0].grid
    sizes = np.rint(of_keys.max(axis=0, initial=0)).astype(np.int64)
    return {"strategy": job.plan.strategies[number], "numbers": told, "found": _by_size(sizes, listed / runs)}


def _leaves(of: KeySums, keys: pa.Array, query: Query, windows: int, family: Family) -> np.ndarray:
    """Return the sums of some keys, int64 [components, 1 + windows, keys * cells]."""
    layers = layers_of(query.families, len(query.measure.components), family)
    return np.stack([of.dense(keys, windows, query.each, layer) for layer in layers])


def _numbers(of: KeySums, query: Query, windows: int, part: LinearPart, series: Series) -> np.ndarray:
    """Return the numbers of a series without noise, float64 [numbers, keys * cells]."""
    leaves = _leaves(of, of.keys, query, windows, part.family)
    return query.measure.estimate([totals(series, component).astype(np.float64) for component in leaves])


def _both(sums: Mapping[NodeKey, Sequence[bytes]], number: int) -> tuple[KeySums, KeySums]:
    """Return the bounded and the exact sums of a query, with the same keys."""
    bounded, exact = (decode_sums(sums[variant, number, "net", 0]) for variant in (BOUNDED, EXACT))
    keys = pc.unique(pa.concat_arrays([bounded.keys, exact.keys]))
    return bounded.among(keys), exact.among(keys)


def _by_size(sizes: np.ndarray, shares: np.ndarray) -> list[dict[str, Any]]:
    """Return the share of found keys for sizes from 1, 10, 100, ... on; keys without a counted entry are left out."""
    found = []
    low = 1
    while low <= sizes.max(initial=0):
        some = (low <= sizes) & (sizes < 10 * low)
        if some.any():
            share = float(shares[some].mean())
            found.append({"from": low, "to": 10 * low - 1, "keys": int(some.sum()), "share": share})
        low *= 10
    return found


def truth_of_found(job: Job, sums: Mapping[NodeKey, Sequence[bytes]], number: int) -> Iterator[pa.Table]:
    """Yield the rows of all keys without noise, found or not, as `truth_of` does for listed cells."""
    windows, query = job.aggregation.timeline.windows, job.aggregation.queries[number]
    bounded, exact = _both(sums, number)
    few = max(1, TOGETHER // ((windows + 1) * query.each * len(query.measure.components)))
    for first in range(0, len(bounded.keys), few):
        keys = bounded.keys[first : first + few]
        aggregation = job.aggregation.with_listed(number, keys.to_pylist())
        in_order = np.argsort(query.places(len(keys)).ravel())
        for family in query.families:
            without, within = (_leaves(of, keys, query, windows, family)[..., in_order] for of in (exact, bounded))
            series = [one for one in job.plan.demands[number].series if one.family == family]
            yield truth_table(without, within, aggregation, number, series, 0)


def found_text(queries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of text about found keys; none if all queries list their cells."""
    lines = []
    for query in queries:
        if "found" in query:
            told = [
                f"{one['from']:,} to {one['to']:,}: {one['share']:.1%} of {one['keys']:,}" for one in query["found"]
            ]
            lines.append(
                f"{query['name']}, share of keys that are found, by largest count: {'; '.join(told) or 'none'}"
            )
    return lines
