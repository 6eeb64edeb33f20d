"""Releases from topics of a real broker have the sums of files with the same rows: no row is lost or read twice."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing import test_stream
from apache_beam.utils.timestamp import Timestamp
from confluent_kafka import Producer

from benchmarks.flink.live import exact_sums
from pipelines import cli
from pipelines.epochs.stream import StreamRelease, stream_job
from pipelines.spec.load import load
from pipelines.store.store import Store
from tests.e2e.specs import DAY, NO_NOISE, SECRETS, CommandLine, Row, Said, changelog, write, write_spec
from tests.e2e.test_streaming import ENDS, LAG, by_day
from tests.kafka.server import PASSWORD, USER, Broker, broker
from tests.processes import CLEAN
from tests.programs import needs
from transforms.common.errors import InputError, SpecError
from transforms.sources.files.listing import find
from transforms.sources.files.opening import open_stream
from transforms.sources.files.topic_segments import TopicSegment
from transforms.sources.freshness import NEVER, Freshness

pytestmark = [needs("java", "mvn"), pytest.mark.xdist_group("kafka")]

T = TypeVar("T")

PARTITIONS = 2
NO_END = ("  until: 2026-01-06T00:00:00Z\n", "")
JSONL = ("format: parquet", "format: jsonl\n  types: {age: int64}")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with broker() as started:
        yield started


def lines(rows: Sequence[Row]) -> list[bytes]:
    return [json.dumps({**row, "at": row["at"].strftime("%Y-%m-%dT%H:%M:%SZ")}).encode() for row in rows]


def send(kafka: Broker, topic: str, rows: Sequence[Row]) -> None:
    """Send rows, all changes of an entry to the same partition."""
    for partition in range(PARTITIONS):
        kafka.produce(topic, lines([row for row in rows if int(row["stay"][-4:]) % PARTITIONS == partition]), partition)


@dataclass(frozen=True, slots=True)
class Release:
    """A release from a topic, in a separate folder."""

    folder: Path
    topic: str
    slackwater: CommandLine

    def run(self, day: int) -> Said:
        return self.slackwater("run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}", "--shards=3")

    def read(self) -> dict[int, list[tuple[int, int]]]:
        """Return the ranges of offsets that the epochs' commits record as read, by partition."""
        commits = Store(str(self.folder / "public"), str(self.folder / "private")).commits()
        found: dict[int, list[tuple[int, int]]] = {partition: [] for partition in range(PARTITIONS)}
        for commit in commits:
            for source in commit.sources:
                part = TopicSegment.parse(source.path)
                assert part is not None
                found[part.partition].append((part.begin, part.end))
        return found


def release(
    kafka: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str], *changes: tuple[str, str], topic: str = ""
) -> Release:
    topic = topic or kafka.topic(partitions=PARTITIONS)
    folder = tmp_path / topic
    folder.mkdir()
    write_spec(folder, JSONL, NO_END, NO_NOISE, ("data/*.parquet", kafka.path(topic)), *changes)
    return Release(folder, topic, CommandLine(folder, capsys))


def of_files(folder: Path, days: Sequence[Sequence[Row]]) -> dict[tuple[Any, ...], float]:
    """Return the sums of the same release from files, with a run after each day that has rows."""
    write_spec(folder, JSONL, NO_END, NO_NOISE, ("data/*.parquet", "data/*.jsonl"))
    for day, rows in enumerate(days):
        if rows:
            write(folder / f"data/day-{day}.jsonl", rows)
            with chdir(folder):
                assert cli.main(["run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}", "--shards=3"]) == 0
    return exact_sums(folder)


def in_three() -> list[list[Row]]:
    """Return the rows that arrive on each day: some on the first, third and fifth day, none on the others."""
    days = by_day(changelog())
    return [list(days[0]), [], [*days[1], *days[2]], [], [*days[3], *days[4]]]


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Any, ...], float]:
    """Return the sums of three epochs from files with the same rows."""
    found = of_files(tmp_path_factory.mktemp("files"), in_three())
    assert any(found.values())
    return found


