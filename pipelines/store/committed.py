"""The records of a private folder: of all epochs, and of all compactions."""

from dataclasses import dataclass, field
from typing import Generic

from pipelines.store.compaction import Compaction, check_compactions
from pipelines.store.folder import Folder
from pipelines.store.record import EpochKind, R
from transforms.common.errors import RefusedError

COMMITS, COMPACTIONS = "commits", "compactions"


def commit_name(epoch: int) -> str:
    """Return the name of the record of an epoch.

    >>> commit_name(12)
    'commits/000012.json'
    """
    return f"{COMMITS}/{epoch:06d}.json"


@dataclass(frozen=True, slots=True)
class RecordFolder(Generic[R]):
    """The records in a private folder. Records of epochs are read once: they never change, and there may be hundreds.

    Attributes:
        folder: the private folder.
        kind: of the epochs.
    """

    folder: Folder
    kind: EpochKind[R]
    _known: dict[str, R] = field(default_factory=dict, repr=False, compare=False)

    def epochs(self) -> list[R]:
        """Return the records of all epochs so far; they are durable.

        Raises:
            RefusedError: one is missing or cannot be read, or they do not follow on each other.
        """
        names = self._names(COMMITS)
        if names != [commit_name(epoch) for epoch in range(1, len(names) + 1)]:
            raise RefusedError(
                f"{self.folder.path(COMMITS)}: holds other files than the records of epochs 1 to {len(names)}; "
                f"restore it from a copy, since without it {self.kind.risk}"
            )
        unknown = [name for name in names if name not in self._known]
        for name, content in self._read(unknown):
            self._known[name] = self.kind.read(content, self.folder.path(name))
        records = [self._known[name] for name in names]
        self.kind.check(records, self.folder.path(COMMITS))
        return records

    def all(self) -> tuple[list[R], list[Compaction]]:
        """Return the records of all epochs and compactions so far; they are durable.

        Raises:
            RefusedError: as `epochs`; or a compaction cannot be read, or does not fit the epochs.
        """
        names = self._names(COMPACTIONS)
        found = [Compaction.from_json(content, self.folder.path(name)) for name, content in self._read(names)]
        records = self.epochs()  # after the compactions, so that these join no epoch that is committed meanwhile
        check_compactions(found, records, self.folder.path(COMPACTIONS))
        return records, found

    def _names(self, folder: str) -> list[str]:
        return [name for name in self.folder.files(folder) if name.endswith(".json")]

    def _read(self, names: list[str]) -> list[tuple[str, bytes]]:
        """Read files that another run may have written and not flushed."""
        self.folder.flush(names)
        contents = self.folder.read_all(names)
        return [(name, content or b"") for name, content in zip(names, contents, strict=True)]
