"""The release store on local folders: every step killed, every file torn, disks that are full."""

import errno
import json
import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.store.attempt import Attempt
from pipelines.store.commit import RELEASE
from pipelines.store.local import LocalFolder
from pipelines.store.manifest import manifest_json
from pipelines.store.record import History
from pipelines.store.store import Store
from tests.e2e.specs import contents
from tests.pipelines.store.releases import MADE, SECRET, attempt_at, planned, public_side, record, released, verify
from tests.processes import CLEAN
from tests.rights import plain_rights
from tests.searches import TIMES
from transforms.common.errors import RefusedError


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "public"), str(tmp_path / "private"))


def again(store: Store) -> Store:
    """Return the store as another process sees it."""
    return Store(store.public, store.private)


def public(store: Store) -> dict[str, bytes]:
    return contents(Path(store.public))


def attempts(store: Store) -> list[str]:
    return sorted(path.name for path in Path(store.private, "attempts").iterdir())


def test_an_epoch_is_published_under_its_own_names_and_found_by_the_next_run(store: Store) -> None:
    assert store.open() is None

    first = released(store, 1, b"first")
    second = released(again(store), 2, b"second")

    assert public(store) == public_side([first, second], [b"first", b"second"])
    assert again(store).open() == History((first, second), shown=2)
    assert {Path(path).relative_to(store.public).as_posix() for path in store.shown.paths(second)} == {
        name for name in public(store) if second.attempt in name
    }
    state = again(store).attempts.state_paths(second)
    assert {name: Path(path).read_bytes() for name, path in state.items()} == {
        "shard-0.parquet": b"second state/shard-0.parquet"
    }


def test_the_manifest_names_neither_sources_nor_state(store: Store) -> None:
    commit = released(store, 1)

    manifest = public(store)["manifest.json"].decode()

    assert commit.sources[0].path == SECRET
    assert SECRET not in manifest
    assert "1234" not in manifest
    assert commit.state["shard-0.parquet"].sha256 not in manifest
    assert "shard" not in manifest


def test_only_the_owner_can_read_the_private_side_and_everybody_the_public_one(store: Store) -> None:
    released(store, 1)

    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in Path(store.private).rglob("*")}
    assert stat.S_IMODE(Path(store.private).stat().st_mode) == 0o700
    assert {oct(mode) for path, mode in modes.items() if path.is_dir()} == {"0o700"}
    assert {oct(mode) for path, mode in modes.items() if path.is_file()} == {"0o600"}
    mask = os.umask(0)
    os.umask(mask)
    assert {stat.S_IMODE(Path(path).stat().st_mode) for path in (Path(store.public) / n for n in public(store))} == {
        0o666 & ~mask
    }


def test_files_of_workers_are_closed_to_others_when_they_are_committed(store: Store) -> None:
    attempt = attempt_at(store, 1)
    Path(attempt.folder, "state/shard-0.parquet").chmod(0o644)

    store.commit(attempt, record(1), planned())

    assert stat.S_IMODE(Path(attempt.folder, "state/shard-0.parquet").stat().st_mode) == 0o600


def test_the_second_of_two_runs_names_the_winner_and_leaves_nothing(store: Store) -> None:
    other = again(store)
    early, late = attempt_at(store, 1, b"early"), attempt_at(other, 1, b"late")
    won = store.commit(early, record(1), planned())

    with pytest.raises(RefusedError) as lost:
        other.commit(late, record(1), planned())

    assert str(lost.value).endswith(
        f"another run, attempt {won.attempt}, committed epoch 1 at {won.committed_at}; nothing of this run was "
        "kept, and nothing need be done: that attempt is the release's, and the next run continues from there"
    )
    assert attempts(store) == [early.id]
    other.show()
    assert public(store) == public_side([won], [b"early"])


def test_an_attempt_committed_twice_stays(store: Store) -> None:
    """A caller that repeats a commit must not lose, and keeps its files."""
    attempt = attempt_at(store, 1)

    first = store.commit(attempt, record(1), planned())

    assert store.commit(attempt, record(1), planned()) == first
    assert again(store).commit(attempt, record(1), planned()) == first
    store.show()
    assert public(store) == public_side([first], [b"noisy"])


