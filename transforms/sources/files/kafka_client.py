"""Client of Kafka: its settings, and what the brokers answer about a topic.

in    a topic, and the path of a file with the client's settings (addresses, users and secrets)
out   a consumer; the cleanup policy of a topic; the offsets of its partitions
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NoReturn

from transforms.common.errors import InputError, SpecError
from transforms.common.sinks import read_bytes
from transforms.sources.files.topic_segments import hosts_and_name

PATIENCE = 10.0
"""Seconds that the brokers have to answer."""

BATCH = 10_000
"""Records that the client fetches at a time."""

PAUSE = 0.1
"""Seconds between two attempts to get an answer or records."""

_FIXED: dict[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # deleted records are an error, not skipped
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
    "queued.min.messages": BATCH,  # with the default, the client fetches far beyond a segment
    "fetch.queue.backoff.ms": 10,  # pause before the next fetch; the default is one second
    "log_level": 0,
}
"""Settings that the file cannot change."""


def library() -> tuple[Any, Any]:
    """Modules `confluent_kafka` and `confluent_kafka.admin`, an optional dependency.

    Raises:
        SpecError: They are not installed.
    """
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError:
        raise SpecError(
            "changelog.path: kafka:// needs Kafka's client; run `pip install '.[kafka]'` in the project's folder"
        ) from None
    return confluent_kafka, confluent_kafka.admin


def connect(kind: Any, topic: str, path: str | None, errors: list[Any]) -> Any:
    """Return a client for the brokers of a topic.

    Args:
        kind: Class of the client: `AdminClient` or `Consumer` of the library.
        topic: Path of the topic, kafka://HOST:PORT/TOPIC.
        path: File with the client's settings; None for none. Its addresses of brokers replace those of the topic's
            path, since brokers can move after the spec is frozen.
        errors: List to which the client adds the errors of its connections.

    Raises:
        SpecError: The file cannot be read, or the client refuses a setting.
    """
    hosts, _ = hosts_and_name(topic)
    given = {} if path is None else _properties(path)
    settings = {"bootstrap.servers": hosts, "group.id": "slackwater", **given, **_FIXED}
    try:
        return kind({**settings, "error_cb": errors.append})
    except Exception as error:  # the library raises several classes for wrong settings
        named = sorted((key for key in settings if key in str(error)), key=len)
        about = named[-1] if named else "a setting"
        raise SpecError(
            f"changelog.kafka: {path or 'missing'}: the client refuses {about}, or its value; it takes "
            "librdkafka's settings, such as sasl.username and sasl.password"
        ) from None


def _properties(path: str) -> dict[str, str]:
    """Read the lines KEY=VALUE of a file; # begins a comment.

    Raises:
        SpecError: The file cannot be read, or a line has another form. The message quotes nothing of a line.
    """
    try:
        text = read_bytes(path).decode()
    except Exception as error:  # each file system raises its own classes
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


def cleanup_policy(client: Any, topic: str, errors: list[Any]) -> str:
    """Return a topic's setting cleanup.policy.

    Args:
        client: An `AdminClient`, as `connect` returns it.
        topic: Path of the topic.
        errors: Errors of the client's connections.

    Raises:
        SpecError, InputError: The brokers do not answer; the message states why.
    """
    _, admin = library()
    _, name = hosts_and_name(topic)
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, name)
    found = _answers(lambda: client.describe_configs([resource], request_timeout=PATIENCE), client, topic, errors)
    return str(found[resource]["cleanup.policy"].value)


def offsets(client: Any, topic: str, errors: list[Any]) -> dict[int, tuple[int, int]]:
    """Return for each partition its first offset, and the offset after the last record that may be read now.

    Args:
        client: An `AdminClient`, as `connect` returns it.
        topic: Path of the topic.
        errors: Errors of the client's connections.

    Raises:
        SpecError, InputError: The brokers do not answer; the message states why.
    """
    kafka, admin = library()
    _, name = hosts_and_name(topic)
    ask = {"request_timeout": PATIENCE}
    named = kafka.TopicCollection([name])
    described = _answers(lambda: client.describe_topics(named, **ask), client, topic, errors)[name]
    partitions = [kafka.TopicPartition(name, partition.id) for partition in described.partitions]

    def list_offsets(of: Any) -> dict[Any, Any]:
        wanted, committed = dict.fromkeys(partitions, of), kafka.IsolationLevel.READ_COMMITTED
        return _answers(lambda: client.list_offsets(wanted, isolation_level=committed, **ask), client, topic, errors)

    first, end = list_offsets(admin.OffsetSpec.earliest()), list_offsets(admin.OffsetSpec.latest())
    return {p.partition: (first[p].offset, end[p].offset) for p in partitions}


def _answers(
    question: "Callable[[], dict[Any, Future[Any]]]", client: Any, topic: str, errors: list[Any]
) -> dict[Any, Any]:
    """Return the brokers' answers to the parts of a question. Ask again while they elect the leader of a partition.

    Raises:
        SpecError, InputError: The brokers do not answer; the message states why.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return {key: _answer(future, client, errors) for key, future in question().items()}
        except _NoAnswerError:
            if errors[-1].code() not in _elections() or time.monotonic() > until:
                _explain(topic, errors)
            time.sleep(PAUSE)


class _NoAnswerError(Exception):
    """There is no answer; the last of the client's errors states why."""


def _elections() -> tuple[int, ...]:
    """Codes of errors that pass: a partition is new, or its leader has moved. The client does not mark them so."""
    kinds = library()[0].KafkaError
    return (
        kinds.NOT_LEADER_FOR_PARTITION,
        kinds.LEADER_NOT_AVAILABLE,
        kinds.REPLICA_NOT_AVAILABLE,
        kinds.OFFSET_NOT_AVAILABLE,
        kinds.FENCED_LEADER_EPOCH,
        kinds.UNKNOWN_LEADER_EPOCH,
    )


def _answer(future: "Future[Any]", client: Any, errors: list[Any]) -> Any:
    """Wait for an answer, and add a failure to `errors`.

    Raises:
        _NoAnswerError: The question failed, or the brokers refused the user.
    """
    kafka, _ = library()
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
    """Raise the error that describes why the brokers did not answer."""
    kinds = library()[0].KafkaError
    code = errors[-1].code()
    if code == kinds.UNKNOWN_TOPIC_OR_PART:
        raise SpecError(f"changelog.path: {topic}: there is no such topic; check its name and the brokers'")
    if code in (kinds.TOPIC_AUTHORIZATION_FAILED, kinds.CLUSTER_AUTHORIZATION_FAILED):
        raise InputError(f"{topic}: the rights Describe, DescribeConfigs and Read on the topic are needed; grant them")
    if any(error.code() in (kinds._AUTHENTICATION, kinds.SASL_AUTHENTICATION_FAILED) for error in errors):
        raise InputError(
            f"{topic}: the brokers refuse the login; check user, password and sasl.mechanism in changelog.kafka"
        )
    names = ", ".join(sorted({error.name() for error in errors}))
    raise InputError(
        f"{topic}: the brokers do not answer within {PATIENCE:.0f} s ({names}); check their addresses, and "
        "security.protocol in changelog.kafka"
    )
