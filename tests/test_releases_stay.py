"""No target that cleans up removes a release, since a new release would draw noise again for the same data."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.emptied import emptied
from tests.test_readme import PAGES, ROOT, blocks, name_of, recipe

SOURCES = [
    *PAGES,
    *ROOT.glob("templates/**/*.yaml"),
    *ROOT.glob("examples/**/*.yaml"),
    ROOT / "pipelines/changelog/first_spec.py",
]
TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def removed(target: str) -> set[str]:
    """Return the names that a target removes."""
    lines = [line for line in recipe(target) if line.startswith("rm ")]
    return {word for line in lines for word in line.split()[1:] if not word.startswith("-")}


def folders_of(path: Path) -> list[str]:
    """Return the folders of releases in a page's specs, or in a spec."""
    texts = blocks(path, "yaml") if path.suffix == ".md" else [path.read_text()]
    return [folder for text in texts for folder in re.findall(r"\b(?:public|private): ([\w./:{}-]+)", text)]


def make(folder: Path, target: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["make", target], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the Makefile, generated files and a release."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("out/flights/chart.png", "releases/wards/private/commits/000001.json", ".mypy_cache/x"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def test_only_clean_removes_anything() -> None:
    assert {target for target in TARGETS if removed(target)} == {"clean"}


@pytest.mark.parametrize("path", [path for path in SOURCES if folders_of(path)], ids=name_of)
def test_releases_of_pages_and_templates_are_in_folders_that_no_target_removes(path: Path) -> None:
    tidied = removed("clean")

    assert {"out", "build"} < tidied
    assert [folder for folder in folders_of(path) if folder.split("/")[0] in tidied] == []


def test_clean_leaves_releases(project: Path) -> None:
    assert make(project, "clean").returncode == 0
    assert not (project / "out").exists()
    assert not (project / ".mypy_cache").exists()
    assert (project / "releases/wards/private/commits/000001.json").exists()


@pytest.mark.parametrize("name", ["out/wards/private/commits/000001.json", "out/wards/public/manifest.json"])
def test_clean_removes_nothing_if_one_of_its_folders_holds_a_release(project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True)
    (project / name).touch()

    said = make(project, "clean")

    assert said.returncode != 0
    assert f"{name} belongs to a release" in said.stderr
    assert (project / name).exists()
    assert (project / ".mypy_cache").exists()


def test_clean_removes_releases_of_benchmarks(project: Path) -> None:
    (project / "out/benchmarks/private/commits").mkdir(parents=True)
    (project / "out/benchmarks/private/commits/000001.json").touch()

    assert make(project, "clean").returncode == 0
    assert not (project / "out").exists()


def test_a_benchmark_empties_only_its_own_folder(tmp_path: Path) -> None:
    (emptied(tmp_path / "new") / "left").touch()
    assert not (emptied(tmp_path / "new") / "left").exists()

    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/manifest.json").touch()
    with pytest.raises(SystemExit, match="holds files that no benchmark has made"):
        emptied(tmp_path / "foreign")
    assert (tmp_path / "foreign/manifest.json").exists()
