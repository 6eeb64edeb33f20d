"""Layer: runs that are killed at any access to their files, and completed by the next run.

A forked process runs the copy of a spec with real noise, and ends itself, as a kill would, at a chosen change of a file
or folder: before and after a commit and a new manifest, always, and anywhere, by chance. All files that are public then
must stay: the next run completes the release, and no node may have a second sample. Compactions are killed, too: they
must keep all rows.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.audit.files import write
from pipelines.audit.findings import LayerResult
from pipelines.audit.forked import Access, forked
from pipelines.audit.lives import neighbours
from pipelines.audit.mutations import random_life
from pipelines.audit.prepared import Prepared
from pipelines.audit.synthetic import Mutation
from pipelines.audit.whole import emptied
from pipelines.audit.whole_bounds import halves
from pipelines.compact.operation import compact
from pipelines.run.operation import run
from pipelines.spec.times import moment_text
from transforms.common.output_formats import read_whole

COMMIT, MANIFEST, JOINED = "/commits/", "manifest.json", "/compactions/"

OF_RUNS = (Access(1, COMMIT), Access(1, MANIFEST), Access(0, COMMIT), Access(0, MANIFEST))
"""Accesses at which runs are killed first: after and before the commit, and the manifest."""

OF_COMPACTIONS = (Access(0, MANIFEST), Access(1, JOINED), Access(0, JOINED), Access(1, MANIFEST))

MOST_IN_CROWD = 5000

_OF_VALUES = ("scale", "stddev", "ci_low", "ci_high")

NodeRows = list[tuple[str, ...]]


def check_kills(ready: Prepared, kills: int, choose: Random) -> LayerResult:
    """Kill runs and compactions, complete them, and compare everything that was ever public.

    Args:
        ready: The copy of a spec.
        kills: Number of releases whose runs are killed.
        choose: Source of random choices.
    """
    rows = rows_of_life(ready, choose)
    begun(ready, rows)
    cuts = halves(ready.setting)
    changes = [forked(ready.spec.base, partial(run_until, ready, windows)).changes for windows in cuts]
    faults: dict[str, None] = {} if all(changes) else {"a run that nobody kills fails": None}
    points, of_compactions, done = iter(OF_RUNS), cycle(OF_COMPACTIONS), 0
    for _ in range(kills):
        if faults:
            break
        begun(ready, rows)
        for windows, most in zip(cuts, changes, strict=True):
            forked(ready.spec.base, partial(run_until, ready, windows), next(points, Access(choose.randrange(most))))
            before = public(ready)
            if not forked(ready.spec.base, partial(run_until, ready, windows)).done:
                faults["a run that was killed cannot be completed"] = None
                break
            done += 1
            faults |= dict.fromkeys([*changed(before, public(ready)), *unpublished(ready, windows), *repeated(ready)])
        else:
            faults |= dict.fromkeys(_compacted(ready, next(of_compactions)))
    return LayerResult(
        name="kills",
        question="Can a run that is killed publish a second sample of a node, or lose one?",
        tried={
            "killed and completed runs": done,
            "changes of files in one release": sum(changes),
            "compactions": kills,
        },
        faults=(*faults,),
    )


def _compacted(ready: Prepared, kill: Access) -> Iterator[str]:
    """Kill a compaction and complete it; yield whether a row is lost, changed or repeated."""
    before = rows_of(ready)
    forked(ready.spec.base, partial(compact, ready.spec.path), kill)
    if sorted(rows_of(ready)) != sorted(before):
        yield "a compaction that was killed has changed the published nodes"
    if not forked(ready.spec.base, partial(compact, ready.spec.path)).done:
        yield "a compaction that was killed cannot be completed"
    if sorted(rows_of(ready)) != sorted(before):
        yield "a compaction has changed the published nodes"


def run_until(ready: Prepared, windows: int) -> None:
    """Release the first windows."""
    run(ready.spec.path, until=moment_text(ready.setting.end(windows)), shards=2)


def rows_of_life(ready: Prepared, choose: Random) -> Sequence[Any]:
    """Return the rows of a random life, among those of other units, and so many that a key is found."""
    ((rows, _), *_), _ = neighbours(random_life(ready.setting, choose), ready.setting)
    return [*rows, *_crowd(ready)]


def _crowd(ready: Prepared) -> list[Mutation]:
    """Return rows of units in one state, twice as many as a key needs to be found, but at most `MOST_IN_CROWD`."""
    plan, owner = ready.stages.job.plan, ready.setting.owner
    parts = [(part, plan.demands[query]) for query in ready.stages.universe if (part := plan.discovered_of(query))]
    needed = max((2 * int(part.found(demand, plan.promise)["entries_95"]) for part, demand in parts), default=0)
    start, state = ready.setting.end(0) + 1, ready.setting.corners[0]
    return [
        Mutation(name, start, 0, None, {**state, **({owner: name} if owner else {})}, owner and name)
        for name in (f"crowd-{number}" for number in range(min(needed, MOST_IN_CROWD)))
    ]


def begun(ready: Prepared, rows: Sequence[Any]) -> None:
    """Remove everything of earlier releases, and deliver rows."""
    data = emptied(ready.spec)
    write(ready.spec, ready.stages.columns, rows, data / f"00{Path(ready.spec.changelog.source.paths[0]).suffix}")


def public(ready: Prepared) -> dict[str, str]:
    """Return the digest of each public table."""
    folder = Path(ready.spec.output.public)
    names = [path for path in folder.rglob("*") if path.is_file() and path.parent != folder]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in names}


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return whether a public file has changed or is lost."""
    if any(after.get(name) != digest for name, digest in before.items() if "/." not in name):
        return ["a public file has changed, or is lost, after a run that was killed"]
    return []


