"""Attempts on the private side: their processes, their files, and which of them are no longer needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from pipelines.store.attempt import DRAFT, HELD, READING, RUN, Attempt, RowsRead, Run, text_of, whole
from pipelines.store.folder import Folder
from pipelines.store.record import Digest, EpochKind, EpochRecord, History, R
from transforms.common.errors import RefusedError

KEPT = 2
"""Number of last epochs whose attempts stay: the next epoch starts from the last one, and the one before may be in
use."""


@dataclass(frozen=True, slots=True)
class Attempts(Generic[R]):
    """The attempts in a private folder."""

    folder: Folder
    kind: EpochKind[R]

    def begin(self, epoch: int) -> Attempt:
        """Make a new working folder.

        Raises:
            OSError: it cannot be made.
        """
        self.folder.make()
        name = Attempt.name(epoch)
        self.folder.make(_of(name))
        held = self.folder.hold(_of(name, HELD))
        self.folder.write(_of(name, RUN), text_of(Run.this(held=held is not None)))
        return Attempt(name, self.folder.path(_of(name)), epoch, held)

    def made(self, attempt: Attempt, side: str, names: Sequence[str]) -> dict[str, Digest]:
        """Return the digests of files of one folder of an attempt, by their names in it; the files are durable then.

        Args:
            attempt: The attempt.
            side: Name of the folder inside the attempt.
            names: Names of the files in that folder.

        Raises:
            RefusedError: A file is missing.
        """
        settled = self.folder.settle([_of(attempt.id, f"{side}/{name}") for name in names])
        found = {name: Digest(*digest) for name, digest in zip(names, settled, strict=True) if digest is not None}
        missing = [name for name in names if name not in found]
        if missing:
            raise RefusedError(f"{attempt.folder}: has no {side}/{missing[0]}, so it is not what a run made; run again")
        return found

    def state_folder(self, commit: EpochRecord) -> str:
        """Return the folder of the state that an epoch left."""
        return self.folder.path(_of(commit.attempt, self.kind.state))

    def state_paths(self, commit: EpochRecord) -> dict[str, str]:
        """Return the paths of the files of the state that an epoch left, by name."""
        return {name: f"{self.state_folder(commit)}/{name}" for name in commit.state}

    def verify_state(self, commit: EpochRecord) -> None:
        """Read the state that an epoch left for later ones, and compare it with the committed digests.

        Raises:
            RefusedError: a file is missing or differs: from older noise a node would be sampled a second time.
        """
        made = {_of(commit.attempt, f"{self.kind.state}/{name}"): digest for name, digest in commit.state.items()}
        for (name, digest), found in zip(made.items(), self.folder.settle(list(made)), strict=True):
            if found != (digest.sha256, digest.size):
                raise RefusedError(
                    f"{self.folder.path(name)}: missing, or not what epoch {commit.epoch} left; restore the private "
                    f"folder from a copy, since without it {self.kind.risk}"
                )

    def note(self, attempt: Attempt, read: RowsRead) -> None:
        """Store the number of rows that an attempt has read, as long as the attempt stays."""
        self.folder.write(_of(attempt.id, READING), text_of(read))

    def reading(self, commit: EpochRecord) -> RowsRead | None:
        """Return the number of rows that an epoch has read; None if unknown."""
        return whole(RowsRead, self.folder.read(_of(commit.attempt, READING)))

    def runs(self) -> dict[str, Run | None]:
        """Return the run of each attempt, by the attempt's id; None if unknown."""
        ids = [name for name in self.folder.folders("attempts") if Attempt.epoch_of(name) is not None]
        contents = self.folder.read_all([_of(id_, RUN) for id_ in ids])
        return {id_: whole(Run, content) for id_, content in zip(ids, contents, strict=True)}

    def alive(self, id_: str, run: Run | None) -> bool | None:
        """Return whether the run of an attempt is alive; None if this cannot be seen from here."""
        if run is None:
            return None
        alive = run.alive()
        return self.folder.is_held(_of(id_, HELD)) if alive is None and run.held else alive

    def began_to_commit(self, id_: str) -> bool:
        return self.folder.read(draft_of(id_)) is not None

    def is_needless(self, id_: str, history: History[R] | None, run: Run | None, *, alive: bool | None) -> bool:
        """Return whether an attempt is no longer needed.

        A committed attempt stays until it is shown and two epochs old, or permanently if the kind of epochs says so. An
        attempt at an epoch that another one has won can never be committed. It is removed when its run is known to be
        dead, or when its run is not visible from here and began a day ago. An attempt that can still win is removed
        only if its run is dead and had not begun to commit: a request of a dead process may still arrive.

        Args:
            id_: Id of the attempt.
            history: Epochs of the release; None if no epoch is committed.
            run: Run that made the attempt; None if unknown.
            alive: Whether the run is alive; None if this cannot be seen from here.
        """
        epoch = Attempt.epoch_of(id_) or 0
        if history is None or epoch > len(history.commits):
            return alive is False and not self.began_to_commit(id_)
        if history.commits[epoch - 1].attempt == id_:
            return not self.kind.stays and epoch <= min(history.shown, len(history.commits) - KEPT)
        return run is None or alive is False or (alive is None and run.is_old())

    def remove(self, id_: str) -> None:
        self.folder.remove(_of(id_))


def draft_of(id_: str) -> str:
    """Return the name of the draft of an attempt's record."""
    return _of(id_, DRAFT)


def _of(id_: str, name: str = "") -> str:
    """Return the name of a file or folder from the root of the private folder."""
    return f"attempts/{id_}/{name}".rstrip("/")
