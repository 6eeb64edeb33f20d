"""Compactions keep all rows, also if runs are killed or work at the same time."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.store.commit import Commit
from pipelines.store.compaction import join_epochs, shown_files
from pipelines.store.local import LocalFolder
from pipelines.store.record import Digest
from pipelines.store.store import Store
from tests.e2e.specs import contents
from tests.pipelines.store.releases import released
from transforms.common.errors import RefusedError

MADE = ("nodes/a-net-00000.jsonl", "nodes/a-net-00001.jsonl", "estimates/a-net-00000.jsonl", "state/shard-0.parquet")


def made(epochs: int, folder: Path) -> tuple[Store, list[Commit]]:
    """Return a release with a number of epochs; each file holds its epoch and its name."""
    store = Store(str(folder / "public"), str(folder / "private"))
    return store, [released(store, epoch, f"{epoch}".encode(), MADE) for epoch in range(1, epochs + 1)]


def again(store: Store) -> Store:
    return Store(store.public, store.private)


def rows(store: Store) -> dict[str, bytes]:
    """What the manifest's files hold, query by query and side by side, in the order of the manifest."""
    manifest = json.loads(Path(store.public, "manifest.json").read_bytes())
    found: dict[str, bytes] = {}
    for epoch in manifest["epochs"]:
        for name in epoch["files"]:
            kind = name.partition("-")[0]
            found[kind] = found.get(kind, b"") + Path(store.public, name).read_bytes()
    return found


def sides(store: Store) -> set[str]:
    return {name for name in contents(Path(store.public)) if name.startswith(("nodes/", "estimates/"))}


def test_epochs_are_joined_once_and_the_release_continues(tmp_path: Path) -> None:
    store, commits = made(3, tmp_path)
    before = rows(store)
    commits_before = contents(Path(store.private, "commits"))

    done = again(store).compact()

    assert done.made is not None
    assert (done.made.first, done.made.last, len(done.made.files), done.removed) == (1, 3, 2, 9)
    assert rows(store) == before
    assert sides(store) == done.made.files.keys()
    assert again(store).open() is not None
    assert again(store).compact().made is None
    assert contents(Path(store.private, "commits")) == commits_before

    fourth = released(again(store), 4, b"4", MADE)
    assert sides(store) == {*done.made.files, *fourth.files}
    assert again(store).compact().made is None  # one epoch alone is not joined
    fifth = released(again(store), 5, b"5", MADE)
    more = again(store).compact().made
    assert more is not None
    assert (more.first, more.last) == (4, 5)
    assert sides(store) == {*done.made.files, *more.files}
    assert shown_files([*commits, fourth, fifth], [done.made, more]) == [{}, {}, done.made.files, {}, more.files]


class Died(BaseException):
    """Represents a killed process: no later step runs."""


@contextmanager
def dies_at(step: int) -> Iterator[list[str]]:
    """The process dies just before this change of a folder; the changes until then."""
    changes: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("put", "create", "swap", "drop"):

            def change(self: LocalFolder, *args: Any, of: Callable[..., Any], which: str = name, **more: Any) -> Any:
                if len(changes) == step:
                    raise Died
                changes.append(which)
                return of(self, *args, **more)

            original = getattr(LocalFolder, name)
            patch.setattr(LocalFolder, name, lambda self, *a, _c=change, _o=original, **k: _c(self, *a, of=_o, **k))
        yield changes


@pytest.mark.slow
def test_a_compaction_that_dies_anywhere_is_finished_or_repeated(tmp_path: Path) -> None:
    step, finished = 0, False
    while not finished:
        store, _ = made(3, tmp_path / str(step))
        before = rows(store)
        with dies_at(step) as changes:
            try:
                again(store).compact()
                finished = True
            except Died:
                pass

        assert again(store).open() is not None
        assert rows(store) == before
        again(store).show()
        assert rows(store) == before
        again(store).compact()
        assert rows(store) == before
        assert len(sides(store)) == 2
        step += 1
    assert changes[:3] == ["put", "put", "create"]  # the record once what it names is there,
    assert changes.index("swap") < len(changes) - 1 - changes[::-1].index("drop")  # and nothing goes before it is shown