def unpublished(ready: Prepared, windows: int) -> list[str]:
    """Return whether windows are missing in the manifest."""
    manifest = _manifest(ready)
    if manifest is None or manifest["windows"] != windows:
        return ["windows that a killed run has committed are never published"]
    return []


def repeated(ready: Prepared) -> list[str]:
    """Return whether a node is public twice, or a public table is not one of the manifest."""
    if (manifest := _manifest(ready)) is None:
        return []
    listed = {name for epoch in manifest["epochs"] for name in epoch["files"]}
    found = [] if public(ready).keys() == listed else ["the public tables are not those of the manifest"]
    nodes = [row[:-1] for row in rows_of(ready, {*public(ready)})]
    return found if len(nodes) == len(set(nodes)) else [*found, "a node is public twice"]


def rows_of(ready: Prepared, names: set[str] | None = None) -> NodeRows:
    """Return the published nodes with their values, of the tables that the manifest lists or of other ones.

    A query that finds keys publishes no nodes: its numbers take their place.
    """
    folder = Path(ready.spec.output.public)
    if names is None:
        names = {name for epoch in (_manifest(ready) or {"epochs": ()})["epochs"] for name in epoch["files"]}
    finding = [ready.spec.queries[query].name for query in ready.stages.universe]
    found: NodeRows = []
    for name in names:
        if "/." in name or not (folder / name).exists():
            continue
        if name.startswith("nodes/"):
            table, value = read_whole((folder / name).read_bytes(), name), "noisy_value"
        elif name.startswith("estimates/") and finding:
            table, value = read_whole((folder / name).read_bytes(), name), "value"
            table = table.filter(pc.is_in(table["query"], value_set=pa.array(finding)))
        else:
            continue
        keys = [key for key in table.column_names if key not in (value, *_OF_VALUES)]
        found += zip(*(map(str, table[key].to_pylist()) for key in (*keys, value)), strict=True)
    return found


def _manifest(ready: Prepared) -> Any:
    path = Path(ready.spec.output.public) / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
