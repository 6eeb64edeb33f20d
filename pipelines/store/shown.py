"""Public files of epochs, under names that hold epoch and attempt, and the manifest."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.store.attempt import own_name
from pipelines.store.compaction import Compaction, shown_files
from pipelines.store.folder import Folder
from pipelines.store.manifest import manifest_of
from pipelines.store.record import VERSION, Digest, EpochKind, EpochRecord, Files, R
from privacy.counted import counted
from privacy.json_values import parsed
from transforms.common.errors import RefusedError

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class ShownEpochs:
    """The files in a public folder.

    Attributes:
        sides: folders of attempts that are published.
    """

    folder: Folder
    sides: tuple[str, ...]

    def sizes(self) -> dict[str, int]:
        """Return the sizes in bytes of all published files, by name."""
        return {name: size for side in self.sides for name, size in self.folder.files(side).items()}

    def paths(self, commit: EpochRecord) -> list[str]:
        """Return the paths of an epoch's files."""
        return [self.folder.path(name) for name in commit.files]

    def bring(self, commit: EpochRecord, private: Folder) -> None:
        """Copy an epoch's files to the public side, except those that are there already.

        Afterwards all of them are durable, also files from a run that died: a manifest names no file that may be lost.

        Raises:
            RefusedError: one is neither there nor in the epoch's attempt any more.
        """
        for name, digest in commit.files.items():
            if _is(self.folder.read(name), digest):
                continue
            content = private.read(f"attempts/{commit.attempt}/{own_name(name, commit.attempt)}")
            if content is not None and _is(content, digest):
                self.folder.put(name, content)
            elif not _is(self.folder.read(name), digest):  # else another run has shown and cleaned meanwhile
                raise self._lost(commit.epoch, name)
        self.folder.flush(commit.files)

    def bring_text(self, name: str, text: str) -> None:
        """Write a text file, and replace an older one. Afterwards it is durable."""
        content = text.encode()
        if self.folder.read(name) == content:
            self.folder.flush([name])
        else:
            self.folder.write(name, content)

    def missing(self, files: Sequence[Files]) -> list[tuple[int, str]]:
        """Compare the sizes of all files of these epochs with the committed sizes, which takes little time.

        Returns:
            epoch and name of each file that is missing or has another size.
        """
        sizes = self.sizes() if files else {}
        return [
            (epoch, name)
            for epoch, of_epoch in enumerate(files, 1)
            for name, digest in of_epoch.items()
            if sizes.get(name) != digest.size
        ]

    def refuse_missing(self, files: Sequence[Files]) -> None:
        """Refuse epochs with files that are missing or differ in size.

        Raises:
            RefusedError: there is one.
        """
        for epoch, name in self.missing(files):
            raise self._lost(epoch, name)

    def content(self, name: str, digest: Digest, epoch: int) -> bytes:
        """Return a file of an epoch, or of several epochs that end with it.

        Args:
            name: Name of the public file.
            digest: Its committed digest.
            epoch: Number of the epoch, for messages.

        Raises:
            RefusedError: The file is missing, or not what was committed.
        """
        content = self.folder.read(name)
        if content is None or not _is(content, digest):
            raise self._lost(epoch, name)
        return content

    def _lost(self, epoch: int, name: str) -> RefusedError:
        return RefusedError(
            f"{self.folder.path(name)}: missing, or not what epoch {epoch} committed; restore it from a copy, "
            "since its noise is sampled once, ever"
        )


def shown_epochs(
    manifest: bytes | None, commits: Sequence[R], compactions: Sequence[Compaction], kind: EpochKind[R], where: str
) -> tuple[int, int]:
    """Count the epochs and the compactions that a manifest shows; both are 0 without a manifest.

    Args:
        manifest: Content of the manifest; None if it does not exist.
        commits: Records of all committed epochs.
        compactions: Records of all compactions.
        kind: Kind of the epochs.
        where: Path of the manifest, for messages.

    Raises:
        RefusedError: The manifest is not exactly that of the first commits and compactions.
    """
    if manifest is None:
        return 0, 0
    way_out = "a manifest; remove it and run again, which makes it again from the commits on the private side"
    if not commits:
        way_out = "a manifest; restore it and the private folder, or release under other output folders"
    try:
        document = parsed(manifest)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise RefusedError(f"{where}: cannot be read as {way_out}")
    if document.get("version") != VERSION:
        raise RefusedError(f"{where}: of a version that this program does not know; use the program that wrote it")
    epochs = document.get("epochs")
    shown = len(epochs) if isinstance(epochs, list) else 0
    if shown > len(commits):
        raise RefusedError(
            f"{where}: shows {counted(shown, 'epoch')} and the private side has committed {len(commits)}; restore the "
            f"private folder from a copy, since without it {kind.risk}"
        )
    if shown:
        joined = sum(compaction.last <= shown for compaction in compactions)
        for known in range(joined, -1, -1):
            if document == manifest_of(kind, commits[:shown], shown_files(commits[:shown], compactions[:known])):
                return shown, known
    raise RefusedError(f"{where}: differs from what was committed, so it is not {way_out}")


def _is(content: bytes | None, digest: Digest) -> bool:
    return content is not None and hashlib.sha256(content).hexdigest() == digest.sha256
