"""Datastream's events, as JSON lines and Avro; see also tests/transforms/fixtures."""

import json
import random
import shutil
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from tests.transforms.events import FIXTURES, in_order, see, sides, skipped, write_lines
from tests.transforms.writing import dead, read
from transforms.aggregation.chains import build_chains
from transforms.aggregation.contribution_bounding import changed
from transforms.common.errors import InputError, SpecError
from transforms.sources.formats import datastream_events as datastream
from transforms.sources.formats import json_lines

AT = "2025-11-05T18:23:31.393000Z"
AT_US = 1_762_367_011_393_000
SOURCES = FIXTURES / "datastream"


def event(entry, change="INSERT", *, keys=(0, "0/1"), deleted=None, at=AT, **payload):
    metadata = {"table": "stays", "change_type": change, "primary_keys": ["id"]}
    metadata |= {} if deleted is None else {"is_deleted": deleted}
    return {
        "uuid": f"u-{entry}-{change}",
        "read_timestamp": "2025-11-05T18:24:00Z",
        "source_timestamp": at,
        "object": "public_stays",
        "read_method": "postgresql-cdc",
        "sort_keys": list(keys),
        "source_metadata": metadata,
        "payload": {"id": entry, "ward": "a", "cost": 1.5} | payload,
    }


def one(path, *lines, **changes):
    return see(write_lines(path / "a.jsonl", [event(0), *lines]), "datastream", **changes)


# Changes


@pytest.mark.parametrize(
    ("change", "deleted", "exists"),
    [
        ("INSERT", False, True),
        ("UPDATE", None, True),
        ("UPDATE-INSERT", False, True),
        (None, False, True),
        (None, None, True),
        ("UPDATE-DELETE", None, False),
        ("DELETE", True, False),
        ("delete", None, False),
        (None, True, False),
    ],
)
def test_a_payload_is_the_state_from_then_on_or_that_of_a_deleted_entry(tmp_path, change, deleted, exists):
    layout = one(tmp_path, event(7, change, deleted=deleted))

    assert sides(layout)[1] == (7, None, ("a", 1.5) if exists else None)
    assert "before" not in read(layout)[0]
    assert not dead(layout)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (event(1, "TRUNCATE"), datastream.NO_CHANGE),
        (event(1) | {"source_metadata": None}, datastream.NO_EVENT),
        ({"id": 1, "ward": "a"}, datastream.NO_EVENT),
        (event(1) | {"payload": None}, datastream.NO_PAYLOAD),
        (event(1) | {"sort_keys": None}, datastream.NO_ORDER),
        (event(1) | {"sort_keys": 5}, json_lines.NOT_OF_FORM),
        (event(1, deleted="perhaps"), "column 'is_deleted': value not understood as bool"),
        (event(1, at=None), datastream.NO_TIME),
        (event(1, at=2**62), datastream.OUT_OF_RANGE),
        (event(1, at="noon"), "column 'source_timestamp': time not understood"),
        (event(None), "column 'id': entry is null"),
        (event(1, cost="many"), "column 'after.cost': value not understood as double"),
        (event(1, ward={"a": 3}), json_lines.NOT_OF_FORM),
        (event(1) | {"payload": "text"}, json_lines.NOT_OF_FORM),
        ("null", json_lines.NOT_JSON),
    ],
)
def test_an_unusable_line_is_a_dead_letter_and_the_lines_around_it_are_read(tmp_path, line, reason):
    layout = one(tmp_path, line, event(2))

    assert [(row, told[: len(reason)]) for row, told in dead(layout)] == [(2, reason)]
    assert [row["entry"] for row in read(layout)] == [0, 2]
    assert not skipped(layout)


