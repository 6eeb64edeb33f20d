"""The release store: each epoch is published once, ever, with noise sampled once, whatever crashes, repeats or races.

`public` holds `manifest.json`, `spec.yaml`, `plan.json`, `nodes/`, `estimates/`; `private` holds `commits/`,
`compactions/`, `loads/`, `attempts/`. Each is a local folder or a `gs://` prefix.

1. A run writes all it makes into an attempt of its own.
2. It *commits*: creates `commits/<epoch>.json`, which only one run can do. From now on its noise is the epoch's.
3. It *shows*: copies the attempt's nodes and estimates to the public side under names that hold epoch and attempt,
   and the plan that epoch 1 committed, then puts the manifest of all epochs in the place of the last one. A file that
   it does not list is no part of the release.

What is shown follows from the commits and compactions alone, so whoever finds a commit that is not shown finishes it,
to the same bytes. Whoever finds one, or a manifest or a file that is shown, makes it durable before he does anything
that rests on it: the run that wrote it may have died before it came to the disk, and without it noise would be sampled
a second time.

The manifest never goes back: whoever writes it has read the commits after it took the lock (local) or after it read the
generation that it replaces (`gs://`), so it knows of every epoch that the one there shows.

State stays in its attempt's folder, where the commit says it is; `clean` keeps that of the last two epochs.
"""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from pipelines.spec.paths import within
from pipelines.spec.public import public_spec
from pipelines.store.attempt import Attempt, public_name
from pipelines.store.attempts import Attempts, draft_of
from pipelines.store.commit import Commit, Digest, History, check_chain, plan_digest
from pipelines.store.compaction import Compaction, check_compactions, join_epochs, needless, shown_files
from pipelines.store.folder import Folder, folder_at
from pipelines.store.loads import Loads
from pipelines.store.manifest import manifest_json, shown_epochs
from pipelines.store.shown import Shown
from transforms.aggregation.shard_state import STATE
from transforms.common.errors import RefusedError
from transforms.release.release import ESTIMATES, NODES

MANIFEST = "manifest.json"
SPEC = "spec.yaml"
PLAN = "plan.json"
COMPACTIONS = "compactions"

FileNames = Mapping[str, Sequence[str]]
"""Names of files in an attempt's folders `nodes`, `estimates` and `state`."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did.

    Attributes:
        made: what it joined; None if there was nothing to join.
        removed: how many files are gone, small ones and those of compactions that came too late or died.
    """

    made: Compaction | None
    removed: int


