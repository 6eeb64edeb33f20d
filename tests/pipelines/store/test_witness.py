"""The witness of a release: rollbacks are noticed, and runs that were killed are completed."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.crash.server import strict_gcs
from pipelines.store import witness as module
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from pipelines.store.witness import witness_at
from tests.pipelines.store.releases import attempt_at, planned, record
from transforms.common.errors import RefusedError


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "public"), str(tmp_path / "private"), witness=str(tmp_path / "elsewhere"))


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with strict_gcs() as client:
        client.create_bucket("other")
        yield "gs://other"


def again(store: Store) -> Store:
    """Return the store as another process sees it."""
    return Store(store.public, store.private, witness=store.witness)


def committed(store: Store, epoch: int, *, witnessed: bool = True) -> Commit:
    return store.commit(attempt_at(store, epoch), replace(record(epoch), witnessed=witnessed), planned())


def released(store: Store, epochs: int) -> None:
    for epoch in range(1, epochs + 1):
        committed(store, epoch)
        store.show()


def rolled_back(store: Store, copy: Path) -> None:
    """Put an old copy of both folders in their places."""
    for folder in (store.public, store.private):
        shutil.rmtree(folder)
        shutil.copytree(copy / Path(folder).name, folder)


def copied(store: Store, copy: Path) -> Path:
    for folder in (store.public, store.private):
        shutil.copytree(folder, copy / Path(folder).name)
    return copy


def lines(store: Store) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(str(store.witness)).read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("remote", [False, True])
def test_folders_from_an_old_backup_are_refused_before_anything_is_sampled(
    store: Store, tmp_path: Path, remote: bool, request: pytest.FixtureRequest
) -> None:
    if remote:
        store = Store(store.public, store.private, witness=f"{request.getfixturevalue('bucket')}/wards")
    released(store, 2)
    old = copied(store, tmp_path / "old")
    committed(store, 3)
    store.show()
    assert witness_at(str(store.witness)).count() == 3

    rolled_back(store, old)

    for call in (again(store).show, again(store).compact, lambda: again(store).begin(3)):
        with pytest.raises(
            RefusedError,
            match=r"private: holds 2 epochs, and the witness .* knows of 3; restore copies of both folders",
        ):
            call()
    assert len([*Path(store.private, "attempts").iterdir()]) == len([*(old / "private/attempts").iterdir()])


def test_lost_folders_are_refused_too(store: Store) -> None:
    released(store, 1)
    shutil.rmtree(store.public)
    shutil.rmtree(store.private)

    with pytest.raises(RefusedError, match=r"holds 0 epochs, and the witness .* knows of 1"):
        again(store).begin(1)


def test_each_line_names_the_one_before_it_and_nothing_private(store: Store) -> None:
    released(store, 3)

    found = lines(store)

    assert [line["epoch"] for line in found] == [1, 2, 3]
    assert len({line["release"] for line in found}) == 1
    assert all(set(line) == {"release", "epoch", "commit", "previous"} for line in found)
    other = replace(record(1), sources=(), spec="another")
    ids = [str(line["commit"]) for line in found]
    (alone,) = module.lines_of(store.kind, [replace(store.commits()[0], sources=other.sources, spec=other.spec)], "x")
    assert json.loads(alone)["commit"] == ids[0]  # a digest of public facts alone, so that no guess can be confirmed


@pytest.mark.parametrize("torn", [0, 1, 40, -1])
def test_a_run_killed_between_commit_and_line_is_completed_by_the_next_one(store: Store, torn: int) -> None:
    """Also if a power loss left a part of the line."""
    released(store, 1)
    commit = committed(store, 2)
    whole = again(store)
    path = Path(str(store.witness))
    first = path.read_bytes()
    whole.show()
    both = path.read_bytes()
    path.write_bytes(first + both[len(first) :][:torn] if torn else first)

    again(store).show()

    assert path.read_bytes() == both
    assert [line["epoch"] for line in lines(store)] == [1, 2]
    assert commit.witnessed


def test_a_commit_is_witnessed_before_it_is_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an epoch could be public, and its loss unnoticed."""
    released(store, 1)
    committed(store, 2)
    Path(str(store.witness)).rename(f"{store.witness}-away")
    Path(str(store.witness)).mkdir()

    with pytest.raises(RefusedError, match="unavailable"):
        again(store).show()

    assert len(json.loads(Path(store.public, "manifest.json").read_text())["epochs"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"epoch": 2', '"epoch": 9'), "its line 2 is not of epoch 2"),
        (lambda text: text.replace('"release": "', '"release": "0'), "its line 1 is not of epoch 1"),
        (lambda text: "".join(text.splitlines(keepends=True)[:1]), "ends after epoch 1, and .* epochs up to 2 there"),
        (lambda text: "", "ends after epoch 0, and .* epochs up to 2 there"),
        (lambda text: text[:-1], None),
        (lambda text: text + "\x1b[2J", "knows of 4"),
        (lambda text: text + "x" * 3_000_000, "knows of 4"),
    ],
)
def test_a_forged_or_cut_witness_is_refused_and_stays_as_it_is(
    store: Store, change: Callable[[str], str], message: str | None
) -> None:
    released(store, 3)
    path = Path(str(store.witness))
    path.write_text(change(path.read_text()))
    before = path.read_bytes()

    if message is None:
        again(store).show()
        return
    with pytest.raises(RefusedError, match=message) as refused:
        again(store).show()

    assert "\x1b" not in str(refused.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "missing folder"])
def test_an_unavailable_witness_is_refused_before_anything_is_sampled(store: Store, tmp_path: Path, kind: str) -> None:
    path = Path(str(store.witness))
    if kind == "link":
        path.symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        store = Store(store.public, store.private, witness=str(tmp_path / "unmounted/wards"))

    with pytest.raises(RefusedError, match=r"the witness in output\.witness is unavailable"):
        store.begin(1)

    assert not Path(store.private, "attempts").exists()
    assert not (tmp_path / "target").exists()


def test_a_witness_may_begin_during_a_release_but_not_begin_again(store: Store) -> None:
    """An empty path after witnessed epochs is probably storage that is not mounted."""
    bare = Store(store.public, store.private)
    for epoch in (1, 2):
        committed(bare, epoch, witnessed=False)
        bare.show()

    committed(again(store), 3)
    again(store).show()

    assert len(lines(store)) == 3
    Path(str(store.witness)).unlink()
    with pytest.raises(RefusedError, match="ends after epoch 0"):
        again(store).begin(4)


@pytest.mark.slow
def test_two_runs_that_complete_a_witness_write_each_line_once(store: Store, bucket: str) -> None:
    released(store, 1)
    remote = replace(store, witness=f"{bucket}/both")
    first, second = again(remote), again(remote)

    for each in (first, second, again(store), again(store)):
        each.show()

    assert witness_at(f"{bucket}/both").count() == len(lines(store)) == 1


def test_a_bucket_of_something_else_is_no_witness(store: Store, bucket: str) -> None:
    remote = replace(store, witness=f"{bucket}/mixed")
    released(remote, 2)
    folder = witness_at(f"{bucket}/mixed").folder  # type: ignore[attr-defined]
    line = folder.read("lines/000002.json")
    folder.write("lines/000002.json", line.replace(b'"epoch": 2', b'"epoch": 8'))
    with pytest.raises(RefusedError, match="its line 2 is not of epoch 2"):
        again(remote).show()
    folder.write("lines/notes.txt", b"")

    with pytest.raises(RefusedError, match="holds other objects than the lines of a witness"):
        again(remote).show()
