"""The release store: each epoch is drawn and published once, ever, through crashes, repeated runs and races.

`public` holds `manifest.json`, `spec.yaml`, `nodes/`, `estimates/`; `private` holds `commits/`, `attempts/`. Each is a
local folder or a `gs://` prefix.

1. A run writes all it makes into an attempt of its own.
2. It *commits*: creates `commits/<epoch>.json`, which only one run can do. From now on this draw is the epoch's.
3. It *shows*: copies the attempt's nodes and estimates to the public side under names that hold epoch and attempt,
   then puts the manifest of all epochs in the place of the last one. A file that it does not list is no part of the
   release.

What is shown follows from the commits alone, so whoever finds a commit that is not shown finishes it, to the same
bytes. Whoever finds one, or a manifest or a file that is shown, makes it durable before he does anything that rests on
it: the run that wrote it may have died before it came to the disk, and without it a second draw would be made.

The manifest never goes back: whoever writes it has read the commits after it took the lock (local) or after it read the
generation that it replaces (`gs://`), so it knows of every epoch that the one there shows.

State stays in its attempt's folder, where the commit says it is; `clean` keeps that of the last two epochs.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from pipelines.spec.paths import within
from pipelines.spec.public import public_spec
from pipelines.store.attempt import DRAFT, READ, RUN, Attempt, Reading, Run, own_name, public_name
from pipelines.store.commit import Commit, Digest, check_chain, manifest_json, shown_epochs
from pipelines.store.gcs import GcsFolder
from pipelines.store.local import LocalFolder
from transforms.common.errors import RefusedError
from transforms.release.release import ESTIMATES, NODES

Folder = LocalFolder | GcsFolder

MANIFEST = "manifest.json"
SPEC = "spec.yaml"
STATE = "state"
EARLIER = "committed.json"
"""What the version before this one committed."""

Made = Mapping[str, Sequence[str]]
"""Names of files in an attempt's folders `nodes`, `estimates` and `state`."""

KEPT = 2
"""Epochs whose attempts stay: the next one starts from the last, and one more may be looked at."""


