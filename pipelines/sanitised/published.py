"""What the public folder of sanitised records holds: all that readers have, and all that is told them is made from."""

from pathlib import Path

import pyarrow as pa

from pipelines.sanitised.plan import read_plan
from pipelines.sanitised.spec import load_sanitise
from pipelines.sanitised.store import MANIFEST, PLAN, commits_of
from pipelines.spec.document import read_document
from pipelines.spec.kinds import kind_of
from pipelines.store.folder import folder_at, is_folder, read_public, read_public_table
from privacy.exact import parsed
from privacy.sanitised.attributes import Attribute, Curve, Number
from privacy.sanitised.record import Sanitisation
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError, SpecError
from transforms.sanitised.columns import columns_of
from transforms.sanitised.estimated_tables import estimated

_OF = "sanitised records"


class PublishedRecords:
    """Sanitised records, each file as the manifest has it.

    Attributes:
        folder: where it is.
        record: what each attribute can be, and its mechanism; what it claims is proved anew.
        count: how many records there are.
        commits: one for each epoch, as the manifest has them.

    Raises:
        RefusedError: a file is missing, or not what the manifest says, or of another version.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._folder = folder_at(folder, private=False)
        content = self._read(MANIFEST)
        try:
            manifest = parsed(content)
            plan = self._read(PLAN, str(manifest["plan_sha256"])).decode()
            commits = commits_of(manifest, plan)
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
        tables = [
            read_public_table(self._folder, name, sha256, self._format, types, of=_OF) for name, sha256 in self._files
        ]
        try:
            return estimated(pa.concat_tables(tables), asked, separator=self._separator)
        except ValueError as error:
            raise RefusedError(f"{self.release}: {error}; sanitise more") from None

    def _read(self, name: str, sha256: str | None = None) -> bytes:
        return read_public(self._folder, name, sha256, of=_OF)


def records_at(path: str) -> PublishedRecords | None:
    """The public side of sanitised records; None where a path is of something else.

    Args:
        path: of their spec, or of the public folder itself.

    Raises:
        RefusedError: nothing is sanitised yet.
    """
    if is_folder(path):
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
        return "records" in parsed(folder_at(folder, private=False).read(MANIFEST) or b"{}")
    except (TypeError, ValueError):
        return False
