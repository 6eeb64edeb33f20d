"""The release store against a plain model: any sequence of runs, kills, losses, compactions and restored folders.

The model is a list of committed contents. After any sequence of steps, no number gets a second value, everything
that is committed becomes public as soon as a run shows it, and a run refuses to continue without what it needs.
"""

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import integers, sampled_from

from pipelines.store.attempt import Attempt
from pipelines.store.store import Store
from tests.pipelines.store.releases import planned, record
from tests.pipelines.store.test_compaction import rows
from tests.searches import TIMES
from transforms.common.errors import RefusedError

MADE = ("nodes/a-net-00000.jsonl", "estimates/a-net-00000.jsonl", "state/shard-0.parquet")


class Releases(RuleBasedStateMachine):
    """A release and its model: the contents of committed epochs, and how many of them a reader can have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="slackwater-model-"))
        self.committed: list[bytes] = []
        self.shown = self.made = 0
        self.open: list[tuple[Attempt, int, bytes]] = []
        self.copies: dict[str, int] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def store(self) -> Store:
        """The store as another process sees it."""
        return Store(str(self.folder / "public"), str(self.folder / "private"), witness=str(self.folder / "witness"))

    @rule()
    def a_run_begins(self) -> None:
        if len(self.open) < 3:
            self.made += 1
            epoch, content = len(self.committed) + 1, f'{{"made": {self.made}}}'.encode()
            self.store.show()
            self.shown = len(self.committed)
            attempt = self.store.begin(epoch)
            for name in MADE:
                path = Path(attempt.folder, name)
                path.parent.mkdir(mode=0o700, exist_ok=True)
                path.write_bytes(content + b"\n")
            self.open.append((attempt, epoch, content))

    @precondition(lambda self: self.open)
    @rule(place=integers(0, 2), shows=sampled_from([True, False]))
    def a_run_commits_and_may_be_killed_before_it_shows(self, place: int, shows: bool) -> None:
        attempt, epoch, content = self.open.pop(place % len(self.open))
        store = self.store
        if epoch <= len(self.committed):
            with pytest.raises(RefusedError, match="another run"):
                store.commit(attempt, record(epoch), planned(MADE))
            return
        store.commit(attempt, record(epoch), planned(MADE))
        self.committed.append(content)
        if shows:
            store.show()
            self.shown = len(self.committed)

    @precondition(lambda self: self.open)
    @rule(place=integers(0, 2))
    def a_run_fails(self, place: int) -> None:
        self.store.discard(self.open.pop(place % len(self.open))[0])

    @rule()
    def a_run_has_nothing_to_do(self) -> None:
        self.store.show()
        self.shown = len(self.committed)

    @rule(writes=integers(0, 6))
    def the_disk_is_full_while_a_run_shows(self, writes: int) -> None:
        kept, left = os.fsync, [writes]

        def full(descriptor: int) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")

        os.fsync = full
        try:
            with suppress(OSError, RefusedError):  # the witness is unavailable
                self.store.show()
        finally:
            os.fsync = kept

    @precondition(lambda self: self.committed)
    @rule()
    def small_files_are_merged(self) -> None:
        self.store.compact()
        self.shown = len(self.committed)

    @rule()
    def needless_attempts_are_removed(self) -> None:
        if not self.open:
            self.store.show()
            self.shown = len(self.committed)
            self.store.clean()

    @precondition(lambda self: not self.open)
    @rule()
    def both_folders_are_copied(self) -> None:
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        for side in ("public", "private"):
            if (self.folder / side).exists():
                shutil.copytree(self.folder / side, self.folder / "copy" / side)
        self.copies = {"epochs": len(self.committed)}

    @precondition(lambda self: self.copies and not self.open)
    @rule()
    def an_older_copy_of_both_folders_is_refused_and_put_away(self) -> None:
        for side in ("public", "private"):
            if (self.folder / side).exists():
                (self.folder / side).rename(self.folder / f"newer {side}")
            if (self.folder / "copy" / side).exists():
                shutil.copytree(self.folder / "copy" / side, self.folder / side)
        known = self.folder / "witness"
        if known.exists() and known.read_bytes().count(b"\n") > self.copies["epochs"]:
            with pytest.raises(RefusedError, match="the witness"):
                self.store.begin(self.copies["epochs"] + 1)
        for side in ("public", "private"):
            shutil.rmtree(self.folder / side, ignore_errors=True)
            if (self.folder / f"newer {side}").exists():
                (self.folder / f"newer {side}").rename(self.folder / side)

    @invariant()
    def committed_epochs_are_those_of_the_model(self) -> None:
        store = self.store
        history = store.open()
        found = [] if history is None else [commit.epoch for commit in history.commits]
        assert found == [*range(1, len(self.committed) + 1)]
        assert (0 if history is None else history.shown) >= self.shown

    @invariant()
    def a_reader_sees_each_shown_epoch_once_and_in_order(self) -> None:
        if self.shown:
            for of_side in rows(self.store).values():
                seen = of_side.splitlines()
                assert seen == self.committed[: len(seen)]
                assert len(seen) >= self.shown


Releases.TestCase.settings = settings(max_examples=8 * TIMES, stateful_step_count=25, deadline=None)
TestReleases = Releases.TestCase
