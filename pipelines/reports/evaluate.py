"""`slackwater evaluate`: the mechanism against the truth, for the data controller. NOT FOR RELEASE.

Publishes nothing and spends nothing, since what it says stays private: exact numbers, and errors made from them.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.epochs.batch import run_sums
from pipelines.epochs.due import due
from pipelines.epochs.failures import failures_kept
from pipelines.epochs.input_quality import judge
from pipelines.epochs.job import Job, job_of, timeline_of
from pipelines.epochs.plans import has_begun, plan_for
from pipelines.epochs.results import Result, nothing_due
from pipelines.reports.matching import matching, matching_text, warnings
from pipelines.reports.plan_report import series_document, series_text
from pipelines.spec.load import Spec
from pipelines.spec.paths import within
from pipelines.store.store import Store
from privacy.counted import counted
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.plan import Released
from privacy.series import Family, Series, totals
from transforms.aggregation.node_sums import BOUNDED, EXACT, NodeKey, dense, gathered
from transforms.common.errors import SpecError
from transforms.common.sinks import write_table
from transforms.release.adaptive_sketches import released_anew
from transforms.release.published_tables import estimates_of, truth_table
from transforms.release.range_tables import RANGE, over_ranges, range_estimates, range_kind
from transforms.release.release import add_noise

TOGETHER = 2**20
"""Leaves that are worked on at a time; those of several runs of the noise as if they were cells."""

NOTICE = "NOT FOR RELEASE: exact values and errors made from them; keep this on the private side"


def evaluate(arguments: argparse.Namespace, flags: list[str]) -> Result:
    spec, until = due(arguments, flags)
    if timeline_of(spec, until).windows == 0:
        return nothing_due(spec, "no window has closed yet")
    with failures_kept(spec, "evaluate", done="evaluate publishes nothing"):
        store = Store(spec.output.public, spec.output.private)
        commits = store.commits()
        plan = plan_for(spec, commits)
        timeline = timeline_of(spec, until, commits if has_begun(spec, commits) else ())
        job = job_of(spec, timeline, shards=arguments.shards, exact=True, plan=plan)
        attempt = store.begin(0)
        try:
            sums, diagnosis = run_sums(job, folder=attempt.folder, flags=flags)
            judge(spec, job, diagnosis, attempt.folder)
        finally:
            store.discard(attempt)
        if arguments.truth is not None:
            _write_private(arguments.truth, spec, truth(job, sums))
        queries = errors_of(job, sums, runs=arguments.runs)
        for query, matched in zip(queries, matching(job.aggregation.queries, sums), strict=True):
            query["matched"] = matched
        document = {
            "notice": NOTICE,
            "release": spec.release,
            "windows": timeline.windows,
            "runs": arguments.runs,
            "queries": queries,
            "warnings": [*warnings(queries)],
        }
    return document, evaluate_text(document)


def _write_private(path: str, spec: Spec, table: pa.Table) -> None:
    if within(path, spec.output.public):
        raise SpecError(f"--truth {path}: lies inside output.public; exact values never go there")
    write_table(table, path, mode=0o600)


def truth(job: Job, sums: Mapping[NodeKey, Sequence[bytes]]) -> pa.Table:
    """The published rows with `exact` (before contribution bounding) and `bounded` (after it) in place of noise."""
    tables = []
    for key in sums:
        variant, number, family, chunk = key
        if variant != EXACT:
            continue
        series = [s for s in job.plan.demands[number].series if s.family == family]
        for first_cell, bounded, exact in _sums(job, sums, number, family, chunk):
            tables.append(truth_table(exact, bounded, job.aggregation, number, series, first_cell))
    return pa.concat_tables(tables)


def _sums(
    job: Job, sums: Mapping[NodeKey, Sequence[bytes]], number: int, family: Family, chunk: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The first of some cells with their bounded and exact sums, so many at a time as memory asks for."""
    query, timeline = job.aggregation.queries[number], job.aggregation.timeline
    bounded, exact = (gathered(sums[variant, number, family, chunk]) for variant in (BOUNDED, EXACT))
    cells, rows = job.aggregation.cells_of((BOUNDED, number, family, chunk)), range(timeline.windows + 1)
    few = len(cells) if query.together else max(1, TOGETHER // len(rows))
    for first in range(cells.start, cells.stop, few):
        some = range(first, min(first + few, cells.stop))
        yield first, dense(bounded, query, rows=rows, cells=some), dense(exact, query, rows=rows, cells=some)


def errors_of(job: Job, sums: Mapping[NodeKey, Sequence[bytes]], *, runs: int) -> list[dict[str, Any]]:
    """Observed and predicted errors of every number that would be published.

    Args:
        runs: how often the noise is sampled.

    Returns:
        for each query `name`, `strategy` and `numbers`: `kind` (`width`, `every`), `rmse_observed` and
        `rmse_predicted` (of the noise, against the bounded truth), `bounding_rmse` (bounded against exact truth),
        `rmse_total` (what is published against the exact truth) and `rows`; `truth`, the root mean square of the exact
        numbers, and `relative_error`, that of `rmse_total` to it; `bias`, of bounded numbers in the mean, and
        `bias_last`, in the last window. Cells in which a ratio has no truth are
        left out of its errors. The error of adaptive publication depends on the data: `rmse_predicted` is None, and to
        choose a policy by the others is a look at the data, which no accounting covers.
    """
    queries = []
    for number, query in enumerate(job.aggregation.queries):
        errors = {(series, RANGE): _Errors() for series in query.publish if query.ranges}
        errors = {(series, ""): _Errors() for series in query.publish} | errors
        for released in (r for r in job.plan.released if r.query == number):
            for chunk in range(job.aggregation.chunks(number)):
                for _, bounded, exact in _sums(job, sums, number, released.family, chunk):
                    _compare(errors, job, released, bounded, exact, runs)
        part = job.plan.adaptive_of(number)
        if part is not None:
            for _, bounded, exact in _sums(job, sums, number, "net", 0):
                _compare_adaptive(errors, job, part, bounded, exact, runs)
        numbers = [
            {
                **series_document(series, job.plan),
                **({"kind": range_kind(series)} if of else {}),
                **found.summary(),
            }
            for (series, of), found in errors.items()
        ]
        strategy = job.plan.strategies[number]
        queries.append({"name": query.name, "strategy": strategy, "numbers": numbers})
    return queries


_ERRORS = ("rmse_observed", "rmse_predicted", "bounding_rmse", "rmse_total")


class _Errors:
    """Sums of squared errors over chunks."""

    def __init__(self) -> None:
        self.squares = dict.fromkeys((*_ERRORS, "truth"), 0.0)
        self.numbers = dict.fromkeys(self.squares, 0)
        self.rows = 0
        self.biases = dict.fromkeys(("bias", "bias_last"), 0.0)
        self.biased = dict.fromkeys(self.biases, 0)

    def compare(self, aim: np.ndarray, goal: np.ndarray) -> None:
        """Bounded numbers beside the exact ones, [numbers, cells]."""
        self.rows += aim.size
        self.add("bounding_rmse", aim - goal)
        self.add("truth", goal)
        for name, off in (("bias", aim - goal), ("bias_last", (aim - goal)[-1:])):
            known = off[~np.isnan(off)]
            self.biases[name] += float(known.sum())
            self.biased[name] += known.size

    def add(self, name: str, errors: np.ndarray) -> None:
        known = errors[~np.isnan(errors)]
        self.squares[name] += float(np.sum(known**2))
        self.numbers[name] += len(known)

    def summary(self) -> dict[str, Any]:
        rmse = {
            name: (total / self.numbers[name]) ** 0.5 if self.numbers[name] else None
            for name, total in self.squares.items()
        }
        total, truth = rmse["rmse_total"], rmse["truth"]
        relative = None if total is None or not truth else total / truth
        biases = {name: total / self.biased[name] if self.biased[name] else None for name, total in self.biases.items()}
        return {**rmse, "rows": self.rows, "relative_error": relative, **biases}


_ByKind = Mapping[tuple[Series, str], _Errors]
"""Of each series its cells, and with `RANGE` its ranges."""


def _compare(errors: _ByKind, job: Job, released: Released, bounded: np.ndarray, exact: np.ndarray, runs: int) -> None:
    query = job.aggregation.queries[released.query]
    summed = {"": lambda sums: sums, **({RANGE: lambda sums: over_ranges(sums, query)} if query.ranges else {})}
    estimated = {"": estimates_of, RANGE: range_estimates}

    def numbers_of(leaves: np.ndarray, series: Series, of: str) -> np.ndarray:
        sums = [summed[of](totals(series, component)).astype(np.float64) for component in leaves]
        return query.measure.estimate(sums)

    wanted = [(series, of) for series in released.series for of in summed]
    aims = {one: numbers_of(bounded, *one) for one in wanted}
    goals = {one: numbers_of(exact, *one) for one in wanted}
    for one in wanted:
        errors[one].compare(aims[one], goals[one])
        sums = [totals(one[0], component) for component in bounded]
        certain = estimated[one[1]](one[0], sums, job.aggregation, released)
        errors[one].add("rmse_predicted", np.where(np.isnan(aims[one]), np.nan, certain.stddev))
    together = 1 if query.together else max(1, TOGETHER // bounded[0].size)
    for start in range(0, runs, together):
        count = min(together, runs - start)
        noisy = add_noise(np.tile(bounded, (1, 1, count)), released)
        by_series = dict(zip(released.series, noisy.sums, strict=True))
        for one in wanted:
            estimates = estimated[one[1]](one[0], by_series[one[0]], job.aggregation, released)
            values = estimates.value.reshape(-1, count, aims[one].shape[1])
            errors[one].add("rmse_observed", values - aims[one][:, None])
            errors[one].add("rmse_total", values - goals[one][:, None])


def _compare_adaptive(
    errors: _ByKind, job: Job, part: AdaptivePart, bounded: np.ndarray, exact: np.ndarray, runs: int
) -> None:
    """Its error depends on the data, so none is predicted."""
    (level,), grid = errors, job.aggregation.queries[part.query].measure.components[0].grid
    found, aim, goal = errors[level], totals(level[0], bounded[0]), totals(level[0], exact[0])
    found.compare(aim * grid, goal * grid)
    # What is published begins with the first window, so there is no level before it to add changes to.
    leaves = np.concatenate([np.zeros_like(aim[:1]), np.diff(aim, axis=0, prepend=0)])
    for _ in range(runs):
        published = released_anew(part, leaves)
        values = published.values
        found.add("rmse_observed", (values - aim) * grid)
        found.add("rmse_total", (values - goal) * grid)


def evaluate_text(document: dict[str, Any]) -> str:
    """The evaluation for people."""
    lines = [
        document["notice"],
        f"{document['release']}: {counted(document['windows'], 'window')}, "
        f"{counted(document['runs'], 'trial')} of the noise",
        *(f"warning: {one}" for one in document["warnings"]),
        "",
        f"{'query':<16} {'kind':<14} {'truth':>10} {'in total':>10} {'of truth':>9} "
        f"{'observed':>10} {'predicted':>10} {'bounding':>10} {'bias':>10} {'the last':>10} {'numbers':>9}",
    ]
    for query in document["queries"]:
        for number in query["numbers"]:
            truth, total, observed, predicted, bounding, bias, last = (
                "-" if number[name] is None else f"{number[name]:.4g}"
                for name in (
                    "truth",
                    "rmse_total",
                    "rmse_observed",
                    "rmse_predicted",
                    "bounding_rmse",
                    "bias",
                    "bias_last",
                )
            )
            relative = "-" if number["relative_error"] is None else f"{number['relative_error']:.0%}"
            lines.append(
                f"{query['name']:<16} {series_text(number):<14} {truth:>10} {total:>10} {relative:>9} "
                f"{observed:>10} {predicted:>10} {bounding:>10} {bias:>10} {last:>10} {number['rows']:>9}"
            )
    lines += [
        "",
        "truth: its root mean square; in total: the error of what is published, and as a share of the truth; bias: of "
        "what contribution bounding cuts off, in the mean and in the last window.",
    ]
    return "\n".join([*lines, *matching_text(document["queries"])])
