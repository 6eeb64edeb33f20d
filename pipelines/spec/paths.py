"""Whether a path lies inside a folder: private files must never lie inside a public folder."""

import posixpath
import re
from pathlib import Path


def within(inner: str, outer: str) -> bool:
    """Return whether a path is a folder or lies inside it; local paths are resolved first.

    >>> within("gs://b/out/./private", "gs://b/out"), within("output", "out")
    (True, False)
    """
    inner_scheme, inner_parts = _parts(inner)
    outer_scheme, outer_parts = _parts(outer)
    return inner_scheme == outer_scheme and inner_parts[: len(outer_parts)] == outer_parts


def _parts(path: str) -> tuple[str, tuple[str, ...]]:
    remote = re.match(r"(\w+)://(.*)", path, re.DOTALL)
    if remote:
        return remote[1].lower(), tuple(posixpath.normpath(remote[2]).split("/"))
    return "", Path(path).resolve().parts
