"""Keys that a release would find, by their size, and the errors of their numbers: private, for the data controller."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.epochs.job import Job
from pipelines.evaluate.error_sums import ErrorSums
from pipelines.spec.series import series_document
from transforms.aggregation.discovered_key import KeySums, decode_sums
from transforms.aggregation.node_sums import BOUNDED, EXACT, NodeKey
from transforms.release.discovered_chunk import NewSums, publish
from transforms.release.discovered_tables import found_spreads
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
    part, windows = job.plan.discovered_of(number), job.aggregation.timeline.windows
    assert part is not None
    grid = job.plan.demands[number].measure.components[0].grid
    bounded, exact = _both(sums, number)
    levels = [np.cumsum(of.dense(bounded.keys, windows, part.cells), axis=0) for of in (bounded, exact)]
    errors, listed = [ErrorSums() for _ in part.series], np.zeros(len(bounded.keys))
    spreads = found_spreads(part, windows)
    for run in range(runs):
        _, shown = publish(part, None, NewSums(windows=windows, sums=bounded))
        key = pc.index_in(shown["key"], value_set=bounded.keys).to_numpy()
        listed[np.unique(key)] += 1
        key = key * part.cells + np.arange(len(key)) % part.cells
        end, place = shown["window"].to_numpy(), shown["series"].to_numpy()
        for at, (series, found) in enumerate(zip(part.series, errors, strict=True)):
            own = place == at
            begin = end[own] - series.width
            aim, goal = (
                (level[end[own], key[own]] - (0 if series.kind == "level" else level[begin, key[own]])) * grid
                for level in levels
            )
            value = shown["value"].to_numpy()[own] * grid
            found.add("rmse_observed", value - aim)
            found.add("rmse_total", value - goal)
            if run == 0:
                found.compare(aim[None], goal[None])
                found.add("rmse_predicted", spreads[at][(end[own] - series.width) // series.every] * grid)
    numbers = [
        {**series_document(series, job.plan), **found.summary()}
        for series, found in zip(part.series, errors, strict=True)
    ]
    of_keys = levels[0].reshape(windows + 1, -1, part.cells).sum(axis=2)
    sizes = np.rint(of_keys.max(axis=0, initial=0) * grid).astype(np.int64)
    return {
        "strategy": job.plan.strategies[number],
        "numbers": numbers,
        "found": _by_size(sizes, listed / runs),
    }


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
    few = max(1, TOGETHER // ((windows + 1) * query.each))
    for first in range(0, len(bounded.keys), few):
        keys = bounded.keys[first : first + few]
        aggregation = job.aggregation.with_listed(number, keys.to_pylist())
        in_order = np.argsort(query.places(len(keys)).ravel())
        exact_leaves, bounded_leaves = (
            of.dense(keys, windows, query.each)[None][..., in_order] for of in (exact, bounded)
        )
        series = job.plan.demands[number].series
        yield truth_table(exact_leaves, bounded_leaves, aggregation, number, series, 0)


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