@pytest.mark.parametrize("at", [AT, AT.rstrip("Z"), AT.replace("T", " "), AT_US // 1000])
def test_times_are_utc_or_milliseconds(tmp_path, at):
    assert read(one(tmp_path, event(1, at=at)))[1]["time"] == AT_US


def test_numbers_may_be_written_as_text(tmp_path):
    layout = one(tmp_path, event(1, cost="2.50"), event(2, cost=3), event(3, cost=None))

    assert [row["after.cost"] for row in read(layout)] == [1.5, 2.5, 3.0, None]


def test_the_owner_is_that_of_the_payload_in_deletions_too(tmp_path):
    lines = [event(1, person="p"), event(1, "DELETE", person="p"), event(1, "DELETE", person=None)]
    layout = see(write_lines(tmp_path / "a.jsonl", lines), "datastream", owner="person", others="ward person")

    assert [(row["owner"], row["after"]) for row in read(layout)] == [("p", True), ("p", False)]
    assert dead(layout) == [(3, "column 'person': owner is null; every row must name it, a deletion too")]
    assert [column for column, _ in layout.states] == ["cost", "ward"]


# Order


@pytest.mark.parametrize(
    "keys",
    [
        [[5, ""], [5, "9/FFFFFFFF"], [5, "10/0"], [5, "A0/7310"], [5, "a0/A0007310"]],
        [[5, "", 0], [5, "mysql-bin.000009", 90], [5, "mysql-bin.000010", 9], [5, "mysql-bin.000010", 10]],
        [[5, 0, "", 0], [5, 99, " 0x0a.00ff ", 3], [5, 100, " 0x0a.0010 ", 9], [5, 100, " 0x0a.00af ", 1]],
        [[5, "0000002D:00000A58:0003"], [5, "0000002D:00000A58:000A"], [6, None]],
        [[5], [10]],
    ],
    ids=["postgresql", "mysql", "oracle", "sqlserver", "time"],
)
def test_changes_of_one_time_are_ordered_by_their_keys(tmp_path, keys):
    lines = [event(n, keys=key) for n, key in enumerate(keys)]
    random.Random(2).shuffle(lines)

    layout = see(write_lines(tmp_path / "a.jsonl", lines), "datastream")

    assert in_order(layout) == list(range(len(keys)))
    assert not dead(layout)


def test_a_deletion_comes_before_an_insertion_with_its_keys(tmp_path):
    layout = one(tmp_path, event(2, "UPDATE-INSERT"), event(1, "UPDATE-DELETE"))

    assert in_order(layout) == [1, 0, 2]


def test_a_column_of_the_payload_may_be_called_as_the_keys_are(tmp_path):
    line = event(1, keys=(3,), sort_keys=["9"])
    first = {"payload": line.pop("payload")} | line
    layout = one(tmp_path, first)

    assert read(layout)[1]["order.0"] == "00000000000000000003 1"


def test_events_that_are_delivered_twice_count_once(tmp_path):
    twice = event(1, "UPDATE", keys=(1, "0/5"), ward="b")
    lines = [event(1), twice, event(1, "DELETE", keys=(1, "0/7")), twice | {"read_timestamp": AT}]
    rows = [{k: v for k, v in row.items() if k in ("entry", "time", "order.0", "order.position")} | {"after.0.cell": n}
            for row in read(see(write_lines(tmp_path / "a.jsonl", lines), "datastream"))
            for n in [{"a": 0, "b": 1, None: -1}[row["after.ward"]]]]  # fmt: skip

    chains = build_chains(pa.Table.from_pylist(rows), queries=1)

    assert len(rows) == 4
    assert chains.cells[0][changed(chains, 0)].tolist() == [0, 1, -1]


# Files of each source


@pytest.mark.parametrize(
    ("name", "story"),
    [
        (
            "postgresql.jsonl",
            [(1, "a", 20.5), (2, "a", 7.25), (1, "b", 20.5), (2, None, None), (1, "b", 20.5)],
        ),
        ("mysql.jsonl", [(1, "a", 20.5), (2, "a", 7.25), (1, None, None), (5, "a", 20.5), (2, None, None)]),
        ("mysql.avro", [(1, "a", 20.5), (2, "a", 7.25), (1, None, None), (5, "a", 20.5), (2, None, None)]),
        ("oracle.jsonl", [(1, "a", 20.5), (2, "a", 7.25), (1, "b", 20.5), (2, None, None)]),
    ],
)
def test_the_fixtures_of_each_source_give_the_expected_changes(name, story):
    layout = see(SOURCES / name, "datastream")

    assert [(row["entry"], row["after.ward"], row["after.cost"]) for row in read(layout)] == story
    assert not dead(layout)
    keys = list(dict.fromkeys((row["time"], row["order.0"]) for row in read(layout)[:4]))
    assert keys == sorted(keys)
    assert len(keys) == 4


def test_avro_and_json_lines_give_equal_rows_in_one_changelog(tmp_path):
    for name in ("mysql.avro", "mysql.jsonl"):
        shutil.copy(SOURCES / name, tmp_path)
    rows = [row | {"order.position": None} for row in read(see(tmp_path / "mysql.*", "datastream"))]

    assert rows[:5] == rows[5:]
    assert len(rows) == 10


# Avro

FIELDS = {
    "id": "long",
    "ward": ["null", "string"],
    "cost": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
    "number": ["null", {"type": "string", "logicalType": "number"}],
    "seen": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
    "day": ["null", {"type": "int", "logicalType": "date"}],
    "either": ["null", "string", "long"],
    "ok": ["null", "boolean"],
    "json": ["null", {"type": "record", "name": "Json", "fields": [{"name": "value", "type": "string"}]}],
}


def write_avro(path, payloads, fields=FIELDS, **options):
    members = [{"name": name, "type": type_} for name, type_ in fields.items()]
    metadata = [
        {"name": "change_type", "type": ["null", "string"]},
        {"name": "is_deleted", "type": ["null", "boolean"]},
    ]
    schema = {
        "type": "record",
        "name": "event",
        "fields": [
            {"name": "source_timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "sort_keys", "type": {"type": "array", "items": ["string", "long"]}},
            {"name": "source_metadata", "type": {"type": "record", "name": "metadata", "fields": metadata}},
            {"name": "payload", "type": ["null", {"type": "record", "name": "payload", "fields": members}]},
        ],
    }
    at = datetime.fromtimestamp(AT_US / 10**6, UTC)
    records = [
        {
            "source_timestamp": at,
            "sort_keys": [n, "0/1"],
            "source_metadata": {"change_type": "INSERT"},
            "payload": payload,
        }
        for n, payload in enumerate(payloads)
    ]
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), records, **options)
    return path


def full(entry):
    return {
        "id": entry,
        "ward": "a",
        "cost": Decimal("1.25"),
        "number": "12.5",
        "seen": datetime(2020, 1, 2, tzinfo=UTC),
        "day": datetime(2020, 1, 2, tzinfo=UTC).date(),
        "either": 5,
        "ok": True,
        "json": {"value": "x"},
    }


def test_avro_types_are_those_of_the_schema(tmp_path):
    path = write_avro(tmp_path / "a.avro", [full(1), {"id": 2}, None])
    layout = see(path, "datastream", numbers="cost number", others="ward seen day either ok")

    first, second = read(layout)
    instant = datetime(2020, 1, 2, tzinfo=UTC)
    assert dict(layout.states)["either"] == "string"
    assert {name.removeprefix("after."): first[name] for name in first if name.startswith("after.")} == {
        "cost": 1.25,
        "day": instant,
        "either": "5",
        "number": 12.5,
        "ok": True,
        "seen": instant,
        "ward": "a",
    }
    assert (first["entry"], first["time"]) == (1, AT_US)
    assert {second[name] for name in second if name.startswith("after.")} == {None}
    assert dead(layout) == [(3, datastream.NO_PAYLOAD)]


def test_an_avro_column_of_a_type_that_states_cannot_have_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"'after\.json'.*of no one type"):
        see(write_avro(tmp_path / "a.avro", [full(1)]), "datastream", others="json")