def complaint(said: Said) -> str:
    """Return the error line of a failed command, after a check that it holds no value of the data."""
    (line,) = said.lines
    assert line.startswith("slackwater: ")
    assert not any(secret in line for secret in (*SECRETS, PASSWORD))
    return line.removeprefix("slackwater: ")


def test_three_epochs_from_a_topic_have_the_sums_of_files_with_the_same_rows(kafka, tmp_path, capsys, sums):
    days = in_three()
    own = release(kafka, tmp_path, capsys)
    counts = [0] * PARTITIONS
    for day, rows in enumerate(days):
        if rows:
            send(kafka, own.topic, rows)
            for _ in range(2):  # the second finds no window due
                said = own.run(day)
                assert said.code == 0, said.err
            for row in rows:
                counts[int(row["stay"][-4:]) % PARTITIONS] += 1

    assert exact_sums(own.folder) == sums
    for partition, parts in own.read().items():
        assert len(parts) == 3  # one per epoch, each begins where the previous one ends
        assert [begin for begin, _ in parts] == [0, *(end for _, end in parts[:-1])]
        assert parts[-1][1] == counts[partition]


def killed(folder: Path, until: str) -> None:
    """Run `slackwater run` in a process that dies after it has drawn noise and before it commits."""
    Store.commit = lambda *_: os._exit(9)  # type: ignore[method-assign]
    with chdir(folder):
        cli.main(["run", "spec.yaml", f"--until={until}", "--shards=3"])


def test_a_run_that_is_killed_loses_nothing_and_reads_nothing_twice(kafka, tmp_path, capsys, sums):
    """Records keep arriving between the runs."""
    days = in_three()
    own = release(kafka, tmp_path, capsys)
    send(kafka, own.topic, days[0])
    assert own.run(0).code == 0
    send(kafka, own.topic, days[2])
    process = CLEAN.Process(target=killed, args=(own.folder, f"{ENDS[2]:%Y-%m-%dT%H:%M:%SZ}"))
    process.start()
    process.join(120)
    assert process.exitcode == 9
    send(kafka, own.topic, days[4])

    said = own.run(4)

    assert said.code == 0, said.err
    assert exact_sums(own.folder) == sums
    for parts in own.read().values():
        assert len(parts) == 2
        assert [begin for begin, _ in parts] == [0, *(end for _, end in parts[:-1])]


def append(step: tuple[str, str, Sequence[Sequence[bytes]]]) -> str:
    """Append records during a stream, by partition."""
    address, topic, partitions = step
    producer = Producer({"bootstrap.servers": address})
    for partition, values in enumerate(partitions):
        for value in values:
            producer.produce(topic, value=value, partition=partition)
    assert producer.flush(60) == 0
    return topic


def stream(kafka: Broker, own: Release, days: Sequence[Sequence[Row]], *, begin: int) -> None:
    """Stream day after day: records arrive, and the day's window closes, as in tests.e2e.test_streaming."""
    spec = load("spec.yaml")
    job = stream_job(spec, Store(spec.output.public, spec.output.private), shards=3)
    nothing = (kafka.address, own.topic, [])
    clock = test_stream.TestStream().advance_watermark_to(Timestamp((ENDS[begin] - DAY).timestamp()))
    for day, rows in enumerate(days, begin):
        parts = [lines([row for row in rows if int(row["stay"][-4:]) % PARTITIONS == p]) for p in range(PARTITIONS)]
        for some in (slice(3), slice(3, None)):  # found at two polls
            clock.add_elements([(kafka.address, own.topic, [part[some] for part in parts])])
        clock.advance_watermark_to(Timestamp((ENDS[day] + LAG).timestamp() + 1))
        clock.add_elements([nothing])
        clock.add_elements([nothing])
    clock.advance_watermark_to_infinity()
    options = PipelineOptions(["--runner=BundleBasedDirectRunner"])
    options.view_as(StandardOptions).streaming = True
    with beam.Pipeline(options=options) as pipeline:
        publish = StreamRelease(spec, job, windows=begin + len(days), lag=int(LAG.total_seconds() * 1_000_000))
        pipeline | clock | beam.Map(append) | publish


