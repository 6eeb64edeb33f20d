"""Folders that a benchmark empties: only its own, since any other could hold a release, whose noise is sampled once."""

import shutil
from pathlib import Path

MARK = ".benchmark"


def own(folder: Path) -> Path:
    """A folder in which a benchmark may remove things: a new one, an empty one, or one that this function made.

    Raises:
        SystemExit: it holds something else.
    """
    ours = (folder / MARK).exists() or folder.resolve().is_relative_to(Path("out/benchmarks").resolve())
    if folder.exists() and not ours and any(folder.iterdir()):
        raise SystemExit(f"{folder}: holds what no benchmark has made; name another folder, or remove it yourself")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def emptied(folder: Path) -> Path:
    """As `own`, and empty.

    Raises:
        SystemExit: as `own`.
    """
    shutil.rmtree(own(folder))
    return own(folder)
