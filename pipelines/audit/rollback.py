"""Layer: folders that are restored from an older copy, whose noise the next run would sample a second time.

A copy of the spec names a witness, even if the spec has none. After two epochs the folders of the first one come back:
the public or the private one alone, or both together with the notes, so that only the witness knows of the second
epoch. No published number may then get a second value.
"""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from ruamel.yaml import YAML

from pipelines.audit.findings import LayerResult
from pipelines.audit.forked import forked
from pipelines.audit.kills import begun, rows_of, rows_of_life, run_until
from pipelines.audit.prepared import Prepared
from pipelines.audit.whole_bounds import halves
from pipelines.spec.load import load
from pipelines.store.notes import NOTES

RESTORED = ("public", "private", "both")


def check_rollback(ready: Prepared, choose: Random) -> LayerResult:
    """Restore older folders, run again, and compare published nodes.

    Args:
        ready: The copy of a spec.
        choose: Source of random choices.
    """
    ready = _witnessed(ready)
    base, rows, faults, refused = ready.spec.base, rows_of_life(ready, choose), list[str](), 0
    folders = {"public": Path(ready.spec.output.public), "private": Path(ready.spec.output.private)}
    folders |= {"notes": base / NOTES}
    begun(ready, rows)
    Path(ready.spec.output.witness or "").unlink(missing_ok=True)
    cuts = halves(ready.setting)
    done = True
    for number, windows in enumerate(cuts):
        done &= forked(base, partial(run_until, ready, windows)).done
        _copied(folders, base / f"after-{number}")
    first = {row[:-1]: row[-1] for row in rows_of(ready)}
    if not done:
        faults.append("a run with a witness fails")
    for restored in RESTORED if done and len(cuts) > 1 else ():
        _restored(folders, base / f"after-{len(cuts) - 1}", folders)
        names = folders if restored == "both" else {restored: folders[restored]}
        _restored(names, base / "after-0", folders)
        refused += not forked(base, partial(run_until, ready, cuts[-1])).done
        again = {row[:-1]: row[-1] for row in rows_of(ready)}
        if any(again[node] != first[node] for node in again.keys() & first.keys()):
            what = "both folders are" if restored == "both" else f"the {restored} folder is"
            faults.append(f"nodes get a second sample after {what} restored from an older copy")
    return LayerResult(
        name="rollback",
        question="Do published numbers change if older folders are restored, and does the witness notice it?",
        tried={"restored copies": len(RESTORED), "runs that refused to continue": refused},
        faults=tuple(faults),
    )


def _witnessed(ready: Prepared) -> Prepared:
    """Return the copy of the spec with a witness, next to the one without."""
    path = Path(ready.spec.path)
    yaml = YAML(typ="safe", pure=True)
    content = yaml.load(path)
    content["output"]["witness"] = str(ready.spec.base / "witness")
    other = path.with_name("witnessed.yaml")
    with other.open("w", encoding="utf-8") as file:
        YAML(pure=True).dump(content, file)
    return replace(ready, spec=load(other))


def _copied(folders: dict[str, Path], place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    for name, folder in folders.items():
        if folder.exists():
            shutil.copytree(folder, place / name, symlinks=True)


def _restored(names: dict[str, Path], place: Path, folders: dict[str, Path]) -> None:
    for name in names:
        shutil.rmtree(folders[name], ignore_errors=True)
        if (place / name).exists():
            shutil.copytree(place / name, folders[name], symlinks=True)
