"""The public manifest of all epochs: a function of their records and the files that these show.

It is read strictly: a manifest that differs from them is refused.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pipelines.store.record import CODEC, VERSION, EpochKind, Files, R
from privacy.json_values import Json, indented
from transforms.common.errors import RefusedError


def manifest_json(kind: EpochKind[R], records: Sequence[R], files: Sequence[Files]) -> bytes:
    """Return the public manifest of the epochs so far, at least one; no source, state or name of a record is in it.

    Args:
        kind: Kind of the epochs.
        records: Records of all epochs.
        files: Files that the manifest lists with each epoch.
    """
    return indented(manifest_of(kind, records, files))


def manifest_of(kind: EpochKind[R], records: Sequence[R], files: Sequence[Files]) -> Json:
    """Return the manifest as a JSON object.

    Args:
        kind: Kind of the epochs.
        records: Records of all epochs, at least one.
        files: Files that the manifest lists with each epoch.
    """
    written = [CODEC.write(record) for record in records]
    stated = {name: one[name] for one in written for name in kind.of_release if name in one}
    return {
        "version": VERSION,
        **{name: stated[name] for name in kind.of_release if name in stated},
        **kind.totals(records),
        "epochs": [
            {name: one[name] for name in kind.of_epoch if name in one} | {"files": CODEC.write_as(Files, shown)}
            for one, shown in zip(written, files, strict=True)
        ],
    }


def records_of(kind: EpochKind[R], manifest: Any) -> tuple[R, ...]:
    """Return the records that a manifest shows, without what is private; for readers, who have nothing else.

    Raises:
        ValueError: it is not exactly what `manifest_json` writes of records that follow on each other.
    """
    members = CODEC.read(dict[str, object], manifest)
    epochs = CODEC.read(tuple[dict[str, object], ...], members.get("epochs"), "epochs")
    of_all = {name: members[name] for name in kind.of_release if name in members}
    records: tuple[R, ...] = tuple(
        CODEC.read(kind.record, {**kind.private, **of_all, **epoch}, f"epochs[{number}]")
        for number, epoch in enumerate(epochs)
    )
    try:
        kind.check(records, "")
        if not records or manifest_of(kind, records, [record.files for record in records]) != manifest:
            raise ValueError("other members")
        for record in records:
            datetime.fromisoformat(record.committed_at)
    except RefusedError as error:
        raise ValueError("not a manifest") from error
    return records
