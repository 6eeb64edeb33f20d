"""Topics of Kafka: the segments that were not read yet, and the records of a segment (topic_segments.py) as lines.

    in    a topic or a segment, and the path of a file with the client's settings (kafka_client.py)
    out   segments that were not taken yet; a stream of bytes

Line N of a segment is the value of the record at offset FROM + N - 1, so a row's number gives its offset. A record
without a value (a tombstone) is the line `null`. An offset without a record, such as the end of a transaction or a
record of an aborted one, is a blank line, which is not a row. Line ends within a value become blanks, which does not
change JSON.

Only committed records are read, up to the last stable offset (before which all transactions have ended).
"""

import time
from collections.abc import Generator, Iterable
from typing import Any

from transforms.common.errors import InputError, SpecError
from transforms.sources.files.kafka_client import BATCH, PAUSE, cleanup_policy, connect, library, offsets
from transforms.sources.files.topic_segments import TopicSegment, following, hosts_and_name

READ_PATIENCE = 60.0
"""Seconds to wait for the next record of a segment: longer than brokers need to elect another leader."""


class UnreachableTopicError(OSError):
    """The brokers do not answer, or refuse."""


class DeletedRecordsError(OSError):
    """Records were deleted between the poll that found them and the read."""


def new_segments(topic: str, taken: Iterable[TopicSegment], settings: str | None) -> list[TopicSegment]:
    """Return the segments of a topic that can be read now and were not taken.

    Args:
        topic: Path of the topic, kafka://HOST:PORT/TOPIC.
        taken: Segments of this and other topics that were taken earlier.
        settings: Path of a file with the client's settings; None for none.

    Raises:
        SpecError: The topic does not exist, it keeps only the last record of each key, or the settings are wrong.
        InputError: As `following`, or the brokers do not answer.
    """
    _, admin = library()
    errors: list[Any] = []
    client = connect(admin.AdminClient, topic, settings, errors)
    policy = cleanup_policy(client, topic, errors)
    if policy != "delete":
        raise SpecError(
            f"changelog.path: {topic} has cleanup.policy={policy}, which deletes all but a key's last record: "
            "changes go missing; set cleanup.policy=delete, and a retention.ms longer than the time between two runs"
        )
    return following(topic, taken, offsets(client, topic, errors))


LAST = 20
"""Offsets at the end of a partition that are searched for its newest record: some hold the end of a transaction."""


def last_lines(topic: str, settings: str | None) -> list[bytes]:
    """Return the newest records of each partition as lines; a partition without records has no line.

    Raises:
        SpecError: The topic does not exist, or the settings are wrong.
        InputError: The brokers do not answer, or the records cannot be read.
    """
    _, admin = library()
    errors: list[Any] = []
    client = connect(admin.AdminClient, topic, settings, errors)
    lines: list[bytes] = []
    for partition, (first, end) in offsets(client, topic, errors).items():
        segment = TopicSegment(topic, partition, max(first, end - LAST), end)
        try:
            lines += b"".join(_lines(segment, settings)).splitlines()
        except OSError as error:
            raise InputError(
                f"{topic}: the newest record cannot be read ({type(error).__name__}); it states the source's "
                "progress: try again"
            ) from None
    return lines


class Lines:
    """A segment as a binary file that can be read once."""

    def __init__(self, segment: TopicSegment, settings: str | None) -> None:
        self._lines = _lines(segment, settings)
        self._rest = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer at the end; all remaining bytes if `size` is negative."""
        parts, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            part = next(self._lines, None)
            if part is None:
                break
            parts.append(part)
            length += len(part)
        whole = b"".join(parts)
        cut = len(whole) if size < 0 else size
        self._rest = whole[cut:]
        return whole[:cut]

    def close(self) -> None:
        """Close the consumer."""
        self._lines.close()
        self.closed = True


def _lines(segment: TopicSegment, settings: str | None) -> Generator[bytes, None, None]:
    """Yield the lines of a segment in blocks.

    Raises:
        UnreachableTopicError, DeletedRecordsError: `transforms.sources.files.opening` counts such a segment as a file
            that cannot be read.
    """
    kafka, _ = library()
    _, name = hosts_and_name(segment.topic)
    consumer = connect(kafka.Consumer, segment.topic, settings, [])
    try:
        consumer.assign([kafka.TopicPartition(name, segment.partition, segment.begin)])
        at, last = segment.begin, time.monotonic()
        while at < segment.end:
            records = consumer.consume(min(BATCH, segment.end - at), PAUSE)
            lines = []
            for record in records:
                error = record.error()
                if error is not None:
                    _refuse(error, kafka.KafkaError)
                reached = min(record.offset(), segment.end)
                lines.append(b"\n" * (reached - at))
                at = max(at, reached)
                if error is None and at < segment.end:
                    lines.append(_line(record.value()))
                    at += 1
            if block := b"".join(lines):
                last = time.monotonic()
                yield block
            elif time.monotonic() - last > READ_PATIENCE:
                raise UnreachableTopicError("no records")
    finally:
        consumer.close()


def _line(value: bytes | None) -> bytes:
    return (value.replace(b"\n", b" ") if value else b"null") + b"\n"


def _refuse(error: Any, kinds: Any) -> None:
    """Raise for an error among the records, except for the end of the partition, which is no fault."""
    if error.code() in (kinds._AUTO_OFFSET_RESET, kinds.OFFSET_OUT_OF_RANGE):
        raise DeletedRecordsError(error.name())
    if error.code() != kinds._PARTITION_EOF:
        raise UnreachableTopicError(error.name())
