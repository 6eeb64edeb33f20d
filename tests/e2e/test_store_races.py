"""Many runs at once on one release, on a disk and on a server that speaks GCS, whose answers get lost too."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from google.cloud import storage

from benchmarks.crash.server import strict_gcs
from pipelines.store.attempt import Run
from pipelines.store.commit import RELEASE
from pipelines.store.gcs import GcsFolder
from pipelines.store.record import History
from pipelines.store.store import Store
from tests.e2e.specs import contents
from tests.pipelines.store.releases import attempt_at, planned, public_side, record, released, verify
from tests.processes import CLEAN, FORKED
from transforms.common.errors import RefusedError

RACERS = 8
PATIENCE = 300.0
"""Seconds that a racer waits for the others; one that fails lets nobody wait."""
RELEASES, EPOCHS = 2, 4
"""Eight rounds: two releases of four epochs each."""

ONE = ("estimates/a-0.parquet",)
FEW = (*ONE, "nodes/a-0.parquet", "state/shard-0.parquet")


@pytest.fixture
def bucket() -> Iterator[storage.Bucket]:
    """A bucket on a server that honours preconditions."""
    with strict_gcs() as client:
        yield client.create_bucket("out")


@pytest.fixture
def store(bucket: storage.Bucket) -> Store:
    return Store("gs://out/public", "gs://out/private")


def again(store: Store) -> Store:
    """Return the store as another process sees it."""
    return Store(store.public, store.private)


def under(bucket: storage.Bucket, prefix: str) -> dict[str, bytes]:
    return {blob.name.removeprefix(prefix): blob.download_as_bytes() for blob in bucket.list_blobs(prefix=prefix)}


def attempts(bucket: storage.Bucket) -> set[str]:
    return {name.split("/")[0] for name in under(bucket, "private/attempts/")}


Round = tuple[str, int, str, str]
"""History, epoch, the racer's attempt, and its error when it lost."""


@contextmanager
def breaking(barrier: Any) -> Iterator[None]:
    """Break the barrier on an error, so that no process waits for a failed one."""
    try:
        yield
    except BaseException:
        barrier.abort()
        raise


def race(sides: Callable[[str], tuple[str, str]], barrier: Any, racer: int) -> list[Round]:
    """One racer's part in all rounds: it tries to commit each epoch at the same moment as the others."""
    told = []
    with breaking(barrier):
        for release in map(str, range(RELEASES)):
            store = Store(*sides(release))
            for epoch in range(1, EPOCHS + 1):
                attempt = attempt_at(store, epoch, f"{racer}".encode(), ONE)
                barrier.wait(PATIENCE)
                lost = ""
                try:
                    store.commit(attempt, record(epoch, release=release), planned(ONE))
                except RefusedError as error:
                    lost = str(error)
                if not lost or racer == 0:
                    store.show()  # by the winner and a loser side by side
                told.append((release, epoch, attempt.id, lost))
                barrier.wait(PATIENCE)
    return told


def check_race(
    sides: Callable[[str], tuple[str, str]], told: list[list[Round]], side: Callable[[str], dict[str, bytes]]
) -> None:
    """Each epoch has one winner, whom all losers name; the public side holds the winners' draws, nothing else."""
    for release in map(str, range(RELEASES)):
        commits = Store(*sides(release)).commits()
        assert len(commits) == EPOCHS
        draws = []
        for commit in commits:
            entered = [
                (racer, r) for racer, rounds in enumerate(told) for r in rounds if r[:2] == (release, commit.epoch)
            ]
            won = [(racer, r[2]) for racer, r in entered if not r[3]]
            assert len(entered) == RACERS
            assert [attempt for _, attempt in won] == [commit.attempt]
            losers = [r[3] for _, r in entered if r[3]]
            assert len(losers) == RACERS - 1
            who = f"another run, attempt {commit.attempt}, committed epoch {commit.epoch} at {commit.committed_at}; "
            assert all(who in lost for lost in losers)
            draws.append(f"{won[0][0]}".encode())
        assert side(release) == public_side(commits, draws, ONE)


