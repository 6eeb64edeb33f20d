"""Segments of a topic: ranges of one partition's records, named by their offsets, that are treated as files.

    kafka://HOST:PORT/TOPIC                             path in a spec; several hosts are separated by commas
    kafka://HOST:PORT/TOPIC/PARTITION/FROM-TO           a segment; offsets, without TO

The records between two offsets never change, so a segment is a file that never changes. The numbers have a fixed width:
the segments of a partition sort as their offsets do. Nothing here contacts a broker (see
transforms.sources.files.kafka).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from transforms.common.errors import InputError

SCHEME = "kafka://"

RECORDS = 100_000
"""Most offsets of a segment: a worker reads it in seconds."""

RECORD_BYTES = 512
"""Assumed bytes of a record if a file's size matters; the true number is unknown until it is read."""

_HOST = r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_TOPIC = rf"(?P<topic>{SCHEME}(?P<hosts>{_HOST}(?:,{_HOST})*)/(?P<name>[A-Za-z0-9._-]{{1,249}}))"
_SEGMENT = rf"{_TOPIC}/(?P<partition>[0-9]{{5,}})/(?P<begin>[0-9]{{20}})-(?P<end>[0-9]{{20}})"


@dataclass(frozen=True, slots=True)
class TopicSegment:
    """Records `begin` to `end` - 1 of a partition; `topic` is the path in a spec."""

    topic: str
    partition: int
    begin: int
    end: int

    @staticmethod
    def parse(path: str) -> "TopicSegment | None":
        """Return the segment of a path; None if the path is not that of a segment.

        >>> TopicSegment.parse("kafka://k:9092/stays/00003/00000000000000000020-00000000000000000025")
        TopicSegment(topic='kafka://k:9092/stays', partition=3, begin=20, end=25)
        """
        found = re.fullmatch(_SEGMENT, path)
        if found is None:
            return None
        return TopicSegment(found["topic"], int(found["partition"]), int(found["begin"]), int(found["end"]))

    @property
    def path(self) -> str:
        """Path of the segment."""
        return f"{self.topic}/{self.partition:05}/{self.begin:020}-{self.end:020}"

    @property
    def size(self) -> int:
        """Approximate bytes; the number never changes."""
        return (self.end - self.begin) * RECORD_BYTES


def hosts_and_name(topic: str) -> tuple[str, str]:
    """Return the brokers and the name of a topic.

    >>> hosts_and_name("kafka://a:9092,b:9092/stays")
    ('a:9092,b:9092', 'stays')
    """
    found = re.fullmatch(_TOPIC, topic)
    if found is None:
        raise ValueError("no topic")
    return found["hosts"], found["name"]


def is_of_topic(path: str) -> bool:
    """Return whether a path denotes a topic or a segment, valid or not."""
    return path.startswith(SCHEME)


def topic_problem(path: str) -> str | None:
    """Return what is wrong with a topic's path in a spec; the path is not quoted, since it can hold a password."""
    if "@" in path:
        return "no user or password here, since specs are published: they belong into the file of changelog.kafka"
    if re.fullmatch(_TOPIC, path) is None:
        return "expected kafka://HOST:PORT/TOPIC, the brokers with commas between them and one topic, without *"
    return None


def following(topic: str, taken: Iterable[TopicSegment], there: Mapping[int, tuple[int, int]]) -> list[TopicSegment]:
    """Return the segments after those that were taken, of at most `RECORDS` offsets each.

    A partition without a record is one empty segment when it is first seen. So it is known that it existed, and a later
    partition is read from offset 0 or refused.

    Args:
        topic: Path of the topic.
        taken: Taken segments of any topics, in any order; they may overlap.
        there: Partition to its first offset and its end.

    Raises:
        InputError: Records were deleted before they were read, or the topic is not the one that was read.
    """
    ends = _ends(segment for segment in taken if segment.topic == topic)
    found = []
    for partition in sorted(ends.keys() | there.keys()):
        first, end = there.get(partition, (0, 0))
        begin = ends.get(partition, 0 if ends else first)
        if end < begin:
            raise InputError(
                f"{topic}: partition {partition} ends at offset {end}, but was read up to {begin}: it was created "
                "again or has lost records; a new topic needs a new name and a spec that names it"
            )
        if first > begin:
            raise InputError(
                f"{topic}: partition {partition}: the records at offsets {begin} to {first - 1} were deleted before "
                "they were read; published numbers would miss changes. Set a longer retention.ms or run more often; "
                "this release cannot continue; start another one (run --new-release NAME)"
            )
        found += _cut(TopicSegment(topic, partition, begin, end)) if end > begin or partition not in ends else []
    return found


def joined(segments: Iterable[TopicSegment]) -> list[TopicSegment]:
    """Return the segments with adjacent and overlapping ones of a partition joined."""
    parts: list[TopicSegment] = []
    for segment in sorted(segments, key=lambda s: (s.topic, s.partition, s.begin)):
        last = parts[-1] if parts else None
        if last and (last.topic, last.partition) == (segment.topic, segment.partition) and segment.begin <= last.end:
            parts[-1] = replace(last, end=max(last.end, segment.end))
        else:
            parts.append(segment)
    return parts


def _ends(taken: Iterable[TopicSegment]) -> dict[int, int]:
    """Return the offset up to which each partition was taken without a gap. Segments after a gap are read again."""
    parts: dict[int, list[TopicSegment]] = defaultdict(list)
    for segment in joined(taken):
        parts[segment.partition].append(segment)
    return {partition: found[0].end for partition, found in parts.items()}


def _cut(segment: TopicSegment) -> list[TopicSegment]:
    begins = range(segment.begin, segment.end, RECORDS) or [segment.begin]
    return [replace(segment, begin=begin, end=min(begin + RECORDS, segment.end)) for begin in begins]
