"""Topics of Kafka: which offsets a partition has, and the records of a segment (topic_segments.py) as lines.

    in    a topic or a segment, and the path of a file with settings of the client (its addresses, users and secrets)
    out   segments that were not taken yet; a stream of bytes

Line N of a segment is the value of the record at offset FROM + N - 1, so a row's number gives its offset. A record
without a value (a tombstone) is the line `null`. An offset without a record, where a transaction's end stands or what
an aborted one wrote, is a blank line, which is no row. Line ends within a value become blanks: so JSON means the same.

Only what is committed is read, and only up to where all transactions have ended (the last stable offset).
"""

import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from typing import Any, NoReturn

from transforms.common.errors import InputError, SpecError
from transforms.common.sinks import read_bytes
from transforms.sources.files.topic_segments import Segment, following, hosts_and_name

PATIENCE = 10.0
"""Seconds for the brokers to answer."""

READ_PATIENCE = 60.0
"""Seconds without a record in the midst of a segment: longer than brokers need to elect another leader."""

_TOGETHER = 10_000
_WAIT = 0.1  # seconds for so many, when some of the offsets hold none

_OWN: dict[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # what was deleted is an error, not skipped
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
    "queued.min.messages": _TOGETHER,  # the default reads on far beyond a segment
    "fetch.queue.backoff.ms": 10,  # before more are asked for; the default waits for a second
    "log_level": 0,
}
"""Settings that are no one's choice."""


class UnreachableTopicError(OSError):
    """The brokers do not answer, or refuse."""


class DeletedRecordsError(OSError):
    """Records were deleted between the poll that found them and the read."""


def new_segments(topic: str, taken: Iterable[Segment], settings: str | None) -> list[Segment]:
    """What can be read of a topic now and was not taken.

    Raises:
        SpecError: there is no such topic, it is one whose records go missing one by one, or the settings are wrong.
        InputError: as `following`, or the brokers cannot be asked.
    """
    _, admin = _client()
    hosts, name = hosts_and_name(topic)
    errors: list[Any] = []
    client = _begin(admin.AdminClient, _settings(hosts, settings), settings, errors)
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, name)
    settled = _answers(lambda: client.describe_configs([resource], request_timeout=PATIENCE), client, topic, errors)
    policy = settled[resource]["cleanup.policy"].value
    if policy != "delete":
        raise SpecError(
            f"changelog.path: {topic} has cleanup.policy={policy}, which deletes all but a key's last record: "
            "changes go missing; set cleanup.policy=delete, and a retention.ms longer than the time between two runs"
        )
    return following(topic, taken, _bounds(client, topic, errors))


LAST = 20
"""Offsets of a partition that are looked at for its newest record: some hold the end of a transaction."""


def last_lines(topic: str, settings: str | None) -> list[bytes]:
    """The newest records of each partition, as lines; none of a partition without any.

    Raises:
        SpecError: there is no such topic, or the settings are wrong.
        InputError: the brokers cannot be asked, or what they have cannot be read.
    """
    _, admin = _client()
    hosts, _ = hosts_and_name(topic)
    errors: list[Any] = []
    client = _begin(admin.AdminClient, _settings(hosts, settings), settings, errors)
    lines: list[bytes] = []
    for partition, (first, end) in _bounds(client, topic, errors).items():
        segment = Segment(topic, partition, max(first, end - LAST), end)
        try:
            lines += b"".join(_lines(segment, settings)).splitlines()
        except OSError as error:
            raise InputError(
                f"{topic}: the newest record cannot be read ({type(error).__name__}); it says how far the source has "
                "come: try again"
            ) from None
    return lines


class Lines:
    """A segment as a binary file that is read once."""

    def __init__(self, segment: Segment, settings: str | None) -> None:
        self._lines = _lines(segment, settings)
        self._rest = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
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
        self._lines.close()
        self.closed = True


def _lines(segment: Segment, settings: str | None) -> Generator[bytes, None, None]:
    """Some lines at a time.

    Raises:
        UnreachableTopicError, DeletedRecordsError: which `transforms.sources.files.opening` counts as a file that
        cannot be read.
    """
    kafka, _ = _client()
    hosts, name = hosts_and_name(segment.topic)
    consumer = _begin(kafka.Consumer, _settings(hosts, settings), settings, [])
    try:
        consumer.assign([kafka.TopicPartition(name, segment.partition, segment.begin)])
        at, last = segment.begin, time.monotonic()
        while at < segment.end:
            records = consumer.consume(min(_TOGETHER, segment.end - at), _WAIT)
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
    """Of what stands among the records, only the end of the partition is no fault."""
    if error.code() in (kinds._AUTO_OFFSET_RESET, kinds.OFFSET_OUT_OF_RANGE):
        raise DeletedRecordsError(error.name())
    if error.code() != kinds._PARTITION_EOF:
        raise UnreachableTopicError(error.name())


def _client() -> tuple[Any, Any]:
    """The library, which not everybody needs."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError:
        raise SpecError(
            "changelog.path: kafka:// needs Kafka's client; run `pip install '.[kafka]'` in the project's folder"
        ) from None
    return confluent_kafka, confluent_kafka.admin


def _settings(hosts: str, path: str | None) -> dict[str, Any]:
    """Brokers may have moved since the spec was frozen: the addresses in the file come before the path's."""
    given = {} if path is None else _properties(path)
    return {"bootstrap.servers": hosts, "group.id": "slackwater", **given, **_OWN}


