"""What epochs show on the public side: nodes and estimates, under names that hold epoch and attempt."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.store.attempt import own_name
from pipelines.store.commit import Commit, Digest
from pipelines.store.folder import Folder
from transforms.common.errors import RefusedError
from transforms.release.release import ESTIMATES, NODES


class Committed(Protocol):
    """What is to be shown of an epoch, of whatever kind of release."""

    @property
    def epoch(self) -> int: ...

    @property
    def attempt(self) -> str: ...

    @property
    def files(self) -> Mapping[str, Digest]: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """The files in the public folder of a release."""

    folder: Folder

    def paths(self, commit: Commit) -> list[str]:
        return [self.folder.path(name) for name in commit.files]

    def bring(self, commit: Committed, private: Folder) -> None:
        """Copy an epoch's files there, but for those that are there: nobody touches what another one shows.

        All of them are durable then, also those that a run has brought that died: no manifest names what may be lost.

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
        """Put a text there, in the place of any other; it is durable then, whoever has written it."""
        content = text.encode()
        if self.folder.read(name) == content:
            self.folder.flush([name])
        else:
            self.folder.write(name, content)

    def refuse_missing(self, files: Sequence[Mapping[str, Digest]]) -> None:
        """Compare the sizes of all files of these epochs, which is cheap, with what they should be.

        Raises:
            RefusedError: one is missing or differs.
        """
        sizes = self.folder.files(NODES) | self.folder.files(ESTIMATES) if files else {}
        for epoch, of_epoch in enumerate(files, 1):
            for name, digest in of_epoch.items():
                if sizes.get(name) != digest.size:
                    raise self._lost(epoch, name)

    def content(self, name: str, digest: Digest, epoch: int) -> bytes:
        """A file of an epoch, or of several that end with it.

        Raises:
            RefusedError: it is missing, or not what was committed.
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


def _is(content: bytes | None, digest: Digest) -> bool:
    return content is not None and hashlib.sha256(content).hexdigest() == digest.sha256