@pytest.mark.slow
def test_rows_are_numbered_across_the_blocks_of_an_avro_file(tmp_path):
    payloads = [full(n) if n % 7 else None for n in range(1, 200)]
    layout = see(write_avro(tmp_path / "a.avro", payloads, sync_interval=100), "datastream")

    assert [row for row, _ in dead(layout)] == list(range(7, 200, 7))
    assert [row["entry"] for row in read(layout)] == [n for n in range(1, 200) if n % 7]


def test_a_later_avro_file_without_a_needed_column_is_dead_as_a_whole(tmp_path):
    write_avro(tmp_path / "a.avro", [full(1)])
    write_avro(tmp_path / "b.avro", [{"id": 2}], {"id": "long", "ward": ["null", "string"]})

    layout = see(tmp_path / "*.avro", "datastream")

    assert dead(layout) == [(None, "the file has no column 'payload.cost'")]
    assert [row["entry"] for row in read(layout)] == [1]


@pytest.mark.slow
def test_a_truncated_avro_file_is_dead_as_a_whole(tmp_path):
    """Except if it is cut between two blocks, which nothing in the file reveals."""
    path = write_avro(tmp_path / "a.avro", [full(n) for n in range(60)], sync_interval=200)
    layout = see(path, "datastream")
    whole = path.read_bytes()
    sync = whole[-16:]
    for end in random.Random(6).sample(range(len(whole)), 60):
        path.write_bytes(whole[:end])
        rows, letters = read(layout), dead(layout)
        between = whole[:end].endswith(sync)
        assert letters == ([] if between else [(None, "the file cannot be read to its end (ArrowInvalid)")])
        assert [row["entry"] for row in rows] == list(range(len(rows)))
        assert len(rows) < 60