@dataclass(frozen=True)
class Store:
    """A release's two folders.

    Raises:
        RefusedError: private files would lie on the public side, or nothing could lock it.
    """

    public: str
    private: str

    def __post_init__(self) -> None:
        if within(self.private, self.public):
            raise RefusedError(f"{self.private}: private files would lie inside output.public; keep them apart")
        if "://" in self.private and "://" not in self.public:
            raise RefusedError(
                f"{self.public}: a local public folder needs a local private one, which holds the lock; or move both "
                "to gs://"
            )

    def open(self) -> History | None:
        """What is there; None if nothing has ever been committed.

        That shown files are there in their sizes is checked, their content is not.

        Raises:
            RefusedError: something is there that is not understood, or something is missing.
        """
        while True:
            manifest = self._public.read(MANIFEST)  # before the records, so that these know of all that it shows
            if manifest is not None:
                self._public.flush([MANIFEST])
            commits, compactions = self._records()
            shown, _ = shown_epochs(manifest, commits, compactions, self._public.path(MANIFEST))
            if not commits:
                return None
            try:
                last = compactions[-1].last if compactions else 0  # what a record names is there, shown or not
                self.shown.refuse_missing(shown_files(commits[: max(shown, last)], compactions))
            except RefusedError:
                if self._public.read(MANIFEST) == manifest:  # else a compaction has put others in their places
                    raise
                continue
            return History(tuple(commits), shown)

    def commits(self) -> list[Commit]:
        """All epochs so far; they are durable.

        Raises:
            RefusedError: one is missing or cannot be read, or they do not follow on each other.
        """
        names = [name for name in self._private.files("commits") if name.endswith(".json")]
        expected = [_commit_name(epoch) for epoch in range(1, len(names) + 1)]
        if names != expected:
            raise RefusedError(
                f"{self._private.path('commits')}: holds other files than the records of epochs 1 to {len(names)}; "
                "restore it from a copy, since a gap could be filled with a second sample of noise"
            )
        unknown = [name for name in names if name not in self._known]
        self._private.flush(unknown)
        for name, content in zip(unknown, self._private.read_all(unknown), strict=True):
            self._known[name] = Commit.from_json(content or b"", self._private.path(name))
        commits = [self._known[name] for name in names]
        check_chain(commits, self._private.path("commits"))
        return commits

    def _records(self) -> tuple[list[Commit], list[Compaction]]:
        """All epochs and compactions so far; they are durable.

        Raises:
            RefusedError: as `commits`; or a compaction cannot be read, or does not fit the commits.
        """
        names = [name for name in self._private.files(COMPACTIONS) if name.endswith(".json")]
        self._private.flush(names)
        found = [
            Compaction.from_json(content or b"", self._private.path(name))
            for name, content in zip(names, self._private.read_all(names), strict=True)
        ]
        commits = self.commits()  # after the compactions, so that these are of none that is committed meanwhile
        check_compactions(found, commits, self._private.path(COMPACTIONS))
        return commits, found

    def files_of(self, commit: Commit, side: str) -> tuple[Mapping[str, Digest], bool]:
        """The public files that hold what an epoch has of a side, and whether they hold others' rows too."""
        joined = [one for one in self._records()[1] if one.first <= commit.epoch <= one.last]
        files = joined[0].files if joined else commit.files
        return {name: digest for name, digest in files.items() if name.startswith(f"{side}/")}, bool(joined)

    def compact(self) -> Compacted:
        """Put few large files in the place of the small ones of all epochs that are shown and not yet compacted.

        A record of it is created on the private side first, which only one caller can do, then the manifest names the
        new files, and only then the old ones are removed: whoever dies in between leaves what the next `show` and
        `compact` finish.

        Raises:
            RefusedError: as `open` and `show`.
        """
        commits, compactions = self._show()
        new = commits[compactions[-1].last if compactions else 0 :]
        made = None
        if len(new) > 1:
            made = self._join(new, f"{COMPACTIONS}/{len(compactions) + 1:06d}.json")
            commits, compactions = self._show()
        # By the records that are shown: what a newer one stands for is in the manifest still.
        there = self._public.files(NODES) | self._public.files(ESTIMATES)
        old = needless(there, commits, compactions)
        self._public.drop(old)
        return Compacted(made, removed=len(old))

    def _join(self, commits: Sequence[Commit], record: str) -> Compaction:
        """Join these epochs, unless another one has joined them, or fewer or more, before; what stands."""
        digests = {name: (digest, commit.epoch) for commit in commits for name, digest in commit.files.items()}
        draft = f"{COMPACTIONS}/{secrets.token_hex(8)}.draft"
        try:
            with self._private.lock():
                made = join_epochs(commits, lambda name: self.shown.content(name, *digests[name]), self._public.put)
                self._public.flush(made.files)
        except RefusedError:
            standing = self._private.read(record)
            if standing is None:  # else another one was faster, and has removed what was to be joined
                raise
        else:
            standing = self._private.create(record, made.to_json(), draft=draft)
            self._private.drop([draft])
        return Compaction.from_json(standing, self._private.path(record))

    def begin(self, epoch: int) -> Attempt:
        """A new working folder for an attempt at an epoch; 0 if nothing of it will be published.

        Raises:
            OSError: it cannot be made, or nothing could be published; this is found out before the work.
        """
        if epoch:
            self.refuse_unwritable()
        return self.attempts.begin(epoch)

    def refuse_unwritable(self) -> None:
        """
        Raises:
            OSError: nothing could be published.
        """
        self._public.refuse_unwritable()

    def commit(self, attempt: Attempt, record: Commit, made: FileNames) -> Commit:
        """Make an attempt the epoch's, for ever; the record as it is committed, with its files.

        Args:
            made: what the attempt must have made, as its plan says. What is there is not asked: a folder that cannot be
                listed would look empty.

        Raises:
            RefusedError: another run was first, and this attempt is removed; or the epoch is not the next one; or a
                file is missing.
        """
        if record.epoch != attempt.epoch:
            raise ValueError(f"an attempt at epoch {attempt.epoch} cannot be committed as epoch {record.epoch}")
        commits = self.commits()
        if len(commits) >= attempt.epoch:
            return self._ours(attempt, commits[attempt.epoch - 1])
        found = {side: self.attempts.made(attempt, side, made.get(side, ())) for side in (NODES, ESTIMATES, STATE)}
        if not found[ESTIMATES]:
            raise ValueError("an epoch without estimates is none")
        record = replace(
            record,
            attempt=attempt.id,
            committed_at=datetime.now(UTC).isoformat(timespec="seconds"),
            files={
                public_name(f"{side}/{n}", attempt.id): d for side in (NODES, ESTIMATES) for n, d in found[side].items()
            },
            state=found[STATE],
            plan="" if commits else record.plan,
            plan_sha256=commits[0].plan_sha256 if commits else plan_digest(record.plan),
        )
        check_chain([*commits, record], self._private.path("commits"))
        name = _commit_name(record.epoch)
        standing = self._private.create(name, record.to_json(), draft=draft_of(attempt.id))
        return self._ours(attempt, Commit.from_json(standing, self._private.path(name)))

    def refuse_if_won(self, epoch: int) -> None:
        """
        Raises:
            RefusedError: another run has committed the epoch; does nothing if that is not so, or cannot be seen.
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
            RefusedError: what was committed is neither published nor in its attempt any more.
        """
        self._show()

    def _show(self) -> tuple[list[Commit], list[Compaction]]:
        """The same; what the manifest shows then."""
        with self._private.lock():
            while True:
                manifest, version = self._public.versioned(MANIFEST)
                commits, compactions = self._records()
                shown, joined = shown_epochs(manifest, commits, compactions, self._public.path(MANIFEST))
                if not commits:
                    return [], []
                last = compactions[-1].last if compactions else 0
                self.shown.refuse_missing(shown_files(commits[:last], compactions))
                for commit in commits[max(shown, last) :]:
                    self.shown.bring(commit, self._private)
                self.shown.bring_text(PLAN, commits[0].plan)
                if (shown, joined) == (len(commits), len(compactions)):
                    self._public.flush([MANIFEST])
                    break
                if self._public.swap(MANIFEST, manifest_json(commits, compactions), version):
                    break
            self.shown.bring_text(SPEC, public_spec(commits[0].spec))
        return commits, compactions

    def discard(self, attempt: Attempt) -> None:
        """Remove an attempt that ended without a commit; one that is committed, or may yet be, stays."""
        standing = self._private.read(_commit_name(attempt.epoch))
        if standing is None:
            needed = self.attempts.began_to_commit(attempt.id)
        else:
            where = self._private.path(_commit_name(attempt.epoch))
            needed = Commit.from_json(standing, where).attempt == attempt.id
        if not needed:
            self.attempts.remove(attempt.id)

    def clean(self) -> list[str]:
        """Remove attempts that nobody needs any more (`Attempts.is_needless`); their ids."""
        runs = self.attempts.runs()
        lives = {id_: None if run is None else run.alive() for id_, run in runs.items()}
        history = self.open()  # after the question who lives: what a dead run has committed is there by now
        needless = [id_ for id_, run in runs.items() if self.attempts.is_needless(id_, history, run, alive=lives[id_])]
        for id_ in needless:
            self.attempts.remove(id_)
        return needless

    def _ours(self, attempt: Attempt, standing: Commit) -> Commit:
        """What stands as an attempt's epoch, if it is this attempt's."""
        if standing.attempt == attempt.id:
            return standing
        with suppress(Exception):  # else `clean` removes it; that the run has lost is what must be said
            self.attempts.remove(attempt.id)
        raise self._won(standing)

    def _won(self, standing: Commit) -> RefusedError:
        return RefusedError(
            f"{self.public}: another run, attempt {standing.attempt}, committed epoch {standing.epoch} at "
            f"{standing.committed_at}; nothing of this run was kept, and nothing need be done: that attempt is the "
            "release's, and the next run goes on from there"
        )

    @cached_property
    def attempts(self) -> Attempts:
        return Attempts(self._private)

    @cached_property
    def loads(self) -> Loads:
        return Loads(self._private)

    @cached_property
    def shown(self) -> Shown:
        return Shown(self._public)

    @cached_property
    def _known(self) -> dict[str, Commit]:
        """Records read so far, by name: they never change, and there are hundreds after some years."""
        return {}

    @cached_property
    def _public(self) -> Folder:
        return folder_at(self.public, private=False)

    @cached_property
    def _private(self) -> Folder:
        return folder_at(self.private, private=True)


def _commit_name(epoch: int) -> str:
    return f"commits/{epoch:06d}.json"