def test_a_stream_continues_after_runs_and_has_the_sums_of_files(kafka, tmp_path, capsys, monkeypatch):
    days = by_day(changelog())[:3]
    own = release(kafka, tmp_path, capsys)
    send(kafka, own.topic, days[0])
    assert own.run(0).code == 0
    monkeypatch.chdir(own.folder)

    stream(kafka, own, days[1:2], begin=1)
    for partition, (_, end) in enumerate(parts[-1] for parts in own.read().values()):
        kafka.delete_before(own.topic, end, partition)  # its rows are in the state, and are not read again
    stream(kafka, own, days[2:], begin=2)

    assert exact_sums(own.folder) == of_files(tmp_path, days)
    assert [commit.windows for commit in Store("public", "private").commits()] == [1, 2, 3]
    for parts in own.read().values():
        assert len(parts) == 3
        assert [begin for begin, _ in parts] == [0, *(end for _, end in parts[:-1])]
        assert parts[-1][1] > parts[0][1] > 0


def content(path: str) -> bytes:
    with open_stream(path) as file:
        return b"".join(iter(lambda: file.read(7), b""))


def test_only_committed_records_are_read_and_row_numbers_give_offsets(kafka):
    topic = kafka.topic()
    kafka.produce(topic, [b'{"n": 0}', None, b'{\n"n": 2}', b""])
    with kafka.transaction(topic, [b"aborted", b"aborted"]) as producer:
        producer.abort_transaction()
    with kafka.transaction(topic, [b'{"n": 7}']) as producer:
        producer.commit_transaction()
    with kafka.transaction(topic, [b'{"n": 9}']) as producer:
        kafka.produce(topic, [b'{"n": 10}'])  # a reader waits for the open transaction before it
        (first,) = find((kafka.path(topic),))
        producer.commit_transaction()
    (second,) = find((kafka.path(topic),), taken=[first])

    # Offsets 4 and 5 were aborted; 6, 8 and 11 end a transaction.
    assert [first.path, second.path] == [TopicSegment(kafka.path(topic), 0, *part).path for part in ((0, 9), (9, 12))]
    assert content(first.path) == b'{"n": 0}\nnull\n{ "n": 2}\nnull\n\n\n\n{"n": 7}\n\n'
    assert content(second.path) == b'{"n": 9}\n{"n": 10}\n\n'
    assert content(first.path) == content(first.path)


def test_dead_letters_have_their_segment_and_position(kafka, tmp_path, capsys):
    own = release(kafka, tmp_path, capsys, ("  time: at", "  time: at\n  bad_rows: 0.5"))
    good = lines(changelog())
    kafka.produce(own.topic, [*good[:3], None, *good[3:5], b"\0\0\0\0\7avro"])

    said = own.run(0)

    assert said.code == 0, said.err
    letters = pq.read_table(own.folder / "private/diagnostics/dead_letters.parquet").to_pylist()
    path = TopicSegment(kafka.path(own.topic), 0, 0, 7).path
    assert [(letter["file"], letter["row"]) for letter in letters] == [(path, 4), (path, 7)]


def test_no_part_of_a_record_is_in_a_message(kafka, tmp_path, capsys):
    own = release(kafka, tmp_path, capsys)
    path, mark = kafka.path(own.topic), "Zq7marker"
    event = {"op": mark, "source": {mark: 1}, "after": {mark: mark}, "at": {mark: mark}, "stay": [mark]}
    good = {"stay": mark, "at": "2026-01-01T10:00:00Z", "after_ward": mark, "after_age": mark, mark: mark}
    values = [json.dumps(one).encode() for one in (good, event)]
    values += [f'{{"{mark}'.encode(), f"{mark}\xff".encode("latin-1"), f'["{mark}"]'.encode(), None]
    producer = Producer({"bootstrap.servers": kafka.address})
    for value in values:
        producer.produce(own.topic, value=value, key=mark, headers={mark: mark})
    assert producer.flush(60) == 0

    keys = ("--entry=stay", "--time=at")
    said = [
        own.run(0),
        own.slackwater("changelog", path, "--suggest", *keys),
        own.slackwater("changelog", path, "--format=jsonl", *keys, "-o", "copy"),
        own.slackwater("changelog", path, "--format=debezium", "--entry=stay", "-o", "other"),
        own.slackwater("changelog", path, "-o", "third"),
    ]

    assert [one.code for one in said] == [3, 2, 2, 2, 2]
    assert [line for one in said for line in one.lines if mark.lower() in line.lower()] == []