def test_showing_again_touches_no_file(store: Store) -> None:
    released(store, 1)
    before = {path: path.stat().st_mtime_ns for path in Path(store.public).rglob("*")}

    again(store).show()

    assert {path: path.stat().st_mtime_ns for path in Path(store.public).rglob("*")} == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"epoch": 3, "released": 2, "windows": 3}, "epoch 2 does not continue"),
        ({"release": "others"}, "epoch 2 does not continue"),
        ({"spec_sha256": "beef"}, "epoch 2 does not continue"),
        ({"released": 0}, "epoch 2 does not continue"),
        ({"windows": 1}, "epoch 2 does not continue"),
        ({"start": 0}, "epoch 2 does not continue"),
    ],
)
def test_an_epoch_that_does_not_continue_the_last_one_is_never_committed(
    store: Store, change: dict[str, Any], why: str
) -> None:
    released(store, 1)
    before = contents(Path(store.private, "commits"))
    wrong = replace(record(2), **change)

    with pytest.raises(RefusedError, match=why):
        store.commit(attempt_at(store, wrong.epoch), wrong, planned())

    assert contents(Path(store.private, "commits")) == before


@pytest.mark.parametrize("gone", [name for name in MADE if not name.startswith("diagnostics/")])
def test_an_attempt_without_one_of_the_files_of_its_plan_is_never_committed(store: Store, gone: str) -> None:
    attempt = attempt_at(store, 1)
    Path(attempt.folder, gone).unlink()

    with pytest.raises(RefusedError, match=f"has no {gone}, so it is not what a run made; run again"):
        store.commit(attempt, record(1), planned())

    assert store.open() is None


@pytest.mark.parametrize("side", ["nodes", "estimates", "state"])
@pytest.mark.parametrize("searched", [True, False])
def test_a_folder_that_cannot_be_listed_is_committed_whole_or_not_at_all(
    store: Store, side: str, searched: bool
) -> None:
    """Its files are looked for by their names, so it need not be listed; and it never looks empty."""
    attempt = attempt_at(store, 1)
    folder = Path(attempt.folder, side)
    folder.chmod(0o300 if searched else 0)

    with plain_rights():
        if searched:
            store.commit(attempt, record(1), planned())
        else:
            with pytest.raises(PermissionError):
                store.commit(attempt, record(1), planned())
    folder.chmod(0o700)

    for commit in again(store).commits():
        assert len(commit.files) + len(commit.state) == len(MADE) - 1  # all but the diagnostics
    assert len(again(store).commits()) == searched


def test_a_folder_above_that_may_not_be_listed_is_in_nobodys_way(tmp_path: Path) -> None:
    """As homes of others often may not: it cannot be flushed by itself, but with all there is."""
    store = Store(str(tmp_path / "closed/public"), str(tmp_path / "closed/private"))
    for side in (store.public, store.private):
        Path(side).mkdir(parents=True)
    (tmp_path / "closed").chmod(0o100)

    with plain_rights():
        commit = released(store, 1)

    (tmp_path / "closed").chmod(0o700)
    assert public(store) == public_side([commit], [b"noisy"])


def test_unreadable_state_is_not_reported_as_lost(store: Store) -> None:
    """Restoring an older copy for it would make things worse."""
    commit = released(store, 1)
    state = Path(store.attempts.state_paths(commit)["shard-0.parquet"])
    state.chmod(0)
    state.parent.chmod(0)

    with plain_rights(), pytest.raises(PermissionError):
        again(store).attempts.verify_state(commit)

    state.parent.chmod(0o700)


# --- Kills and failures