@pytest.mark.slow
def test_an_avro_file_with_a_damaged_byte_is_reported_and_ends_no_run(tmp_path):
    path = write_avro(tmp_path / "a.avro", [full(n) for n in range(60)], sync_interval=200, codec="deflate")
    layout = see(path, "datastream")
    whole, chosen = path.read_bytes(), random.Random(6)
    begin = whole.index(whole[-16:])  # the end of the header
    told = 0
    for place in chosen.choices(range(begin, len(whole)), k=60):
        spoilt = whole[place] ^ chosen.randrange(1, 256)
        path.write_bytes(whole[:place] + bytes([spoilt]) + whole[place + 1 :])
        told += bool(dead(layout))
    for place in chosen.choices(range(begin), k=60):  # a damaged schema is another schema, which can be valid
        path.write_bytes(whole[:place] + bytes([whole[place] ^ chosen.randrange(1, 256)]) + whole[place + 1 :])
        assert len(read(layout)) + len(dead(layout)) > 0

    assert told > 50  # of 60; not if deflate still gives a possible record


@pytest.mark.parametrize("content", [b"Obj\x01", b"not avro at all", b"Obj\x01" + bytes(60)])
def test_an_invalid_first_avro_file_is_an_input_error(tmp_path, content):
    (tmp_path / "a.avro").write_bytes(content)

    with pytest.raises(InputError, match=r"a\.avro: cannot be read as Datastream's"):
        see(tmp_path / "a.avro", "datastream")


def test_the_schema_of_an_avro_file_without_records_gives_the_types(tmp_path):
    layout = see(write_avro(tmp_path / "a.avro", []), "datastream", types=())

    assert (layout.entry, layout.states) == ("int64", (("cost", "float64"), ("ward", "string")))
    assert read(layout) == []


def test_columns_that_the_payload_lacks_are_named(tmp_path):
    with pytest.raises(SpecError, match=r"changelog\.entry: the states of .*a similar name is there"):
        see(write_lines(tmp_path / "a.jsonl", [json.dumps(event(1))]), "datastream", entry="idd")
