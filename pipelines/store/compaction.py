"""Compaction: the small files of old epochs are merged into few large ones, with the same rows.

A release that runs each night for years has thousands of files, and each reader opens all of them. A compaction
replaces the files of consecutive epochs. Commits do not change. The manifest follows from commits and compactions
together: the files of a compaction are listed with its last epoch, and the other epochs have none.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipelines.store.attempt import own_name, public_name
from pipelines.store.record import Digest, EpochRecord, Files, read_record
from transforms.common.errors import RefusedError
from transforms.common.output_formats import OUTPUT_FORMATS

LARGEST = 256 * 2**20
"""Largest number of bytes that are joined into one file: a reader holds a file in memory."""

_JOINED_NAME = re.compile(r"-(?P<first>\d{6})\d{25}-\d+-[0-9a-f]+\.\w+$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Files that replace those of epochs `first` to `last`.

    Attributes:
        spec_sha256: digest of the spec in the commits of its release.
        files: files by their public names.
    """

    spec_sha256: str
    first: int
    last: int
    files: Files

    @staticmethod
    def from_json(content: bytes, where: str) -> "Compaction":
        """Return the compaction with this JSON content.

        Raises:
            RefusedError: the content is not such a record; the message names the place `where`.
        """
        return read_record(Compaction, content, where, "a record of a compaction")


def check_compactions(compactions: Sequence[Compaction], commits: Sequence[EpochRecord], where: str) -> None:
    """Check that compactions cover consecutive committed epochs of this release, starting at epoch 1.

    Args:
        compactions: Records of all compactions, in order.
        commits: Records of all committed epochs, at least one.
        where: Place of the records, for messages.

    Raises:
        RefusedError: The compactions do not fit the epochs.
    """
    last = 0
    for compaction in compactions:
        fits = compaction.first == last + 1 and compaction.first < compaction.last <= len(commits)
        if not fits or compaction.spec_sha256 != commits[0].spec_sha256:
            raise RefusedError(f"{where}: a record does not fit the commits; restore the private folder from a copy")
        last = compaction.last


def shown_files(commits: Sequence[EpochRecord], compactions: Sequence[Compaction]) -> list[Files]:
    """Return the files that the manifest lists with each epoch."""
    files: list[Files] = [commit.files for commit in commits]
    for compaction in compactions:
        files[compaction.first - 1 : compaction.last] = [{}] * (compaction.last - compaction.first)
        files.insert(compaction.last - 1, compaction.files)
    return files


def needless(names: Iterable[str], commits: Sequence[EpochRecord], compactions: Sequence[Compaction]) -> list[str]:
    """Return the files that compactions have replaced, and files of compactions that came too late.

    Args:
        names: Names of public files.
        commits: Records of all epochs.
        compactions: Records of all compactions.
    """
    last = compactions[-1].last if compactions else 0
    replaced = {name for commit in commits[:last] for name in commit.files}
    standing = {name for compaction in compactions for name in compaction.files}

    def too_late(name: str) -> bool:
        joined = _JOINED_NAME.search(name)
        return joined is not None and int(joined["first"]) <= last and name not in standing

    return [name for name in names if name in replaced or too_late(name)]


def join_epochs(
    commits: Sequence[EpochRecord],
    read: Callable[[str], bytes],
    put: Callable[[str, bytes], None],
    *,
    largest: int = LARGEST,
) -> Compaction:
    """Join the files of consecutive epochs, for each query and side in the order of the epochs.

    Args:
        commits: records of these epochs.
        read: returns the content of a public file, as it was committed.
        put: takes the name and content of each new file.

    Raises:
        RefusedError: files of one query differ in their columns.
    """
    files: dict[str, Digest] = {}
    last = commits[-1]
    for (stem, suffix), names in _kinds(commits).items():
        for part, content in enumerate(_parts(names, read, suffix, largest)):
            sha256 = hashlib.sha256(content).hexdigest()
            # This number replaces a chunk's number. It holds the epochs, the part and a digest of the content, so that
            # two programs that join the same files to different bytes do not write one name.
            number = f"{commits[0].epoch:06d}{last.epoch:06d}{part:04d}{int(sha256[:12], 16):015d}"
            name = public_name(f"{stem}-{number}{suffix}", last.attempt)
            put(name, content)
            files[name] = Digest(sha256, len(content))
    return Compaction(spec_sha256=last.spec_sha256, first=commits[0].epoch, last=last.epoch, files=files)


def _kinds(commits: Sequence[EpochRecord]) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Return names and sizes of the files that can be joined, by the name before their chunk's number and by format."""
    kinds: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for commit in commits:
        for name, digest in commit.files.items():
            path = PurePosixPath(own_name(name, commit.attempt))
            stem = re.sub(r"-\d+$", "", str(path.with_suffix("")))
            kinds.setdefault((stem, path.suffix), []).append((name, digest.size))
    return kinds


def _parts(
    names: Sequence[tuple[str, int]], read: Callable[[str], bytes], suffix: str, largest: int
) -> Iterable[bytes]:
    join, part, size = OUTPUT_FORMATS[suffix.removeprefix(".")].join, list[str](), 0
    for name, of_file in names:
        if part and size + of_file > largest:
            yield join([read(one) for one in part])
            part, size = [], 0
        part.append(name)
        size += of_file
    yield join([read(one) for one in part])