def _properties(path: str) -> dict[str, str]:
    """The lines KEY=VALUE of a file; # begins a comment.

    Raises:
        SpecError: it cannot be read, or is of another form. Nothing of a line is quoted.
    """
    try:
        text = read_bytes(path).decode()
    except Exception as error:  # each file system has its own
        why = type(error).__name__
        raise SpecError(f"changelog.kafka: {path} cannot be read ({why}); check the path and your rights") from None
    given = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise SpecError(f"changelog.kafka: {path}:{number}: expected KEY=VALUE, such as security.protocol=SASL_SSL")
        given[key.strip()] = value.strip()
    return given


def _begin(kind: Any, settings: dict[str, Any], path: str | None, errors: list[Any]) -> Any:
    """A client; `errors` gets those of its connections."""
    try:
        return kind({**settings, "error_cb": errors.append})
    except Exception as error:  # the library has several kinds for settings
        named = sorted((key for key in settings if key in str(error)), key=len)
        about = named[-1] if named else "a setting"
        raise SpecError(
            f"changelog.kafka: {path or 'missing'}: the client refuses {about}, or what is set there; it takes "
            "librdkafka's settings, such as sasl.username and sasl.password"
        ) from None


def _bounds(client: Any, topic: str, errors: list[Any]) -> dict[int, tuple[int, int]]:
    """Of each partition: its first offset, and that after the last which may be read now."""
    kafka, admin = _client()
    _, name = hosts_and_name(topic)
    ask = {"request_timeout": PATIENCE}
    named = kafka.TopicCollection([name])
    described = _answers(lambda: client.describe_topics(named, **ask), client, topic, errors)[name]
    partitions = [kafka.TopicPartition(name, partition.id) for partition in described.partitions]

    def offsets(of: Any) -> dict[Any, Any]:
        wanted, committed = dict.fromkeys(partitions, of), kafka.IsolationLevel.READ_COMMITTED
        return _answers(lambda: client.list_offsets(wanted, isolation_level=committed, **ask), client, topic, errors)

    first, end = offsets(admin.OffsetSpec.earliest()), offsets(admin.OffsetSpec.latest())
    return {p.partition: (first[p].offset, end[p].offset) for p in partitions}


def _answers(
    question: "Callable[[], dict[Any, Future[Any]]]", client: Any, topic: str, errors: list[Any]
) -> dict[Any, Any]:
    """What the brokers say to each part of a question, which is asked anew while they agree on who leads a partition.

    Raises:
        SpecError, InputError: why there is no answer.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return {key: _answer(future, client, errors) for key, future in question().items()}
        except _NoAnswerError:
            if errors[-1].code() not in _elections() or time.monotonic() > until:
                _explain(topic, errors)
            time.sleep(_WAIT)


class _NoAnswerError(Exception):
    """The last of the errors says why."""


def _elections() -> tuple[int, ...]:
    """Errors that pass: a partition has just been made, or its leader has moved. The client says none of them."""
    kinds = _client()[0].KafkaError
    return (
        kinds.NOT_LEADER_FOR_PARTITION,
        kinds.LEADER_NOT_AVAILABLE,
        kinds.REPLICA_NOT_AVAILABLE,
        kinds.OFFSET_NOT_AVAILABLE,
        kinds.FENCED_LEADER_EPOCH,
        kinds.UNKNOWN_LEADER_EPOCH,
    )


def _answer(future: "Future[Any]", client: Any, errors: list[Any]) -> Any:
    """
    Raises:
        _NoAnswerError: there is none.
    """
    kafka, _ = _client()
    while not any(error.code() == kafka.KafkaError._AUTHENTICATION for error in errors):
        try:
            return future.result(0.1)
        except TimeoutError:
            client.poll(0)
        except kafka.KafkaException as failed:
            client.poll(0)
            errors.append(failed.args[0])
            break
    raise _NoAnswerError


def _explain(topic: str, errors: list[Any]) -> NoReturn:
    """
    Raises:
        SpecError, InputError: why there is no answer.
    """
    kinds = _client()[0].KafkaError
    code = errors[-1].code()
    if code == kinds.UNKNOWN_TOPIC_OR_PART:
        raise SpecError(f"changelog.path: {topic}: there is no such topic; check its name and the brokers'")
    if code in (kinds.TOPIC_AUTHORIZATION_FAILED, kinds.CLUSTER_AUTHORIZATION_FAILED):
        raise InputError(f"{topic}: the rights Describe, DescribeConfigs and Read on the topic are needed; grant them")
    if any(error.code() in (kinds._AUTHENTICATION, kinds.SASL_AUTHENTICATION_FAILED) for error in errors):
        raise InputError(
            f"{topic}: the brokers refuse who asks; check user, password and sasl.mechanism in changelog.kafka"
        )
    names = ", ".join(sorted({error.name() for error in errors}))
    raise InputError(
        f"{topic}: the brokers do not answer within {PATIENCE:.0f} s ({names}); check their addresses, and "
        "security.protocol in changelog.kafka"
    )
