"""Find the known releases about the same people, and the sum of their budgets.

Budgets of all releases add up. The first run of a release shows the sum, and so does `ledger`. A release
is known by a spec in the same folder that reads the same data (`same_data`), by a note that it left (`notes`), and by
records on the private side: a release that begins leaves a record of itself in each of the others' folders, and records
of the others in its own folder. The search follows the records that it finds. A release counts from its first commit
on.

If a folder is missing, was moved or cannot be read, its record or spec states its budget. Releases that only this
folder knew do not count, so the sum is then shown as a lower bound (*at least*). The same applies if a spec or a note
there cannot be read. The id in a moved folder identifies it. Releases elsewhere are unknown.
"""

from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML

from pipelines.spec.load import Spec, load
from pipelines.spec.other_specs import other_specs
from pipelines.store.commit import Commit
from pipelines.store.folder import folder_at
from pipelines.store.kept_plan import read_plan
from pipelines.store.notes import RECORDS, SELF, Note, keep, notes_for, refuse_begun, with_id
from pipelines.store.record import CODEC
from pipelines.store.same_data import SameData, absolute, patterns_of
from pipelines.store.store import Store
from pipelines.store.together import Known, Record
from privacy.json_values import indented, parsed
from privacy.protection import Protection
from transforms.common.cloud import refuse_unreachable


@dataclass(frozen=True, slots=True)
class _Found:
    """Content of a private folder: its id (empty: none yet), its release if that has begun, records of others."""

    id: str
    begun: Record | None
    others: tuple[Record, ...]


def known(spec: Spec) -> Known:
    """Read the specs and notes in the folder of this spec, and follow the records."""
    own = _record(spec)
    specs, unread = other_specs(spec.path, "sums", load)
    notes, unread_notes = notes_for(spec.path)
    same = SameData(patterns_of(spec.changelog.source))
    noted = {path: note for path, note in notes.items() if _has_begun(note) and same.reads(note.data)}
    waiting = [own, *(note.record for note in noted.values())]
    waiting += [_record(other) for other in specs if same.reads(patterns_of(other.changelog.source))]
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
    by_id = {record.private for record in lost.values() if record.id}
    unseen = {
        key: record
        for key, record in lost.items()
        if key not in there and record.private != own.private and (record.id or record.private not in by_id)
    }
    others = [record for record in (*begun.values(), *unseen.values()) if record.private != own.private]
    mine = next((record for record in there.values() if record.private == own.private), own)
    return Known(
        own=replace(begun.get(mine.id or own.private, own), id=mine.id),
        others=tuple(sorted(others, key=lambda record: (record.release, record.private))),
        there=tuple(there.values()),
        unseen=tuple(sorted(record.private for record in unseen.values())),
        unread=tuple(sorted({*unread, *unread_notes, *same.unlisted})),
        before={
            path: note.record
            for path, note in noted.items()
            if note.spec == spec.path.name and (note.epochs or note.record.id in begun)
        },
    )


def _has_begun(note: Note) -> bool:
    """Whether a release has an epoch, as far as this is known; a first run may have failed."""
    if note.kind != "sums":
        return False
    found = None if note.epochs else _look(note.record)
    return found is None or found.begun is not None


def refuse_second(spec: Spec, found: Known) -> None:
    """
    Raises:
        RefusedError: the spec began a release of the same data in another private folder, or in one that is gone.
    """
    refuse_begun(spec.path, found.own.private, found.before, "run with --new-release NAME, which adds up both budgets")


def keep_note(spec: Spec, store: Store) -> str | None:
    """Keep a note of a release in the folder of its spec; return a warning if that is not possible.

    Raises:
        RefusedError: a note knows of more epochs than the private folder.
    """
    note = Note(
        kind="sums",
        spec=spec.path.name,
        data=patterns_of(spec.changelog.source),
        epochs=len(store.commits()),
        record=with_id(_record(spec)),
    )
    return keep(spec.path, note)


def write_down(found: Known) -> list[str]:
    """Write a record of the release into the folders of the others, and records of the others into its own folder.

    Returns:
        Folders of others that could not be written. A failure for the release's own folder is raised.
    """
    own = with_id(found.own)
    others, failed = [], []
    for record in found.there:
        if record.private == own.private:
            continue
        try:
            others.append(with_id(record))
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
        public=absolute(spec.output.public),
        private=absolute(spec.output.private),
        epsilon=spec.privacy.epsilon,
        delta=spec.privacy.delta,
        **_of_span(spec.privacy.protects),
    )


def _look(record: Record) -> _Found | None:
    """Read the private folder of a release; None if it cannot be read, or is not where a record says.

    If a spec names the release and the folder does not exist, the release has not begun.
    """
    try:
        refuse_unreachable([record.private])
        folder = folder_at(record.private, private=True)
        own = folder.read(SELF)
        names = [name for name in folder.files(RECORDS) if name != SELF] if own is not None else []
        others = [CODEC.read(Record, parsed(content)) for content in folder.read_all(names) if content is not None]
        commits = Store(record.public, record.private).commits()
        id_ = "" if own is None else str(parsed(own)["id"])
        begun = _frozen(record, commits[0]) if commits else None
    except Exception:  # each file system raises other errors, and an unreadable release is unknown
        return None
    return _Found(id_, begun, tuple(others))


def _of_span(protects: Protection) -> dict[str, Any]:
    """Return the fields of a record that state the protection."""
    span = protects.span
    return {"span": None, "near": {}} if span is None else {"span": span.length, "near": dict(span.near)}


def _frozen(record: Record, first: Commit) -> Record:
    """Return the record of a release as its first epoch states it; its spec may have changed since."""
    privacy = YAML(typ="safe", pure=True).load(first.spec)["privacy"]
    protects = read_plan(first.plan).plan.promise.protects
    return replace(
        record,
        release=first.release,
        unit=privacy.get("unit", "entry"),
        epsilon=float(privacy["epsilon"]),
        delta=float(privacy.get("delta", 0)),
        **_of_span(protects),
    )


def _write(private: str, record: Record) -> None:
    folder = folder_at(private, private=True)
    with folder.lock():
        folder.write(f"{RECORDS}/{record.id}.json", indented(CODEC.write(record)))
