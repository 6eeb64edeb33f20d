"""Local files that match a pattern, as Beam matches them: `**` also matches slashes, `*` does not.

Beam skips folders that it cannot list, so a changelog without them would look complete. Here that is an error.
"""

import os
import re
from collections.abc import Iterator, Sequence

from apache_beam.io.filesystem import FileSystem

from transforms.common.sinks import is_there


def local_files(pattern: str) -> list[str]:
    """Return their paths in any order; none if a folder of the pattern does not exist.

    Raises:
        OSError: A folder that can hold such files cannot be listed.
    """
    pattern = pattern if "/" in pattern else f"./{pattern}"
    pattern = f"{pattern}*" if pattern.endswith("/") else pattern
    first = "/" if pattern.startswith("/") else ""
    return list(_below(first, [step for step in pattern.split("/") if step]))


def _below(folder: str, steps: Sequence[str]) -> Iterator[str]:
    """Yield files with a name for each step; from the first `**` on, the steps are one pattern for all files below."""
    step, *rest = steps
    if not set(step) & set("*?["):
        path = f"{folder}{step}"
        if rest:
            yield from _below(f"{path}/", rest)
        elif is_there(path):
            yield path
        return
    deep = "**" in step
    matches = re.compile(FileSystem.translate_pattern("/".join(steps) if deep else step)).match
    if deep:
        yield from (path for path in _all(folder) if matches(path.removeprefix(folder)))
        return
    for entry in _entries(folder):
        if not matches(entry.name) or entry.is_dir() != bool(rest):
            continue
        if not rest:
            yield entry.path
        elif not entry.is_symlink():
            yield from _below(f"{entry.path}/", rest)


def _all(folder: str) -> Iterator[str]:
    for entry in _entries(folder):
        if not entry.is_dir():
            yield entry.path
        elif not entry.is_symlink():
            yield from _all(f"{entry.path}/")


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        yield from os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
