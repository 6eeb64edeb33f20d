"""Folders that may not be read or written, and disks that are full: one line with the cure, and noise sampled once."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest

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
    """Check that the error is one line, with the folder and a remedy."""
    assert said.code == 1, said.err
    (line,) = [line for line in said.lines if line.startswith("slackwater: ")]
    assert line.startswith(f"slackwater: {folder}")
    assert why in line
    assert line.endswith(stands)


@pytest.mark.parametrize("side", ["public", "private"])
def test_a_folder_that_cannot_be_created_is_reported_before_any_work(slackwater: CommandLine, side: str) -> None:
    with closed(slackwater.folder / "out" / side, 0o500):
        said = slackwater("run", "spec.yaml")

    refused(said, str(slackwater.folder / "out"), ": Permission denied; acc", "")
    assert "may not read or write it; give it the right" in said.err
    assert contents(slackwater.folder / "out") == {}


def test_commits_that_cannot_be_listed_are_not_a_release_that_was_never_begun(slackwater: CommandLine) -> None:
    assert slackwater("run", "spec.yaml").code == 0
    before = contents(slackwater.folder / "out")

    for mode in (0o300, 0):
        with closed(slackwater.folder / "out/private/wards/commits", mode):
            said = slackwater("run", "spec.yaml")
        refused(said, "out/private/wards/commits", "Permission denied", "nothing new was published")

    assert contents(slackwater.folder / "out") == before


def test_a_state_that_cannot_be_read_is_named_and_is_not_an_empty_one(slackwater: CommandLine) -> None:
    assert slackwater("run", "spec.yaml", "--until=2026-01-02T00:00:00Z").code == 0
    before = contents(slackwater.folder / "out")
    (attempt,) = (slackwater.folder / "out/private/wards/attempts").iterdir()
    state = attempt / "state"

    for path, mode in ((attempt, 0), (state, 0), (state, 0o600), *((path, 0) for path in sorted(state.iterdir()))):
        with closed(path, mode):
            said = slackwater("run", "spec.yaml")
        where = f"slackwater: {path.relative_to(slackwater.folder)}"
        assert (said.code, said.lines[-1].startswith(where)) == (1, True), said.err
        assert ": Permission denied; account" in said.lines[-1]

    assert contents(slackwater.folder / "out") == before
    with closed(state, 0o300):  # its files are opened by their names
        assert slackwater("run", "spec.yaml").code == 0


def test_sanitise_names_private_files_that_cannot_be_read(slackwater: CommandLine) -> None:
    folder = slackwater.folder
    (folder / "people.csv").write_text("person,work\n1,none\n2,full\n")
    (folder / "people.yaml").write_text(
        "sanitise: people\nrecords: {format: csv, path: people.csv, entry: person}\n"
        "columns: [{name: work, kind: category, values: [none, full], missing: none, epsilon: 1.0}]\n"
        "output: {public: out/public/people, private: out/private/people}\n"
    )
    assert slackwater("sanitise", "people.yaml").code == 0
    before = contents(folder / "out")
    (names,) = folder.glob("out/private/people/attempts/*/names")

    for path in (folder / "out/private/people/commits", names):
        with closed(path, 0):
            said = slackwater("sanitise", "people.yaml")
        stands = "committed records stay, and the next run continues"
        refused(said, str(path.relative_to(folder)), "Permission denied; account", stands)

    assert contents(folder / "out") == before


def test_a_committed_sample_that_cannot_be_shown_is_shown_later(slackwater: CommandLine) -> None:
    nodes = slackwater.folder / "out/public/wards/nodes"
    nodes.mkdir(parents=True)

    with closed(nodes, 0o500):
        said = slackwater("run", "spec.yaml")

    refused(said, "out/public/wards/nodes", "Permission denied", "epoch 1 is committed, and the next run publishes it")
    assert contents(slackwater.folder / "out/public") == {}
    assert "as an earlier run had committed them" in slackwater("run", "spec.yaml").out


def test_an_unlistable_changelog_is_not_treated_as_empty(slackwater: CommandLine) -> None:
    with closed(slackwater.folder / "data", 0o300):
        said = slackwater("run", "spec.yaml")

    assert (said.code, len(said.lines)) == (3, 1)
    assert "data/*.parquet: cannot be listed, data/: Permission denied; check the path and your rights" in said.err
    assert contents(slackwater.folder / "out") == {}


@pytest.mark.parametrize("side", ["nodes/", "diagnostics/", "exchange/"])
def test_a_full_disk_is_reported_with_the_file_that_did_not_fit(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """Covers workers too, whose errors come back as text only."""
    opened, local = os.fdopen, pa.OSFile

    def full(descriptor: int, mode: str) -> IO[bytes]:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        return open("/dev/full", mode) if side in path else opened(descriptor, mode)  # noqa: PTH123

    def full_too(path: str, mode: str = "rb") -> pa.NativeFile:
        return local("/dev/full" if side in path else path, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", full)
        patched.setattr(pa, "OSFile", full_too)
        said = slackwater("run", "spec.yaml")

    refused(
        said, "out/private/wards/attempts/", ": No space left on device; make room and run", "nothing new was published"
    )
    assert side in said.err
    assert contents(slackwater.folder / "out/public") == {}


def test_a_disk_that_fails_to_read_is_named_with_the_file(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def failing(path: Path) -> bytes:
        if path.name == "manifest.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", failing)
        said = slackwater("run", "spec.yaml")

    cure = ": Input/output error; check the disk or the file server and run again"
    refused(said, "out/public/wards/manifest.json", cure, "nothing new was published")
    assert slackwater("run", "spec.yaml").code == 0


def test_links_that_others_plant_in_the_public_folder_lead_no_run_to_a_file_elsewhere(slackwater: CommandLine) -> None:
    public, target = slackwater.folder / "out/public/wards", slackwater.folder / "elsewhere"
    target.mkdir()
    (target / "file").write_text("kept")
    (target / ".draft").write_text("kept")
    (public / "nodes").mkdir(parents=True)
    for name in (".draft", "nodes/.draft", "manifest.json", "spec.yaml"):
        (public / name).symlink_to(target / "file")
    (public / "manifest.json").unlink()  # the file would be refused as a manifest
    (public / "estimates").symlink_to(target)

    said = slackwater("run", "spec.yaml")

    stands = "epoch 1 is committed, and the next run publishes it"
    assert said.code == 1
    assert "out/public/wards/estimates: is a link, and the folders of a release hold none; remove it" in said.err
    assert contents(target) == {"file": b"kept", ".draft": b"kept"}, stands
    (public / "estimates").unlink()
    assert "as an earlier run had committed them" in slackwater("run", "spec.yaml").out
    assert contents(target) == {"file": b"kept", ".draft": b"kept"}
    assert not [path for path in public.rglob("*") if path.is_symlink()]


def test_outputs_of_commands_replace_files_and_refuse_links(slackwater: CommandLine) -> None:
    assert slackwater("run", "spec.yaml").code == 0
    target = slackwater.folder / "target"
    target.write_text("kept")
    for command, name in (
        (("show", "spec.yaml", "-o"), "x.csv"),
        (("show", "spec.yaml", "-o"), "x.md"),
        (("report", "spec.yaml", "-o"), "x.html"),
        (("plan", "spec.yaml", "--html"), "plan.html"),
        (("evaluate", "spec.yaml", "--runs", "1", "--truth"), "truth.parquet"),
    ):
        path = slackwater.folder / name
        path.symlink_to(target)
        said = slackwater(*command, name)
        assert (said.code, said.lines[-1]) == (
            1,
            f"slackwater: {name}: is a link, or something else that is not a file; remove it, or name a file",
        )
        path.unlink()
        path.write_text("old")
        assert slackwater(*command, name).code == 0
        assert path.read_bytes() != b"old"
    assert target.read_text() == "kept"
    assert not list(slackwater.folder.glob(".*.draft"))


def test_a_failure_states_which_epochs_are_published(slackwater: CommandLine) -> None:
    """Folders are in the place of files: `spec.yaml` is written before the manifest, `.draft` before any file."""
    public = slackwater.folder / "out/public/wards"
    (public / "spec.yaml").mkdir(parents=True)

    told = slackwater("run", "spec.yaml", "--until", "2026-01-02T00:00:00Z").err

    assert "run failed with IsADirectoryError; epoch 1 is committed, and the next run publishes it; details" in told
    (public / "spec.yaml").rmdir()
    assert slackwater("run", "spec.yaml").code == 0
    (public / "nodes/.draft").mkdir()
    told = slackwater("compact", "spec.yaml").err
    assert "compact failed with IsADirectoryError; no published value is lost or changed; compact again" in told
