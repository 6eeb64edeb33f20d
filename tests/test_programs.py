"""Programs that tests need: a build server installs them or fails; elsewhere the run ends with what to install."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests import conftest, programs

ROOT = Path(__file__).resolve().parent.parent
SKIPS = {
    "tests/programs.py": "programs that are missing",
    "tests/e2e/test_transcripts.py": "known faults of runners",
    "tests/e2e/test_memory.py": "memory limits that the system or the account does not have",
    "tests/pipelines/test_process.py": "the C library of Linux",
    "tests/test_house.py": "tests that are not spread",
}
"""Files that may skip a test, and why."""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the only one on the path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return tmp_path


def program(folder: Path, name: str, script: str = "") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(("server", "ends"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_program_fails_its_tests_only_on_a_build_server(
    server: str, ends: type[BaseException], bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", server)
    program(bare, "chromium")

    programs.require("chromium")
    with pytest.raises(ends, match=r"chromedriver not installed; apt-get install .* chromium-driver"):
        programs.require("chromium", "chromedriver")


def test_a_build_server_installs_missing_programs(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in {*programs.DEBIAN, *programs.PYPI} - {"zsh", "java", "go"}:
        program(bare, name)
    for name in ("apt-get", "python"):
        program(bare, name, f'echo {name} "$@" >> {bare}/said')

    programs.install()

    assert (bare / "said").read_text().splitlines() == [
        "apt-get update",
        "apt-get install --no-install-recommends --yes openjdk-17-jre-headless zsh",
        f"python -m pip install {programs.PYPI['go']}",
    ]


def test_nothing_is_installed_on_other_machines(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    program(bare, "apt-get", f"touch {bare}/said")

    programs.install()

    assert not (bare / "said").exists()


@pytest.mark.parametrize(("server", "code"), [("", pytest.ExitCode.OK), ("true", pytest.ExitCode.TESTS_FAILED)])
def test_a_run_lists_tests_that_did_not_run_or_fails_on_a_build_server(
    server: str, code: pytest.ExitCode, bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", server)
    (bare / "test_two.py").write_text(
        "import pytest\nfrom tests.programs import needs\n"
        "@needs('zsh')\n@pytest.mark.parametrize('x', [1, 2])\ndef test_with_zsh(x):\n    pass\n"
    )

    flags = ["-c", os.devnull, "-p", "no:cacheprovider", "--import-mode=importlib", f"--rootdir={bare}"]
    ended = pytest.main([*flags, str(bare)], plugins=[conftest])

    said = capsys.readouterr().out
    told = re.search(r"^2 tests did not run: zsh not installed; apt-get install .* zsh$", said, re.MULTILINE)
    assert (ended, told is None) == (code, bool(server))


def test_tests_are_skipped_in_no_other_way() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"pytest\.skip\b|mark\.skip|importorskip", path.read_text()) and path != Path(__file__)
    }

    assert found == SKIPS.keys()