def released_until(event: int, store: Store) -> None:
    """A second epoch, by a process that dies, as by kill -9, at the n-th time that it touches the disk."""
    left = [event]

    def mortal(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            reads = call.__name__ == "open" and not arguments[1] & os.O_CREAT
            if left[0] == 0 and not reads:
                os._exit(9)
            left[0] -= not reads
            return call(*arguments, **named)

        return called

    for name in ("link", "replace", "fsync", "mkdir", "open", "unlink"):
        setattr(os, name, mortal(getattr(os, name)))
    released(store, 2, b"killed")
    os._exit(0)


def killed_at(event: int, store: Store) -> bool:
    """Return whether the process died before it was done."""
    process = CLEAN.Process(target=released_until, args=(event, again(store)))
    process.start()
    process.join()
    assert process.exitcode in (0, 9)
    return process.exitcode == 9


@pytest.mark.slow
@pytest.mark.hypothesis  # `make search` selects by this mark
def test_a_run_that_is_killed_anywhere_is_finished_or_repeated_and_leaves_nothing(tmp_path: Path) -> None:
    """At every eighth of its steps. What it had committed is published from its draw, and else the next run's is."""
    finished, repeated, event = 0, 0, 0
    while True:
        store = Store(str(tmp_path / f"public-{event}"), str(tmp_path / f"private-{event}"))
        first = released(store, 1, b"first")

        died = killed_at(event, store)

        release = again(store).open()
        assert release is not None
        draw = b"killed"
        if len(release.commits) == 1:
            repeated, draw = repeated + 1, b"again"
            store.commit(attempt_at(store, 2, draw), record(2), planned())
        else:
            finished += 1
        store.show()
        store.clean()
        second = store.commits()[1]
        assert public(store) == public_side([first, second], [b"first", draw]), event
        assert again(store).open() == History((first, second), shown=2)
        verify(again(store), [first, second])
        assert attempts(store) == sorted([first.attempt, second.attempt]), event
        private = contents(Path(store.private))
        assert not [name for name in private if Path(name).name.startswith(".")], event
        if not died:
            break
        event += 1 if TIMES > 1 else 8

    assert repeated > 4  # else the kills were not where the steps are
    assert finished > 4


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """The system itself cuts off what is written beyond that many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_unwritable_commit_is_not_a_commit(store: Store) -> None:
    attempt = attempt_at(store, 1)

    with no_file_larger_than(100), pytest.raises(OSError, match="File too large"):
        store.commit(attempt, record(1), planned())

    assert contents(Path(store.private, "commits")) == {}
    store.discard(attempt)
    assert attempts(store) == []
    commit = released(store, 1, b"later")
    assert public(store) == public_side([commit], [b"later"])


def test_a_copy_that_cannot_be_written_is_made_later_from_the_same_draw(store: Store) -> None:
    draw = b"draw" * 1000
    commit = store.commit(attempt_at(store, 1, draw), record(1), planned())

    with no_file_larger_than(2000), pytest.raises(OSError, match="File too large"):
        store.show()

    assert public(store) == {}
    store.show()
    assert public(store) == public_side([commit], [draw])


@pytest.mark.slow
@pytest.mark.parametrize("flushes", range(0, 12, 2))
def test_a_full_disk_leaves_the_last_manifest_or_the_new_one(
    store: Store, monkeypatch: pytest.MonkeyPatch, flushes: int
) -> None:
    first = released(store, 1, b"first")
    second = store.commit(attempt_at(store, 2, b"second"), record(2), planned())
    left = [flushes]

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with suppress(OSError):  # or it needs fewer
            again(store).show()

    assert Path(store.public, "manifest.json").read_bytes() in [
        manifest_json(RELEASE, shown, [commit.files for commit in shown]) for shown in ([first], [first, second])
    ]
    release = again(store).open()
    assert release is not None
    verify(again(store), release.commits[: release.shown])
    store.show()
    assert public(store) == public_side([first, second], [b"first", b"second"])


@pytest.mark.slow
def test_a_run_that_stalls_while_it_writes_the_manifest_never_puts_back_an_older_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = LocalFolder.swap
    stalled, go_on = threading.Event(), threading.Event()

    def slow(folder: LocalFolder, name: str, content: bytes, version: int) -> bool:
        if not stalled.is_set():
            stalled.set()
            assert go_on.wait(30)
        return swap(folder, name, content, version)

    monkeypatch.setattr(LocalFolder, "swap", slow)
    first = store.commit(attempt_at(store, 1, b"first"), record(1), planned())
    old = threading.Thread(target=again(store).show)
    old.start()
    assert stalled.wait(30)
    second = store.commit(attempt_at(store, 2, b"second"), record(2), planned())
    new = threading.Thread(target=again(store).show)
    new.start()
    new.join(0.3)  # if nothing held it, it would be done by now, and the stalled one would write over it
    go_on.set()
    old.join(30)
    new.join(30)

    assert public(store) == public_side([first, second], [b"first", b"second"])


# --- Files that cannot be read


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"version": 99}', '{"version": 3}', "\xff"])
@pytest.mark.parametrize("torn", ["public/manifest.json", "private/commits/000001.json"])
def test_unreadable_files_are_never_treated_as_missing(store: Store, torn: str, content: str) -> None:
    released(store, 1)
    side, name = torn.split("/", 1)
    path = Path(store.public if side == "public" else store.private, name)
    path.write_bytes(content.encode("latin-1"))

    for call in (again(store).open, again(store).show, again(store).clean):
        with pytest.raises(RefusedError, match=rf"{name}: .*(restore|remove it and run again|use the program)"):
            call()

    assert path.read_bytes() == content.encode("latin-1")


def test_a_gap_between_epochs_is_refused(store: Store) -> None:
    for epoch in (1, 2, 3):
        released(store, epoch)
    Path(store.private, "commits/000002.json").unlink()

    with pytest.raises(
        RefusedError, match=r"restore it from a copy, since without it .*noise would be sampled a second time"
    ):
        again(store).open()


def test_a_manifest_that_knows_more_than_the_commits_is_refused(store: Store) -> None:
    released(store, 1)
    released(store, 2)
    Path(store.private, "commits/000002.json").unlink()
    before = public(store)

    for call in (again(store).open, again(store).show):
        with pytest.raises(RefusedError, match="shows 2 epochs and the private side has committed 1; restore the priv"):
            call()

    Path(store.private, "commits/000001.json").unlink()
    with pytest.raises(RefusedError, match="shows 2 epochs and the private side has committed 0; restore the priv"):
        again(store).open()
    assert public(store) == before


def test_a_different_manifest_is_refused_and_rebuilt_after_its_removal(store: Store) -> None:
    commit = released(store, 1)
    path = Path(store.public, "manifest.json")
    path.write_bytes(path.read_bytes().replace(b'"windows": 1', b'"windows": 9'))

    with pytest.raises(RefusedError, match="differs from what was committed"):
        again(store).open()

    path.unlink()
    again(store).show()
    assert public(store) == public_side([commit], [b"noisy"])


def test_a_missing_or_truncated_shown_file_is_refused(store: Store) -> None:
    commit = released(store, 1)
    path = Path(store.shown.paths(commit)[0])
    good = path.read_bytes()

    path.write_bytes(good[:-1])
    with pytest.raises(RefusedError, match="missing, or not what epoch 1 committed; restore it from a copy"):
        again(store).open()
    path.unlink()
    with pytest.raises(RefusedError, match=path.name):
        again(store).open()

    path.write_bytes(good[::-1])
    assert again(store).open() == History((commit,), shown=1)  # what is cheap to see is as it was


def test_a_lost_committed_sample_is_never_published_in_part(store: Store) -> None:
    attempt = attempt_at(store, 1)
    store.commit(attempt, record(1), planned())
    Path(attempt.folder, MADE[0]).write_bytes(b"something else")

    with pytest.raises(RefusedError, match="its noise is sampled once, ever"):
        store.show()

    assert "manifest.json" not in public(store)


@pytest.mark.parametrize("private", ["out", "out/private", "out/../out/private"])
def test_private_files_never_go_to_the_public_side(private: str) -> None:
    with pytest.raises(RefusedError, match=r"would lie inside output\.public"):
        Store("out", private)


def test_a_public_folder_that_nothing_could_lock_is_refused() -> None:
    with pytest.raises(RefusedError, match="needs a local private one, which holds the lock"):
        Store("out/public", "gs://bucket/private")


# --- Removing what nobody needs


def changed_run(attempt: Attempt, **changes: str | bool) -> None:
    """Assign an attempt to another process."""
    path = Path(attempt.folder, "run.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


DEAD = {"process": "1 -1"}  # its number is another process's by now
FAR = {"place": "another boot", "held": False}
OLD = {"began": "2020-01-01T00:00:00+00:00"}


@pytest.mark.parametrize(
    ("run", "before", "after"),
    [
        ({}, False, False),
        (OLD, False, False),
        (DEAD, True, True),
        (FAR, False, False),
        ({**FAR, **OLD}, False, True),
    ],
    ids=["alive", "alive since long", "dead", "elsewhere", "elsewhere since long"],
)
def test_an_attempt_is_removed_when_it_cannot_win_and_no_process_works_on_it(
    store: Store, run: dict[str, str | bool], before: bool, after: bool
) -> None:
    """Covers attempts before and after another run commits their epoch."""
    attempt = attempt_at(store, 1)
    changed_run(attempt, **run)

    assert store.clean() == ([attempt.id] if before else [])
    assert Path(attempt.folder).exists() is not before
    if not before:
        won = released(store, 1)
        assert store.clean() == ([attempt.id] if after else [])
        assert attempts(store) == sorted([won.attempt] if after else [won.attempt, attempt.id])


def test_a_dead_attempt_that_had_begun_to_commit_stays_until_another_one_wins(store: Store) -> None:
    """On a file server, its request may still arrive."""
    attempt = attempt_at(store, 1)
    changed_run(attempt, **DEAD)
    Path(attempt.folder, "commit.json").write_bytes(b"{")

    assert store.clean() == []
    store.discard(attempt)
    assert attempts(store) == [attempt.id]

    released(store, 1)
    assert store.clean() == [attempt.id]


def test_an_attempt_without_a_note_of_its_run_is_removed_when_it_cannot_win(store: Store) -> None:
    torn, bare = attempt_at(store, 1), attempt_at(store, 1)
    Path(torn.folder, "run.json").write_text('{"host": "')
    Path(bare.folder, "run.json").unlink()
    Path(store.private, "attempts/lost+found").mkdir()

    assert store.clean() == []
    released(store, 1)
    assert store.clean() == sorted([torn.id, bare.id])
    assert "lost+found" in attempts(store)


def test_attempts_of_the_last_two_epochs_and_of_epochs_not_shown_stay(store: Store) -> None:
    commits = [released(store, epoch) for epoch in (1, 2, 3)]
    before = public(store)
    assert store.clean() == [commits[0].attempt]
    assert attempts(store) == [commits[1].attempt, commits[2].attempt]
    assert again(store).open() == History(tuple(commits), shown=3)
    again(store).show()
    assert public(store) == before

    for epoch in (4, 5, 6):
        commits.append(store.commit(attempt_at(store, epoch), record(epoch), planned()))
    assert store.clean() == [commits[1].attempt, commits[2].attempt]
    store.show()
    assert again(store).open() == History(tuple(commits), shown=6)


def test_a_committed_attempt_is_never_discarded(store: Store) -> None:
    kept, gone = attempt_at(store, 1), attempt_at(store, 1)
    store.commit(kept, record(1), planned())

    again(store).discard(kept)
    again(store).discard(gone)
    again(store).discard(gone)

    assert attempts(store) == [kept.id]


def test_an_error_of_a_folder_names_its_path_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = LocalFolder("private", private=True)
    folder.make()
    too_long = "n" * 300

    with pytest.raises(OSError) as refused:  # noqa: PT011 - its number is the system's
        folder.drop([f"{too_long}/file"])

    assert refused.value.filename == f"private/{too_long}"
