"""The store of epochs: each is published once, with noise sampled once, also if runs crash, repeat or race.

It holds the epochs of a release, or of sanitised records; an `EpochKind` has the properties in which these differ. Of a
release, `public`
holds `manifest.json`, `spec.yaml`, `plan.json`, `nodes/`, `estimates/`; `private` holds `commits/`, `compactions/`,
`loads/`, `attempts/`. Each is a local folder or a `gs://` prefix.

1. A run writes all its files into a separate attempt.
2. It *commits*: creates `commits/<epoch>.json`, which only one run can do. From now on its noise is the epoch's.
3. It *shows*: copies the attempt's public files to the public side under names that hold epoch and attempt, and the
   plan that epoch 1 committed, then puts the manifest of all epochs in the place of the last one. A file that it does
   not list is no part of the release.

Between 2 and 3 the commit is added to the witness, if there is one (`pipelines.store.witness`).

A run that finds a record, a manifest or a published file makes it durable before it does anything that depends on it:
the run that wrote it may have died before it reached the disk, and without it noise would be sampled a second time.
`Publisher` shows what is committed.

State stays in its attempt's folder, which the commit names; `clean` keeps that of the last two epochs.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Generic

from pipelines.spec.load import Output
from pipelines.spec.paths import within
from pipelines.store.attempt import Attempt, Run, public_name
from pipelines.store.attempts import Attempts, draft_of
from pipelines.store.commit import RELEASE, Commit
from pipelines.store.committed import RecordFolder, commit_name
from pipelines.store.compaction import shown_files
from pipelines.store.folder import Folder, folder_at
from pipelines.store.loads import Loads
from pipelines.store.notes import id_in
from pipelines.store.publication import JoinedFiles, Publisher
from pipelines.store.record import EpochKind, Files, History, R, record_json, sealed
from pipelines.store.shown import MANIFEST, ShownEpochs
from pipelines.store.witness import lines_of, witness_at
from transforms.common.errors import RefusedError

FileNames = Mapping[str, Sequence[str]]
"""Names of files by the folder of an attempt that holds them."""


@dataclass(frozen=True)
class EpochStore(Generic[R]):
    """Two folders with the epochs of one kind.

    Attributes:
        public, private: the folders.
        kind: of the epochs.
        witness: path at which commits are recorded outside both folders; None: nowhere.

    Raises:
        RefusedError: private files would lie on the public side, or nothing could lock it.
    """

    public: str
    private: str
    kind: EpochKind[R] = RELEASE  # type: ignore[assignment]  # `Store` is that of a release
    witness: str | None = None

    def __post_init__(self) -> None:
        if within(self.private, self.public):
            raise RefusedError(f"{self.private}: private files would lie inside output.public; keep them apart")
        if "://" in self.private and "://" not in self.public:
            raise RefusedError(
                f"{self.public}: a local public folder needs a local private one, which holds the lock; or move both "
                "to gs://"
            )

    def open(self) -> History[R] | None:
        """Return the committed epochs and the number of shown ones; None if nothing has ever been committed.

        The sizes of shown files are checked, unless `show` can bring the files back; their content is not.

        Raises:
            RefusedError: content is invalid, or a part is missing.
        """
        while True:
            manifest = self._public.read(MANIFEST)  # before the records, so that these know of all that it shows
            if manifest is not None:
                self._public.flush([MANIFEST])
            commits, compactions = self._committed.all()
            shown, _ = self._publication.shown_by(manifest, commits, compactions)
            if not commits:
                return None
            if self.kind.stays:
                return History(tuple(commits), shown)
            try:
                last = compactions[-1].last if compactions else 0  # what a record names is there, shown or not
                self.shown.refuse_missing(shown_files(commits[: max(shown, last)], compactions))
            except RefusedError:
                if self._public.read(MANIFEST) == manifest:  # else a compaction has put others in their places
                    raise
                continue
            return History(tuple(commits), shown)

    def commits(self) -> list[R]:
        """Return the records of all epochs so far; they are durable.

        Raises:
            RefusedError: one is missing or cannot be read, or they do not follow on each other.
        """
        return self._committed.epochs()

    def files_of(self, commit: R, side: str) -> tuple[Files, bool]:
        """Return the public files with an epoch's rows of a side, and whether they also hold rows of other epochs."""
        joined = [one for one in self._committed.all()[1] if one.first <= commit.epoch <= one.last]
        files = joined[0].files if joined else commit.files
        return {name: digest for name, digest in files.items() if name.startswith(f"{side}/")}, bool(joined)

    def compact(self) -> JoinedFiles:
        """Merge the small files of all epochs that are shown and not yet compacted (`Publisher.compact`).

        Raises:
            RefusedError: as `open` and `show`.
        """
        self.refuse_rollback()
        return self._publication.compact()

    def begin(self, epoch: int) -> Attempt:
        """Make a working folder for an attempt at an epoch. Epoch 0 means that nothing of it will be published.

        Raises:
            OSError: it cannot be made, or nothing could be published; this is checked before the work.
            RefusedError: as `refuse_rollback`.
        """
        if epoch:
            self.refuse_unwritable()
            self.refuse_rollback()
        return self.attempts.begin(epoch)

    def refuse_unwritable(self) -> None:
        """Check whether the public folder can be written.

        Raises:
            OSError: nothing could be published.
        """
        self._public.refuse_unwritable()

    def commit(self, attempt: Attempt, record: R, made: FileNames) -> R:
        """Make an attempt the epoch's, permanently; return the record as it is committed, with its files.

        Args:
            attempt: attempt that has made the files.
            record: the statements of the run about the epoch.
            made: files that the attempt must have made, according to its plan. The folder is not listed: one that
                cannot be listed would look empty.

        Raises:
            RefusedError: another run was first, and this attempt is removed; or the epoch is not the next one; or a
                file is missing.
        """
        if record.epoch != attempt.epoch:
            raise ValueError(f"an attempt at epoch {attempt.epoch} cannot be committed as epoch {record.epoch}")
        commits = self.commits()
        if len(commits) >= attempt.epoch:
            return self._ours(attempt, commits[attempt.epoch - 1])
        sides = (*self.kind.shown, self.kind.state)
        found = {side: self.attempts.made(attempt, side, made.get(side, ())) for side in sides}
        if not found[self.kind.shown[-1]]:
            raise ValueError(f"an epoch needs files of {self.kind.shown[-1]}")
        record = sealed(
            record,
            commits[0] if commits else None,
            attempt=attempt.id,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            files={
                public_name(f"{side}/{n}", attempt.id): d for side in self.kind.shown for n, d in found[side].items()
            },
            state=found[self.kind.state],
        )
        self.kind.check([*commits, record], self._private.path("commits"))
        name = commit_name(record.epoch)
        standing = self._private.create(name, record_json(record), draft=draft_of(attempt.id))
        return self._ours(attempt, self.kind.read(standing, self._private.path(name)))

    def refuse_if_won(self, epoch: int) -> None:
        """Refuse an epoch that another run has committed.

        Raises:
            RefusedError: another run has committed it. Nothing is raised if that cannot be seen.
        """
        try:
            standing = self.commits()[epoch - 1 :]
        except Exception:
            return
        if standing:
            raise self._won(standing[0]) from None

    def show(self) -> None:
        """Publish all that is committed; does nothing if it is published already.

        Raises:
            RefusedError: a committed file is neither published nor in its attempt any more; or as `refuse_rollback`.
        """
        self.refuse_rollback()
        self._publication.show()

    def refuse_rollback(self) -> None:
        """Compare the commits with the witness, and record there those that it lacks.

        Raises:
            RefusedError: the witness knows of later epochs or of others, or is unavailable.
        """
        if self.witness is None:
            return
        commits = self.commits()
        if new := commits[len(self._lines) :]:
            self._lines.extend(lines_of(self.kind, new, id_in(self.private, new[0].release), self._lines))
        least = len(commits) - 1 if commits and self.kind.witnessed(commits[-1]) else 0
        witness_at(self.witness).extend(self._lines, least=least, private=self.private)

    def discard(self, attempt: Attempt) -> None:
        """Remove an attempt that ended without a commit. An attempt that is committed, or may still be committed,
        stays."""
        standing = self._private.read(commit_name(attempt.epoch))
        if standing is None:
            needed = self.attempts.began_to_commit(attempt.id)
        else:
            where = self._private.path(commit_name(attempt.epoch))
            needed = self.kind.read(standing, where).attempt == attempt.id
        if not needed:
            self.attempts.remove(attempt.id)

    def killed(self) -> dict[str, Run]:
        """Return the runs whose process is gone and which neither committed their attempt nor removed it, by its id."""
        runs = self.attempts.runs()
        gone = {id_: run for id_, run in runs.items() if run is not None and self.attempts.alive(id_, run) is False}
        committed = {record.attempt for record in self.commits()} if gone else set()  # after the question who lives
        return {id_: run for id_, run in gone.items() if id_ not in committed}

    def clean(self) -> list[str]:
        """Remove attempts that are no longer needed (`Attempts.is_needless`); return their ids."""
        runs = self.attempts.runs()
        lives = {id_: self.attempts.alive(id_, run) for id_, run in runs.items()}
        history = self.open()  # after the question who lives: what a dead run has committed is there by now
        needless = [id_ for id_, run in runs.items() if self.attempts.is_needless(id_, history, run, alive=lives[id_])]
        for id_ in needless:
            self.attempts.remove(id_)
        return needless

    def _ours(self, attempt: Attempt, standing: R) -> R:
        """Return the record of an attempt's epoch if it is this attempt's."""
        if standing.attempt == attempt.id:
            return standing
        with suppress(Exception):  # else `clean` removes it; the error must be that the run has lost
            self.attempts.remove(attempt.id)
        raise self._won(standing)

    def _won(self, standing: R) -> RefusedError:
        return RefusedError(
            f"{self.public}: another run, attempt {standing.attempt}, committed epoch {standing.epoch} at "
            f"{standing.committed_at}; nothing of this run was kept, and nothing need be done: that attempt is the "
            "release's, and the next run continues from there"
        )

    @cached_property
    def _lines(self) -> list[bytes]:
        """Lines of the witness for the commits that were read so far."""
        return []

    @cached_property
    def attempts(self) -> Attempts[R]:
        return Attempts(self._private, self.kind)

    @cached_property
    def loads(self) -> Loads:
        return Loads(self._private)

    @cached_property
    def shown(self) -> ShownEpochs:
        return ShownEpochs(self._public, self.kind.shown)

    @cached_property
    def _committed(self) -> RecordFolder[R]:
        return RecordFolder(self._private, self.kind)

    @cached_property
    def _publication(self) -> Publisher[R]:
        return Publisher(self.kind, self._public, self._private, self._committed, self.shown)

    @cached_property
    def _public(self) -> Folder:
        return folder_at(self.public, private=False)

    @cached_property
    def _private(self) -> Folder:
        return folder_at(self.private, private=True)


Store = EpochStore[Commit]
"""The two folders of a release."""


def store_of(output: Output) -> Store:
    """Return the store of a release, with its witness."""
    return Store(output.public, output.private, witness=output.witness)
