"""Power loss in small, through the command line; `python -m benchmarks.crash.losses` does it hundreds of times."""

import os
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.crash.checks import NODE, BrokenError
from benchmarks.crash.losses import Seen, everything, nothing
from pipelines.audit.power import Disk, forget
from tests.processes import FORKED, alone, program

pytestmark = FORKED


def test_a_release_continues_after_repeated_power_losses(tmp_path: Path) -> None:
    code, said = program("benchmarks.crash.losses", "--losses=3", f"--folder={tmp_path / 'out'}", folder=tmp_path)

    assert code == 0
    counts = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines()[2:]]
    assert sum(int(losses) for _, losses, *_ in counts) == 3


def nodes(value: float) -> bytes:
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(NODE, "a") | {"noisy_value": value}]), file)
    return file.getvalue()


def test_the_check_detects_a_second_sample_and_a_loss() -> None:
    """A check that misses this fault would make the benchmark worthless."""
    seen = Seen()
    seen.look({"nodes/a-1.parquet": nodes(3.0)})
    seen.look_at_end({"nodes/a-1.parquet": nodes(3.0), "manifest.json": b""})

    with pytest.raises(BrokenError, match="a second sample of noise"):
        seen.look({"nodes/a-2.parquet": nodes(4.0)})
    with pytest.raises(BrokenError, match=r"lost: .*a-1"):
        seen.look_at_end({})


def after_power_loss(folder: Path, survives: str) -> dict[str, str]:
    """Return the files that survive a power loss before all files and the folders above them are flushed."""
    disk = Disk(folder / "disk", folder / "memory")
    disk.root.mkdir()
    Path(disk.root, "old").write_text("old")
    disk.all_flushed()
    forget([disk])

    def flush(*names: str) -> None:
        for name in names:
            descriptor = os.open(disk.root / name, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    for name in ("whole", "no content", "no name", "no folder/file"):
        path = disk.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    flush("whole", "no folder/file", "no folder")
    (disk.root / "no name").rename(disk.root / "no name yet")
    flush("no name yet")
    (disk.root / "no folder").rename(disk.root / "folder")
    Path(disk.root, "draft").write_text("new")
    flush("draft", ".")
    Path(disk.root, "whole").write_text("changed")
    Path(disk.root, "draft").replace(disk.root / "old")
    Path(disk.root, "later").write_text("later")
    flush("later")
    disk.lose_power({"nothing": nothing, "everything": everything}[survives])
    return {str(p.relative_to(disk.root)): p.read_text() for p in disk.root.rglob("*") if p.is_file()}


def test_files_not_flushed_with_all_folders_above_them_are_lost(tmp_path: Path) -> None:
    left = alone(after_power_loss, tmp_path, "nothing")

    assert left == {
        "old": "old",
        "draft": "new",
        "whole": "whole",
        "no content": "",
        "no name yet": "no name",
        "folder/file": "no folder/file",
    }


def test_an_unflushed_file_may_reach_the_disk_by_chance(tmp_path: Path) -> None:
    left = alone(after_power_loss, tmp_path, "everything")

    assert left == {
        "old": "new",
        "whole": "changed",
        "no content": "no content",
        "no name yet": "no name",
        "folder/file": "no folder/file",
        "later": "later",
    }
