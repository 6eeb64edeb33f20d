"""The audit of a public folder: a whole release passes, and each damage is seen."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import slackwater
from pipelines.audit.outsider import check_public
from pipelines.cli import main
from transforms.release import noise

SPEC = """\
release: wards
changelog: {format: csv, path: data.csv, entry: stay, time: at}
privacy: {epsilon: 1.0, constraint: {at_most: 2}}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-04-11T00:00:00Z}
queries:
  - {name: beds, measure: count, strategy: disjoint, by: {ward: [a, closed], floor: [%s]}, publish: [change]}
output: {public: public, private: private}
"""
FLOORS = ", ".join(map(str, range(30)))
ROWS = "stay,at,ward,floor\n1,2026-01-02T00:00:00Z,a,3\n"
EMPTY = "ward = 'closed'"


def released(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    (folder / "data.csv").write_text(ROWS)
    (folder / "spec.yaml").write_text(SPEC % FLOORS)
    patch.chdir(folder)
    slackwater.run("spec.yaml")
    return folder / "public"


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        yield released(tmp_path_factory.mktemp("outside") / "release", patch)


def results(folder: Path, empty: str | None = None) -> dict[str, bool]:
    return {layer.name: layer.passed for layer in check_public(str(folder), empty).layers}


def changed_table(folder: Path, change) -> None:
    """Change the file of nodes, and its digest in the manifest, as a forger would."""
    (path,) = (folder / "nodes").rglob("*.parquet")
    pq.write_table(change(pq.read_table(path)), path)
    manifest = json.loads((folder / "manifest.json").read_text())
    name = str(path.relative_to(folder))
    manifest["epochs"][0]["files"][name] = {
        "sha256": sha256(path.read_bytes()).hexdigest(),
        "size": path.stat().st_size,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


@pytest.mark.slow
def test_a_release_passes_with_and_without_empty_cells(public):
    audited = check_public(str(public), EMPTY)

    assert audited.passed, audited.text()
    assert audited.layers[-1].tried == {"nodes in empty cells": 3000}
    assert "give --empty" in check_public(str(public), None).text()


def test_a_condition_that_no_cell_satisfies_tests_no_noise(public):
    audited = check_public(str(public), "ward = 'nobody'")

    assert audited.passed, audited.text()
    assert "not tested: No node satisfies the condition." in audited.text()


def test_a_changed_file_fails(public, tmp_path):
    copy = shutil.copytree(public, tmp_path / "copy")
    (path,) = (copy / "nodes").rglob("*.parquet")
    path.write_bytes(path.read_bytes() + b" ")

    assert results(copy)["files"] is False
    assert main(["audit", "--public", str(copy)]) == 1
    assert main(["audit", "--public", str(public)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.slice(1),
        lambda table: table.set_column(table.column_names.index("scale"), "scale", [[9.0] * table.num_rows]),
        lambda table: table.set_column(
            table.column_names.index("noisy_value"), "noisy_value", [[0.25 + v.as_py() for v in table["noisy_value"]]]
        ),
    ],
    ids=["a row less", "another scale", "off the grid"],
)
def test_other_rows_scales_and_grids_fail(change, public, tmp_path):
    copy = shutil.copytree(public, tmp_path / "copy")
    changed_table(copy, change)

    found = results(copy)

    assert (found["files"], found["rows"]) == (True, False)


@pytest.mark.slow
def test_narrow_noise_in_empty_cells_fails(tmp_path, monkeypatch):
    sample = noise.sample_noise
    monkeypatch.setattr(noise, "sample_noise", lambda *args, **named: sample(*args, **named) * 7 // 10)
    folder = released(tmp_path / "release", monkeypatch)

    assert results(folder, EMPTY)["noise"] is False