@contextmanager
def first_at(method: str, call: int, other: Callable[[], object]) -> Iterator[None]:
    """Another process does something just before a numbered call of a method of a folder."""
    original, left = getattr(LocalFolder, method), [call]

    def late(self: LocalFolder, *args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            other()
        return original(self, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalFolder, method, late)
        yield
    assert left[0] <= 0


@pytest.mark.parametrize(("method", "call"), [("lock", 2), ("create", 1)], ids=["before it joins", "before its record"])
def test_of_two_compactions_one_wins_and_the_other_leaves_nothing(tmp_path: Path, method: str, call: int) -> None:
    """The other compaction joins one epoch more, and is first."""
    store, _ = made(3, tmp_path)

    def other() -> None:
        released(again(store), 4, b"4", MADE)
        again(store).compact()

    with first_at(method, call, other):
        done = store.compact()

    assert done.made is not None
    assert done.made.last == 4
    assert sides(store) == done.made.files.keys()
    assert len(list(Path(store.private, "compactions").iterdir())) == 1


def test_files_of_a_dead_compaction_are_removed_once_another_covers_its_epochs(tmp_path: Path) -> None:
    store, _ = made(3, tmp_path)
    with dies_at(2), pytest.raises(Died):
        again(store).compact()
    released(again(store), 4, b"4", MADE)
    assert len(sides(store)) == 4 * 3 + 2

    done = again(store).compact()

    assert done.made is not None
    assert sides(store) == done.made.files.keys()


def test_no_file_is_removed_that_the_manifest_still_names(tmp_path: Path) -> None:
    """While one removes what it has replaced, another creates its record, and dies before it is shown."""
    store, _ = made(3, tmp_path)
    again(store).compact()
    released(again(store), 4, b"4", MADE)
    before = {}

    def other() -> None:
        released(again(store), 5, b"5", MADE)
        before.update(rows(store))
        with dies_at(4), pytest.raises(Died):
            again(store).compact()
        assert len(list(Path(store.private, "compactions").glob("*.json"))) == 2

    with first_at("files", 5, other):
        again(store).compact()

    assert rows(store) == before


@pytest.mark.parametrize("call", [2, 3], ids=["between its records", "before its files are listed"])
def test_opening_a_release_during_a_compaction_reports_no_loss(tmp_path: Path, call: int) -> None:
    store, _ = made(2, tmp_path)

    def other() -> None:
        released(again(store), 3, b"3", MADE)
        again(store).compact()

    with first_at("files", call, other):
        assert again(store).open() is not None


def test_a_manifest_is_rebuilt_without_attempts_of_compacted_epochs(tmp_path: Path) -> None:
    store, _ = made(5, tmp_path)
    again(store).compact()
    again(store).clean()
    before = rows(store)
    Path(store.public, "manifest.json").unlink()

    again(store).show()

    assert rows(store) == before


def test_missing_or_changed_inputs_of_a_compaction_are_refused(tmp_path: Path) -> None:
    store, commits = made(2, tmp_path)
    name = next(iter(commits[0].files))
    whole = Path(store.public, name).read_bytes()
    Path(store.public, name).write_bytes(whole[:-1] + b"?")
    with pytest.raises(RefusedError, match=r"missing, or not what epoch 1 committed"):
        again(store).compact()
    Path(store.public, name).write_bytes(whole)

    done = again(store).compact().made
    assert done is not None
    record = Path(store.private, "compactions/000001.json")
    content = record.read_bytes()
    record.unlink()
    with pytest.raises(RefusedError, match=r"differs from what was committed"):
        again(store).open()
    for torn in (
        content[:-9],
        content.replace(b'"last": 2', b'"last": 3'),
        content.replace(b'"version": 1', b'"version": 2'),
    ):
        record.write_bytes(torn)
        with pytest.raises(RefusedError, match=r"compactions"):
            again(store).open()
    record.write_bytes(content)
    Path(store.public, "manifest.json").unlink()
    again(store).show()
    assert again(store).open() is not None
    Path(store.public, next(iter(done.files))).unlink()
    with pytest.raises(RefusedError, match=r"missing, or not what epoch 2 committed"):
        again(store).open()


def parquet(*values: int, name: str = "value") -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values, pa.int64())}), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("suffix", "parts", "whole", "other"),
    [
        ("csv", (b"a,b\n1,2\n", b"a,b\n", b"a,b\n3,4\n"), b"a,b\n1,2\n3,4\n", b"a,c\n5,6\n"),
        ("jsonl", (b'{"a": 1}\n', b"", b'{"a": 2}\n'), b'{"a": 1}\n{"a": 2}\n', None),
        ("parquet", (parquet(1, 2), parquet(), parquet(3)), parquet(1, 2, 3), parquet(1, name="other")),
    ],
)
def test_files_are_joined_row_by_row_and_large_ones_apart(
    suffix: str, parts: tuple[bytes, ...], whole: bytes, other: bytes | None, tmp_path: Path
) -> None:
    _, (commit, *_) = made(1, tmp_path)

    def joined(contents: tuple[bytes, ...], largest: int) -> list[bytes]:
        names = {f"nodes/q-net-{n:05d}-{commit.attempt}.{suffix}": content for n, content in enumerate(contents)}
        of_all = [replace(commit, files={name: Digest("", len(content)) for name, content in names.items()})]
        written: dict[str, bytes] = {}
        join_epochs(of_all, names.__getitem__, written.__setitem__, largest=largest)
        return list(written.values())

    assert joined(parts, 2**20) == [whole]
    assert len(joined(parts, 1)) == len(parts)
    if other is not None:
        with pytest.raises(RefusedError, match="differ in their columns"):
            joined((*parts, other), 2**20)
