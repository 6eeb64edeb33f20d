"""Notes of the releases that specs began. A spec that is edited in place no longer names its old folders; its note
does.

A note is a file in `.slackwater`, in the folder of the spec. If that cannot be written, it is in the user's state
folder (`XDG_STATE_HOME`, by default `~/.local/state`), in `slackwater/` and a digest of the folder of the spec. It
names the private folder, the globs of the data and the budget.
"""

import hashlib
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.spec.kinds import SpecKind
from pipelines.store.folder import folder_at
from pipelines.store.local import LocalFolder
from pipelines.store.record import CODEC
from pipelines.store.together import Record
from privacy.counted import counted
from privacy.json_values import indented, parsed
from transforms.common.errors import RefusedError

NOTES = ".slackwater"

RECORDS = "releases"
SELF = f"{RECORDS}/self.json"
"""In the private folder: the id of its release. It stays the same if the folder is moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A release that a spec began.

    Attributes:
        kind: kind of the spec.
        spec: its name in its folder.
        data: globs from the root.
        epochs: number of epochs that are known to be committed; a stream commits more.
        record: the release.
    """

    kind: SpecKind
    spec: str
    data: tuple[str, ...]
    epochs: int
    record: Record

    def to_json(self) -> bytes:
        """Return the content of the note's file."""
        return indented(CODEC.write(self))

    @staticmethod
    def from_json(content: bytes) -> "Note":
        """Return the note that `to_json` was given.

        Raises:
            ValueError: it is no note.
        """
        note: Note = CODEC.read(Note, parsed(content))
        return note


def notes_for(spec: Path) -> tuple[dict[str, Note], tuple[str, ...]]:
    """The notes that can be found from a spec, by their paths, and the paths that cannot be read."""
    found, unread = dict[str, Note](), list[str]()
    for folder in _folders(spec):
        try:
            names = [name for name in folder.files("") if name.endswith(".json")]
        except OSError:
            unread.append(folder.root)
            continue
        for name in names:
            try:
                found[folder.path(name)] = Note.from_json(folder.read(name) or b"")
            except (OSError, ValueError):
                unread.append(folder.path(name))
    return found, tuple(unread)


def with_id(record: Record) -> Record:
    """Return a release with its id; create the id if it is missing."""
    return record if record.id else replace(record, id=id_in(record.private, record.release))


def id_in(private: str, release: str) -> str:
    """Return the id of the release in a private folder; create it if it is missing."""
    folder = folder_at(private, private=True)
    folder.make()
    with folder.lock():
        found = folder.read(SELF)
        if found is None:
            found = indented({"id": secrets.token_hex(8), "release": release})
            folder.write(SELF, found)
    return str(parsed(found)["id"])


def refuse_begun(spec: Path, private: str, before: Mapping[str, Record], instead: str) -> None:
    """Refuse to begin a release of a spec that has begun one.

    Args:
        private: the folder that the spec names now.
        before: releases of the same data that it has begun, by the paths of their notes.
        instead: words on how to begin another release.

    Raises:
        RefusedError: there is one.
    """
    for path, record in before.items():
        if record.private == private:
            why = (
                f"{private}: release {record.release!r} is gone from there; restore copies of both folders, since the "
            )
            why += "noise of what it published would be sampled a second time"
        else:
            why = f"{spec}: began release {record.release!r} of the same data in {record.private}, and another one "
            why += f"spends another budget; name the folders of that release again, or {instead}"
        raise RefusedError(f"{why}. If nobody has seen a number of it, remove {path}")


def keep(spec: Path, note: Note) -> str | None:
    """Write a note, unless it exists; return a warning if no place can hold it.

    Raises:
        RefusedError: the note knows of more epochs.
    """
    name = f"{note.record.id}.json"
    for folder in _folders(spec):
        try:
            content = folder.read(name)
            if content == note.to_json():
                return None
            with suppress(ValueError):
                _refuse_fewer(note, Note.from_json(content or b""), folder.path(name))
            folder.write(name, note.to_json())
            folder.write(".gitignore", b"*\n")
        except OSError:
            continue
        return None
    return f"{spec.parent / NOTES}: cannot be written, so that nobody notices if the folders in the spec are changed"


def _refuse_fewer(note: Note, before: Note, path: str) -> None:
    if note.epochs < before.epochs:
        raise RefusedError(
            f"{note.record.private}: holds {counted(note.epochs, 'epoch')}, and {path} knows of {before.epochs}; "
            "restore a copy of the private folder from after the last epoch, since the noise of those that are missing "
            f"would be sampled a second time. If nobody has seen a number of them, remove {path}"
        )


def _folders(spec: Path) -> list[LocalFolder]:
    of = hashlib.sha256(str(spec.parent.absolute()).encode()).hexdigest()[:16]
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state", "slackwater", of)
    next_to_it = [] if spec.parts[:1] == ("gs:",) else [spec.parent / NOTES]
    return [LocalFolder(str(folder), private=False) for folder in (*next_to_it, state)]
