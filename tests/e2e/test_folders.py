"""Folders that may not be read or written, and disks that are full: one line with the cure, and noise sampled once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest
from apache_beam.io.filesystems import FileSystems

from tests.e2e.specs import CommandLine, Said, changelog, contents, write, write_spec
from tests.rights import plain_rights

NESTED = (("public: public", "public: out/public/wards"), ("private: private", "private: out/private/wards"))


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write(tmp_path / "data" / "a.parquet", changelog())
    write_spec(tmp_path, *NESTED)
    for side in ("public", "private"):
        (tmp_path / "out" / side).mkdir(parents=True)
    return CommandLine(tmp_path, capsys)


@contextmanager
def closed(path: Path, mode: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        with plain_rights():
            yield
    finally:
        path.chmod(before)


def refused(said: Said, folder: str, why: str, stands: str) -> None:
    """One line, with the folder and what to do."""
    assert said.code == 1, said.err
    (line,) = [line for line in said.lines if line.startswith("slackwater: ")]
    assert line.startswith(f"slackwater: {folder}")
    assert why in line
    assert line.endswith(stands)


@pytest.mark.parametrize("side", ["public", "private"])
def test_a_folder_that_may_not_be_made_is_told_before_any_work(slackwater: CommandLine, side: str) -> None:
    with closed(slackwater.folder / "out" / side, 0o500):
        said = slackwater("run", "spec.yaml")

    refused(said, str(Path("out") if side == "private" else slackwater.folder / "out"), ": Permission denied; acc", "")
    assert "may not read or write it; give it the right" in said.err
    assert contents(slackwater.folder / "out") == {}


def test_commits_that_cannot_be_listed_are_not_a_release_that_was_never_begun(slackwater: CommandLine) -> None:
    assert slackwater("run", "spec.yaml").code == 0
    before = contents(slackwater.folder / "out")

    for mode in (0o300, 0):
        with closed(slackwater.folder / "out/private/wards/commits", mode):
            said = slackwater("run", "spec.yaml")
        refused(said, "out/private/wards/commits", "Permission denied", "nothing was published")

    assert contents(slackwater.folder / "out") == before


def test_a_draw_that_may_not_be_shown_is_shown_later(slackwater: CommandLine) -> None:
    nodes = slackwater.folder / "out/public/wards/nodes"
    nodes.mkdir(parents=True)

    with closed(nodes, 0o500):
        said = slackwater("run", "spec.yaml")

    refused(
        said, "out/public/wards/nodes", "Permission denied", "its attempt is committed, and the next run publishes it"
    )
    assert contents(slackwater.folder / "out/public") == {}
    assert "as an earlier run had committed them" in slackwater("run", "spec.yaml").out


def test_a_changelog_that_cannot_be_listed_is_no_empty_one(slackwater: CommandLine) -> None:
    with closed(slackwater.folder / "data", 0o300):
        said = slackwater("run", "spec.yaml")

    assert (said.code, len(said.lines)) == (3, 1)
    assert "data/*.parquet: cannot be listed, data/: Permission denied; check the path and your rights" in said.err
    assert contents(slackwater.folder / "out") == {}


@pytest.mark.parametrize("side", ["nodes/", "diagnostics/", "exchange/"])
def test_a_disk_that_is_full_is_told_with_the_file_that_did_not_fit(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """Also by a worker, of whose errors only words come back."""
    create, local = FileSystems.create, pa.OSFile

    def full(path: str, *arguments: Any, **named: Any) -> IO[bytes]:
        return open("/dev/full", "wb") if side in path else create(path, *arguments, **named)  # noqa: PTH123

    def full_too(path: str, mode: str = "rb") -> pa.NativeFile:
        return local("/dev/full" if side in path else path, mode)

    with monkeypatch.context() as patched:
        patched.setattr(FileSystems, "create", staticmethod(full))
        patched.setattr(pa, "OSFile", full_too)
        said = slackwater("run", "spec.yaml")

    refused(
        said, "out/private/wards/attempts/", ": No space left on device; make room and run", "nothing was published"
    )
    assert side in said.err
    assert contents(slackwater.folder / "out/public") == {}
