"""The public folder of sanitised records, from which everything for readers is computed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from pipelines.common.errors import ArgumentError
from pipelines.sanitised.facts import disclosure
from pipelines.sanitised.published_plan import read_plan
from pipelines.sanitised.spec import load_sanitise
from pipelines.sanitised.store import SANITISED
from pipelines.store.commit import PLAN
from pipelines.store.folder import folder_at, is_folder, read_public, read_public_table
from pipelines.store.manifest import records_of
from pipelines.store.record import disclosed
from pipelines.store.shown import MANIFEST
from privacy.json_values import parsed
from privacy.sanitised.attributes import Attribute
from privacy.sanitised.record import Sanitisation
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError
from transforms.sanitised.estimated_tables import estimated

_OF = "sanitised records"


class PublishedRecords:
    """Sanitised records, each file as the manifest has it.

    Attributes:
        folder: Path of the folder.
        record: Possible values and mechanism of each attribute; its claims are proved again.
        count: Number of records.
        commits: Commits of all epochs, as the manifest has them.

    Raises:
        RefusedError: A file is missing, not what the manifest says, or of another version.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._folder = folder_at(folder, private=False)
        content = self._read(MANIFEST)
        try:
            manifest = parsed(content)
            plan = self._read(PLAN, str(manifest["plan_sha256"])).decode()
            commits = records_of(SANITISED, manifest)
        except (KeyError, TypeError, ValueError):
            raise RefusedError(
                f"{self._folder.path(MANIFEST)}: not a manifest of sanitised records that this version of the program "
                "understands; use the one that made them"
            ) from None
        self.release, self.spec_sha256 = commits[0].release, commits[0].spec_sha256
        self.count = sum(commit.records for commit in commits)
        self.commits = commits
        self._files = [(name, digest.sha256) for commit in commits for name, digest in commit.files.items()]
        self.record: Sanitisation
        self.record, self._separator, self._format = read_plan(plan, self._folder.path(PLAN))

    def asked(self, names: Sequence[str] | None) -> list[Attribute]:
        """Return the attributes of these names; None: all.

        Raises:
            SpecError: There is no attribute of a name.
        """
        known = [one.name for one in self.record.attributes]
        for name in names or ():
            if name not in known:
                raise ArgumentError("query", f"no attribute of the records; they have {', '.join(known)}", name)
        return [one for one in self.record.attributes if names is None or one.name in names]

    def estimates(self, names: Sequence[str] | None = None) -> pa.Table:
        """Estimate these attributes (None: all) from all records (`transforms.sanitised.estimated_tables`).

        Raises:
            RefusedError: There are no records, or the manifest names no files of records.
        """
        if not self._files:
            raise RefusedError(f"{self._folder.path(MANIFEST)}: it names no files of records; get the folder again")
        asked = Sanitisation(attributes=tuple(self.asked(names)))
        types = {
            column: pa.float64() if one.numeric else pa.string() for one in asked.attributes for column in one.columns
        }
        tables = [
            read_public_table(self._folder, name, sha256, self._format, types, of=_OF) for name, sha256 in self._files
        ]
        try:
            return estimated(pa.concat_tables(tables), asked, separator=self._separator)
        except ValueError as error:
            raise RefusedError(f"{self.release}: {error}; sanitise more") from None

    @property
    def disclosure(self) -> Mapping[str, str]:
        """Facts for readers by their names: those of the last epoch, or of this program if it has none."""
        last = self.commits[-1]
        return disclosed(self.commits) or disclosure(self.record, {}, program=last.program, sampler=last.sampler)

    def _read(self, name: str, sha256: str | None = None) -> bytes:
        return read_public(self._folder, name, sha256, of=_OF)


def published(path: str) -> PublishedRecords:
    """Return the public side of sanitised records.

    Raises:
        RefusedError: Nothing is sanitised yet.
    """
    folder = path if is_folder(path) else load_sanitise(path).output.public
    refuse_unreachable([folder])
    if folder != path and folder_at(folder, private=False).read(MANIFEST) is None:
        where = "" if "://" in folder or Path(folder).is_absolute() else ", if this is the folder where it ran"
        raise RefusedError(
            f"{path}: nothing is sanitised yet in {folder}; `slackwater sanitise {path}` sanitises the records{where}"
        )
    return PublishedRecords(folder)
