"""`slackwater evaluate`: the mechanism against the truth, for the owner of the data. NOT FOR RELEASE.

Publishes nothing and spends nothing, since what it says stays private: exact numbers, and errors made from them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.job import Job
from privacy import disjoint
from privacy.disjoint import Kind
from privacy.estimates import estimate
from transforms.bounded_sums import BOUNDED, EXACT, NodeKey, dense
from transforms.published import truth_table
from transforms.release import add_noise

NOTICE = "NOT FOR RELEASE: exact values and errors made from them; keep this on the private side"


def truth(job: Job, sums: Mapping[NodeKey, Sequence[bytes]]) -> pa.Table:
    """The published rows with `exact` (no constraint) and `bounded` (after enforcement) in place of noise."""
    tables = []
    for key in sums:
        variant, number, family, chunk = key
        if variant != EXACT:
            continue
        kinds: list[Kind] = [k for k in job.plan.demands[number].kinds if disjoint.family_of(k) == family]
        exact = dense(sums[key], job.aggregation, key)
        bounded_key = (BOUNDED, number, family, chunk)
        bounded = dense(sums[bounded_key], job.aggregation, bounded_key)
        first_cell = chunk * job.aggregation.chunk_cells(number)
        tables.append(truth_table(exact, bounded, job.aggregation, number, kinds, first_cell))
    return pa.concat_tables(tables)


def evaluate(job: Job, sums: Mapping[NodeKey, Sequence[bytes]], *, runs: int) -> list[dict[str, Any]]:
    """Observed and predicted errors of every number that would be published.

    Args:
        runs: how often the noise is drawn.

    Returns:
        for each query `name`, `strategy` and `numbers`: `kind`, `rmse_observed` and `rmse_predicted` (of the noise,
        against the bounded truth), `bounding_rmse` (bounded against exact truth), `rmse_total` (what is published
        against the exact truth) and `rows`. Cells in which a ratio has no truth are left out of its errors.
    """
    told = []
    for number, query in enumerate(job.aggregation.queries):
        numbers = []
        for kind in job.plan.demands[number].kinds:
            family = disjoint.family_of(kind)
            errors = _Errors()
            for chunk in range(job.aggregation.chunks(number)):
                key: NodeKey = (BOUNDED, number, family, chunk)
                exact_key: NodeKey = (EXACT, number, family, chunk)
                bounded = dense(sums[key], job.aggregation, key)
                exact = dense(sums[exact_key], job.aggregation, exact_key)
                _compare(errors, job, key, kind, bounded, exact, runs)
            numbers.append({"kind": kind, **errors.summary()})
        told.append({"name": query.name, "strategy": "disjoint", "numbers": numbers})
    return told


class _Errors:
    """Sums of squared errors over chunks."""

    def __init__(self) -> None:
        self.squares = dict.fromkeys(("rmse_observed", "rmse_predicted", "bounding_rmse", "rmse_total"), 0.0)
        self.numbers = dict.fromkeys(self.squares, 0)
        self.rows = 0

    def add(self, name: str, errors: np.ndarray) -> None:
        known = errors[~np.isnan(errors)]
        self.squares[name] += float(np.sum(known**2))
        self.numbers[name] += len(known)

    def summary(self) -> dict[str, Any]:
        rmse = {
            name: (total / self.numbers[name]) ** 0.5 if self.numbers[name] else None
            for name, total in self.squares.items()
        }
        return {**rmse, "rows": self.rows}


def _compare(
    errors: _Errors,
    job: Job,
    key: NodeKey,
    kind: Kind,
    bounded: np.ndarray,
    exact: np.ndarray,
    runs: int,
) -> None:
    _, number, family, _ = key
    measure = job.aggregation.queries[number].measure
    noise = job.plan.of(number, family).noise
    terms = disjoint.terms(kind, job.aggregation.timeline.windows)

    def numbers_of(nodes: np.ndarray) -> np.ndarray:
        return measure.estimate([disjoint.combine(kind, component).astype(np.float64) for component in nodes])

    aim, goal = numbers_of(bounded), numbers_of(exact)
    errors.rows += aim.size
    predicted = estimate(measure, [disjoint.combine(kind, component) for component in bounded], noise, terms)
    errors.add("rmse_predicted", np.where(np.isnan(aim), np.nan, predicted.stddev))
    errors.add("bounding_rmse", aim - goal)
    for _ in range(runs):
        noisy = add_noise(bounded, job.plan, key)
        told = estimate(measure, [disjoint.combine(kind, component) for component in noisy], noise, terms)
        errors.add("rmse_observed", told.value - aim)
        errors.add("rmse_total", told.value - goal)


def evaluate_text(document: dict[str, Any]) -> str:
    """The evaluation for people."""
    lines = [
        document["notice"],
        f"{document['release']}: {document['windows']} windows, noise drawn {document['runs']} times",
        "",
        f"{'query':<16} {'kind':<8} "
        f"{'observed':>10} {'predicted':>10} {'bounding':>10} {'in total':>10} {'numbers':>9}",
    ]
    for query in document["queries"]:
        for number in query["numbers"]:
            told = [
                "-" if number[name] is None else f"{number[name]:.4g}"
                for name in ("rmse_observed", "rmse_predicted", "bounding_rmse", "rmse_total")
            ]
            lines.append(
                f"{query['name']:<16} {number['kind']:<8} {told[0]:>10} {told[1]:>10} {told[2]:>10} {told[3]:>10} "
                f"{number['rows']:>9}"
            )
    return "\n".join(lines)
