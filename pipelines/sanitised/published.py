"""What the public folder of sanitised records holds: all that readers have, and all that is told them is made from."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.sanitised.plan import read_plan
from pipelines.sanitised.spec import load_sanitise
from pipelines.sanitised.store import MANIFEST, PLAN
from pipelines.spec.document import read_document
from pipelines.spec.kinds import kind_of
from pipelines.store.folder import folder_at, read_public
from privacy.sanitised.attributes import Attribute, Curve, Number
from privacy.sanitised.record import Sanitisation
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError, SpecError
from transforms.common.published_files import read_published
from transforms.sanitised.columns import columns_of
from transforms.sanitised.estimated_tables import estimated


class PublishedRecords:
    """Sanitised records, each file as the manifest has it.

    Attributes:
        folder: where it is.
        record: what each attribute can be, and its mechanism; what it claims is proved anew.
        count: how many records there are.
        epochs: as the manifest has them.

    Raises:
        RefusedError: a file is missing, or not what the manifest says, or of another version.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._folder = folder_at(folder, private=False)
        where = self._folder.path(MANIFEST)
        try:
            manifest = json.loads(self._read(MANIFEST))
            self.release: str = manifest["release"]
            self.spec_sha256: str = manifest["spec_sha256"]
            self.count: int = manifest["records"]
            self.epochs: list[dict[str, Any]] = manifest["epochs"]
            if self.count != sum(one["records"] for one in self.epochs):
                raise ValueError("records")
            for one in self.epochs:
                datetime.fromisoformat(one["committed_at"])
            self._files = [(name, digest["sha256"]) for one in self.epochs for name, digest in one["files"].items()]
            plan = self._read(PLAN, manifest["plan_sha256"]).decode()
        except (AttributeError, KeyError, TypeError, ValueError):
            raise RefusedError(
                f"{where}: not a manifest of sanitised records that this version of the program understands; use the "
                "one that made them"
            ) from None
        self.record: Sanitisation
        self.record, self._separator, self._format = read_plan(plan, self._folder.path(PLAN))

    def asked(self, names: list[str] | None) -> list[Attribute]:
        """The attributes of these names; None: all.

        Raises:
            SpecError: there is none of a name.
        """
        known = [one.name for one in self.record.attributes]
        for name in names or ():
            if name not in known:
                raise SpecError(f"--query {name}: no attribute of the records; they have {', '.join(known)}")
        return [one for one in self.record.attributes if names is None or one.name in names]

    def estimates(self, names: list[str] | None = None) -> pa.Table:
        """What all records tell of these attributes (`transforms.sanitised.estimated_tables`); None: of all.

        Raises:
            RefusedError: there are no records.
        """
        asked = Sanitisation(attributes=tuple(self.asked(names)))
        types = {
            column: pa.float64() if isinstance(one, Number | Curve) else pa.string()
            for one in asked.attributes
            for column in columns_of(one)
        }
        tables = [read_published(self._read(name, sha256), self._format, types) for name, sha256 in self._files]
        try:
            return estimated(pa.concat_tables(tables), asked, separator=self._separator)
        except ValueError as error:
            raise RefusedError(f"{self.release}: {error}; sanitise more") from None

    def _read(self, name: str, sha256: str | None = None) -> bytes:
        return read_public(self._folder, name, sha256, of="sanitised records")


def records_at(path: str) -> PublishedRecords | None:
    """The public side of sanitised records; None where a path is of something else.

    Args:
        path: of their spec, or of the public folder itself.

    Raises:
        RefusedError: nothing is sanitised yet.
    """
    if "://" in path or Path(path).is_dir():
        refuse_unreachable([path])
        return PublishedRecords(path) if _are_at(path) else None
    if kind_of(read_document(Path(path)).content) != "records":
        return None
    folder = load_sanitise(path).output.public
    refuse_unreachable([folder])
    if folder_at(folder, private=False).read(MANIFEST) is None:
        where = "" if "://" in folder or Path(folder).is_absolute() else ", if this is the folder where it ran"
        raise RefusedError(
            f"{path}: nothing is sanitised yet in {folder}; `slackwater sanitise {path}` sanitises what there is{where}"
        )
    return PublishedRecords(folder)


def _are_at(folder: str) -> bool:
    """By the manifest: that of a release counts windows, not records."""
    try:
        return "records" in json.loads(folder_at(folder, private=False).read(MANIFEST) or b"{}")
    except (TypeError, ValueError):
        return False