def local_sides(folder: Path, release: str) -> tuple[str, str]:
    return str(folder / release / "public"), str(folder / release / "private")


def enter(sides: Callable[[str], tuple[str, str]], barrier: Any, racer: int, answers: Any) -> None:
    told: list[Round] = []
    try:
        told = race(sides, barrier, racer)
    finally:
        answers.put((racer, told))  # in all cases, otherwise the test would wait without end


@FORKED
def test_of_eight_processes_at_once_one_commits_each_epoch_and_the_others_name_it(tmp_path: Path) -> None:
    sides = partial(local_sides, tmp_path)
    barrier, answers = CLEAN.Barrier(RACERS), CLEAN.SimpleQueue()
    racers = [CLEAN.Process(target=enter, args=(sides, barrier, racer, answers)) for racer in range(RACERS)]
    for process in racers:
        process.start()
    told = [rounds for _, rounds in sorted(answers.get() for _ in racers)]
    for process in racers:
        process.join()

    check_race(sides, told, lambda release: contents(tmp_path / release / "public"))
    for release in map(str, range(RELEASES)):
        store = Store(*sides(release))
        assert {path.name for path in (tmp_path / release / "private/attempts").iterdir()} == {
            commit.attempt for commit in store.commits()
        }


def test_of_eight_runs_at_once_in_gs_one_commits_each_epoch_and_the_others_name_it(bucket: storage.Bucket) -> None:
    buckets = {f"{release}": bucket.client.create_bucket(f"race-{release}") for release in range(RELEASES)}

    def sides(release: str) -> tuple[str, str]:
        return f"gs://race-{release}/public", f"gs://race-{release}/private"

    barrier = threading.Barrier(RACERS)
    with ThreadPoolExecutor(RACERS) as threads:
        told = list(threads.map(lambda racer: race(sides, barrier, racer), range(RACERS)))

    check_race(sides, told, lambda release: under(buckets[release], "public/"))
    for release in buckets:
        assert attempts(buckets[release]) == {commit.attempt for commit in Store(*sides(release)).commits()}


def test_epochs_in_gs_are_found_by_the_next_run_and_old_attempts_are_removed(
    store: Store, bucket: storage.Bucket
) -> None:
    assert store.open() is None
    commits = [released(again(store), epoch, f"{epoch}".encode()) for epoch in (1, 2, 3)]

    assert again(store).open() == History(tuple(commits), shown=3)
    assert under(bucket, "public/") == public_side(commits, [b"1", b"2", b"3"])
    path = again(store).attempts.state_paths(commits[-1])["shard-0.parquet"]
    assert bucket.blob(path.removeprefix("gs://out/")).download_as_bytes() == b"3 state/shard-0.parquet"
    verify(again(store), commits)
    assert again(store).clean() == [commits[0].attempt]
    assert attempts(bucket) == {commit.attempt for commit in commits[1:]}

    bucket.blob("public/" + next(iter(commits[0].files))).upload_from_string(b"cut")
    with pytest.raises(RefusedError, match="missing, or not what epoch 1 committed"):
        again(store).open()


