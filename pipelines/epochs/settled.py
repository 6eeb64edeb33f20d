"""Decisions of the first run of a release that all later runs keep, and the files that were read.

The first run decides the types of columns, the number of shards, and the plan. All later runs keep these decisions,
because the state of units is sharded and noise is sampled by them. The plan is in the first commit
(pipelines.epochs.plans), the rest in `settled.json` next to the state, on the private side.
"""

import difflib
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from apache_beam.io.filesystems import FileSystems

from pipelines.common.version import program
from pipelines.disclosure.facts import Subject, disclosure, page_texts
from pipelines.epochs.found_keys import found_keys
from pipelines.epochs.job import Before, Job
from pipelines.epochs.plans import committed_plan, plan_json
from pipelines.spec.document import document_of
from pipelines.spec.load import Spec
from pipelines.store.attempt import Attempt
from pipelines.store.commit import Commit, ReadFile
from pipelines.store.record import CODEC, disclosed
from pipelines.store.store import FileNames, Store
from privacy.json_values import indented, parsed
from privacy.noise.sampling import SAMPLERS
from privacy.planning.plan import Plan
from transforms.aggregation.shard_state import STATE, file_of
from transforms.aggregation.shard_state import VERSION as UNITS
from transforms.common.errors import RefusedError
from transforms.common.sinks import is_there, read_bytes, write_bytes
from transforms.common.zones import tzdata
from transforms.release import noise_state
from transforms.release.file_names import has_nodes, noise_file, part_names
from transforms.release.release import ESTIMATES, NODES
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.sides import Side
from transforms.sources.files.listing import Listed, joined

SETTLED = "settled.json"

