"""Observed and predicted errors of the numbers of a release. NOT FOR RELEASE: computed from exact values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.epochs.job import Job
from pipelines.evaluate.error_sums import ErrorSums
from pipelines.evaluate.found_keys import errors_of_found, truth_of_found
from pipelines.spec.series import series_document
from privacy.estimates import Estimates
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.linear_part import LinearPart
from privacy.planning.part import Part
from privacy.series import Family, Series, totals
from transforms.aggregation.node_sums import BOUNDED, EXACT, Aggregation, NodeKey, dense, gathered
from transforms.aggregation.queries import Query
from transforms.release.estimated_numbers import estimates_of
from transforms.release.linear_chunk import add_noise
from transforms.release.marginal_tables import (
    Marginal,
    listed_name,
    marginal_estimates,
    marginal_kind,
    marginal_name,
    marginals_of,
    over_listed,
    over_rows,
)
from transforms.release.published_tables import truth_table
from transforms.release.range_tables import over_ranges, range_estimates, range_kind
from transforms.release.sampled_chunk import released_anew

TOGETHER = 2**20
"""Most leaves that are processed at a time; several samples of the noise count like cells."""


def truth_of(job: Job, sums: Mapping[NodeKey, Sequence[bytes]]) -> pa.Table:
    """Return the published rows with `exact` (before contribution bounding) and `bounded` (after it), without noise."""
    tables: list[pa.Table] = []
    for key in sums:
        variant, number, family, chunk = key
        if variant != EXACT:
            continue
        if job.aggregation.queries[number].discovers:
            tables += truth_of_found(job, sums, number)
            continue
        series = [s for s in job.plan.demands[number].series if s.family == family]
        for first_cell, bounded, exact in _sums(job, sums, number, family, chunk):
            tables.append(truth_table(exact, bounded, job.aggregation, number, series, first_cell))
    return pa.concat_tables(tables)


def _sums(
    job: Job, sums: Mapping[NodeKey, Sequence[bytes]], number: int, family: Family, chunk: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the place of the first cell with the bounded and exact sums of some cells, as many as fit in memory."""
    query, timeline = job.aggregation.queries[number], job.aggregation.timeline
    bounded, exact = (gathered(sums[variant, number, family, chunk]) for variant in (BOUNDED, EXACT))
    cells, rows = job.aggregation.cells_of((BOUNDED, number, family, chunk)), range(timeline.windows + 1)
    few = len(cells) if query.together else max(1, TOGETHER // len(rows))
    for first in range(cells.start, cells.stop, few):
        some = range(first, min(first + few, cells.stop))
        yield first, dense(bounded, query, rows=rows, cells=some), dense(exact, query, rows=rows, cells=some)


def errors_of(job: Job, sums: Mapping[NodeKey, Sequence[bytes]], *, runs: int) -> list[dict[str, Any]]:
    """Return the observed and predicted errors of every number that would be published.

    Args:
        job: The job of the release.
        sums: Encoded bounded and exact sums, by node.
        runs: Number of times the noise is sampled.

    Returns:
        For each query `name`, `strategy` and `numbers`. Each number has `kind` (`width`, `every`), `rmse_observed` and
        `rmse_predicted` (of the noise, compared with the bounded truth), `bounding_rmse` (bounded compared with exact
        truth), `rmse_total` (published numbers compared with the exact truth) and `rows`; `truth`, the root mean square
        of the exact numbers, and `relative_error`, the ratio of `rmse_total` to it; `bias`, the mean deviation of
        bounded numbers, and `bias_last`, in the last window. Cells without a true ratio are left out of its errors. The
        error of adaptive publication depends on the data, so `rmse_predicted` is None. If keys are found, the numbers
        are those of found keys, and `found` has the shares of keys that are found, by size. A choice of a policy by the
        other errors uses the data in a way that no accounting covers.
    """
    queries = []
    for number, query in enumerate(job.aggregation.queries):
        if query.discovers:
            queries.append({"name": query.name, **errors_of_found(job, sums, number, runs=runs)})
            continue
        errors: _ByKind = {(series, of): ErrorSums() for of in _kinds(query) for series in query.publish}
        for part in job.plan.of_query(number):
            for chunk in range(job.aggregation.chunks(number)):
                for _, bounded, exact in _sums(job, sums, number, part.family, chunk):
                    _COMPARISONS[type(part)](errors, job, part, bounded, exact, runs)
        numbers = [
            {
                **series_document(series, job.plan),
                **of.named(query, series),
                **found.summary(),
            }
            for (series, of), found in errors.items()
        ]
        strategy = job.plan.strategies[number]
        queries.append({"name": query.name, "strategy": strategy, "numbers": numbers})
    return queries


@dataclass(frozen=True, slots=True)
class _Table:
    """A published table of each series.

    Attributes:
        rows: Its rows; those of the cells have level 0 of each key.
        ranges: Whether it has the ranges over these rows instead.
    """

    rows: Marginal
    ranges: bool = False

    def named(self, query: Query, series: Series) -> dict[str, Any]:
        """Return the members of a document that name sums of cells."""
        name = (listed_name if self.ranges else marginal_name)(query, self.rows)
        kind = range_kind(series) if self.ranges else marginal_kind(series) if name else series.kind
        return {"kind": kind} | ({"marginal": name} if name else {})

    def summed(self, sums: np.ndarray, query: Query) -> np.ndarray:
        """Return the rows, [numbers, rows], of component sums [numbers, cells]."""
        return over_ranges(sums, query, self.rows) if self.ranges else over_rows(sums, query, self.rows.levels)

    def estimated(
        self, series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: LinearPart
    ) -> Estimates:
        """Return the rows with their errors."""
        if self.ranges:
            return range_estimates(series, sums, aggregation, released, self.rows)
        cells = estimates_of(series, sums, aggregation, released)
        if not any(level != 0 for level in self.rows.levels):
            return cells
        return marginal_estimates(series, sums, aggregation, released, self.rows, cells.value)


_ByKind = Mapping[tuple[Series, _Table], ErrorSums]


def _kinds(query: Query) -> list[_Table]:
    cells, *_ = listed = over_listed(query)
    ranges = [_Table(rows, ranges=True) for rows in listed if query.ranges]
    return [_Table(cells), *ranges, *map(_Table, marginals_of(query))]


def _compare(
    errors: _ByKind, job: Job, released: LinearPart, bounded: np.ndarray, exact: np.ndarray, runs: int
) -> None:
    query = job.aggregation.queries[released.query]

    def numbers_of(leaves: np.ndarray, series: Series, of: _Table) -> np.ndarray:
        sums = [of.summed(totals(series, component), query).astype(np.float64) for component in leaves]
        return query.measure.estimate(sums)

    wanted = [(series, of) for series in released.series for of in _kinds(query)]
    aims = {one: numbers_of(bounded, *one) for one in wanted}
    goals = {one: numbers_of(exact, *one) for one in wanted}
    for one in wanted:
        errors[one].compare(aims[one], goals[one])
        sums = [totals(one[0], component) for component in bounded]
        certain = one[1].estimated(one[0], sums, job.aggregation, released)
        errors[one].add("rmse_predicted", np.where(np.isnan(aims[one]), np.nan, certain.stddev))
    together = 1 if query.together else max(1, TOGETHER // bounded[0].size)
    for start in range(0, runs, together):
        count = min(together, runs - start)
        noisy = add_noise(np.tile(bounded, (1, 1, count)), released)
        by_series = dict(zip(released.series, noisy.sums, strict=True))
        for one in wanted:
            estimates = one[1].estimated(one[0], by_series[one[0]], job.aggregation, released)
            values = estimates.value.reshape(-1, count, aims[one].shape[1])
            errors[one].add("rmse_observed", values - aims[one][:, None])
            errors[one].add("rmse_total", values - goals[one][:, None])


def _compare_adaptive(
    errors: _ByKind, job: Job, part: AdaptivePart, bounded: np.ndarray, exact: np.ndarray, runs: int
) -> None:
    """Add the observed errors of adaptive publication; none is predicted, since the error depends on the data."""
    (level,), grid = errors, job.aggregation.queries[part.query].measure.components[0].grid
    found, aim, goal = errors[level], totals(level[0], bounded[0]), totals(level[0], exact[0])
    found.compare(aim * grid, goal * grid)
    # Published levels begin with the first window, so there is no earlier level to add changes to.
    leaves = np.concatenate([np.zeros_like(aim[:1]), np.diff(aim, axis=0, prepend=0)])
    for _ in range(runs):
        values = released_anew(part, leaves)
        found.add("rmse_observed", (values - aim) * grid)
        found.add("rmse_total", (values - goal) * grid)


_COMPARISONS: Mapping[type[Part], Callable[..., None]] = {LinearPart: _compare, AdaptivePart: _compare_adaptive}