def test_deletion_of_unread_records_ends_a_release_and_of_other_records_does_not(kafka, tmp_path, capsys):
    days = by_day(changelog())
    own = release(kafka, tmp_path, capsys)
    send(kafka, own.topic, days[0])
    kafka.delete_before(own.topic, 1)  # before the first run, which begins with the remaining records
    assert own.run(0).code == 0
    ends = {partition: parts[-1][1] for partition, parts in own.read().items()}
    send(kafka, own.topic, days[1])
    kafka.delete_before(own.topic, ends[0])
    assert own.run(1).code == 0
    send(kafka, own.topic, days[2])
    _, end = own.read()[1][-1]
    kafka.delete_before(own.topic, end + 1, 1)
    commits = list((own.folder / "private/commits").iterdir())

    said = own.run(2)

    assert said.code == 3
    where = f"{kafka.path(own.topic)}: partition 1"
    assert complaint(said).startswith(f"{where}: the records at offsets {end} to {end} were deleted before they were")
    assert list((own.folder / "private/commits").iterdir()) == commits


def test_records_deleted_between_listing_and_reading_are_an_unreadable_file(kafka):
    topic = kafka.topic()
    kafka.produce(topic, [b"{}"] * 5)
    (listed,) = find((kafka.path(topic),))
    kafka.delete_before(topic, 2)

    with pytest.raises(OSError, match="_AUTO_OFFSET_RESET"):
        content(listed.path)