STATE_VERSION = f"{UNITS.decode()}.{noise_state.VERSION}"
"""Version of the state of units and of the state of noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """Decisions of the first run that all runs of a release keep.

    Attributes:
        state: Version of the state of units and noise.
        shards: Number of shards.
        zones: Version of `tzdata` of the epoch's run; None if the spec names no time zone.
        entry, order, owner, sides, states: As in `transforms.sources.columns.layout.Layout`.
    """

    state: str
    shards: int
    zones: str | None
    entry: str
    order: tuple[str, ...]
    owner: str | None
    sides: tuple[Side, ...]
    states: tuple[tuple[str, str], ...]


def record_of(spec: Spec, job: Job, attempt: Attempt, commits: Sequence[Commit]) -> Commit:
    """Return the commit of an epoch as its run states it.

    Args:
        spec: Spec of the release.
        job: The job.
        attempt: The attempt whose files are committed.
        commits: Commits of the epochs before it.
    """
    timeline = job.aggregation.timeline
    subject = Subject(spec=spec, plan=job.plan, program=program(), sampler=SAMPLERS)
    facts = {**disclosure(subject), **page_texts(spec)}
    return Commit(
        release=spec.release,
        epoch=attempt.epoch,
        spec_sha256=spec.sha256,
        spec=spec.text,
        released=timeline.released,
        windows=timeline.windows,
        start=timeline.closed,
        until=timeline.until,
        ends=() if timeline.ends is None else timeline.ends[timeline.released : timeline.windows],
        loss=job.plan.budget,
        statement=job.plan.statement,
        plan=plan_json(spec, job.plan) if attempt.epoch == 1 else "",
        sources=tuple(
            ReadFile(path=f.path, size=f.size, updated=float(f.updated).hex()) for f in joined(job.layout.files)
        ),
        program=program(),
        sampler=SAMPLERS,
        witnessed=spec.output.witness is not None,
        disclosure={} if facts == disclosed(commits) else facts,
        found=found_keys(job, attempt, spec.output.format, commits),
    )


def files_of(spec: Spec, job: Job) -> FileNames:
    """Return the names of the files that an attempt makes for all data; committed files are compared with them."""
    aggregation, keys = job.aggregation, job.aggregation.node_keys()
    estimates = [f"{name}.{spec.output.format}" for key in keys for name in part_names(aggregation, key)]
    noded = [key for key in keys if has_nodes(aggregation, key)]
    nodes = [f"{name}.{spec.output.format}" for key in noded for name in part_names(aggregation, key)]
    noise = [noise_file(key) for key in keys]
    units = [file_of(shard) for shard in range(job.shards)]
    return {NODES: nodes, ESTIMATES: estimates, STATE: [*units, *noise, SETTLED] if goes_on(spec, job) else ()}


def goes_on(spec: Spec, job: Job) -> bool:
    """Return whether there are windows after this epoch, so that a state is kept."""
    return spec.schedule.windows is None or job.aggregation.timeline.windows < spec.schedule.windows


def keep_settled(spec: Spec, attempt: Attempt, job: Job) -> None:
    """Write the decisions that all later runs keep into the state of an attempt.

    Args:
        spec: Spec of the release.
        attempt: Attempt at an epoch.
        job: Job of that epoch.
    """
    layout = job.layout
    settled = _Settled(
        state=STATE_VERSION,
        shards=job.shards,
        zones=_zones(spec),
        entry=layout.entry,
        order=layout.order,
        owner=layout.owner,
        sides=layout.sides,
        states=layout.states,
    )
    write_bytes((SETTLED, indented(CODEC.write(settled))), FileSystems.join(attempt.folder, STATE))


def settled_by(spec: Spec, store: Store, commits: Sequence[Commit]) -> Before:
    """Return the decisions of the first epoch, and the files that all epochs have read.

    Args:
        spec: Spec of the release.
        store: Its store.
        commits: Commits of all epochs so far, at least one.

    Raises:
        RefusedError: The state is missing, not what was committed, or of another version of the program.
    """
    last = commits[-1]
    path = FileSystems.join(store.attempts.state_folder(last), SETTLED)
    content = read_bytes(path) if is_there(path) else b""
    digest = last.state.get(SETTLED)
    if digest is None or hashlib.sha256(content).hexdigest() != digest.sha256:
        raise RefusedError(
            f"{path}: missing, or not what epoch {last.epoch} left; restore the private folder from a copy, "
            "since without its state units would contribute again"
        )
    document = parsed(content)
    if document.get("state") != STATE_VERSION:
        raise RefusedError(
            f"{path}: the state of units and noise is not of this version of the program; continue with the version "
            "that began the release, or choose other output folders and add up both budgets"
        )
    settled: _Settled = CODEC.read(_Settled, document)
    return Before(
        layout=Layout(
            source=spec.changelog.source,
            files=(),
            entry=settled.entry,
            order=settled.order,
            owner=settled.owner,
            sides=settled.sides,
            states=settled.states,
        ),
        shards=settled.shards,
        zones=settled.zones,
        plan=committed_plan(spec, commits),
        read=tuple(
            Listed(source.path, source.size, float.fromhex(source.updated))
            for commit in commits
            for source in commit.sources
        ),
    )


def warn_of_other_zones(spec: Spec, before: Before | None) -> None:
    """Print a warning if the epoch before was made with another version of `tzdata`."""
    zones = _zones(spec)
    if before is not None and before.zones != zones:
        print(
            f"slackwater: the last epoch was made with {before.zones}, and this run uses {zones}: if the rules of the "
            "time zone changed, later rows and windows have other times; published numbers do not change",
            file=sys.stderr,
            flush=True,
        )


def _zones(spec: Spec) -> str | None:
    """Return name and version of the package with the time zones that a spec names; None if it names none."""
    return tzdata() if spec.schedule.calendar or spec.changelog.source.timezone else None


def refuse_another_plan(job: Job, plan: Plan) -> None:
    """Refuse a job with another plan than the release.

    Raises:
        RefusedError: Another run began the release with another plan. Noise that was sampled with one plan does not fit
            the other.
    """
    if job.plan != plan:
        raise RefusedError(
            "another run has begun this release in the meantime, with another plan, which is the release's from now "
            "on; start again to continue from there"
        )


def refuse_another_beginning(job: Job, before: Before) -> None:
    """Refuse a job whose shards or types of columns differ from those of the release.

    Raises:
        RefusedError: Another run began the release with other shards or types. With other shards, the state of units
            would not be found, and units would contribute again.
    """
    refuse_another_plan(job, before.plan)
    own = replace(job.layout, source=before.layout.source, files=(), earlier=0, base=())
    if job.shards != before.shards or own != before.layout:
        raise RefusedError(
            "another run has begun this release in the meantime, with other shards or other types of columns; start "
            "again to continue from there"
        )


def _instead(frozen: str, now: str) -> str:
    """Return what to do about the spec of a release that has changed."""
    one, two = (document_of("spec", text).content for text in (frozen, now))
    end, other = (content["schedule"].pop("until", None) for content in (one, two))
    again = "run with --new-release NAME, which adds up both budgets"
    if one != two or end == other:
        return f"restore that spec, or {again}"
    if end is None:
        return "only schedule.until differs: remove it, since a release without an end stops when you no longer run it"
    return (
        f"only schedule.until differs, and a release keeps its end: restore it, and publish up to it; then write its "
        f"end, {end}, as schedule.start and the new end, and {again}; with the old start, it would publish all old "
        "windows again"
    )


def refuse_another(spec: Spec, commits: Sequence[Commit]) -> None:
    """Refuse folders with a release of another spec.

    Raises:
        RefusedError: The folders hold a release of another spec; the message shows the difference.
    """
    first = commits[0]
    if first.spec_sha256 == spec.sha256:
        return
    lines = difflib.unified_diff(first.spec.splitlines(), spec.text.splitlines(), "frozen", "now", lineterm="", n=0)
    changes = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    raise RefusedError(
        f"{spec.output.private}: holds release {first.release!r} made from another spec, and a second release spends a "
        f"second budget; {_instead(first.spec, spec.text)}\n" + "\n".join(f"  {line}" for line in changes[:40])
    )
