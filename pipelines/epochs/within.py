"""An epoch within another pipeline: one step receives the sums of all shards, and publishes them once.

    rows or files -> Project -> BoundedSums -> one worker -> publish_epoch -> committed estimates

A runner may repeat every step. The sums are then the same, and the last step first reads the release store: a committed
epoch is shown and never sampled again. So the input of later steps depends only on what is committed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.attempt_files import write_files
from pipelines.epochs.epoch import Start, fill_tables, publish_epoch, start_of
from pipelines.epochs.input_quality import judge
from pipelines.epochs.job import Job, job_of, timeline_of
from pipelines.epochs.killed import clean
from pipelines.epochs.others import note, show_others
from pipelines.epochs.settled import goes_on, refuse_another, refuse_another_beginning, warn_of_other_zones
from pipelines.epochs.source_progress import source_passed
from pipelines.sinks.epochs import refuse_unusable_tables
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text, now
from pipelines.store.attempt import RowsRead
from pipelines.store.store import store_of
from privacy.counted import counted
from transforms.aggregation.bounded_sums import SUMS, BoundedSums
from transforms.aggregation.projection import Project
from transforms.aggregation.shard_state import STATE
from transforms.common.errors import RefusedError, SpecError
from transforms.common.ipc import to_bytes
from transforms.common.several import Collections
from transforms.sources.changelog import DEAD, READ
from transforms.sources.diagnostics import diagnose, write_diagnostics


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The epoch that a pipeline publishes.

    Attributes:
        job: The job; None if all closed windows are published.
        past: Folder with the state of the epoch before.
    """

    spec: Spec
    job: Job | None
    past: str | None


def epoch_of(spec: Spec, *, until: int | None, shards: int | None, rows: pa.Schema | None) -> Epoch:
    """Return the epoch that is due, as `slackwater run` finds it.

    Args:
        spec: Spec of the release.
        until: Publish windows that end by then, in microseconds since the epoch, UTC; None: now.
        shards: Number of shards in the first run; None: by the size of the input.
        rows: Schema of a changelog that comes as rows, which must be complete up to `until`; None: the changelog is in
            the spec's files.

    Raises:
        SpecError: The schema lacks columns that the spec names, or `until` has not passed.
        RefusedError: The folders hold another release.
    """
    clock = now()
    if until is not None and timeline_of(spec, until).windows > timeline_of(spec, clock).windows:
        raise SpecError(f"until: windows up to {moment_text(until)} are not over; published numbers are final")
    store = store_of(spec.output)
    refuse_unusable_tables(spec, store)
    history = store.open()
    if history is not None:
        refuse_another(spec, history.commits)
        store.show()
    else:
        show_others(spec)
    clean(store)
    commits = () if history is None else history.commits
    end = clock if until is None else until
    if rows is None and (passed := source_passed(spec)) is not None:
        end = min(end, passed)
    timeline = timeline_of(spec, end, commits)
    if timeline.windows <= (commits[-1].windows if commits else 0):
        fill_tables(spec, store)
        return Epoch(spec=spec, job=None, past=None)
    start = start_of(spec, store, commits)
    warn_of_other_zones(spec, start.before)
    job = job_of(spec, replace(timeline, released=start.released), shards=shards, before=start.before, rows=rows)
    note(spec, store)
    return Epoch(spec=spec, job=job, past=start.past)


class PublishEpoch(beam.PTransform):
    """Transform from the output of a reader (`ReadChangelog`, `ReadRows`) to one None, once the epoch is shown."""

    def __init__(self, epoch: Epoch, job: Job) -> None:
        super().__init__()
        self._epoch = epoch
        self._job = job

    def expand(self, read: Collections) -> beam.PCollection[None]:
        job, rows = self._job, read["rows"]
        projected = rows | Project(job.aggregation.projection)
        bounded = projected.projected | BoundedSums(
            job.aggregation, shards=job.shards, past=self._epoch.past, keep=goes_on(self._epoch.spec, job)
        )
        dead = (read[DEAD], projected[DEAD]) | "AllDead" >> beam.Flatten() | "DeadToBytes" >> beam.Map(to_bytes)
        parts = [
            part | f"Part_{name}" >> beam.Map(_part, name).with_output_types(tuple[int, tuple[str, Any]])
            for name, part in ((SUMS, bounded[SUMS]), (STATE, bounded[STATE]), (DEAD, dead), (READ, read[READ]))
        ]
        nothing = rows.pipeline | "EvenIfEmpty" >> beam.Create([(0, ("", None))], reshuffle=False).with_output_types(
            tuple[int, tuple[str, Any]]
        )
        return (
            (*parts, nothing)
            | "AllParts" >> beam.Flatten()
            | "ForOneWorker" >> beam.GroupByKey()
            | "Publish"
            >> beam.ParDo(_PublishDoFn(self._epoch.spec, job, self._epoch.past)).with_output_types(type(None))
        )


def _part(content: Any, name: str) -> tuple[int, tuple[str, Any]]:
    return 0, (name, content)


class _PublishDoFn(beam.DoFn):
    def __init__(self, spec: Spec, job: Job, past: str | None) -> None:
        self._spec = spec
        self._job = job
        self._past = past

    def process(self, element: tuple[int, Iterable[tuple[str, Any]]]) -> Iterator[None]:
        publish_parts(self._spec, self._job, self._past, element[1])
        yield None


def publish_parts(spec: Spec, job: Job, past: str | None, parts: Iterable[tuple[str, Any]]) -> None:
    """Sample the noise of an epoch, commit it and show it; if it is committed, only show it.

    Args:
        spec: Spec of the release.
        job: The job.
        past: Folder with the state from which the sums were made.
        parts: Sums, states, dead letters and counts, by the names of their collections.

    Raises:
        InputError: More rows are unusable than the spec allows.
        RefusedError: Another run was first, and has not published all of these windows.
    """
    store = store_of(spec.output)
    commits = store.commits()
    if commits:
        refuse_another(spec, commits)
        if commits[-1].windows >= job.aggregation.timeline.windows:
            store.show()
            fill_tables(spec, store)
            return
    start = start_of(spec, store, commits)
    if start.before is not None:
        refuse_another_beginning(job, start.before)
    if (start.released, start.past) != (job.aggregation.timeline.released, past):
        raise RefusedError(
            f"another run has published {counted(start.released, 'window')} in the meantime; start the pipeline "
            "again to continue from there"
        )
    publish_epoch(spec, store, start, job, partial(_make, spec, job, start, [*parts]))
    fill_tables(spec, store)


def _make(spec: Spec, job: Job, start: Start, parts: list[tuple[str, Any]], folder: str, keep: bool) -> RowsRead:
    def named(wanted: str) -> list[Any]:
        return [content for name, content in parts if name == wanted]

    diagnostics = FileSystems.join(folder, "diagnostics")
    write_diagnostics(diagnostics, named(DEAD), named(READ))
    diagnosis = diagnose(diagnostics)
    judge(spec, job, diagnosis, folder)
    write_files(spec, job, start, sums=named(SUMS), state=named(STATE), folder=folder, keep=keep)
    return RowsRead(rows=diagnosis.rows, dead=diagnosis.dead)