def soon(ask: Callable[[], T]) -> T:
    """Poll until the answer is not empty, for at most 120 seconds, and return it: a busy broker may be slow."""
    deadline = time.monotonic() + 120
    while not (found := ask()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_a_topic_with_new_partitions_is_read_and_a_recreated_topic_is_refused(kafka):
    topic = kafka.topic()
    kafka.produce(topic, [b"{}"] * 3)
    first = find((kafka.path(topic),))
    kafka.grow(topic, 2)
    kafka.produce(topic, [b"{}"] * 2, partition=1)
    second = soon(lambda: find((kafka.path(topic),), taken=first))
    assert [part.path for part in second] == [TopicSegment(kafka.path(topic), 1, 0, 2).path]

    kafka.remove(topic)
    soon(lambda: topic not in kafka.admin.list_topics(timeout=10).topics)
    kafka.topic(name=topic)
    with pytest.raises(InputError, match="partition 0 ends at offset 0, but was read up to 3: it was created again"):
        find((kafka.path(topic),), taken=first)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_is_refused(kafka, tmp_path, capsys, policy):
    own = release(kafka, tmp_path, capsys, topic=kafka.topic(policy=policy))

    said = own.run(0)

    assert said.code == 2
    assert f"has cleanup.policy={policy}, which deletes all but a key's last record" in complaint(said)


def test_the_newest_heartbeat_of_any_partition_gives_the_progress_of_a_connector(kafka):
    topic = kafka.topic(partitions=PARTITIONS, policy="compact")
    rule = Freshness(by="heartbeat", path=kafka.path(topic))
    nothing = rule.passed(())
    kafka.produce(topic, [b'{"ts_ms": 1767225600000}', b'{"schema": {}, "payload": {"ts_ms": 1767225601000}}'], 1)
    beats = rule.passed(())
    # Heartbeats from a table in the database, whose changes come in order with all others.
    kafka.produce(topic, [b'{"source": {"ts_ms": 1767225602000}, "ts_ms": 1767225609000}'], 0)

    assert (nothing, beats, rule.passed(())) == (NEVER, 1767225601 * 10**6, 1767225602 * 10**6)
    with pytest.raises(SpecError, match="/none: there is no such topic"):
        replace(rule, path=kafka.path("none")).passed(())


def test_a_missing_topic_is_an_error_and_is_not_created(kafka, tmp_path, capsys):
    own = release(kafka, tmp_path, capsys, topic="none")

    said = own.run(0)

    assert said.code == 2
    assert complaint(said).endswith("/none: there is no such topic; check its name and the brokers'")
    assert "none" not in kafka.admin.list_topics(timeout=10).topics


def test_a_topic_without_records_is_an_empty_changelog_and_avro_is_an_error(kafka, tmp_path, capsys):
    empty = release(kafka, tmp_path, capsys).run(0)
    own = release(kafka, tmp_path, capsys)
    kafka.produce(own.topic, [b"\0\0\0\0\7\2avro"] * 3)
    avro = own.run(0)

    assert (empty.code, avro.code) == (0, 3), empty.err
    assert "cannot be read as JSON lines, not Avro or Protobuf, in a topic" in complaint(avro)


def test_a_password_is_read_from_the_file_and_never_shown(kafka, tmp_path, capsys):
    """The file is not part of the frozen spec, and its addresses override the path's."""
    own = release(kafka, tmp_path, capsys, ("  time: at", "  time: at\n  kafka: kafka.properties"))
    send(kafka, own.topic, by_day(changelog())[0])
    settings = [
        f"bootstrap.servers={kafka.sasl}",
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        f"sasl.username={USER}",
    ]
    properties = own.folder / "kafka.properties"
    told = []
    for password in (PASSWORD, f"{PASSWORD}-not"):
        properties.write_text("\n".join([*settings, f"sasl.password={password}"]))
        told.append(own.run(len(told)))

    assert [said.code for said in told] == [0, 3], told[0].err
    assert "the brokers refuse the login; check user, password and sasl.mechanism" in complaint(told[1])
    assert all(PASSWORD.encode() not in path.read_bytes() for path in own.folder.rglob("*.json"))


def debezium(row: Row, number: int) -> bytes:
    states = {
        side: None if row[f"{side}_ward"] is None else {"stay": row["stay"], "ward": row[f"{side}_ward"]}
        for side in ("before", "after")
    }
    op = "c" if states["before"] is None else "d" if states["after"] is None else "u"
    source = {"ts_ms": int(row["at"].timestamp() * 1000), "lsn": number}
    return json.dumps({**states, "op": op, "source": source}).encode()


def test_the_changelog_command_accepts_a_topic_of_debezium(kafka, tmp_path, capsys):
    topic = kafka.topic(partitions=PARTITIONS)
    rows = changelog()
    events = [debezium(row, number) for number, row in enumerate(rows)]
    kafka.produce(topic, [value for event in events for value in ((event, None) if b'"d"' in event else (event,))])
    (tmp_path / "p").write_text(f"bootstrap.servers={kafka.address}\n")
    slackwater = CommandLine(tmp_path, capsys)
    path = "kafka://elsewhere:9092/" + topic

    spec = slackwater("changelog", path, "--suggest", "--kafka=p", "--entry=stay")
    copy = slackwater("changelog", path, "--kafka=p", "--entry=stay", "-o", "copy", "--json")

    assert spec.code == 0, spec.err
    assert f'format: debezium\n  path: "{path}"\n  entry: stay  # key of the entry\n  kafka: p\n' in spec.out
    assert copy.code == 0, copy.err
    check = json.loads(copy.out)["check"]
    deleted = sum(b'"d"' in event for event in events)
    assert (check["mutations"], check["deletions"], check["rows_skipped"]) == (len(rows), deleted, deleted)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["kafka://k:9092/stays", "--format=csv"], "--format: topics hold one of jsonl, debezium, not csv"),
        (["kafka://k:9092/st*ys"], "SRC: expected kafka://HOST:PORT/TOPIC"),
    ],
)
def test_the_changelog_command_refuses_an_invalid_topic(tmp_path, capsys, flags, told):
    said = CommandLine(tmp_path, capsys)("changelog", *flags, "--suggest")

    assert said.code == 2
    assert complaint(said).startswith(told)
