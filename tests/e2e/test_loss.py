"""The claims of docs/operations.md about copies and loss: what is restored, what is refused, which copy is needed."""

import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from pipelines import cli
from pipelines.published.release import Published
from pipelines.show.operation import numbers
from tests.e2e.specs import DAY, START, CommandLine, Said, changelog, contents, write, write_spec

NIGHTS = 4


def until(night: int) -> str:
    return f"--until={(START + night * DAY).isoformat()}"


def put(folder: Path, night: int, side: str, history: Path) -> None:
    """Replace one side by its copy of a night; after night 0 the side does not exist."""
    shutil.rmtree(folder / side, ignore_errors=True)
    if night:
        shutil.copytree(history / f"{night}/{side}", folder / side)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return copies of both folders of a release after each of its nights."""
    folder = tmp_path_factory.mktemp("history")
    write(folder / "data/part.parquet", changelog())
    write_spec(folder)
    with chdir(folder):
        for night in range(1, NIGHTS + 1):
            assert cli.main(["run", "spec.yaml", until(night)]) == 0
            for side in ("public", "private"):
                shutil.copytree(side, f"{night}/{side}")
    return folder


@pytest.fixture
def slackwater(history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Return a command line in the release after its last night."""
    shutil.copytree(history / "data", tmp_path / "data")
    shutil.copy(history / "spec.yaml", tmp_path)
    for side in ("public", "private"):
        put(tmp_path, NIGHTS, side, history)
    return CommandLine(tmp_path, capsys)


def goes_on(slackwater: CommandLine, history: Path) -> None:
    """Check that the next night is released, and that all earlier files are unchanged."""
    before = contents(history / f"{NIGHTS}/public")
    said = slackwater("run", "spec.yaml", until(NIGHTS + 1))
    after = contents(slackwater.folder / "public")
    assert said.code == 0, said.err
    assert len(after) > len(before)
    assert {name: after[name] for name in before if name != "manifest.json"} == {
        name: content for name, content in before.items() if name != "manifest.json"
    }


def refused(slackwater: CommandLine) -> Said:
    """The next night is not released; one line that says what is to be restored. Neither folder has changed."""
    before = contents(slackwater.folder)
    said = slackwater("run", "spec.yaml", until(NIGHTS + 1))
    assert (said.code, said.out, len(said.lines)) == (1, "", 1)
    assert contents(slackwater.folder) | {"private/lock": b""} == before | {"private/lock": b""}
    return said


@pytest.mark.parametrize("lag", [1, 2])
def test_a_public_folder_that_is_up_to_two_epochs_behind_is_brought_up_to_date(
    slackwater: CommandLine, history: Path, lag: int
) -> None:
    put(slackwater.folder, NIGHTS - lag, "public", history)

    goes_on(slackwater, history)


@pytest.mark.parametrize("night", [0, 1])
def test_a_public_folder_that_is_lost_or_far_behind_is_restored_from_any_copy_of_its_files(
    slackwater: CommandLine, history: Path, night: int
) -> None:
    put(slackwater.folder, night, "public", history)

    assert "missing, or not what epoch" in refused(slackwater).err

    put(slackwater.folder, NIGHTS, "public", history)
    (slackwater.folder / "public/manifest.json").unlink()
    (slackwater.folder / "public/spec.yaml").unlink()
    goes_on(slackwater, history)


@pytest.mark.parametrize("night", range(NIGHTS))
def test_without_the_private_folder_of_the_last_published_epoch_nothing_is_sampled(
    slackwater: CommandLine, history: Path, night: int
) -> None:
    put(slackwater.folder, night, "private", history)

    assert "restore the private folder" in refused(slackwater).err

    put(slackwater.folder, NIGHTS, "private", history)
    goes_on(slackwater, history)


def test_a_reader_keeps_its_view_while_epochs_are_added_and_compacted(
    slackwater: CommandLine,
) -> None:
    reader, other = (Published(str(slackwater.folder / "public")) for _ in range(2))
    before = numbers(other, None)

    assert slackwater("run", "spec.yaml", until(NIGHTS + 1)).code == 0
    assert slackwater("compact", "spec.yaml").code == 0

    assert numbers(reader, None) == before


@pytest.mark.parametrize("night", [0, 2])
def test_with_a_note_next_to_the_spec_nothing_is_sampled_if_both_folders_are_lost_or_old(
    slackwater: CommandLine, history: Path, night: int
) -> None:
    goes_on(slackwater, history)
    for side in ("public", "private"):
        put(slackwater.folder, night, side, history)

    why = "release 'wards' is gone from there" if night == 0 else "holds 2 epochs, and .slackwater/"
    assert f"private: {why}" in refused(slackwater).err
    for note in slackwater.folder.glob(".slackwater/*.json"):
        note.unlink()
    assert slackwater("run", "spec.yaml", until(NIGHTS + 1)).code == 0


def test_a_compaction_changes_no_number_and_the_release_continues(slackwater: CommandLine) -> None:
    def told() -> list[str]:
        commands = (
            ["show", "spec.yaml", "--json"],
            ["answer", "spec.yaml", "--kind=level", "--json"],
            ["ledger", "spec.yaml"],
        )
        said = [slackwater(*command) for command in commands]
        assert [one.code for one in said] == [0] * len(said)
        return [one.out for one in said]

    before = told()

    said = slackwater("compact", "spec.yaml")

    assert said.code == 0, said.err
    assert (
        said.out == f"wards: {NIGHTS} epochs up to {NIGHTS} in 2 files in place of {2 * NIGHTS}, with the same rows\n"
    )
    assert told() == before
    again = slackwater("compact", "spec.yaml")
    assert (again.code, again.out) == (0, "wards: nothing to compact\n")
    assert slackwater("run", "spec.yaml", until(NIGHTS + 1)).code == 0
    assert told() != before
