"""The memory of whole runs, each in its own process."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from benchmarks.memory.limited import limited
from tests.e2e.specs import changelog, write, write_spec

RUN = """\
import sys
from pathlib import Path
from pipelines.cli import main
code = main(sys.argv[1:], alone=True)
print(Path("/proc/self/status").read_text())
sys.exit(code)
"""
"""The run prints its own peak: seen from outside it would be at least that of the process that runs the tests."""

UNITS = 400_000

MEBIBYTE = 2**20

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux shows a process its peak")


def write_long_keys(file: Path) -> int:
    """Write one row for each unit, with keys of 200 random letters, so that the state is almost all of the changelog.

    Returns:
        Bytes of all keys.
    """
    letters = np.random.default_rng(1).integers(ord("a"), ord("z"), (UNITS, 200), dtype=np.uint8, endpoint=True)
    keys = pa.FixedSizeBinaryArray.from_buffers(pa.binary(200), UNITS, [None, pa.py_buffer(letters)])
    columns = {
        "stay": keys.cast(pa.binary()).cast(pa.string()),
        "at": pa.repeat("2026-01-01T12:00:00Z", UNITS),
        "before_ward": pa.nulls(UNITS, pa.string()),
        "after_ward": pa.repeat("a", UNITS),
    }
    pyarrow.csv.write_csv(pa.table(columns), file)
    return letters.size


@contextmanager
def within(memory: int) -> Iterator[list[str]]:
    """Yield what goes before a command for a memory limit in bytes; skip the test without control groups."""
    with limited(memory) as entering:
        if entering is None:
            pytest.skip("this account may make no control group with a memory limit")
        yield entering


def peak(spec: Path, *flags: str) -> int:
    """Peak memory of a run, in bytes."""
    command = [sys.executable, "-c", RUN, "run", str(spec), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=spec.parent)
    found = re.search(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert found is not None
    return 1024 * int(found[1])


def test_the_state_of_all_units_is_never_in_memory_at_once(tmp_path: Path) -> None:
    size = write_long_keys(tmp_path / "rows.csv")
    form = [("format: parquet", "format: csv"), ("data/*.parquet", str(tmp_path / "rows.csv"))]
    form.append(('    where: "age >= 0"\n', ""))
    peaks = {}
    for kept, until in (("state", "2026-01-06T00:00:00Z"), ("no state", "2026-01-02T00:00:00Z")):
        folder = tmp_path / kept
        folder.mkdir()
        spec = write_spec(folder, *form, ("until: 2026-01-06T00:00:00Z", f"until: {until}"))
        peaks[kept] = peak(spec, "--until", "2026-01-02T00:00:00Z", "--shards", "40")
        states = list(folder.glob("private/attempts/*/state/units-*.parquet"))
        assert (sum(file.stat().st_size for file in states) > size / 2) is (kept == "state")

    assert peaks["state"] - peaks["no state"] < size


def test_a_run_keeps_within_the_limit_of_its_control_group(tmp_path: Path) -> None:
    write_long_keys(tmp_path / "rows.csv")
    spec = write_spec(
        tmp_path,
        ("format: parquet", "format: csv"),
        ("data/*.parquet", str(tmp_path / "rows.csv")),
        ('    where: "age >= 0"\n', ""),
    )

    with within(512 * MEBIBYTE) as entering:
        command = [*entering, sys.executable, "-m", "pipelines", "run", str(spec), "--until", "2026-01-02T00:00:00Z"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "memory" not in done.stderr
    assert (
        len(list(tmp_path.glob("private/attempts/*/state/units-*.parquet"))) > 10
    )  # more shards than with more memory


def test_a_run_with_too_little_memory_says_so(tmp_path: Path) -> None:
    write(tmp_path / "data/rows.parquet", changelog())

    with within(300 * MEBIBYTE) as entering:
        command = [*entering, sys.executable, "-m", "pipelines", "run", str(write_spec(tmp_path))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert (
        "slackwater: this process may use 300 MiB of memory, and a run of millions of rows needs 512 MiB" in done.stderr
    )