def test_a_run_that_stalls_before_it_writes_the_manifest_never_puts_back_an_older_one(
    store: Store, bucket: storage.Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.commit(attempt_at(store, 1, b"first"), record(1), planned())
    swap, swapped = GcsFolder.swap, []

    def slow(folder: GcsFolder, name: str, content: bytes, version: int) -> bool:
        monkeypatch.setattr(GcsFolder, "swap", swap)
        released(again(store), 2, b"second")
        swapped.append(swap(folder, name, content, version))
        return swapped[0]

    monkeypatch.setattr(GcsFolder, "swap", slow)
    store.show()

    assert swapped == [False]
    commits = store.commits()
    assert commits[0] == first
    assert under(bucket, "public/") == public_side(commits, [b"first", b"second"])


class Dead(BaseException):
    """A run is killed here."""


@pytest.mark.few(1)
@pytest.mark.parametrize("answered", [False, True], ids=["request lost", "answer lost"])
def test_a_run_that_dies_at_any_upload_is_finished_or_repeated(
    bucket: storage.Bucket, monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    upload = storage.Blob.upload_from_string
    monkeypatch.setattr(Run, "alive", lambda _: False)  # this process plays all runs
    finished = repeated = 0
    for upload_of_death in count():
        store = Store(f"gs://out/{upload_of_death}/public", f"gs://out/{upload_of_death}/private")
        first = released(store, 1, b"first", FEW)
        left = [upload_of_death]

        def mortal(blob: storage.Blob, *arguments: Any, left: list[int] = left, **named: Any) -> None:
            left[0] -= 1
            if left[0] == -1 and not answered:
                raise Dead
            upload(blob, *arguments, **named)
            if left[0] == -1:
                raise Dead

        with monkeypatch.context() as patched:
            patched.setattr(storage.Blob, "upload_from_string", mortal)
            try:
                released(store, 2, b"killed", FEW)
            except Dead:
                died = True
            else:
                died = False

        release = again(store).open()
        assert release is not None
        draw = b"killed"
        if len(release.commits) == 1:
            repeated, draw = repeated + 1, b"again"
            store.commit(attempt_at(store, 2, draw, FEW), record(2), planned(FEW))
        else:
            finished += 1
        store.show()
        store.clean()
        commits = store.commits()
        assert commits[0] == first
        assert under(bucket, f"{upload_of_death}/public/") == public_side(commits, [b"first", draw], FEW)
        left_over = {name.split("/")[0] for name in under(bucket, f"{upload_of_death}/private/attempts/")}
        assert left_over == {commit.attempt for commit in commits}
        if not died:
            break

    assert repeated >= 5 - answered  # who runs, three files, draft; and commit, unless it is done
    assert finished >= 4  # two copies, manifest, none


def test_a_failed_commit_that_may_yet_arrive_keeps_its_files(
    store: Store, bucket: storage.Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server takes a request after its sender gave up: what it commits must still be there to be shown."""
    attempt = attempt_at(store, 1, b"late")
    sent: list[bytes] = []

    def timed_out(_: GcsFolder, name: str, content: bytes, version: int) -> bool:
        assert (name, version) == ("commits/000001.json", 0)
        sent.append(content)
        raise TimeoutError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(GcsFolder, "swap", timed_out)
        with pytest.raises(TimeoutError):
            store.commit(attempt, record(1), planned())
    store.discard(attempt)
    monkeypatch.setattr(Run, "alive", lambda _: False)
    assert store.clean() == []

    bucket.blob("private/commits/000001.json").upload_from_string(sent[0], if_generation_match=0)

    again(store).show()
    assert under(bucket, "public/") == public_side([RELEASE.read(sent[0], "sent")], [b"late"])


def test_a_repeated_request_that_meets_its_own_commit_has_won(
    store: Store, bucket: storage.Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client repeats a request whose answer was lost, and the server says 412 to the second."""
    upload = storage.Blob.upload_from_string

    def twice(blob: storage.Blob, *arguments: Any, **named: Any) -> None:
        upload(blob, *arguments, **named)
        if "if_generation_match" in named:
            upload(blob, *arguments, **named)

    monkeypatch.setattr(storage.Blob, "upload_from_string", twice)

    commit = released(store, 1)

    assert under(bucket, "public/") == public_side([commit], [b"noisy"])
    assert attempts(bucket) == {commit.attempt}


def test_an_attempt_that_failed_before_its_commit_is_discarded(store: Store, bucket: storage.Bucket) -> None:
    attempt = attempt_at(store, 1)

    store.discard(attempt)
    store.discard(attempt)

    assert attempts(bucket) == set()


def test_a_private_folder_may_be_local_while_the_public_one_is_in_gs(bucket: storage.Bucket, tmp_path: Path) -> None:
    store = Store("gs://out/public", str(tmp_path / "private"))

    commits = [released(store, epoch) for epoch in (1, 2)]

    assert under(bucket, "public/") == public_side(commits, [b"noisy", b"noisy"])
    assert again(store).open() == History(tuple(commits), shown=2)
