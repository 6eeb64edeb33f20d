"""Segments of a topic: runs of one partition's records, named by their offsets, that stand for files.

    kafka://HOST:PORT/TOPIC                             what a spec names; several hosts with commas between them
    kafka://HOST:PORT/TOPIC/PARTITION/FROM-TO           a segment; offsets, TO is not part of it

What lies between two offsets never changes, so a segment is a file that never does. The numbers have a fixed width: the
segments of a partition sort as their offsets do. Nothing here asks a broker (that is transforms.sources.files.kafka).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from transforms.common.errors import InputError

SCHEME = "kafka://"

RECORDS = 100_000
"""The most offsets of a segment: a worker reads it in seconds."""

RECORD_BYTES = 512
"""A record counts as so many bytes where a file's size matters. The true number is not known before it is read."""

_HOST = r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_TOPIC = rf"(?P<topic>{SCHEME}(?P<hosts>{_HOST}(?:,{_HOST})*)/(?P<name>[A-Za-z0-9._-]{{1,249}}))"
_SEGMENT = rf"{_TOPIC}/(?P<partition>[0-9]{{5,}})/(?P<begin>[0-9]{{20}})-(?P<end>[0-9]{{20}})"


@dataclass(frozen=True, slots=True)
class Segment:
    """Records `begin` to `end` (not part of it) of a partition; `topic` as a spec names it."""

    topic: str
    partition: int
    begin: int
    end: int

    @staticmethod
    def parse(path: str) -> "Segment | None":
        """The segment of a path; None if it is not that of a segment.

        >>> Segment.parse("kafka://k:9092/stays/00003/00000000000000000020-00000000000000000025")
        Segment(topic='kafka://k:9092/stays', partition=3, begin=20, end=25)
        """
        found = re.fullmatch(_SEGMENT, path)
        if found is None:
            return None
        return Segment(found["topic"], int(found["partition"]), int(found["begin"]), int(found["end"]))

    @property
    def path(self) -> str:
        return f"{self.topic}/{self.partition:05}/{self.begin:020}-{self.end:020}"

    @property
    def size(self) -> int:
        """About how many bytes; the same for ever."""
        return (self.end - self.begin) * RECORD_BYTES


def hosts_and_name(topic: str) -> tuple[str, str]:
    """
    >>> hosts_and_name("kafka://a:9092,b:9092/stays")
    ('a:9092,b:9092', 'stays')
    """
    found = re.fullmatch(_TOPIC, topic)
    if found is None:
        raise ValueError("no topic")
    return found["hosts"], found["name"]


def is_of_topic(path: str) -> bool:
    """Whether a path names a topic or a segment, rightly or not."""
    return path.startswith(SCHEME)


def topic_problem(path: str) -> str | None:
    """What is wrong with a spec's path that names a topic. It is not quoted: there may be a password in it."""
    if "@" in path:
        return "no user or password here, since specs are published: they belong into the file of changelog.kafka"
    if re.fullmatch(_TOPIC, path) is None:
        return "expected kafka://HOST:PORT/TOPIC, the brokers with commas between them and one topic, without *"
    return None


def following(topic: str, taken: Iterable[Segment], there: Mapping[int, tuple[int, int]]) -> list[Segment]:
    """What comes after the segments that were taken, in parts of at most `RECORDS`.

    A partition without a record is one empty segment when it is first seen: then it is known that it was there, and
    a later one is read from offset 0 or not at all.

    Args:
        taken: of any topics, in any order; they may overlap.
        there: partition to its first offset and its end.

    Raises:
        InputError: records were deleted before they were read, or the topic is another one than the one that was read.
    """
    ends = _ends(segment for segment in taken if segment.topic == topic)
    found = []
    for partition in sorted(ends.keys() | there.keys()):
        first, end = there.get(partition, (0, 0))
        begin = ends.get(partition, 0 if ends else first)
        if end < begin:
            raise InputError(
                f"{topic}: partition {partition} ends at offset {end}, but was read up to {begin}: it was made anew or "
                "has lost records; a new topic needs a new name and a spec that names it"
            )
        if first > begin:
            raise InputError(
                f"{topic}: partition {partition}: the records at offsets {begin} to {first - 1} were deleted before "
                "they were read; what is published would miss changes. Set a longer retention.ms or run more often; "
                "this release cannot go on, another one can begin (run --new-release NAME)"
            )
        found += _cut(Segment(topic, partition, begin, end)) if end > begin or partition not in ends else []
    return found


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """Those of a partition that follow on each other or overlap, as one."""
    parts: list[Segment] = []
    for segment in sorted(segments, key=lambda s: (s.topic, s.partition, s.begin)):
        last = parts[-1] if parts else None
        if last and (last.topic, last.partition) == (segment.topic, segment.partition) and segment.begin <= last.end:
            parts[-1] = replace(last, end=max(last.end, segment.end))
        else:
            parts.append(segment)
    return parts


def _ends(taken: Iterable[Segment]) -> dict[int, int]:
    """Up to where each partition was taken without a gap. What would follow a gap is read again, which does no harm."""
    parts: dict[int, list[Segment]] = defaultdict(list)
    for segment in joined(taken):
        parts[segment.partition].append(segment)
    return {partition: found[0].end for partition, found in parts.items()}


def _cut(segment: Segment) -> list[Segment]:
    begins = range(segment.begin, segment.end, RECORDS) or [segment.begin]
    return [replace(segment, begin=begin, end=min(begin + RECORDS, segment.end)) for begin in begins]
