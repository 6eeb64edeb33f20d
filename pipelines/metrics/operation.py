"""`slackwater metrics`: the state of a release, for Prometheus.

All metrics are read from the two folders of the release, whether or not a run is active. Exact facts about people are
shown only on request, under names that begin with `slackwater_private_`. All other metrics follow from the spec, the
clock, the published files, and the outcome of runs. Unknown metrics are left out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import count, takewhile
from typing import NamedTuple

from apache_beam.io.filesystems import FileSystems
from prometheus_client import Metric

from pipelines.common.arguments import SpecLike, path_of
from pipelines.epochs.calendar_bounds import bounds_of
from pipelines.epochs.failures import TRACE, reading_folders
from pipelines.epochs.job import timeline_of
from pipelines.epochs.plans import plan_for
from pipelines.epochs.settled import refuse_another
from pipelines.epochs.source_progress import source_passed
from pipelines.ledger.account import totals
from pipelines.metrics.values import Metrics, MetricValue, known, metric_of
from pipelines.published.others import of_other_kind
from pipelines.spec.load import Spec, load
from pipelines.spec.times import now
from pipelines.store.attempt import Attempt, Run
from pipelines.store.commit import Commit
from pipelines.store.record import History
from pipelines.store.store import Store
from transforms.aggregation.shard_state import file_of, state_from_bytes
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError
from transforms.common.sinks import is_there, read_bytes
from transforms.sources.freshness import NEVER

PRIVATE = "slackwater_private_"
_PROCESSES = {True: "alive", False: "dead", None: "unknown"}


class _Fact(NamedTuple):
    """A metric of a release without the prefix of its name."""

    name: str
    meaning: str
    value: MetricValue
    by: str = ""


def metrics(spec: SpecLike, *, private: bool = False) -> Metrics:
    """Read the state of a release from its two folders.

    Args:
        spec: The path of a spec of a release or of sanitised records, or what `load` returns.
        private: Whether to add exact facts about people, which must stay on the private side.

    Raises:
        SpecError: The spec is wrong, or private metrics of sanitised records are requested, which do not exist.
        RefusedError: The folders are damaged, or hold another release.
    """
    path = path_of(spec)
    if other := of_other_kind("metrics", path):
        found_there: Metrics = other(path, private=private)
        return found_there
    one = load(path)
    refuse_unreachable(one.output.folders)
    store = Store(one.output.public, one.output.private)
    with reading_folders(one):
        runs = store.attempts.runs()  # read before the release, so that an attempt that ends in between does not count
        lives = {id_: store.attempts.alive(id_, run) for id_, run in runs.items()}
        history = store.open()
        if history is not None:
            refuse_another(one, history.commits)
        found = [_metric("slackwater_", fact, one) for fact in _of_all(one, history, runs, lives, now=now() / 1e6)]
        if private and history is not None:
            found += [_metric(PRIVATE, fact, one) for fact in _of_people(store, history)]
    return known(one.release, found)


def _metric(prefix: str, fact: _Fact, spec: Spec) -> Metric:
    private = " An exact fact about people: keep it on the private side." if prefix == PRIVATE else ""
    return metric_of(f"{prefix}{fact.name}", f"{fact.meaning}{private}", fact.value, release=spec.release, by=fact.by)


def _of_all(
    spec: Spec,
    history: History[Commit] | None,
    runs: dict[str, Run | None],
    lives: dict[str, bool | None],
    *,
    now: float,
) -> Iterator[_Fact]:
    """Yield metrics that follow from the spec, the clock, published files and the outcome of runs."""
    commits = () if history is None else history.commits
    shown = () if history is None else commits[: history.shown]
    windows, schedule = shown[-1].windows if shown else 0, spec.schedule
    until = (shown[-1].until if shown else schedule.start) / 1e6
    clock = now if schedule.until is None else min(now, schedule.until / 1e6)
    due = timeline_of(spec, int(now * 1e6), commits).windows - windows
    allowed, spent = totals(commits, spec, plan_for(spec, commits))
    failed = _time_of_failure(spec)

    yield _Fact("windows_published_total", "Number of published windows.", windows)
    yield _Fact("windows_due", "Number of windows that have closed and are not yet published.", max(0, due))
    yield _Fact("window_seconds", "Length of a window, in seconds.", schedule.every / 1e6)
    yield _Fact(
        "published_until_timestamp_seconds",
        "End of the last published window, in seconds since the epoch.",
        until if windows else None,
    )
    yield _Fact(
        "lag_seconds",
        "Seconds from the last published window's end, or the schedule's start, to now or the schedule's end.",
        max(0.0, clock - until),
    )
    yield from _of_source(_passed(spec, commits), clock)
    yield from _of_epochs(spec, history, runs, lives)
    yield _Fact("failure_kept", "1 if private details of a failure are kept, else 0.", int(failed is not None))
    yield _Fact(
        "last_failure_timestamp_seconds", "Time of the last failed attempt, in seconds since the epoch.", failed
    )
    if (span := spec.privacy.protects.span) is not None:
        yield _Fact(
            "protected_span_seconds",
            "Length of the protected span, in seconds: epsilon and delta hold for any period of this length.",
            span.length / 1e6,
        )
    for parameter in ("epsilon", "delta"):
        yield _Fact(
            f"{parameter}_allowed", f"Total {parameter} that the release may spend.", getattr(allowed, parameter)
        )
        yield _Fact(
            f"{parameter}_spent",
            f"Proven {parameter} of everything published so far.",
            getattr(spent, parameter),
        )


def _of_epochs(
    spec: Spec, history: History[Commit] | None, runs: dict[str, Run | None], lives: dict[str, bool | None]
) -> Iterator[_Fact]:
    """Yield metrics of published, committed and unfinished epochs."""
    commits = () if history is None else history.commits
    shown = () if history is None else commits[: history.shown]
    yield _Fact("epochs_published_total", "Number of published epochs.", len(shown))
    yield _Fact(
        "epochs_unpublished",
        "Number of epochs that are committed and not yet published. The next run publishes them.",
        len(commits) - len(shown),
    )
    if spec.output.tables:
        store = Store(spec.output.public, spec.output.private)
        behind = {one.name: float(max(0, len(shown) - store.loads.done(one.name))) for one in spec.output.tables}
        yield _Fact(
            "epochs_not_loaded", "Number of published epochs that are not yet loaded into a table.", behind, by="table"
        )
    if commits:
        last = commits[-1]
        committed = datetime.fromisoformat(last.committed_at).timestamp()
        run = runs.get(last.attempt)
        took = None if run is None else committed - datetime.fromisoformat(run.began).timestamp()
        yield _Fact("last_commit_timestamp_seconds", "Time of the last commit, in seconds since the epoch.", committed)
        yield _Fact("last_attempt_seconds", "Seconds from the start of the last epoch's attempt to its commit.", took)
    yield _Fact(
        "attempts_unfinished",
        "Number of attempts at an epoch that is not committed, by the state of their process.",
        _unfinished(lives, len(commits)),
        by="process",
    )


def _of_source(passed: float | None, clock: float) -> Iterator[_Fact]:
    """Yield the progress of the source; nothing if it does not report it."""
    if passed is None:
        return
    yield _Fact(
        "source_passed_timestamp_seconds",
        "Time up to which the source is complete, as it reports, in seconds since the epoch.",
        passed,
    )
    yield _Fact(
        "source_lag_seconds",
        "Seconds from the time up to which the source is complete to now or the schedule's end.",
        max(0.0, clock - passed),
    )


def _passed(spec: Spec, commits: Sequence[Commit]) -> float | None:
    """Return the time up to which the source is complete; None without a rule, or if it reports nothing.

    If newer files report it, only the end of the last complete window is returned: a file may belong to one person, and
    its time would be an exact fact.
    """
    try:
        passed = source_passed(spec)
    except Exception:  # file systems raise different errors; the run reports them
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


def _of_people(store: Store, history: History[Commit]) -> Iterator[_Fact]:
    """Yield exact facts about people: counts of read files and rows, and of the state."""
    commits, last = history.commits, history.last
    reading = store.attempts.reading(last)

    yield _Fact(
        "files_read_total", "Number of files of the changelog that were read.", sum(len(c.sources) for c in commits)
    )
    yield _Fact(
        "bytes_read_total",
        "Size of all files of the changelog that were read, in bytes.",
        sum(source.size for c in commits for source in c.sources),
    )
    yield _Fact("last_files_read", "Number of files that the last epoch read.", len(last.sources))
    yield _Fact(
        "last_bytes_read",
        "Size of the files that the last epoch read, in bytes.",
        sum(source.size for source in last.sources),
    )
    if reading is not None:
        rate = reading.rows / reading.seconds if reading.seconds else None
        yield _Fact("last_rows_read", "Number of rows that the last epoch read.", reading.rows)
        yield _Fact("last_rows_dead", "Number of rows that the last epoch read and could not use.", reading.dead)
        yield _Fact("last_rows_per_second", "Number of rows that the last epoch's pipeline processed per second.", rate)
    held = {str(shard): _held(store, history, shard) for shard in _shards(history)}
    for name, meaning in _HELD.items():
        yield _Fact(name, meaning, {shard: numbers[name] for shard, numbers in held.items()}, by="shard")


_HELD = {
    "state_bytes": "Size of a shard's state, in bytes.",
    "units": "Number of privacy units of a shard that may still contribute.",
    "units_finished": "Number of privacy units of a shard that can never contribute again.",
    "entries": "Number of entries of a shard whose privacy unit may still contribute.",
    "rows_waiting": "Number of rows of a shard in windows that are still open. Includes truncates. Excludes rows of "
    "units that can contribute no more, which are dropped, and rows that a stream holds for its next window.",
    "rows_superseded_total": "Number of rows of a shard that were dropped because they were duplicates or out of date.",
}


def _shards(history: History[Commit]) -> Iterator[int]:
    """Yield the shards that have a state; no shard has one after the last window."""
    return takewhile(lambda shard: file_of(shard) in history.last.state, count())


def _held(store: Store, history: History[Commit], shard: int) -> dict[str, float]:
    """Return the counts of a shard's state, by the names of `_HELD`."""
    name = file_of(shard)
    path = store.attempts.state_paths(history.last)[name]
    try:
        state = state_from_bytes(read_bytes(path))
    except Exception as error:  # file systems raise different errors for a missing file
        if is_there(path) and not isinstance(error, ValueError):
            raise
        raise _lost(store, history, path) from None
    return {
        "state_bytes": history.last.state[name].size,
        "units": state.units.num_rows,
        "units_finished": state.frozen.num_rows,
        "entries": state.entries.num_rows,
        "rows_waiting": state.pending.num_rows,
        "rows_superseded_total": state.superseded,
    }


def _lost(store: Store, history: History[Commit], path: str) -> RefusedError:
    """Return why a file of the last state is missing or damaged: other runs have removed it, or it is lost."""
    there = store.open()
    if there is None or there.last == history.last:
        way_out = f"missing, or not what epoch {history.last.epoch} left; restore the private folder from a copy"
    else:
        way_out = f"removed, since other runs have committed epochs up to {there.last.epoch} meanwhile; try again"
    return RefusedError(f"{path}: {way_out}")


def _unfinished(lives: dict[str, bool | None], epochs: int) -> dict[str, float]:
    """Return the number of attempts at future epochs, by whether their process is alive."""
    found = Counter(alive for id_, alive in lives.items() if (Attempt.epoch_of(id_) or 0) > epochs)
    return {name: found[alive] for alive, name in _PROCESSES.items()}


def _time_of_failure(spec: Spec) -> float | None:
    trace = FileSystems.join(spec.output.private, TRACE)
    return float(FileSystems.last_updated(trace)) if is_there(trace) else None
