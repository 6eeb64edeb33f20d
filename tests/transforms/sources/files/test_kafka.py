"""Segments of a topic that are read next, and the client's settings, without a broker (tests/kafka has one)."""

import itertools
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.common.errors import InputError, SpecError
from transforms.sources.files import kafka_client
from transforms.sources.files.kafka import new_segments
from transforms.sources.files.listing import Listed, joined
from transforms.sources.files.topic_segments import RECORDS, TopicSegment, following, topic_problem
from transforms.sources.files.topic_segments import joined as joined_segments
from transforms.streams.file_batches import poll

TOPIC = "kafka://k:9092/stays"
OTHER = "kafka://k:9092/beds"


def segment(partition: int, begin: int, end: int, topic: str = TOPIC) -> TopicSegment:
    return TopicSegment(topic, partition, begin, end)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def test_segments_of_a_partition_sort_as_their_offsets_do():
    begins = [0, 9, 10, 99, 100, 2**31, 10**18]
    paths = [segment(partition, begin, begin + 5).path for partition in (0, 2, 10) for begin in begins]

    assert sorted(paths) == paths
    assert [TopicSegment.parse(path) for path in paths] == [segment(p, b, b + 5) for p in (0, 2, 10) for b in begins]


@pytest.mark.parametrize("path", [TOPIC, f"{TOPIC}/0/0-5", "data/a.jsonl", f"{TOPIC}/00000/{0:020}-{5:020}.gz"])
def test_other_paths_are_no_segments(path: str):
    assert TopicSegment.parse(path) is None


def test_a_topic_is_taken_from_its_first_offset_in_parts_and_empty_partitions_are_noted():
    found = following(TOPIC, [], {1: (40, 40), 0: (7, 7 + 2 * RECORDS + 1)})

    cuts = [7, 7 + RECORDS, 7 + 2 * RECORDS, 8 + 2 * RECORDS]
    assert found == [*(segment(0, b, e) for b, e in itertools.pairwise(cuts)), segment(1, 40, 40)]
    assert [part.size for part in found][-2:] == [512, 0]


def test_taken_segments_are_not_listed_again():
    taken = [segment(0, 0, 10), segment(0, 10, 25), segment(1, 0, 0), segment(0, 0, 99, OTHER)]

    assert following(TOPIC, taken, {0: (0, 25), 1: (0, 0)}) == []
    assert following(TOPIC, taken, {0: (25, 30), 1: (0, 2)}) == [segment(0, 25, 30), segment(1, 0, 2)]


def test_segments_after_a_gap_are_read_again():
    taken = [segment(0, 20, 30), segment(0, 0, 12), segment(0, 5, 10)]

    assert following(TOPIC, taken, {0: (0, 40)}) == [segment(0, 12, 40)]


def test_a_new_partition_is_read_from_its_beginning():
    assert following(TOPIC, [segment(0, 3, 9)], {0: (3, 9), 1: (0, 4)}) == [segment(1, 0, 4)]


@pytest.mark.parametrize(
    ("there", "told"),
    [
        ({0: (11, 20)}, "partition 0: the records at offsets 10 to 10 were deleted before they were read"),
        ({0: (20, 20)}, "partition 0: the records at offsets 10 to 19 were deleted before they were read"),
        ({0: (0, 10), 1: (1, 5)}, "partition 1: the records at offsets 0 to 0 were deleted before they were read"),
        ({0: (0, 9)}, "partition 0 ends at offset 9, but was read up to 10: it was created again or has lost records"),
        ({1: (0, 9)}, "partition 0 ends at offset 0, but was read up to 10"),
    ],
)
def test_missing_records_are_refused(there: dict[int, tuple[int, int]], told: str):
    with pytest.raises(InputError, match=told):
        following(TOPIC, [segment(0, 0, 10)], there)


