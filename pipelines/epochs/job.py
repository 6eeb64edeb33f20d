"""Make the arguments of the transforms from a spec and its plan, after the first file was inspected."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from pipelines.epochs.calendar_bounds import bounds_of, refuse_shorter
from pipelines.epochs.plans import plan_of
from pipelines.spec.columns import with_spec_lines
from pipelines.spec.load import Spec
from pipelines.store.commit import Commit
from privacy.planning.plan import Plan
from transforms.aggregation.expression import check
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query, Timeline, numbers_and_times, planned
from transforms.common.errors import InputError, SpecError
from transforms.common.kinds import ARROW
from transforms.common.memory import scaled
from transforms.common.source import Source
from transforms.release.mismatch import refuse_mismatch
from transforms.release.release import ReleasePlan
from transforms.sources.columns.layout import Layout
from transforms.sources.files.listing import Listed
from transforms.sources.files.snapshot_paths import base_of, instant_of, refuse_gaps
from transforms.sources.inspection import find_files, inspect, inspect_rows, named
from transforms.sources.rows import source_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Arguments of a pipeline over the changelog.

    Attributes:
        layout: files of the changelog, and the types of their columns.
        aggregation: queries, windows and contribution bound.
        plan: the noise and its guarantee.
        shards: into how many parts the units are split.
    """

    layout: Layout
    aggregation: Aggregation
    plan: Plan
    shards: int

    def __post_init__(self) -> None:
        refuse_mismatch(self.plan, self.aggregation)
        if self.layout.source.owner != self.aggregation.owner:
            raise ValueError("the changelog is read for another privacy unit than the bounded one")

    @property
    def release(self) -> ReleasePlan:
        """The plan together with its aggregation."""
        return ReleasePlan(plan=self.plan, aggregation=self.aggregation)


SHARD_BYTES = 16 * 2**20
"""Approximate number of bytes of input for one shard, which is held in memory; smaller if memory is scarce."""


def timeline_of(spec: Spec, until: int, commits: Sequence[Commit] = ()) -> Timeline:
    """The windows of the schedule that have closed at `until` (microseconds since the epoch, UTC).

    Args:
        commits: of the release, whose windows end where they are committed to.
    """
    bounds, most = bounds_of(spec, commits), spec.schedule.windows
    closed = bounds.closed(until)
    windows = closed if most is None else min(closed, most)
    ends = None if bounds.ends is None else bounds.ends[:windows]
    return Timeline(start=bounds.start, every=bounds.every, windows=windows, ends=ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Decisions of the first run of a release, and the files that earlier runs have read.

    Attributes:
        layout: the types of the columns; its files are not read.
        shards: number of parts into which the units are split.
        zones: version of `tzdata` of the last of these runs; None if the spec names no time zone.
        plan: plan with which the release began.
        read: the files that were read.
    """

    layout: Layout
    shards: int
    zones: str | None
    plan: Plan
    read: tuple[Listed, ...]


def job_of(
    spec: Spec,
    timeline: Timeline,
    *,
    shards: int | None = None,
    exact: bool = False,
    before: Before | None = None,
    plan: Plan | None = None,
    rows: pa.Schema | None = None,
) -> Job:
    """Inspect the files, and make the job.

    Args:
        spec: of the release.
        timeline: windows to release.
        shards: number of shards; by default by the size of the input and the memory of this process.
        exact: whether to sum without contribution bounding as well, for the data controller alone.
        before: decisions of earlier runs; only files that they have not read are read.
        plan: The plan, if `before` has none; default: a new plan.
        rows: the schema of a changelog that comes as rows and not as the spec's files, as `read_rows` reads them.

    Raises:
        SpecError: a column is missing or of the wrong type, or a path matches nothing.
        InputError: a file cannot be read, or has changed since it was read; or a snapshot is missing or late.
    """
    plan = before.plan if before is not None else plan or plan_of(spec)
    refuse_shorter(plan, timeline.bounds)
    queries = planned(spec.queries, plan)
    constraint, owner = plan.promise.constraint, spec.privacy.owner
    numbers, times = numbers_and_times(queries)
    others = frozenset[str]().union(*(query.columns for query in queries))
    if constraint.column is not None:
        others |= {constraint.column}
    source = spec.changelog.source
    if rows is not None:
        inspected = partial(_of_rows, source_of(source), before, rows, numbers, others, times)
    elif before is None:
        inspected = partial(inspect, source, numbers, others, times)
    else:
        inspected = partial(_unread, source, before)
    layout = with_spec_lines(inspected, spec)
    if layout.snapshots:
        layout = _snapshots_due(layout, before, timeline.until)
    states = [*layout.states, *([] if owner is None or layout.owner is None else [(owner, layout.owner)])]
    schema = pa.schema([(column, ARROW[kind]) for column, kind in states])
    _check_conditions(spec, queries, schema)
    size = sum(file.size for file in layout.files)
    return Job(
        layout=layout,
        aggregation=Aggregation(
            queries=queries,
            timeline=timeline,
            constraint=constraint,
            owner=owner,
            exact=exact,
            expires=spec.changelog.source.expires,
        ),
        plan=plan,
        shards=before.shards if before is not None else shards or max(1, -(-size // scaled(SHARD_BYTES))),
    )


def _check_conditions(spec: Spec, queries: Sequence[Query], schema: pa.Schema) -> None:
    """Refuse conditions that do not fit the columns; errors name the lines of the spec."""
    for number, query in enumerate(queries):
        if query.where is not None:
            with_spec_lines(partial(check, [query.where], schema), spec, query=number)


def _of_rows(
    source: Source,
    before: Before | None,
    rows: pa.Schema,
    numbers: frozenset[str],
    others: frozenset[str],
    times: frozenset[str],
) -> Layout:
    """The layout of rows with this schema.

    Raises:
        SpecError: a column is missing, of the wrong type, or of another type than in the first run.
    """
    if before is None:
        return inspect_rows(source, rows, numbers, others, times)
    layout = replace(before.layout, source=source, files=())
    fault = layout.fault(rows)
    if fault is not None:
        raise SpecError(f"{source.paths[0]}: {fault.replace('the file has', 'there is')}")
    return layout


def _snapshots_due(layout: Layout, before: Before | None, until: int) -> Layout:
    """Return the layout without snapshots that only show later changes: the runs that release these read them.

    Raises:
        InputError: a snapshot is missing or late.
    """
    earlier = () if before is None else before.read
    refuse_gaps(layout.source, [file.path for file in earlier + layout.files], until=until)
    instants = [instant_of(layout.source, file.path) for file in layout.files]
    last = until if layout.earlier else max(until, instants[0])
    due = tuple(file for file, instant in zip(layout.files, instants, strict=True) if instant <= last)
    return replace(layout, files=due, base=layout.base if due else ())


def _unread(source: Source, before: Before) -> Layout:
    """The layout of the first run, with the files that no run has read.

    Raises:
        InputError: a file that was read has changed, although its old content is part of published numbers. Or a
            snapshot cannot be compared with the previous one.
    """
    source = named(source)
    read = {file.path: file for file in before.read}
    found = find_files(source, taken=before.read)
    for file in found:
        if read.get(file.path, file) != file:
            raise InputError(
                f"{file.path}: has changed since an earlier run read it; restore the file, and put new changes "
                "into new files"
            )
    new = tuple(file for file in found if file.path not in read)
    base = base_of(source, read, found) if source.every is not None and new else ()
    return replace(before.layout, source=source, files=new, earlier=len(read), base=base)
