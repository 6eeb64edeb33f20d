"""Snapshots of a table: files with a date in their paths, and the files that form one snapshot.

    data/customers/%Y-%m-%d/*.parquet     a glob in which %Y %m %d %H %M %S denote digits

All files of one instant are one snapshot, the table at that time. Missing files are detected from the paths, before
anything is read: a missing snapshot would look as if nothing had changed, a missing part as if all its rows had been
deleted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from zoneinfo import ZoneInfo

from apache_beam.io.filesystem import FileSystem

from transforms.common.errors import InputError
from transforms.common.source import Source
from transforms.common.zones import zone_of
from transforms.sources.files.listing import Listed, find

_DIGITS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_NAMES = {"Y": "year", "m": "month", "d": "day", "H": "hour", "M": "minute", "S": "second"}
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?P<between>[-_./]?)(?:0[1-9]|1[0-2])(?P=between)(?:[012]\d|3[01])(?!\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_MOST_NAMED = 5


def date_problem(path: str) -> str | None:
    """Return what is wrong with the date in a path; None if it is valid.

    >>> date_problem("data/%Y-%m.csv")
    'a snapshot is known by the date in its path; %d is missing, write one such as data/%Y-%m-%d/*.parquet'
    """
    used = set(_DIRECTIVE.findall(path))
    unknown = sorted(used - set(_DIGITS) - {"%"})
    if unknown:
        return f"%{unknown[0]} is not one of %Y %m %d %H %M %S; write %% for a percent sign"
    missing = [name for name in "Ymd" if name not in used]
    if missing:
        return (
            f"a snapshot is known by the date in its path; %{missing[0]} is missing, "
            "write one such as data/%Y-%m-%d/*.parquet"
        )
    return None


def with_directives(path: str) -> str | None:
    """Return the path of a file with directives for its date; None if there is no date.

    >>> with_directives("snaps/2026-01-31.csv"), with_directives("part-20261.csv")
    ('snaps/%Y-%m-%d.csv', None)
    """
    found = list(_DATE.finditer(path))
    if not found:
        return None
    last = found[-1]
    between = last["between"]
    return f"{path[: last.start()]}%Y{between}%m{between}%d{path[last.end() :]}"


def snapshot_files(source: Source) -> tuple[Listed, ...]:
    """Return the files of all snapshots in the order of time, the files of one snapshot by path.

    Raises:
        SpecError: A path matches nothing.
        InputError: A date is invalid, a snapshot lacks the files of one of several paths, or as `files.find`.
    """
    found = {path: find((glob_of(path),)) for path in source.paths}
    instants = {file: instant_of(source, file.path) for files in found.values() for file in files}
    first = {instant: file.path for file, instant in instants.items()}
    for path, files in found.items():
        for instant in sorted(first.keys() - {instants[file] for file in files}):
            raise InputError(
                f"{path_at(path, instant, source.timezone)}: missing, while {first[instant]} is there; "
                "a snapshot needs its files of every path"
            )
    return tuple(sorted(instants, key=lambda file: (instants[file], file.path)))


def base_of(source: Source, read: Mapping[str, Listed], found: Iterable[Listed]) -> tuple[Listed, ...]:
    """Return the files of the last snapshot that earlier runs have read, with which the first new one is compared.

    Args:
        source: The changelog.
        read: Files that earlier runs have read, by path.
        found: Existing files.

    Raises:
        InputError: A snapshot arrived late, or the last one that was read is missing.
    """
    last = max(instant_of(source, path) for path in read)
    there = {file.path for file in found}
    for path in sorted(there - read.keys()):
        if instant_of(source, path) <= last:
            raise InputError(
                f"{path}: comes late, since an earlier run has read a snapshot that is not older, and what followed it "
                "is published; move it away"
            )
    base = [file for path, file in sorted(read.items()) if instant_of(source, path) == last]
    for file in base:
        if file.path not in there:
            raise InputError(
                f"{file.path}: gone, but the next snapshot is compared with it, the last one that an earlier run has "
                "read; put it back as it was"
            )
    return tuple(base)


def refuse_gaps(source: Source, paths: Sequence[str], *, until: int) -> None:
    """Compare all snapshots so far, by the paths of their files, with those expected up to a time.

    Args:
        source: The changelog.
        paths: Paths of the files so far.
        until: Last instant at which a snapshot is expected, in microseconds since the epoch.

    Raises:
        InputError: A snapshot is missing, or there is an additional one in between.
    """
    files = {instant_of(source, path): path for path in sorted(paths, reverse=True)}
    first, last = min(files), max(files)
    expected: set[int] = set()
    missing: list[str] = []
    for instant in _expected(first, source):
        if instant > max(until, last) or len(missing) > _MOST_NAMED:
            break
        expected.add(instant)
        if instant not in files:
            missing += [path_at(path, instant, source.timezone) for path in source.paths]
    if missing:
        more = ", ..." if len(missing) > _MOST_NAMED else ""
        raise InputError(
            f"snapshots are missing: {', '.join(missing[:_MOST_NAMED])}{more}; one is expected each changelog.every, "
            "from the first to the end of the windows that are released; add them, or end earlier with "
            "--until"
        )
    for instant in sorted(files.keys() - expected):
        raise InputError(
            f"{files[instant]}: a snapshot between those that are changelog.every apart, counted from {files[first]}; "
            "move it away, or change changelog.every"
        )


def path_at(path: str, instant: int, timezone: str | None) -> str:
    """Return the path at which the snapshot of an instant is expected; a glob stays a glob.

    Args:
        path: Path with directives.
        instant: Instant in microseconds since the epoch.
        timezone: IANA name of the zone of the dates; None: UTC.

    >>> path_at("data/%Y/%m-%d/*.csv", 86_400_000_000, None)
    'data/1970/01-02/*.csv'
    """
    moment = _moment(instant).astimezone(_zone(timezone))

    def write(directive: re.Match[str]) -> str:
        letter = directive[1]
        return "%" if letter == "%" else f"{getattr(moment, _NAMES[letter]):0{_DIGITS[letter]}}"

    return _DIRECTIVE.sub(write, path)


def instant_of(source: Source, file: str) -> int:
    """Return the instant of a file's snapshot, in microseconds since the epoch.

    Raises:
        InputError: Its path holds no valid date.
    """
    path = next((path for path in source.paths if re.match(_pattern(path), file)), source.paths[0])
    letters = [letter for letter in _DIRECTIVE.findall(path) if letter != "%"]
    found = re.match(_pattern(path), file)
    directives = sorted(set(zip(letters, found.groups(), strict=True))) if found else []
    parts = {_NAMES[letter]: int(digits) for letter, digits in directives}
    try:
        if len(parts) < len(directives) or not parts:  # one directive has two values
            raise ValueError
        return _microseconds(datetime(**parts, tzinfo=_zone(source.timezone)))
    except (ValueError, OverflowError):
        raise InputError(f"{file}: its path holds no date that {path!r} can mean; rename it, or move it away") from None


def _expected(first: int, source: Source) -> Iterator[int]:
    """Yield instants from the first on: calendar days of the time zone for whole days, else equal steps of time."""
    every = source.every or _DAY
    if every % _DAY:
        yield from count(first, every)
        return
    zone = _zone(source.timezone)
    start = _moment(first).astimezone(zone).replace(tzinfo=None)
    for step in count():
        yield _microseconds((start + step * every * _MICROSECOND).replace(tzinfo=zone))


def glob_of(path: str) -> str:
    return _replaced(path, {letter: "[0-9]" * digits for letter, digits in _DIGITS.items()})


@cache
def _pattern(path: str) -> str:
    """Return the regular expression that Beam makes of the glob, with a group for each directive."""
    marks = {letter: chr(0xE000 + place) for place, letter in enumerate(_DIGITS)}  # private-use characters
    pattern: str = FileSystem.translate_pattern(_replaced(path, marks))
    for letter, mark in marks.items():
        pattern = pattern.replace(mark, f"([0-9]{{{_DIGITS[letter]}}})")
    return pattern


def _replaced(path: str, by: dict[str, str]) -> str:
    # Beam lists the folder with which a glob begins, and finds nothing if there is no folder name.
    folder = "" if "/" in re.split(r"[*?[%]", path)[0] else "./"
    return folder + _DIRECTIVE.sub(lambda directive: {"%": "%", **by}[directive[1]], path)


def _zone(name: str | None) -> ZoneInfo:
    return zone_of(name or "UTC")


def _moment(instant: int) -> datetime:
    return _EPOCH + instant * _MICROSECOND


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
