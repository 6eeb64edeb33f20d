"""Whether a run in another container is alive shows by the lock that it holds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.store import held
from pipelines.store.attempt import RUN
from pipelines.store.store import Store

WORK = """
import sys
from pipelines.store.store import Store

attempt = Store("public", "private").begin(1)
print(attempt.id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def working(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A run that works at an attempt, on another host as its note has it; the attempt's id and the process."""
    with subprocess.Popen(
        [sys.executable, "-c", WORK], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        id_ = child.stdout.readline().strip()
        elsewhere(tmp_path / "private/attempts" / id_)
        yield id_, child
        child.kill()


def elsewhere(attempt: Path) -> None:
    """Let the note of an attempt say that its run is on another host."""
    note = json.loads((attempt / RUN).read_text())
    (attempt / RUN).write_text(json.dumps(note | {"host": "another", "place": "another boot"}))


def alive(folder: Path, id_: str) -> bool | None:
    attempts = Store(str(folder / "public"), str(folder / "private")).attempts
    return attempts.alive(id_, attempts.runs()[id_])


@pytest.mark.slow
def test_a_run_in_another_container_is_alive_until_it_is_killed(
    tmp_path: Path, working: tuple[str, subprocess.Popen[str]]
) -> None:
    id_, child = working
    store = Store(str(tmp_path / "public"), str(tmp_path / "private"))

    assert alive(tmp_path, id_) is True
    assert (store.killed(), store.clean()) == ({}, [])

    child.kill()
    child.wait()
    assert alive(tmp_path, id_) is False
    assert ([*store.killed()], store.clean()) == ([id_], [id_])


@pytest.mark.slow
def test_the_state_of_a_run_on_a_file_server_is_unknown(
    tmp_path: Path, working: tuple[str, subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    id_, child = working
    child.kill()
    child.wait()
    monkeypatch.setattr(held, "_LOCAL", frozenset({"another kind"}))

    assert alive(tmp_path, id_) is None


def test_a_run_that_could_not_lock_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(str(tmp_path / "public"), str(tmp_path / "private"))
    with monkeypatch.context() as there:
        there.setattr(held, "_LOCAL", frozenset({"another kind"}))
        attempt = store.begin(1)
    elsewhere(Path(attempt.folder))

    assert not json.loads((Path(attempt.folder) / RUN).read_text())["held"]
    assert alive(tmp_path, attempt.id) is None
