"""Folders that a benchmark may empty: only its own, since others could hold a release, whose noise is sampled once."""

import shutil
from pathlib import Path

MARK = ".benchmark"


def own(folder: Path) -> Path:
    """Return a folder whose files a benchmark may remove: a new one, an empty one, or one that this function made.

    Raises:
        SystemExit: the folder holds other files.
    """
    ours = (folder / MARK).exists() or folder.resolve().is_relative_to(Path("out/benchmarks").resolve())
    if folder.exists() and not ours and any(folder.iterdir()):
        raise SystemExit(
            f"{folder}: holds files that no benchmark has made; name another folder, or remove it yourself"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def emptied(folder: Path) -> Path:
    """Return an empty folder of a benchmark.

    Raises:
        SystemExit: the folder holds other files.
    """
    shutil.rmtree(own(folder))
    return own(folder)
