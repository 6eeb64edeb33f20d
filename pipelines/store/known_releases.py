"""Which releases about the same people are known from here, and what all of them cost together.

Budgets add up, whatever the releases publish, so whoever begins one is shown the sum, and `ledger` shows it. A release
is known by a spec in the same folder that reads the same changelog, and by records on the private side: one that begins
leaves a record of itself in each of the others' folders, and one of each of them in its own. What is found leads
further. A release counts from its first commit on.

A folder that is gone, was moved or cannot be read counts as its record or spec says. What it alone knew does not, so
that the sum is then shown as *at least* so much. Moved folders are known again by the id that they hold. Of releases
elsewhere nothing can be known.
"""

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from ruamel.yaml import YAML

from pipelines.spec.load import Spec, load
from pipelines.store.commit import Commit
from pipelines.store.folder import folder_at
from pipelines.store.kept_plan import read_plan
from pipelines.store.store import Store
from pipelines.store.together import Known, Record
from privacy.protection import Span
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError

RECORDS = "releases"
SELF = f"{RECORDS}/self.json"


@dataclass(frozen=True, slots=True)
class _Found:
    """What a private folder holds: its id (empty: none yet), its release if that has begun, records of others."""

    id: str
    begun: Record | None
    others: tuple[Record, ...]


def known(spec: Spec) -> Known:
    """Look at the specs beside this one and follow the records."""
    own = _record(spec)
    waiting = [own, *(_record(other) for other in _beside(spec))]
    seen: dict[str, _Found | None] = {}
    there: dict[str, Record] = {}
    begun: dict[str, Record] = {}
    lost: dict[str, Record] = {}
    while waiting:
        record = waiting.pop()
        path = record.private
        new = path not in seen
        if new:
            seen[path] = _look(record)
        found = seen[path]
        if found is None or (record.id and record.id != found.id):
            lost[record.id or path] = record
        if found is None or not new:
            continue
        key = found.id or path
        if found.id or found.begun:
            there[key] = replace(record, id=found.id)
        if found.begun:
            begun[key] = replace(found.begun, id=found.id)
        waiting += found.others
    noted = {record.private for record in lost.values() if record.id}
    unseen = {
        key: record
        for key, record in lost.items()
        if key not in there and record.private != own.private and (record.id or record.private not in noted)
    }
    others = [record for record in (*begun.values(), *unseen.values()) if record.private != own.private]
    mine = next((record for record in there.values() if record.private == own.private), own)
    return Known(
        own=replace(begun.get(mine.id or own.private, own), id=mine.id),
        others=tuple(sorted(others, key=lambda record: (record.release, record.private))),
        there=tuple(there.values()),
        unseen=tuple(sorted(record.private for record in unseen.values())),
    )


def write_down(found: Known) -> list[str]:
    """Write down what is known: the release in the folders of the others, and they in its own.

    Returns:
        folders of others that could not be written; the release's own can.
    """
    own = replace(found.own, id=found.own.id or _given(found.own))
    others, failed = [], []
    for record in found.there:
        if record.private == own.private:
            continue
        try:
            others.append(replace(record, id=record.id or _given(record)))
            _write(record.private, own)
        except Exception:  # each file system has its own
            failed.append(record.private)
    lost = [record for record in found.others if record.id and record.private in found.unseen]
    for record in (*others, *lost):
        _write(own.private, record)
    return failed


def _record(spec: Spec) -> Record:
    return Record(
        release=spec.release,
        unit=spec.privacy.unit,
        public=_absolute(spec.output.public),
        private=_absolute(spec.output.private),
        epsilon=spec.privacy.epsilon,
        delta=spec.privacy.delta,
        span=protects.length if isinstance(protects := spec.privacy.protects, Span) else None,
        near=dict(protects.near) if isinstance(protects, Span) else {},
    )


def _beside(spec: Spec) -> Iterable[Spec]:
    """The specs in the folder of this one that read a file that it reads."""
    if spec.path.parts[:1] == ("gs:",):
        return
    paths = {_absolute(path) for path in spec.changelog.source.paths}
    for path in sorted(spec.path.parent.iterdir()):
        if path.suffix not in (".yaml", ".yml") or path.name == spec.path.name:
            continue
        try:
            other = load(path)
        except SpecError:  # other YAML, most likely
            continue
        if paths & {_absolute(path) for path in other.changelog.source.paths}:
            yield other


def _look(record: Record) -> _Found | None:
    """What a release's private folder holds; None if it is not known, or if it is not where a record says.

    Of a release that a spec names, a folder that is not there is one that has not begun.
    """
    try:
        refuse_unreachable([record.private])
        folder = folder_at(record.private, private=True)
        own = folder.read(SELF)
        names = [name for name in folder.files(RECORDS) if name != SELF] if own is not None else []
        others = [Record(**json.loads(content)) for content in folder.read_all(names) if content is not None]
        commits = Store(record.public, record.private).commits()
        id_ = "" if own is None else str(json.loads(own)["id"])
        begun = _frozen(record, commits[0]) if commits else None
    except Exception:  # each file system has its own, and what is not understood is not known
        return None
    return _Found(id_, begun, tuple(others))


def _frozen(record: Record, first: Commit) -> Record:
    """A release as it began, whatever its spec says by now."""
    privacy = YAML(typ="safe", pure=True).load(first.spec)["privacy"]
    protects = read_plan(first.plan).plan.promise.protects
    return replace(
        record,
        release=first.release,
        unit=privacy.get("unit", "entry"),
        epsilon=float(privacy["epsilon"]),
        delta=float(privacy.get("delta", 0)),
        span=protects.length if isinstance(protects, Span) else None,
        near=dict(protects.near) if isinstance(protects, Span) else {},
    )


def _given(record: Record) -> str:
    """The id of a release, which is given to it now if it has none."""
    folder = folder_at(record.private, private=True)
    folder.make()
    with folder.lock():
        standing = folder.read(SELF)
        if standing is None:
            standing = json.dumps({"id": secrets.token_hex(8), "release": record.release}).encode()
            folder.write(SELF, standing)
    return str(json.loads(standing)["id"])


def _write(private: str, record: Record) -> None:
    folder = folder_at(private, private=True)
    with folder.lock():
        folder.write(f"{RECORDS}/{record.id}.json", json.dumps(_members(record), indent=1).encode())


def _members(record: Record) -> dict[str, object]:
    """Without what earlier versions do not know, where it says nothing."""
    members = asdict(record)
    if not record.near:
        del members["near"]
    return members


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100 - a glob is no path that resolves
