"""Layer: whole runs on two neighbouring changelogs, whose public sides must be equal in everything.

Both runs publish the same noisy nodes: the second one gets noise that makes up for the difference of the exact nodes.
Published numbers are a function of noisy nodes, so all files must be equal, too: their names, sizes, rows, statistics,
the manifest and the messages. Noise hides no difference between them.
"""

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.audit.alone import lonely_keys
from pipelines.audit.files import write
from pipelines.audit.findings import LayerResult
from pipelines.audit.lives import Life, Surroundings, neighbours
from pipelines.audit.sensitivity import zero_noise
from pipelines.audit.shared_noise import NoiseNode, SharedNoise, name_of, wide
from pipelines.audit.stages import Epochs, Released, Stages
from pipelines.audit.synthetic import MARK, Mutation
from pipelines.audit.whole_bounds import halves
from pipelines.run.operation import run
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text
from pipelines.store.notes import NOTES
from privacy.series import Ints
from transforms.common.errors import SlackwaterError
from transforms.common.output_formats import read_whole

PROGRESS = "working: "
"""Beginning of the lines of a slow run about its progress, which depend on the machine."""

CHANGING = ("attempt", "committed_at")
"""Members of a manifest that each run chooses."""


@dataclass(frozen=True, slots=True)
class Public:
    """Public output of runs.

    Attributes:
        files: Content of each public file, by its name without the attempt.
        said: Messages of the runs, without times.
    """

    files: dict[str, bytes]
    said: tuple[str, ...]


def check_whole(spec: Spec, stages: Stages, lives: Sequence[Life], setting: Surroundings) -> LayerResult:
    """Run the copy of a spec on the two changelogs of some lives, in two epochs each, and compare all public output.

    Args:
        spec: The copy.
        stages: Its stages.
        lives: The lives; their epochs are replaced by two, and in every second one the unit is the only one.
        setting: Facts about the spec.
    """
    cuts = halves(setting)
    faults: dict[str, None] = {}
    files = said = 0
    untested: dict[str, None] = {}
    try:
        for number, life in enumerate(lives):
            among = setting if number % 2 == 0 else replace(setting, others=_after_all(setting))
            found, first, why = _compared(spec, stages, neighbours(replace(life, cuts=cuts), among), setting)
            faults |= dict.fromkeys(found)
            untested |= dict.fromkeys(why)
            files, said = files + len(first.files), said + len(first.said)
        faults |= dict.fromkeys(_leaks_of_error(spec, stages, neighbours(lives[0], setting)[0]))
    except SlackwaterError as error:
        faults[f"a run on synthetic data fails: {error}"] = None
    return LayerResult(
        name="whole runs",
        question="Does anything public differ between neighbours that have the same noisy nodes?",
        tried={"runs": 2 * len(cuts) * len(lives) + 1, "public files compared": files, "messages compared": said},
        found=("names, sizes, rows, statistics, manifests and messages are equal",) if not faults else (),
        faults=(*faults,)[:8],
        untested=(*untested,),
    )


def _compared(
    spec: Spec, stages: Stages, pair: tuple[Epochs, Epochs], setting: Surroundings
) -> tuple[list[str], Public, list[str]]:
    """Return how the public sides of two runs differ, the first of them, and what cannot be compared."""
    left, right = pair
    with zero_noise():
        one, two = stages.release(left), stages.release(right)
    adaptive = any(not one.parts(key) for key in one.stages.keys)
    shared = SharedNoise(universe=stages.universe, hidden=_hidden(one, two), reach=wide(stages.thresholds))
    first = _run(spec, stages, left, setting, shared)
    missing = bool(shared.asked - {node for node, _ in _exact_difference(one, one)})
    second = _run(spec, stages, right, setting, replace(shared, less=dict(_exact_difference(two, one))))
    faults = [*_differences(first, second, loose=missing, adaptive=adaptive), *_leaks(first)]
    return faults, first, [text for text, holds in ((_DECIDED, adaptive), (_LATER, missing)) if holds]


def _hidden(one: Released, two: Released) -> dict[int, set[str]]:
    """Return keys that noise must hide, by query: those whose names must stay private, or that may be found in one."""
    alone = lonely_keys(one, two)
    return {
        number: {key for key in keys.to_pylist() if MARK in key or key in alone[number]}
        for number, keys in one.stages.universe.items()
    }


def _after_all(setting: Surroundings) -> tuple[Mutation, ...]:
    """Return one row that no window counts, so that no file is empty."""
    row = Mutation("other-last", setting.timeline.until + 1, 0, None, dict(setting.corners[0]))
    owned = None if setting.owner is None else "other-last"
    return (
        replace(row, owner=owned, after={**setting.corners[0], **({setting.owner: owned} if setting.owner else {})}),
    )


_DECIDED = "Files whose numbers the data decide are compared by names and rows only."
_LATER = "Numbers with noise of nodes that end later are compared by rows only."


