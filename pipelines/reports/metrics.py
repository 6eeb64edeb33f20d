"""`slackwater metrics`: what whoever looks after a release watches, as Prometheus reads it.

All of it is read from the two folders of the release, whether or not anything runs. What is an exact fact about people
is shown only if asked for, under names that begin with `slackwater_private_`; all other numbers follow from the spec,
the clock, what is published, and how runs fare. What is not known is left out.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import count, takewhile
from pathlib import Path

from apache_beam.io.filesystems import FileSystems
from prometheus_client import Metric

from pipelines.epochs.calendar_bounds import bounds_of
from pipelines.epochs.failures import TRACE, reading_folders
from pipelines.epochs.flags import refuse_any
from pipelines.epochs.job import timeline_of
from pipelines.epochs.plans import plan_for
from pipelines.epochs.results import Result
from pipelines.epochs.settled import refuse_another
from pipelines.epochs.source_progress import source_passed
from pipelines.reports.ledger import totals
from pipelines.reports.metrics_of_records import metrics_of_records
from pipelines.reports.metrics_text import Value, metric_of, told
from pipelines.spec.document import read_document
from pipelines.spec.kinds import kind_of
from pipelines.spec.load import Spec, load
from pipelines.spec.times import now
from pipelines.store.attempt import Attempt, Run
from pipelines.store.commit import Commit, History
from pipelines.store.store import Store
from privacy.protection import Span
from transforms.aggregation.shard_state import file_of, state_from_bytes
from transforms.common.cloud import refuse_unreachable
from transforms.common.sinks import is_there, read_bytes
from transforms.sources.freshness import NEVER

PRIVATE = "slackwater_private_"
_PROCESSES = {True: "alive", False: "dead", None: "unknown"}


def metrics(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "metrics")
    if kind_of(read_document(Path(arguments.spec)).content) == "records":
        return metrics_of_records(arguments.spec, private=arguments.private)
    spec = load(arguments.spec)
    refuse_unreachable(spec.output.folders)
    store = Store(spec.output.public, spec.output.private)
    with reading_folders(spec):
        runs = store.attempts.runs()  # before the release, so that none of them counts that has ended since
        history = store.open()
        if history is not None:
            refuse_another(spec, history.commits)
        found = list(_of_all(spec, history, runs, now=now() / 1e6))
        if arguments.private and history is not None:
            found += _of_people(spec, store, history)
    return told(spec.release, found)


def _of_all(spec: Spec, history: History | None, runs: dict[str, Run | None], *, now: float) -> Iterator[Metric]:
    """What follows from the spec, the clock and what is published, and how runs fare."""
    commits = () if history is None else history.commits
    shown = () if history is None else commits[: history.shown]
    windows, schedule = shown[-1].windows if shown else 0, spec.schedule
    until = (shown[-1].until if shown else schedule.start) / 1e6
    clock = now if schedule.until is None else min(now, schedule.until / 1e6)
    due = timeline_of(spec, int(now * 1e6), commits).windows - windows
    allowed, spent = totals([asdict(commit) for commit in commits], spec, plan_for(spec, commits))
    failed = _time_of_failure(spec)

    def metric(name: str, meaning: str, value: Value, by: str = "") -> Metric:
        return metric_of(f"slackwater_{name}", meaning, value, release=spec.release, by=by)

    yield metric("windows_published_total", "Windows that are published.", windows)
    yield metric("windows_due", "Windows that have closed and are not published.", max(0, due))
    yield metric("window_seconds", "How long a window is.", schedule.every / 1e6)
    yield metric("published_until_timestamp_seconds", "End of the last published window.", until if windows else None)
    yield metric(
        "lag_seconds",
        "From the end of the last published window, or the start of the schedule, to now or the schedule's end.",
        max(0.0, clock - until),
    )
    if (passed := _passed(spec, commits)) is not None:
        yield metric("source_passed_timestamp_seconds", "Up to when the source says that it has come.", passed)
        yield metric(
            "source_lag_seconds",
            "From then to now or the schedule's end; what has stalled grows.",
            max(0.0, clock - passed),
        )
    yield metric("epochs_published_total", "Epochs that are published.", len(shown))
    yield metric(
        "epochs_unpublished",
        "Epochs that are committed and not published; the next run publishes them.",
        len(commits) - len(shown),
    )
    if spec.output.tables:
        store = Store(spec.output.public, spec.output.private)
        behind = {name: float(max(0, len(shown) - store.loads.done(name))) for _, name in spec.output.tables}
        yield metric("epochs_not_loaded", "Epochs that are published and not in a table besides.", behind, by="table")
    if commits:
        last = commits[-1]
        committed = datetime.fromisoformat(last.committed_at).timestamp()
        run = runs.get(last.attempt)
        took = None if run is None else committed - datetime.fromisoformat(run.began).timestamp()
        yield metric("last_commit_timestamp_seconds", "When the last epoch was committed.", committed)
        yield metric("last_attempt_seconds", "From the begin of the last epoch's attempt to its commit.", took)
    yield metric(
        "attempts_unfinished",
        "Attempts at an epoch that is not committed, by what can be seen of their process.",
        _unfinished(runs, len(commits)),
        by="process",
    )
    yield metric("failure_kept", "Whether details of a failure are kept, private ones.", int(failed is not None))
    yield metric("last_failure_timestamp_seconds", "When they were written.", failed)
    if isinstance(protects := spec.privacy.protects, Span):
        yield metric("protected_span_seconds", "In any so long a time epsilon and delta hold.", protects.length / 1e6)
    for parameter in ("epsilon", "delta"):
        yield metric(f"{parameter}_allowed", f"The {parameter} of the whole release.", getattr(allowed, parameter))
        yield metric(
            f"{parameter}_spent",
            f"The {parameter} that is proved of all that was published so far.",
            getattr(spent, parameter),
        )


def _passed(spec: Spec, commits: Sequence[Commit]) -> float | None:
    """Up to when the source says that it has come; None without a rule, and where it says nothing.

    Where files tell it, only which windows are passed: a file may be one person's, and its time an exact fact.
    """
    try:
        passed = source_passed(spec)
    except Exception:  # each file system has its own; the run says what is wrong
        return None
    rule = spec.changelog.freshness
    if passed is None or passed == NEVER or rule is None:
        return None
    if rule.by == "newer_file":
        bounds = bounds_of(spec, commits)
        if passed < bounds.start:
            return None
        passed = bounds.end(bounds.closed(passed))
    return passed / 1e6


def _of_people(spec: Spec, store: Store, history: History) -> Iterator[Metric]:
    """Exact facts about people: what was read, and what the state holds."""
    commits, last = history.commits, history.last
    reading = store.attempts.reading(last)

    def metric(name: str, meaning: str, value: Value, by: str = "") -> Metric:
        meaning = f"{meaning} An exact fact about people: it stays on the private side."
        return metric_of(f"{PRIVATE}{name}", meaning, value, release=spec.release, by=by)

    yield metric("files_read_total", "Files of the changelog that were read.", sum(len(c.sources) for c in commits))
    yield metric("bytes_read_total", "Bytes of these files.", sum(source.size for c in commits for source in c.sources))
    yield metric("last_files_read", "Files that the last epoch read.", len(last.sources))
    yield metric("last_bytes_read", "Bytes of these files.", sum(source.size for source in last.sources))
    if reading is not None:
        rate = reading.rows / reading.seconds if reading.seconds else None
        yield metric("last_rows_read", "Rows that the last epoch read.", reading.rows)
        yield metric("last_rows_dead", "Those of them that could not be used.", reading.dead)
        yield metric("last_rows_per_second", "Rows that the last epoch's pipeline read and summed in a second.", rate)
    held = {str(shard): _held(store, history, shard) for shard in _shards(history)}
    for name, meaning in _HELD.items():
        yield metric(name, meaning, {shard: numbers[name] for shard, numbers in held.items()}, by="shard")


_HELD = {
    "state_bytes": "Bytes of a shard's state.",
    "units": "Units of a shard that may still contribute.",
    "units_finished": "Units of a shard that can never contribute again.",
    "entries": "Entries of the units of a shard that may still contribute.",
    "rows_waiting": "Rows in open windows, of units of a shard that may still contribute; and truncates.",
    "rows_superseded_total": "Rows of a shard that were dropped, as delivered before or out of date.",
}


def _shards(history: History) -> Iterator[int]:
    """Those that have a state; none after the last window of a schedule."""
    return takewhile(lambda shard: file_of(shard) in history.last.state, count())


def _held(store: Store, history: History, shard: int) -> dict[str, float]:
    """What the state of a shard holds, by the names of `_HELD`."""
    name = file_of(shard)
    state = state_from_bytes(read_bytes(store.attempts.state_paths(history.last)[name]))
    return {
        "state_bytes": history.last.state[name].size,
        "units": state.units.num_rows,
        "units_finished": state.frozen.num_rows,
        "entries": state.entries.num_rows,
        "rows_waiting": state.pending.num_rows,
        "rows_superseded_total": state.superseded,
    }


def _unfinished(runs: dict[str, Run | None], epochs: int) -> dict[str, float]:
    """How many attempts there are at epochs to come, by whether their process lives."""
    going = [run for id_, run in runs.items() if (Attempt.epoch_of(id_) or 0) > epochs]
    found = Counter(None if run is None else run.alive() for run in going)
    return {name: found[alive] for alive, name in _PROCESSES.items()}


def _time_of_failure(spec: Spec) -> float | None:
    trace = FileSystems.join(spec.output.private, TRACE)
    return float(FileSystems.last_updated(trace)) if is_there(trace) else None
