"""`slackwater evaluate`: the mechanism compared with the truth, for the data controller. NOT FOR RELEASE.

It publishes nothing and spends nothing. Its results are exact numbers and errors computed from them, and stay private.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.common.arguments import Moment, SpecLike, moment_of, refuse_small
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.epochs.batch import run_sums
from pipelines.epochs.due import due
from pipelines.epochs.failures import failures_kept
from pipelines.epochs.input_quality import judge
from pipelines.epochs.job import job_of, timeline_of
from pipelines.epochs.killed import clean
from pipelines.epochs.plans import has_begun, plan_for
from pipelines.evaluate.errors import errors_of, truth_of
from pipelines.evaluate.found_keys import found_text
from pipelines.evaluate.matching import matching, matching_text, warnings
from pipelines.spec.paths import within
from pipelines.spec.series import series_text
from pipelines.store.store import Store
from privacy.counted import counted
from transforms.common.cloud import refuse_unreachable
from transforms.common.sinks import write_table

NOTICE = "NOT FOR RELEASE: exact values and errors computed from them; keep this on the private side"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated(Value):
    """The mechanism compared with the truth. NOT FOR RELEASE: all of it is exact knowledge about people.

    Attributes:
        release: Name of the release.
        windows: Number of windows that have closed; 0 if there is nothing to evaluate.
        runs: Number of times the noise was sampled.
        warnings: Numbers that are useless, and queries that match nothing.
        queries: For each query the result of `errors_of`, and `matched`.
        public: The public folder, into which nothing of it may be written.
    """

    release: str
    windows: int
    runs: int
    warnings: tuple[str, ...] = field(default=(), repr=False)
    queries: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    public: str

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater evaluate --json`."""
        if self.windows == 0:
            return {"release": self.release, "windows": 0, "public": self.public, "files": []}
        return {
            "notice": NOTICE,
            "release": self.release,
            "windows": self.windows,
            "runs": self.runs,
            "queries": [*self.queries],
            "warnings": [*self.warnings],
        }

    def text(self) -> str:
        """Return the text that `slackwater evaluate` prints."""
        if self.windows == 0:
            return f"{self.release}: nothing is due, no window has closed yet"
        return evaluate_text(self.to_json())


def evaluate(
    spec: SpecLike,
    *,
    until: Moment = None,
    shards: int | None = None,
    runs: int = 10,
    truth: str | Path | None = None,
    options: Sequence[str] = (),
) -> Evaluated:
    """Compare the mechanism with the truth, for the data controller alone. Publishes nothing and spends nothing.

    Args:
        spec: The path of a spec, or what `load` returns.
        until: Evaluate only windows that end at or before this moment. None: now.
        shards: Number of parts into which privacy units are split. None: by the size of the input.
        runs: Number of times the noise is sampled.
        truth: Write exact and bounded numbers to this Parquet file, on the private side.
        options: Beam's pipeline options as on the command line.

    Raises:
        SpecError: The spec, an argument or an option is wrong.
        InputError: The data cannot be used.

    Example:
        `evaluate("wards.yaml").warnings` lists numbers that would be useless. Nothing of it may be published.
    """
    end, flags, output = moment_of("until", until), [*options], None if truth is None else str(truth)
    refuse_small("shards", shards)
    refuse_small("runs", runs)
    spec, moment = due(spec, end, flags)
    refuse_unreachable([output])
    if output is not None and within(output, spec.output.public):
        raise ArgumentError("truth", "lies inside output.public; exact values never go there", output)
    about: dict[str, Any] = {"release": spec.release, "runs": runs, "public": spec.output.public}
    if timeline_of(spec, moment).windows == 0:
        return Evaluated(windows=0, **about)
    with failures_kept(spec, "evaluate", done="evaluate publishes nothing"):
        store = Store(spec.output.public, spec.output.private)
        clean(store)
        commits = store.commits()
        plan = plan_for(spec, commits)
        timeline = timeline_of(spec, moment, commits if has_begun(spec, commits) else ())
        job = job_of(spec, timeline, shards=shards, exact=True, plan=plan)
        attempt = store.begin(0)
        try:
            sums, diagnosis = run_sums(job, folder=attempt.folder, flags=flags)
            judge(spec, job, diagnosis, attempt.folder)
        finally:
            store.discard(attempt)
        if output is not None:
            write_table(truth_of(job, sums), output, mode=0o600)
        queries = errors_of(job, sums, runs=runs)
        for query, matched in zip(queries, matching(job.aggregation.queries, sums), strict=True):
            query["matched"] = matched
    return Evaluated(windows=timeline.windows, queries=tuple(queries), warnings=tuple(warnings(queries)), **about)


def evaluate_text(document: dict[str, Any]) -> str:
    """Return the evaluation as text."""
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
        "truth: root mean square of the exact numbers; in total: error of published numbers, also as a share of the "
        "truth; bias: from contribution bounding, on average and in the last window.",
    ]
    return "\n".join([*lines, *found_text(document["queries"]), *matching_text(document["queries"])])