def _exact_difference(one: Released, two: Released) -> Iterator[tuple[NoiseNode, Ints]]:
    """Yield the difference of each exact node."""
    for key in one.stages.keys:
        for part, left, right in zip(one.parts(key), one.nodes(key), two.nodes(key), strict=True):
            names: list[tuple[int, int, int]] = []
            for since, last, _ in one.blocks[key]:
                nodes = part.strategy.nodes(last // part.leaf, since=since // part.leaf if since else None)
                names += zip(nodes.layer.tolist(), nodes.begin.tolist(), nodes.end.tolist(), strict=True)
            for component, (x, y) in enumerate(zip(left, right, strict=True)):
                for name, row in zip(names, x - y, strict=True):
                    yield (*name_of(part), component, *name), row


def _run(spec: Spec, stages: Stages, epochs: Epochs, setting: Surroundings, shared: SharedNoise) -> Public:
    """Run all epochs from empty folders, and return what became public."""
    data = emptied(spec)
    said, attempts = io.StringIO(), []
    for number, (rows, windows) in enumerate(epochs):
        write(spec, stages.columns, rows, data / f"{number:02d}{Path(spec.changelog.source.paths[0]).suffix}")
        with shared.used(), redirect_stdout(said), redirect_stderr(said):
            ran = run(spec.path, until=moment_text(setting.end(windows)), shards=2)
            print(ran.text())
    folder = Path(spec.output.public)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    attempts = [epoch["attempt"] for epoch in manifest["epochs"]]
    hide = re.compile("|".join(map(re.escape, [*attempts, *(name.split("-")[-1] for name in attempts)])))
    files = {
        hide.sub("ATTEMPT", str(path.relative_to(folder))): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    told = [line for line in said.getvalue().splitlines() if not line.startswith(PROGRESS)]
    lines = tuple(re.sub(r"in \d+\.\d s", "in T s", hide.sub("ATTEMPT", line)) for line in told)
    return Public(files, lines)


def emptied(spec: Spec) -> Path:
    """Remove the folders of the copy's release, and return an empty folder for its changelog."""
    data = Path(spec.changelog.source.paths[0]).parent
    for folder in (data, spec.base / NOTES, *map(Path, spec.output.folders)):
        rmtree(folder, ignore_errors=True)
    data.mkdir(parents=True)
    return data


def _differences(one: Public, two: Public, *, loose: bool, adaptive: bool) -> Iterator[str]:
    if [*one.files] != [*two.files]:
        yield "the names of public files differ"
        return
    if one.said != two.said:
        yield "the messages of the runs differ"
    for name, left in one.files.items():
        right = two.files[name]
        if name == "manifest.json":
            if _steady(left, sizes=not (loose or adaptive)) != _steady(right, sizes=not (loose or adaptive)):
                yield "the manifests differ"
        elif left != right:
            yield from _of_tables(name, left, right, loose=loose or adaptive)


def _steady(manifest: bytes, *, sizes: bool) -> Any:
    """Return the members of a manifest that do not depend on the run."""
    document = json.loads(manifest)
    for epoch in document["epochs"]:
        epoch["files"] = {
            name.replace(epoch["attempt"], "A"): digest.get("size") if sizes else None
            for name, digest in epoch["files"].items()
        }
        for name in CHANGING:
            epoch.pop(name)
    return document


def _of_tables(name: str, left: bytes, right: bytes, *, loose: bool) -> Iterator[str]:
    """Yield how two different files differ: only the last digits of computed numbers may."""
    if "/" not in name:
        yield f"{name} differs"
        return
    of = name.rpartition("/")[0].split("/")[0]
    one, two = (read_whole(content, name) for content in (left, right))
    if one.schema != two.schema or one.num_rows != two.num_rows:
        yield f"a file of {of}: its rows or columns differ"
        return
    for column in one.column_names:
        x, y = one[column], two[column]
        if x.equals(y) or (loose and pa.types.is_floating(x.type)) or (loose and column == "sampled"):
            continue
        if (
            of == "nodes"
            or not pa.types.is_floating(x.type)
            or not np.allclose(x, y, rtol=1e-9, atol=1e-9, equal_nan=True)
        ):
            yield f"a file of {of}: column {column} differs"


def _leaks(public: Public) -> Iterator[str]:
    """Yield where keys or values of the synthetic changelog are public."""
    for name, content in public.files.items():
        told = content if "/" not in name else content + repr(read_whole(content, name).to_pydict()).encode()
        if MARK.encode() in told or MARK in name:
            yield f"{name.rpartition('/')[0] or name}: holds a key or a value of the changelog"
    if any(MARK in line for line in public.said):
        yield "a message holds a key or a value of the changelog"


def _leaks_of_error(spec: Spec, stages: Stages, epochs: Epochs) -> Iterator[str]:
    """Yield whether the error about an unusable row shows it."""
    suffix = Path(spec.changelog.source.paths[0]).suffix
    if suffix == ".parquet":
        return
    data, (rows, _) = emptied(spec), epochs[0]
    path = data / f"00{suffix}"
    write(spec, stages.columns, rows, path)
    broken = f'"{MARK}","{MARK}","{MARK}"\n' if suffix == ".csv" else f'{{"{MARK}": "{MARK}"}}\n'
    with path.open("a", encoding="utf-8") as file:
        file.write(broken)
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said), zero_noise():
            run(spec.path, until=moment_text(stages.job.aggregation.timeline.until), shards=2)
    except SlackwaterError as error:
        said.write(str(error))
    else:
        yield "a run accepts an unusable row"
    if MARK in said.getvalue() or any(MARK in str(path) for path in Path(spec.output.private).rglob("*")):
        yield "an error or a private file name shows a key or a value of the changelog"
