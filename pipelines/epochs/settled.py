"""What one run of a release leaves for the next: what the first run settled, and what was read.

The first run decides how columns are typed, into how many shards units are split, and how the release is planned. All
later ones hold to it, since units' state is sharded and noise is sampled by it. The plan is in the first commit
(pipelines.epochs.plans), the rest in `settled.json` beside the state, on the private side.
"""

import difflib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.job import Before, Job
from pipelines.epochs.plans import committed_plan, plan_json
from pipelines.spec.load import Spec
from pipelines.store.attempt import Attempt
from pipelines.store.commit import Commit, ReadFile
from pipelines.store.store import FileNames, Store
from privacy.planning.plan import Plan
from transforms.aggregation.shard_state import STATE, file_of
from transforms.aggregation.shard_state import VERSION as UNITS
from transforms.common.errors import RefusedError
from transforms.common.sinks import is_there, read_bytes, write_bytes
from transforms.release import noise_state
from transforms.release.file_names import has_nodes, noise_file, part_names
from transforms.release.release import ESTIMATES, NODES
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.sides import Side
from transforms.sources.files.listing import Listed, joined

SETTLED = "settled.json"

STATE_VERSION = f"{UNITS.decode()}.{noise_state.VERSION}"
"""Of the state of units and of that of noise."""


def record_of(spec: Spec, job: Job, attempt: Attempt) -> Commit:
    """What a run states of its epoch."""
    timeline, budget = job.aggregation.timeline, job.plan.budget
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
        loss={"epsilon": budget.epsilon, "delta": budget.delta},
        statement=job.plan.statement,
        plan=plan_json(spec, job.plan) if attempt.epoch == 1 else "",
        sources=tuple(
            ReadFile(path=f.path, size=f.size, updated=float(f.updated).hex()) for f in joined(job.layout.files)
        ),
    )


def files_of(spec: Spec, job: Job) -> FileNames:
    """The files that an attempt at an epoch makes, whatever the data: what is committed is held against them."""
    aggregation, keys = job.aggregation, job.aggregation.node_keys()
    estimates = [f"{name}.{spec.output.format}" for key in keys for name in part_names(aggregation, key)]
    noded = [key for key in keys if has_nodes(aggregation, key)]
    nodes = [f"{name}.{spec.output.format}" for key in noded for name in part_names(aggregation, key)]
    noise = [noise_file(key) for key in keys]
    units = [file_of(shard) for shard in range(job.shards)]
    return {NODES: nodes, ESTIMATES: estimates, STATE: [*units, *noise, SETTLED] if goes_on(spec, job) else ()}


def goes_on(spec: Spec, job: Job) -> bool:
    """Whether there are windows after those of this epoch, so that a state is kept."""
    return spec.schedule.windows is None or job.aggregation.timeline.windows < spec.schedule.windows


def keep_settled(attempt: Attempt, job: Job) -> None:
    """Write what all later runs hold to into the state of an attempt."""
    layout = job.layout
    document = {
        "state": STATE_VERSION,
        "shards": job.shards,
        "entry": layout.entry,
        "order": layout.order,
        "owner": layout.owner,
        "sides": [{"side": s.side, "name": s.name, "struct": s.struct} for s in layout.sides],
        "states": layout.states,
    }
    write_bytes((SETTLED, json.dumps(document, indent=1).encode()), FileSystems.join(attempt.folder, STATE))


def settled_by(spec: Spec, store: Store, commits: Sequence[Commit]) -> Before:
    """What these epochs, at least one, have settled and read.

    Raises:
        RefusedError: the state is not there, not what was committed, or of another version of the program.
    """
    last = commits[-1]
    path = FileSystems.join(store.attempts.state_folder(last), SETTLED)
    content = read_bytes(path) if is_there(path) else b""
    digest = last.state.get(SETTLED)
    if digest is None or hashlib.sha256(content).hexdigest() != digest.sha256:
        raise RefusedError(
            f"{path}: missing, or not what epoch {last.epoch} left; restore the private folder from a copy, "
            "since without its state units would contribute anew"
        )
    document: dict[str, Any] = json.loads(content)
    if document.get("state") != STATE_VERSION:
        raise RefusedError(
            f"{path}: the state of units and noise is not of this version of the program; go on with the version that "
            "began the release, or choose other output folders and add up both budgets"
        )
    return Before(
        layout=Layout(
            source=spec.changelog.source,
            files=(),
            entry=document["entry"],
            order=tuple(document["order"]),
            owner=document["owner"],
            sides=tuple(Side(**side) for side in document["sides"]),
            states=tuple((column, kind) for column, kind in document["states"]),
        ),
        shards=document["shards"],
        plan=committed_plan(spec, commits),
        read=tuple(
            Listed(source.path, source.size, float.fromhex(source.updated))
            for commit in commits
            for source in commit.sources
        ),
    )


def refuse_another_plan(job: Job, plan: Plan) -> None:
    """
    Raises:
        RefusedError: the job was planned by itself, and then another run began the release with this plan. Noise that
            was sampled under one does not fit the other.
    """
    if job.plan != plan:
        raise RefusedError(
            "another run has begun this release in the meantime, with another plan, which is the release's from now "
            "on; start again, and it goes on from there"
        )


def refuse_another_beginning(job: Job, before: Before) -> None:
    """
    Raises:
        RefusedError: this job was made before anything was published, and then another run settled otherwise what all
            hold to. Under other shards, units would be sought where they are not, and contribute anew.
    """
    refuse_another_plan(job, before.plan)
    own = replace(job.layout, source=before.layout.source, files=(), earlier=0, base=())
    if job.shards != before.shards or own != before.layout:
        raise RefusedError(
            "another run has begun this release in the meantime, with other shards or other types of columns; start "
            "again, and it goes on from there"
        )


def refuse_another(spec: Spec, commits: Sequence[Commit]) -> None:
    """
    Raises:
        RefusedError: the folders hold a release that was made from another spec; the message shows the difference.
    """
    first = commits[0]
    if first.spec_sha256 == spec.sha256:
        return
    lines = difflib.unified_diff(first.spec.splitlines(), spec.text.splitlines(), "frozen", "now", lineterm="", n=0)
    changes = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    raise RefusedError(
        f"{spec.output.private}: holds release {first.release!r} made from another spec, and a second release spends a "
        "second budget; restore that spec, or run with --new-release NAME, which adds up both budgets\n"
        + "\n".join(f"  {line}" for line in changes[:40])
    )
