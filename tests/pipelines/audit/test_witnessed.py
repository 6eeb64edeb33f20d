"""A public folder compared with the witness of its release, by a reader who has nothing else."""

import shutil
from contextlib import chdir
from pathlib import Path

import pytest

import slackwater
from pipelines.audit.witnessed import check_witness
from pipelines.cli import main
from pipelines.published.release import published
from transforms.common.errors import RefusedError

SPEC = """\
release: wards
changelog: {format: csv, path: data.csv, entry: stay, time: at}
privacy: {epsilon: 1.0, constraint: {at_most: 2}}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-05T00:00:00Z}
queries: [{name: beds, measure: count, publish: [level]}]
output: {public: public, private: private, witness: witness}
about: {contact: %s}
"""
ENDS = ("2026-01-02", "2026-01-03", "2026-01-04")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Release three epochs; the third one states another contact, and `first` is the public folder after one."""
    folder = tmp_path_factory.mktemp("witnessed")
    (folder / "data.csv").write_text("stay,at\n1,2026-01-01T12:00:00Z\n")
    with chdir(folder):
        for number, end in enumerate(ENDS, start=1):
            Path("spec.yaml").write_text(SPEC % ("a" if number < 3 else "b"))
            slackwater.run("spec.yaml", until=f"{end}T00:00:00Z")
            shutil.copytree("public", f"after-{number}")
    return folder


def checked(folder: Path, epochs: int, change=lambda lines: lines):
    lines = change((folder / "witness").read_bytes().splitlines(keepends=True))
    (folder / "copy").write_bytes(b"".join(lines))
    return check_witness(published(str(folder / f"after-{epochs}")), str(folder / "copy"))


@pytest.mark.slow
def test_the_folder_that_the_witness_records_passes(folder):
    assert main(["audit", "--public", str(folder / "public"), "--witness", str(folder / "witness")]) == 0
    assert checked(folder, 2, lambda lines: lines[:2]).tried == {"lines": 2, "epochs with their digest": 2}


def test_epochs_whose_facts_have_changed_are_counted_as_not_tested(folder):
    layer = checked(folder, 3)

    assert (layer.passed, layer.tried["epochs with their digest"]) == (True, 2)
    assert layer.untested[0].startswith("1 epochs")


@pytest.mark.parametrize(
    ("epochs", "change", "fault"),
    [
        (2, lambda lines: lines, "the witness records 3 epochs, and the folder has 2"),
        (3, lambda lines: lines[:2], "the witness ends after epoch 2, and epoch 3 states that a witness has it"),
        (3, lambda lines: [*lines[:2], lines[2][:-1]], "the witness ends after epoch 2"),
        (3, lambda lines: [lines[0], lines[2]], "line 2 of the witness is not of epoch 2"),
        (3, lambda lines: [b"\xff\n"], "line 1 of the witness is not of epoch 1"),
        (2, lambda lines: [lines[0], lines[1].replace(b'"commit": "', b'"commit": "0')[:-4] + b'"}\n'], "line 2"),
    ],
    ids=["an older folder", "a cut witness", "a torn line", "a line is missing", "no witness", "another digest"],
)
def test_other_witnesses_fail(folder, epochs, change, fault):
    layer = checked(folder, epochs, change)

    assert not layer.passed
    assert any(text.startswith(fault) for text in layer.faults), layer.faults
    assert main(["audit", "--public", str(folder / f"after-{epochs}"), "--witness", str(folder / "copy")]) == 1


def test_a_forged_epoch_fails(folder):
    release = published(str(folder / "after-2"))
    lines = (folder / "witness").read_bytes().splitlines(keepends=True)[:2]
    digest = lines[1].split(b'"commit": "')[1][:64]
    (folder / "copy").write_bytes(lines[0] + lines[1].replace(digest, digest[::-1]))

    assert check_witness(release, str(folder / "copy")).faults == ("line 2 of the witness is not of epoch 2",)


def test_compacted_epochs_are_counted_as_not_tested(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    with chdir(copy):
        slackwater.compact("spec.yaml")
    layer = check_witness(published(str(copy / "public")), str(copy / "witness"))

    assert (layer.passed, layer.tried["lines"], bool(layer.untested)) == (True, 3, True)


def test_an_unavailable_witness_is_an_error(folder):
    with pytest.raises(RefusedError, match=r"the witness in output\.witness is unavailable"):
        slackwater.audit(public=folder / "public", witness=folder / "none")
