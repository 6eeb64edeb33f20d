"""List files of any of Beam's file systems, and segments of topics."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from apache_beam.io.filesystems import FileSystems

from transforms.common.errors import InputError, SpecError
from transforms.sources.files.kafka import new_segments
from transforms.sources.files.local_files import local_files
from transforms.sources.files.topic_segments import TopicSegment, is_of_topic
from transforms.sources.files.topic_segments import joined as joined_segments


@dataclass(frozen=True, slots=True)
class Listed:
    """File as its folder lists it; `updated` in seconds since the epoch, 0 if it is unknown.

    A segment of a topic also counts as a file (transforms.sources.files.topic_segments).
    """

    path: str
    size: int
    updated: float


def find(
    paths: tuple[str, ...],
    *,
    taken: Iterable[Listed] = (),
    settings: str | None = None,
    lines: Callable[[str], bool] = lambda _: False,
) -> tuple[Listed, ...]:
    """Return all files that match, sorted by path; of topics only segments that were not taken.

    Args:
        paths: Globs and topics.
        taken: As in `matching`.
        settings: As in `matching`.
        lines: Whether the file at a path holds JSON lines: an empty one has no lines and is valid.

    Raises:
        SpecError: A glob matches nothing.
        InputError: A file is empty, or a file system cannot be listed.
    """
    found: set[Listed] = set()
    for pattern in paths:
        listed = matching((pattern,), taken=taken, settings=settings)
        if not listed and not is_of_topic(pattern):
            raise SpecError(f"changelog.path: no file matches {pattern!r}; check the path, relative to where you run")
        found.update(listed)
    for file in found:
        may_be_empty = is_of_topic(file.path) or lines(file.path)
        if file.size == 0 and not may_be_empty:
            raise InputError(f"{file.path}: the file is empty (0 bytes); remove it, or write it again")
    return tuple(sorted(found, key=lambda file: file.path))


def matching(
    paths: tuple[str, ...], *, taken: Iterable[Listed] = (), settings: str | None = None
) -> tuple[Listed, ...]:
    """Return all files that match, sorted by path, including empty ones; of topics only segments that were not taken.

    Args:
        paths: Globs and topics.
        taken: Files that were read earlier, or will be.
        settings: Path of the settings of Kafka's client; None for none.

    Raises:
        InputError: A file system cannot be listed, or a topic cannot be continued from the taken segments.
        SpecError: A topic does not exist or is unsuitable.
    """
    found: dict[str, Listed] = {}
    for pattern in paths:
        if is_of_topic(pattern):
            known = [segment for segment in (TopicSegment.parse(file.path) for file in taken) if segment is not None]
            found |= {segment.path: _listed(segment) for segment in new_segments(pattern, known, settings)}
            continue
        try:
            listed = _in_store(pattern) if "://" in pattern else _in_folders(pattern)
        except OSError as error:
            where = error.filename or pattern
            raise InputError(
                f"{pattern}: cannot be listed, {where}: {error.strerror or type(error).__name__}; check the path and "
                "your rights, since files that cannot be seen would be left out without a word"
            ) from error
        except ValueError as error:
            raise InputError(f"{pattern}: cannot be listed ({type(error).__name__}); check the path") from error
        found |= {file.path: file for file in listed}
    return tuple(found[path] for path in sorted(found))


def _in_store(pattern: str) -> list[Listed]:
    """Return matching files of any of Beam's file systems except the local one."""
    listed = FileSystems.match([pattern])[0].metadata_list
    return [Listed(m.path, m.size_in_bytes, float(m.last_updated_in_seconds or 0.0)) for m in listed]


def _in_folders(pattern: str) -> list[Listed]:
    """Return matching local files.

    Raises:
        OSError: A folder that can hold such files cannot be listed, or a file cannot be examined.
    """
    found = []
    for path in local_files(pattern):
        try:
            facts = Path(path).stat()
        except FileNotFoundError:
            if Path(path).is_symlink():  # a link to a missing file
                raise
            continue  # it was removed in the meantime
        found.append(Listed(path, facts.st_size, facts.st_mtime))
    return found


def joined(files: Iterable[Listed]) -> tuple[Listed, ...]:
    """Return the files with adjacent segments joined, so that a stream's list of files does not grow without limit."""
    files = tuple(files)
    segments = [segment for segment in (TopicSegment.parse(file.path) for file in files) if segment is not None]
    plain = [file for file in files if not is_of_topic(file.path)]
    return (*plain, *(_listed(segment) for segment in joined_segments(segments)))


def _listed(segment: TopicSegment) -> Listed:
    return Listed(segment.path, segment.size, 0.0)