@given(st.lists(st.lists(st.integers(0, 2 * RECORDS), min_size=3, max_size=3), max_size=5), st.data())
def test_every_offset_is_taken_once_over_many_polls(steps: list[list[int]], data: st.DataObject):
    """Partitions grow, all or a part of the new segments is taken, and taken records may be deleted."""
    first, end, found = [0, 0, 0], [0, 0, 0], [segment(p, 0, 0) for p in range(3)]
    for step in steps:
        end = [e + more for e, more in zip(end, step, strict=True)]
        new = following(TOPIC, found, {p: (first[p], end[p]) for p in range(3)})
        found = joined_segments(found + new[: data.draw(st.integers(0, len(new)))])
        first = [next((s.end for s in found if s.partition == p), 0) for p in range(3)]
    found += following(TOPIC, found, {p: (first[p], end[p]) for p in range(3)})

    taken = {p: sum(s.end - s.begin for s in found if s.partition == p) for p in range(3)}
    assert taken == dict(enumerate(end))
    assert joined_segments(found) == [segment(p, 0, end[p]) for p in range(3)]


def test_the_list_of_read_segments_does_not_grow():
    files = [Listed(segment(0, b, b + 1).path, 512, 0.0) for b in range(50)]
    plain = Listed("data/a.jsonl", 3, 1.5)

    assert joined([*files, plain]) == (plain, Listed(segment(0, 0, 50).path, 50 * 512, 0.0))


def test_a_segment_is_taken_at_the_first_poll_and_a_file_at_the_second():
    found = (Listed("data/a.jsonl", 3, 1.5), Listed(segment(0, 0, 9).path, 9 * 512, 0.0))

    first, waiting = poll(found, {}, {})
    second, _ = poll(found[:1], {}, waiting)

    assert (first, second) == ([found[1]], [found[0]])


@pytest.mark.parametrize("path", [TOPIC, "kafka://a.b:9092,c-d:9093,[::1]:9092/x.Y_z-1"])
def test_valid_paths_of_topics_have_no_problem(path: str):
    assert topic_problem(path) is None


@pytest.mark.parametrize(
    "path", ["kafka://k:9092", f"{TOPIC}/*", "kafka:///stays", "kafka://k:9092/st*ys", f"{TOPIC}/0"]
)
def test_invalid_paths_of_topics_are_described(path: str):
    assert topic_problem(path) == (
        "expected kafka://HOST:PORT/TOPIC, the brokers with commas between them and one topic, without *"
    )


def test_a_password_in_a_path_is_not_repeated():
    problem = topic_problem("kafka://reader:secret@k:9092/stays")

    assert problem is not None
    assert problem.startswith("no user or password here")
    assert "secret" not in problem


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"# ours\n\nsasl.pasword={SECRET}", "the client refuses sasl.pasword, or its value"),
        (f"security.protocol={SECRET}", "the client refuses security.protocol, or its value"),
        (f"security.protocol=SSL\nssl.key.pem={SECRET}", "the client refuses ssl.key.pem, or its value"),
        (f"sasl.jaas.config={SECRET}", "the client refuses a setting, or its value"),
        (f"group.id=x\nsasl.password: {SECRET}", ":2: expected KEY=VALUE, such as security.protocol=SASL_SSL"),
        (None, "cannot be read (FileNotFoundError); check the path and your rights"),
    ],
)
def test_wrong_settings_are_named_without_their_values(tmp_path: Path, text: str | None, told: str):
    path = tmp_path / "kafka.properties"
    if text is not None:
        path.write_text(text)

    with pytest.raises(SpecError) as caught:
        new_segments(TOPIC, [], str(path))

    assert str(caught.value).startswith(f"changelog.kafka: {path}")
    assert told in str(caught.value)
    assert SECRET not in str(caught.value)


def test_without_the_client_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(SpecError, match=r"pip install '\.\[kafka\]'"):
        new_segments(TOPIC, [], None)


@pytest.mark.slow
def test_unreachable_brokers_are_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kafka_client, "PATIENCE", 1.0)

    with pytest.raises(InputError, match=r"do not answer within 1 s \(.*_TRANSPORT.*\); check their addresses"):
        new_segments(f"kafka://127.0.0.1:{closed_port()}/stays", [], None)
