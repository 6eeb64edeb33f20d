"""Identities of the data that specs read: two specs may name one file in different ways."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from transforms.common.cloud import refuse_unreachable
from transforms.common.source import Source
from transforms.sources.files.listing import matching
from transforms.sources.files.snapshot_paths import glob_of
from transforms.sources.files.topic_segments import SCHEME, is_of_topic


def absolute(path: str) -> str:
    """A path or glob from the root."""
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100 - a glob is no path that resolves


def patterns_of(source: Source) -> tuple[str, ...]:
    """Globs of a changelog's files from the root; dates of snapshots are wildcards."""
    paths = source.paths if source.every is None else map(glob_of, source.paths)
    return tuple(map(absolute, paths))


def data_of(patterns: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the files that these patterns read now.

    Returns:
        identities of the patterns, with links resolved, and of all files that match: device and inode of a local file,
        name of an object, topic at each of its brokers; and the patterns whose files cannot be listed.
    """
    found, unlisted = set[str](), list[str]()
    for pattern in patterns:
        if is_of_topic(pattern):
            hosts, _, topic = pattern.removeprefix(SCHEME).rpartition("/")
            found |= {f"{SCHEME}{host}/{topic}" for host in hosts.split(",")}
            continue
        found.add(_resolved(pattern))
        try:
            refuse_unreachable([pattern])
            found |= {_identity(file.path) for file in matching((pattern,))}
        except Exception:  # each file system has its own
            unlisted.append(pattern)
    return frozenset(found), tuple(unlisted)


@dataclass
class SameData:
    """Compares the data of a spec with that of others.

    Attributes:
        patterns: of the spec.
        unlisted: patterns that could not be compared, so far.
    """

    patterns: tuple[str, ...]
    unlisted: set[str] = field(default_factory=set)

    @cached_property
    def _own(self) -> frozenset[str]:
        own, unlisted = data_of(self.patterns)
        self.unlisted.update(unlisted)
        return own

    def reads(self, patterns: tuple[str, ...]) -> bool:
        """Whether others read a file that the spec reads."""
        if patterns == self.patterns:
            return True
        found, unlisted = data_of(patterns)
        same = bool(found & self._own)
        self.unlisted.update(() if same else unlisted)
        return same


def _resolved(pattern: str) -> str:
    """The pattern with links resolved in its folders, up to the first wildcard."""
    if "://" in pattern:
        return pattern
    folder, name = re.fullmatch(r"((?:[^*?\[]*/)?)(.*)", pattern, re.DOTALL).groups()  # type: ignore[union-attr]
    return str(Path(os.path.realpath(folder or "."), name))


def _identity(path: str) -> str:
    if "://" in path:
        return path
    facts = Path(path).stat()
    return f"{facts.st_dev}:{facts.st_ino}"
