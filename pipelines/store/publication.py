"""Publication of committed epochs: their files first, then the manifest. Also merges small files into large ones.

The manifest follows from the records alone, so any run that finds a record which is not shown finishes it, to the same
bytes. It never moves backwards: a run that writes it has read the records after it took the lock (local) or after it
read the generation that it replaces (`gs://`). So this run knows every epoch that the old manifest shows.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from pipelines.store.committed import COMPACTIONS, RecordFolder
from pipelines.store.compaction import Compaction, join_epochs, needless, shown_files
from pipelines.store.folder import Folder
from pipelines.store.manifest import manifest_json
from pipelines.store.record import EpochKind, Files, R, record_json
from pipelines.store.shown import MANIFEST, ShownEpochs, shown_epochs
from transforms.common.errors import RefusedError


@dataclass(frozen=True, slots=True)
class JoinedFiles:
    """Result of a compaction.

    Attributes:
        made: the record of the compaction; None if there was nothing to join.
        removed: number of removed files: small ones, and those of compactions that came too late or died.
    """

    made: Compaction | None
    removed: int


@dataclass(frozen=True, slots=True)
class Publisher(Generic[R]):
    """Copies epochs from the private folder to the public one.

    Attributes:
        kind: of the epochs.
        public, private: the folders.
        committed: the records in the private folder.
        shown: the files in the public folder.
    """

    kind: EpochKind[R]
    public: Folder
    private: Folder
    committed: RecordFolder[R]
    shown: ShownEpochs

    def show(self) -> tuple[list[R], list[Compaction]]:
        """Publish all that is committed, and return the records that the manifest then shows."""
        with self.private.lock():
            while True:
                manifest, version = self.public.versioned(MANIFEST)
                commits, compactions = self.committed.all()
                shown, joined = self.shown_by(manifest, commits, compactions)
                if not commits:
                    return [], []
                files = shown_files(commits, compactions)
                self._bring(commits, files, shown, compactions[-1].last if compactions else 0)
                for name, text in self.kind.texts(commits[0]).items():
                    self.shown.bring_text(name, text)
                if (shown, joined) == (len(commits), len(compactions)):
                    self.public.flush([MANIFEST])
                    return commits, compactions
                if self.public.swap(MANIFEST, manifest_json(self.kind, commits, files), version):
                    return commits, compactions

    def _bring(self, commits: Sequence[R], files: Sequence[Files], shown: int, joined: int) -> None:
        """Copy the files of epochs that are not shown, and lost files of others if attempts stay.

        Args:
            commits: of all epochs.
            files: files that each of them shows.
            shown: number of epochs that the manifest shows.
            joined: number of epochs that are compacted.
        """
        new = commits[max(shown, joined) :]
        if self.kind.stays:
            lost = {epoch for epoch, _ in self.shown.missing(files[:shown])}
            new = [commits[epoch - 1] for epoch in sorted(lost)] + [*new]
        else:
            self.shown.refuse_missing(files[:joined])
        for commit in new:
            self.shown.bring(commit, self.private)

    def shown_by(
        self, manifest: bytes | None, commits: Sequence[R], compactions: Sequence[Compaction]
    ) -> tuple[int, int]:
        """Count the epochs and compactions that a manifest shows (`shown_epochs`).

        Args:
            manifest: Content of the manifest; None if it does not exist.
            commits: Records of all committed epochs.
            compactions: Records of all compactions.

        Raises:
            RefusedError: The manifest does not fit the commits and compactions.
        """
        return shown_epochs(manifest, commits, compactions, self.kind, self.public.path(MANIFEST))

    def compact(self) -> JoinedFiles:
        """Join the small files of all shown epochs that are not yet compacted into few large files.

        First, a record of the compaction is created on the private side, which only one caller can do. Then the
        manifest names the new files. Only then the old files are removed: if a run dies in between, the next `show`
        and `compact` finish the compaction.

        Raises:
            RefusedError: as `open` and `show`.
        """
        commits, compactions = self.show()
        new = commits[compactions[-1].last if compactions else 0 :]
        made = None
        if len(new) > 1:
            made = self._join(new, f"{COMPACTIONS}/{len(compactions) + 1:06d}.json")
            commits, compactions = self.show()
        # Use the shown records: the manifest still names the files that a newer compaction replaces.
        old = needless(self.shown.sizes(), commits, compactions)
        self.public.drop(old)
        return JoinedFiles(made, removed=len(old))

    def _join(self, commits: Sequence[R], record: str) -> Compaction:
        """Join these epochs, unless another run has joined some of them before, and return the record of the
        compaction."""
        digests = {name: (digest, commit.epoch) for commit in commits for name, digest in commit.files.items()}
        draft = f"{COMPACTIONS}/{secrets.token_hex(8)}.draft"
        try:
            with self.private.lock():
                made = join_epochs(commits, lambda name: self.shown.content(name, *digests[name]), self.public.put)
                self.public.flush(made.files)
        except RefusedError:
            standing = self.private.read(record)
            if standing is None:  # else another one was faster, and has removed what was to be joined
                raise
        else:
            standing = self.private.create(record, record_json(made), draft=draft)
            self.private.drop([draft])
        return Compaction.from_json(standing, self.private.path(record))
