"""The attempts on the private side: who works at them, what they made, and which of them nobody needs any more."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.store.attempt import DRAFT, READING, RUN, Attempt, Reading, Run
from pipelines.store.commit import Commit, Digest, History
from pipelines.store.folder import Folder
from transforms.aggregation.shard_state import STATE
from transforms.common.errors import RefusedError

KEPT = 2
"""Epochs whose attempts stay: the next one starts from the last, and one more may be looked at."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Those in the private folder of a release."""

    folder: Folder

    def begin(self, epoch: int) -> Attempt:
        """A new working folder.

        Raises:
            OSError: it cannot be made.
        """
        self.folder.make()
        name = Attempt.name(epoch)
        self.folder.make(_of(name))
        self.folder.write(_of(name, RUN), Run.this().to_json())
        return Attempt(name, self.folder.path(_of(name)), epoch)

    def made(self, attempt: Attempt, side: str, names: Sequence[str]) -> dict[str, Digest]:
        """Files of one folder of an attempt, by their names in it; they are durable, whoever wrote them.

        Raises:
            RefusedError: one is missing.
        """
        settled = self.folder.settle([_of(attempt.id, f"{side}/{name}") for name in names])
        found = {name: Digest(*digest) for name, digest in zip(names, settled, strict=True) if digest is not None}
        missing = [name for name in names if name not in found]
        if missing:
            raise RefusedError(f"{attempt.folder}: has no {side}/{missing[0]}, so it is not what a run made; run again")
        return found

    def state_folder(self, commit: Commit) -> str:
        """Where the state is that the next epoch starts from."""
        return self.folder.path(_of(commit.attempt, STATE))

    def state_paths(self, commit: Commit) -> dict[str, str]:
        """The files in it, by name."""
        return {name: f"{self.state_folder(commit)}/{name}" for name in commit.state}

    def verify_state(self, commit: Commit) -> None:
        """Read what an epoch left for the next one and compare it with what was committed.

        Raises:
            RefusedError: a file is missing or differs: from older noise a node would be sampled a second time.
        """
        made = {_of(commit.attempt, f"{STATE}/{name}"): digest for name, digest in commit.state.items()}
        for (name, digest), found in zip(made.items(), self.folder.settle(list(made)), strict=True):
            if found != (digest.sha256, digest.size):
                raise RefusedError(
                    f"{self.folder.path(name)}: missing, or not what epoch {commit.epoch} left; restore the private "
                    "folder from a copy, since without its state units would contribute anew"
                )

    def note(self, attempt: Attempt, reading: Reading) -> None:
        """Keep how much an attempt has read, as long as the attempt stays."""
        self.folder.write(_of(attempt.id, READING), reading.to_json())

    def reading(self, commit: Commit) -> Reading | None:
        """How much an epoch has read; None if that is not known."""
        return Reading.from_json(self.folder.read(_of(commit.attempt, READING)))

    def runs(self) -> dict[str, Run | None]:
        """Who works, or worked, at each attempt that is there, by its id; None where this is not known."""
        ids = [name for name in self.folder.folders("attempts") if Attempt.epoch_of(name) is not None]
        contents = self.folder.read_all([_of(id_, RUN) for id_ in ids])
        return {id_: Run.from_json(content) for id_, content in zip(ids, contents, strict=True)}

    def began_to_commit(self, id_: str) -> bool:
        return self.folder.read(draft_of(id_)) is not None

    def is_needless(self, id_: str, history: History | None, run: Run | None, *, alive: bool | None) -> bool:
        """Whether nobody needs an attempt any more.

        What is committed stays until it is shown and two epochs old. An attempt at an epoch that another one has won
        can never be committed: it goes when its run is known to be dead, or cannot be seen from here and began a day
        ago. An attempt that can still win goes only if its run is dead and had not begun to commit, since a request of
        a dead process may yet come.
        """
        epoch = Attempt.epoch_of(id_) or 0
        if history is None or epoch > len(history.commits):
            return alive is False and not self.began_to_commit(id_)
        if history.commits[epoch - 1].attempt == id_:
            return epoch <= min(history.shown, len(history.commits) - KEPT)
        return run is None or alive is False or (alive is None and run.is_old())

    def remove(self, id_: str) -> None:
        self.folder.remove(_of(id_))


def draft_of(id_: str) -> str:
    """Where an attempt that begins to commit drafts its record."""
    return _of(id_, DRAFT)


def _of(id_: str, name: str = "") -> str:
    """A file's or folder's name from the root of the private folder."""
    return f"attempts/{id_}/{name}".rstrip("/")