@dataclass(frozen=True, slots=True)
class History:
    """What is committed of a release, and how many epochs of it are shown."""

    commits: tuple[Commit, ...]
    shown: int

    @property
    def last(self) -> Commit:
        return self.commits[-1]


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

        That shown files are there in their sizes is checked, their content is not (see `verify`).

        Raises:
            RefusedError: something is there that is not understood, or something is missing.
        """
        manifest = self._public.read(MANIFEST)  # before the commits, so that these know of all that it shows
        if manifest is not None:
            self._public.flush([MANIFEST])
        commits = self.commits()
        shown = shown_epochs(manifest, commits, self._public.path(MANIFEST))
        if not commits:
            return None
        sizes = self._sizes() if shown else {}
        for commit in commits[:shown]:
            for name, digest in commit.files.items():
                if sizes.get(name) != digest.size:
                    raise RefusedError(self._lost(commit, name))
        return History(tuple(commits), shown)

    def commits(self) -> list[Commit]:
        """All epochs so far; they are durable.

        Raises:
            RefusedError: one is missing or cannot be read, or they do not follow on each other.
        """
        if self._private.read(EARLIER) is not None:
            raise RefusedError(
                f"{self._private.path(EARLIER)}: an earlier version of this program made this release in one run, and "
                "it cannot be continued; keep it as it is, choose other output folders and add up both losses"
            )
        names = [name for name in self._private.files("commits") if name.endswith(".json")]
        expected = [_commit_name(epoch) for epoch in range(1, len(names) + 1)]
        if names != expected:
            raise RefusedError(
                f"{self._private.path('commits')}: holds other files than the records of epochs 1 to {len(names)}; "
                "restore it from a copy, since a gap could be filled with a second draw"
            )
        unknown = [name for name in names if name not in self._known]
        self._private.flush(unknown)
        for name, content in zip(unknown, self._private.read_all(unknown), strict=True):
            self._known[name] = Commit.from_json(content or b"", self._private.path(name))
        commits = [self._known[name] for name in names]
        check_chain(commits, self._private.path("commits"))
        return commits

    def begin(self, epoch: int) -> Attempt:
        """A new working folder for an attempt at an epoch; 0 if nothing of it will be published.

        Raises:
            OSError: it cannot be made, or nothing could be published; this is found out before the work.
        """
        if epoch:
            self._public.refuse_unwritable()
        self._private.make()
        name = Attempt.name(epoch)
        self._private.make(f"attempts/{name}")
        self._private.write(f"attempts/{name}/{RUN}", Run.this().to_json())
        return Attempt(name, self._private.path(f"attempts/{name}"), epoch)

    def commit(self, attempt: Attempt, record: Commit, made: Made) -> Commit:
        """Make an attempt the epoch's draw, for ever; the record as it is committed, with its files.

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
        found = {side: self._settled(attempt, side, made.get(side, ())) for side in (NODES, ESTIMATES, STATE)}
        if not found[NODES]:
            raise ValueError("an epoch without nodes is none")
        record = replace(
            record,
            attempt=attempt.id,
            committed_at=datetime.now(UTC).isoformat(timespec="seconds"),
            files={
                public_name(f"{side}/{n}", attempt.id): d for side in (NODES, ESTIMATES) for n, d in found[side].items()
            },
            state=found[STATE],
        )
        check_chain([*commits, record], self._private.path("commits"))
        name, draft = _commit_name(record.epoch), f"attempts/{attempt.id}/{DRAFT}"
        standing = self._private.create(name, record.to_json(), draft=draft)
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
        with self._private.lock():
            while True:
                manifest, version = self._public.versioned(MANIFEST)
                commits = self.commits()
                shown = shown_epochs(manifest, commits, self._public.path(MANIFEST))
                if not commits:
                    return
                self._copy(commits[shown:])
                if shown == len(commits):
                    self._public.flush([MANIFEST])
                    break
                if self._public.swap(MANIFEST, manifest_json(commits), version):
                    break
            spec = public_spec(commits[0].spec).encode()
            if self._public.read(SPEC) != spec:
                self._public.write(SPEC, spec)

    def public_paths(self, commit: Commit) -> list[str]:
        """Where an epoch's nodes and estimates are shown."""
        return [self._public.path(name) for name in commit.files]

    def state_folder(self, commit: Commit) -> str:
        """Where the state is that the next epoch starts from."""
        return self._private.path(f"attempts/{commit.attempt}/{STATE}")

    def state_paths(self, commit: Commit) -> dict[str, str]:
        """The files in it, by name."""
        return {name: f"{self.state_folder(commit)}/{name}" for name in commit.state}

    def verify(self, commits: Sequence[Commit]) -> None:
        """Read every shown file of these epochs and compare it with what was committed.

        Raises:
            RefusedError: one is missing or differs.
        """
        for commit in commits:
            contents = self._public.read_all(list(commit.files))
            for (name, digest), content in zip(commit.files.items(), contents, strict=True):
                if not _is(content, digest):
                    raise RefusedError(self._lost(commit, name))

    def verify_state(self, commit: Commit) -> None:
        """Read what an epoch left for the next one and compare it with what was committed.

        Raises:
            RefusedError: a file is missing or differs: from older noise a second draw would be made.
        """
        made = {f"attempts/{commit.attempt}/{STATE}/{name}": digest for name, digest in commit.state.items()}
        for (name, digest), found in zip(made.items(), self._private.settle(list(made)), strict=True):
            if found != (digest.sha256, digest.size):
                raise RefusedError(
                    f"{self._private.path(name)}: missing, or not what epoch {commit.epoch} left; restore the private "
                    "folder from a copy, since without its state units would contribute anew"
                )

    def discard(self, attempt: Attempt) -> None:
        """Remove an attempt that ended without a commit; one that is committed, or may yet be, stays."""
        standing = self._private.read(_commit_name(attempt.epoch))
        if standing is None:
            needed = self._began_to_commit(attempt.id)
        else:
            where = self._private.path(_commit_name(attempt.epoch))
            needed = Commit.from_json(standing, where).attempt == attempt.id
        if not needed:
            self._private.remove(f"attempts/{attempt.id}")

    def clean(self) -> list[str]:
        """Remove attempts that nobody needs any more; their ids.

        What is committed stays until it is shown and two epochs old. An attempt at an epoch that another one has won
        can never be committed: it goes when its run is known to be dead, or cannot be seen from here and began a day
        ago. An attempt that can still win goes only if its run is dead and had not begun to commit, since a request of
        a dead process may yet arrive.
        """
        runs = self.runs()
        lives = {id_: None if run is None else run.alive() for id_, run in runs.items()}
        history = self.open()  # after the question who lives: what a dead run has committed is there by now
        needless = [id_ for id_, run in runs.items() if self._is_needless(id_, history, run, alive=lives[id_])]
        for id_ in needless:
            self._private.remove(f"attempts/{id_}")
        return needless

    def runs(self) -> dict[str, Run | None]:
        """Who works, or worked, at each attempt that is there, by its id; None where this cannot be told."""
        ids = [name for name in self._private.folders("attempts") if Attempt.epoch_of(name) is not None]
        contents = self._private.read_all([f"attempts/{id_}/{RUN}" for id_ in ids])
        return {id_: Run.from_json(content) for id_, content in zip(ids, contents, strict=True)}

    def note(self, attempt: Attempt, reading: Reading) -> None:
        """Keep how much an attempt has read, as long as the attempt stays."""
        self._private.write(f"attempts/{attempt.id}/{READ}", reading.to_json())

    def reading(self, commit: Commit) -> Reading | None:
        """How much an epoch has read; None if that is not known."""
        return Reading.from_json(self._private.read(f"attempts/{commit.attempt}/{READ}"))

    def _is_needless(self, id_: str, history: History | None, run: Run | None, *, alive: bool | None) -> bool:
        epoch = Attempt.epoch_of(id_) or 0
        if history is None or epoch > len(history.commits):
            return alive is False and not self._began_to_commit(id_)
        if history.commits[epoch - 1].attempt == id_:
            return epoch <= min(history.shown, len(history.commits) - KEPT)
        return run is None or alive is False or (alive is None and run.is_old())

    def _began_to_commit(self, id_: str) -> bool:
        return self._private.read(f"attempts/{id_}/{DRAFT}") is not None

    def _copy(self, commits: Sequence[Commit]) -> None:
        """Bring files to the public side, but for those that are there: nobody touches what another one shows.

        All of them are durable then, also those that a run has brought that died: no manifest names what may be lost.
        """
        for commit in commits:
            for name, digest in commit.files.items():
                if _is(self._public.read(name), digest):
                    continue
                content = self._private.read(f"attempts/{commit.attempt}/{own_name(name, commit.attempt)}")
                if content is not None and _is(content, digest):
                    self._public.put(name, content)
                elif not _is(self._public.read(name), digest):  # else another run has shown and cleaned meanwhile
                    raise RefusedError(self._lost(commit, name))
            self._public.flush(commit.files)

    def _ours(self, attempt: Attempt, standing: Commit) -> Commit:
        """What stands as an attempt's epoch, if it is this attempt's."""
        if standing.attempt == attempt.id:
            return standing
        with suppress(Exception):  # else `clean` removes it; that the run has lost is what must be told
            self._private.remove(f"attempts/{attempt.id}")
        raise self._won(standing)

    def _settled(self, attempt: Attempt, side: str, names: Sequence[str]) -> dict[str, Digest]:
        """Files of one folder of an attempt, by their names in it; they are durable, whoever wrote them."""
        settled = self._private.settle([f"attempts/{attempt.id}/{side}/{name}" for name in names])
        found = {name: Digest(*told) for name, told in zip(names, settled, strict=True) if told is not None}
        missing = [name for name in names if name not in found]
        if missing:
            raise RefusedError(f"{attempt.folder}: has no {side}/{missing[0]}, so it is not what a run made; run again")
        return found

    def _sizes(self) -> dict[str, int]:
        return self._public.files(NODES) | self._public.files(ESTIMATES)

    def _won(self, standing: Commit) -> RefusedError:
        return RefusedError(
            f"{self.public}: another run, attempt {standing.attempt}, committed epoch {standing.epoch} at "
            f"{standing.committed_at}; nothing of this run was kept, and nothing need be done: that draw is the "
            "release's, and the next run goes on from there"
        )

    def _lost(self, commit: Commit, name: str) -> str:
        return (
            f"{self._public.path(name)}: missing, or not what epoch {commit.epoch} committed; restore it from a copy, "
            "since it can never be drawn again"
        )

    @cached_property
    def _known(self) -> dict[str, Commit]:
        """Records read so far, by name: they never change, and there are hundreds after some years."""
        return {}

    @cached_property
    def _public(self) -> Folder:
        return GcsFolder(self.public) if "://" in self.public else LocalFolder(self.public, private=False)

    @cached_property
    def _private(self) -> Folder:
        return GcsFolder(self.private) if "://" in self.private else LocalFolder(self.private, private=True)


def _commit_name(epoch: int) -> str:
    return f"commits/{epoch:06d}.json"


def _is(content: bytes | None, digest: Digest) -> bool:
    return content is not None and hashlib.sha256(content).hexdigest() == digest.sha256
