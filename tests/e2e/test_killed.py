"""A run that is killed while it holds rows of people: what it leaves, which commands report it, and who removes it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.store.attempt import RUN
from tests.e2e.specs import KEY, SCHEMA, START, CommandLine, write_spec

ROWS = 100_000

REPORTED = "a run that began at 20"


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.fixture
def killed(tmp_path: Path) -> list[Path]:
    """Kill a run when it has written rows; the files with rows that it leaves."""
    columns = {
        "stay": [f"{KEY}-{number}" for number in range(ROWS)],
        "at": pa.array(np.full(ROWS, int(START.timestamp() * 1e6)), pa.timestamp("us", "UTC")),
        "before_ward": pa.nulls(ROWS, pa.string()),
        "before_age": pa.nulls(ROWS, pa.int64()),
        "after_ward": pa.repeat("a", ROWS),
        "after_age": pa.repeat(30, ROWS),
    }
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(columns, schema=SCHEMA), tmp_path / "data/rows.parquet", row_group_size=ROWS // 10)
    spec = write_spec(tmp_path)

    def rows() -> list[Path]:
        return [file for file in tmp_path.glob("private/attempts/*/exchange/*") if file.stat().st_size > 0]

    with subprocess.Popen(
        [sys.executable, "-m", "pipelines", "run", str(spec)], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as run:
        while not rows():
            assert run.poll() is None
            time.sleep(0.01)
        os.kill(run.pid, signal.SIGKILL)
    assert KEY.encode() in b"".join(file.read_bytes() for file in rows())
    return rows()


@pytest.mark.few(1)
@pytest.mark.parametrize("host", [{}, {"host": "another", "place": "another boot"}], ids=["here", "elsewhere"])
def test_the_next_run_reports_a_killed_one_removes_its_rows_and_publishes(
    tmp_path: Path, killed: list[Path], slackwater: CommandLine, host: dict[str, str]
) -> None:
    note = killed[0].parents[1] / RUN
    note.write_text(json.dumps(json.loads(note.read_text()) | host))
    told = slackwater("ledger", "spec.yaml")
    assert told.code == 0
    assert REPORTED in told.err
    assert "stay in private/attempts until the next run" in told.err
    assert 'slackwater_attempts_unfinished{process="dead",release="wards"} 1' in slackwater("metrics", "spec.yaml").out
    assert all(file.exists() for file in killed)

    run = slackwater("run", "spec.yaml")
    assert run.code == 0
    assert run.err.count(REPORTED) == 1
    assert "the rows that were read are removed" in run.err
    assert KEY not in run.err
    assert not any(file.exists() for file in killed)
    assert len(list(tmp_path.glob("private/attempts/*"))) == 1

    for command in ("run", "ledger"):
        assert REPORTED not in slackwater(command, "spec.yaml").err


def test_evaluate_removes_the_rows_of_a_killed_run(killed: list[Path], slackwater: CommandLine) -> None:
    told = slackwater("evaluate", "spec.yaml", "--runs", "2")

    assert told.code == 0
    assert REPORTED in told.err
    assert not any(file.exists() for file in killed)
