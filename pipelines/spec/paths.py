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


def remote_problem(path: str) -> str | None:
    """Return why no file can be on this remote storage; None for local paths, topics and `gs://`.

    >>> remote_problem("s3://stays/*.csv"), remote_problem("data/*.csv")
    ('s3:// is unsupported; use a local path, or gs://', None)
    """
    remote = re.match(r"(\w+)://", path)
    known = remote is None or remote[1].lower() in ("gs", "kafka")
    return None if remote is None or known else f"{remote[1]}:// is unsupported; use a local path, or gs://"


def _parts(path: str) -> tuple[str, tuple[str, ...]]:
    remote = re.match(r"(\w+)://(.*)", path, re.DOTALL)
    if remote:
        return remote[1].lower(), tuple(posixpath.normpath(remote[2]).split("/"))
    return "", Path(path).resolve().parts
