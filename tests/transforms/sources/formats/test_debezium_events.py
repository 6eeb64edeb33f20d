"""Debezium's change events; see also tests/transforms/fixtures."""

import gzip
import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from hypothesis import given
from hypothesis import strategies as st

from tests.searches import examples
from tests.transforms.events import (
    FIXTURES,
    T0,
    event,
    in_order,
    see,
    sides,
    skipped,
    state,
    wrapped,
    write_lines,
)
from tests.transforms.writing import dead, look, parts, read
from transforms.common.batches import Batch
from transforms.common.errors import SpecError
from transforms.sources.changelog import DEAD, READ, ReadChangelog
from transforms.sources.columns.normalise import Skipped
from transforms.sources.diagnostics import WriteDiagnostics, diagnose
from transforms.sources.formats import debezium_events as debezium
from transforms.sources.formats import json_lines

ENVELOPE = (T0 + 5) * 1000
"""Time at which the connector handled an event of `event`, in microseconds."""


def one(path, *lines, **changes):
    """Return the layout of a valid event and of these lines after it."""
    return see(write_lines(path / "a.jsonl", [event("c", after=state(0)), *lines]), **changes)


# Operations


def test_each_operation_becomes_a_change(tmp_path):
    lines = [
        event("r", after=state(1)),
        event("c", after=state(2)),
        event("u", before=state(1), after=state(1, "b")),
        event("u", after=state(2, "b", None)),
        event("d", before=state(1, "b")),
        event("t"),
        event("t", before=state(1), after=state(1)),  # with any states
    ]

    layout = see(write_lines(tmp_path / "a.jsonl", lines))

    assert sides(layout) == [
        (1, None, ("a", 1.5)),
        (2, None, ("a", 1.5)),
        (1, ("a", 1.5), ("b", 1.5)),
        (2, None, ("b", None)),
        (1, ("b", 1.5), None),
        (None, None, None),
        (None, None, None),
    ]
    assert not dead(layout)


def test_a_truncate_is_one_change_of_all_entries_with_its_time_and_order(tmp_path):
    _, row = read(one(tmp_path, event("t", lsn=7, ts_ms=T0 + 1)))

    assert row["entry"] is None
    assert (row["before"], row["after"]) == (False, False)
    assert row["time"] == (T0 + 1) * 1000
    assert row["order.0"].endswith("7")


def test_events_that_are_no_changes_are_skipped_and_counted(tmp_path):
    message = event("m") | {"message": {"prefix": "p", "content": "aGk="}}
    transaction = {
        "status": "BEGIN",
        "id": "571",
        "event_count": None,
        "data_collections": None,
        "ts_ms": T0,
    }
    schema_change = {"source": {"ts_ms": T0}, "ddl": "ALTER TABLE stays", "databaseName": "db", "tableChanges": []}
    lines = ["null", wrapped(None), {"payload": None}, "", "null\r", message, wrapped(message), {"ts_ms": T0}]

    layout = one(tmp_path, *lines, wrapped({"ts_ms": T0}), transaction, schema_change)

    assert skipped(layout) == {
        debezium.TOMBSTONE: 4,
        debezium.MESSAGE: 2,
        debezium.HEARTBEAT: 2,
        debezium.TRANSACTION: 1,
        debezium.SCHEMA_CHANGE: 1,
    }
    assert len(read(layout)) == 1
    assert not dead(layout)


def test_a_run_stores_the_counts_of_skipped_events_on_the_private_side(tmp_path):
    layout = one(tmp_path, "null", wrapped(None), {"ts_ms": T0}, event("c"))
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        outputs = pipeline | ReadChangelog(layout)
        (outputs[DEAD], outputs[READ]) | WriteDiagnostics(str(tmp_path / "private"))

    path = str(tmp_path / "a.jsonl")
    told = diagnose(str(tmp_path / "private"))
    assert (told.rows, told.dead) == (2, 1)
    assert told.skipped == ((path, debezium.HEARTBEAT, 1), (path, debezium.TOMBSTONE, 2))
    assert json.loads((tmp_path / "private" / "read.json").read_text()) == {
        "rows_read": {path: 2},
        "rows_skipped": {path: {debezium.HEARTBEAT: 1, debezium.TOMBSTONE: 2}},
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"id": 1, "ward": "a", "cost": 1}, debezium.NO_EVENT),
        ({"id": 1, "status": "BEGIN", "ts_ms": T0}, debezium.NO_EVENT),  # a row, not a transaction's boundary
        ({}, debezium.NO_EVENT),
        (wrapped({"id": 1}), debezium.NO_EVENT),
        (event("x", after=state(1)), debezium.NO_OP),
        (event("c"), debezium.NO_AFTER),
        (event("u", before=state(1)), debezium.NO_AFTER),
        (event("d", before=state(1), after=state(1)), debezium.AFTER_DELETE),
        (event("d"), debezium.NO_KEY),
        (event("u", before=state(1), after=state(2)), debezium.OTHER_KEY),
        (event("c", after=state(1), ts_ms=None), debezium.NO_TIME),
        (event("c", after=state(1), ts_ms=0), debezium.NO_TIME),
        (event("c", after=state(1)) | {"source": None}, debezium.NO_TIME),
        (event("c", after=state(1), ts_ms=2**62), debezium.OUT_OF_RANGE),
        (event("c", after=state(None)), "column 'id': entry is null"),
        (event("c", after=state(1, debezium.UNAVAILABLE)), f"column 'ward' {debezium.NOT_IN_LOG}"),
        (event("c", after=state(1, cost=debezium.UNAVAILABLE)), f"column 'cost' {debezium.NOT_IN_LOG}"),
        (event("c", after=state(1, cost="ATk=")), "column 'after.cost': value not understood as double"),
        (event("c", after=state(1, cost=True)), "column 'after.cost': value not understood as double"),
        (event("c", after=state(1, ward={"a": 5})), json_lines.NOT_OF_FORM),
        (event("c", after={"id": None, "ward": None}), debezium.NO_AFTER),
        (event("d", before={}), debezium.NO_KEY),
        (event("c", after=state(1), ts_us="soon"), debezium.ODD_TIME),
        (event("c", after=[1]), json_lines.NOT_OF_FORM),
        (event("c", after="text"), json_lines.NOT_OF_FORM),
        ({"payload": 5}, json_lines.NOT_OF_FORM),
        ("[1]", json_lines.NOT_JSON),
        ('{"op": "c", "after": ', json_lines.NOT_JSON),
        ("\udcff", json_lines.NOT_JSON),
        ('{"op":' + "[" * 600 + "]" * 600 + "}", json_lines.NOT_JSON),
    ],
)
@pytest.mark.parametrize("wrap", [False, True])
def test_an_unusable_line_is_a_dead_letter_and_the_lines_around_it_are_read(tmp_path, line, reason, wrap):
    if wrap and isinstance(line, dict) and "payload" not in line:
        line = wrapped(line)
    layout = one(tmp_path, event("c", after=state(1)), line, event("c", after=state(2)))

    assert dead(layout) == [(3, reason)]
    assert [row["entry"] for row in read(layout)] == [0, 1, 2]


def test_a_file_of_which_no_line_is_an_event_is_dead_line_by_line(tmp_path):
    layout = one(tmp_path)
    write_lines(tmp_path / "a.jsonl", [{"id": 1}, {}, {"ward": "a"}])

    assert dead(layout) == [(row, debezium.NO_EVENT) for row in (1, 2, 3)]


def test_a_placeholder_in_an_unneeded_column_is_accepted(tmp_path):
    layout = one(tmp_path, event("u", after=state(1) | {"note": debezium.UNAVAILABLE}))

    assert not dead(layout)


# Envelopes


def test_bare_and_wrapped_events_may_be_mixed(tmp_path):
    changes = [event("c", after=state(n, cost=n if n % 3 else f"{n}.0")) for n in range(40)]
    chosen = random.Random(4)
    lines = [wrapped(change) if chosen.random() < 0.5 else change for change in changes]

    layout = see(write_lines(tmp_path / "mixed.jsonl", lines))
    plain = see(write_lines(tmp_path / "plain.jsonl", changes))

    assert sides(layout) == sides(plain) == [(n, None, ("a", float(n))) for n in range(40)]
    assert not dead(layout)


def test_compressed_files_carriage_returns_and_blank_lines_make_no_difference(tmp_path):
    lines = [json.dumps(event("c", after=state(n))) for n in range(4)]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress("\r\n\r\n".join(lines).encode()))

    layout = see(tmp_path / "a.jsonl.gz")

    assert [row["entry"] for row in read(layout)] == [0, 1, 2, 3]
    assert not dead(layout)


@pytest.mark.slow
def test_row_numbers_hold_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_BLOCK", 1000)
    lines = [event("c", after=state(n)) if n % 5 else "null" for n in range(60)]
    lines[33] = event("c")

    layout = see(write_lines(tmp_path / "a.jsonl", lines))

    assert dead(layout) == [(34, debezium.NO_AFTER)]
    assert skipped(layout) == {debezium.TOMBSTONE: 12}
    assert [row["entry"] for row in read(layout)] == [n for n in range(60) if n % 5 and n != 33]


# Times


@pytest.mark.parametrize(
    ("source", "named", "time"),
    [
        ({"ts_ms": T0}, None, T0 * 1000),
        ({"ts_ms": T0, "ts_us": T0 * 1000 + 7}, None, T0 * 1000 + 7),
        ({"ts_ms": T0, "ts_us": T0 * 1000 + 7, "ts_ns": T0 * 10**6 + 8999}, None, T0 * 1000 + 8),
        ({"ts_ms": T0, "ts_us": None, "ts_ns": 0}, None, T0 * 1000),
        ({"ts_ms": T0, "ts_us": T0 * 1000 + 7}, "source.ts_ms", T0 * 1000),
        ({"ts_ms": -1, "ts_ns": -1}, None, -1),  # rounded down, not towards zero
    ],
)
def test_the_time_is_the_finest_of_the_source_or_the_named_one(tmp_path, source, named, time):
    layout = see(write_lines(tmp_path / "a.jsonl", [event("c", after=state(1), **source)]), time=named)

    assert [row["time"] for row in read(layout)] == [time]


@pytest.mark.parametrize("ts_ms", [0, None])
def test_a_row_that_a_snapshot_read_without_a_time_has_the_time_when_it_was_read(tmp_path, ts_ms):
    layout = see(write_lines(tmp_path / "a.jsonl", [event("r", after=state(1), ts_ms=ts_ms)]))

    assert [row["time"] for row in read(layout)] == [ENVELOPE]


# Order


@pytest.mark.slow
@pytest.mark.parametrize(
    "positions",
    [
        [{"lsn": None}, {"lsn": 9}, {"lsn": 10}, {"lsn": 2**62}],
        [{"lsn": None, "sequence": f'["5","{n}"]'} for n in (9, 10, 2**62)],
        [
            {"connector": "mysql", "lsn": None, "file": file, "pos": pos, "row": row}
            for file, pos, row in [("binlog.9", 4, 0), ("binlog.10", 3, 9), ("binlog.10", 3, 10), ("binlog.10", 20, 0)]
        ],
        [
            {"connector": "sqlserver", "lsn": None, "commit_lsn": commit, "change_lsn": change, "event_serial_no": n}
            for commit, change, n in [
                ("00000027:00000758:0005", None, None),
                ("00000027:00000758:000a", "00000027:00000758:0003", 1),
                ("00000027:00000758:000a", "00000027:00000758:0003", 2),
                ("00000027:00000758:000a", "00000027:00000758:000b", 1),
            ]
        ],
        [
            {"connector": "oracle", "lsn": None, "scn": scn, "rs_id": rs_id, "ssn": ssn}
            for scn, rs_id, ssn in [
                ("99", None, None),
                ("100", "a01234.00012345.0124", 0),
                ("100", "a01234.00012345.0124", 11),
                ("100", "a01234.00012345.012f", 1),
                (101, "000000.00000000.0000", 0),  # before 1.6 a number
            ]
        ],
    ],
    ids=["postgresql", "sequence", "mysql", "sqlserver", "oracle"],
)
def test_changes_of_one_time_are_ordered_by_their_position_in_the_log(tmp_path, positions):
    lines = [event("c", after=state(n), **position) for n, position in enumerate(positions)]
    random.Random(1).shuffle(lines)

    layout = see(write_lines(tmp_path / "a.jsonl", lines))

    assert in_order(layout) == list(range(len(positions)))
    assert not dead(layout)


def test_an_order_that_the_spec_names_is_read_instead(tmp_path):
    lines = [event("c", after=state(n), txId=10 - n, lsn=n) for n in range(3)]

    layout = see(write_lines(tmp_path / "a.jsonl", lines), order=("source.txId",))

    assert layout.order == ("int64",)
    assert in_order(layout) == [2, 1, 0]


def test_repeated_events_are_equal_in_all_columns_that_are_read(tmp_path):
    change = event("u", after=state(1))
    layout = one(tmp_path, change, change | {"ts_ms": T0 + 60_000})

    first, second = read(layout)[1:]
    assert first == second


# States before


def test_a_deletion_with_only_the_key_has_no_state_before(tmp_path):
    key = {"id": 1, "ward": None, "cost": None, "note": None}
    layout = one(tmp_path, event("d", before=key), event("d", before={"id": 2}), event("d", before=state(3, None)))

    assert sides(layout)[1:] == [(1, None, None), (2, None, None), (3, (None, 1.5), None)]


def test_a_deletion_with_only_the_key_has_a_state_if_no_other_column_is_needed(tmp_path):
    layout = one(tmp_path, event("d", before={"id": 1}), numbers="", others="id")

    assert [row["before"] for row in read(layout)] == [False, True]


def test_an_update_whose_needed_columns_were_null_has_a_state_before(tmp_path):
    layout = one(tmp_path, event("u", before=state(1, None, None), after=state(1)))

    assert sides(layout)[1] == (1, (None, None), ("a", 1.5))


# Inspection


def test_inspection_skips_events_before_the_first_states(tmp_path):
    message = event("m") | {"message": {}}
    lines = ["null", "", message, {"ts_ms": T0}, event("t"), event("d", before={"id": 5}), event("c", after=state(1))]

    layout = see(write_lines(tmp_path / "a.jsonl", lines))

    assert layout.entry == "int64"
    assert layout.states == (("cost", "float64"), ("ward", "string"))


@pytest.mark.parametrize("cost", ["1.50", 1.5, 2, None])
def test_numbers_may_be_written_as_text(tmp_path, cost):
    layout = one(tmp_path, event("c", after=state(1, cost=cost)), event("c", after=state(2, cost="7")))

    assert [row["after.cost"] for row in read(layout)][1:] == [None if cost is None else float(cost), 7.0]


@pytest.mark.parametrize("cost", ["ATk=", {"scale": 2, "value": "ATk="}])
def test_decimals_as_bytes_are_refused_with_the_setting_that_helps(tmp_path, cost):
    with pytest.raises(SpecError, match=r"'after\.cost'.*decimal\.handling\.mode to string or double"):
        see(write_lines(tmp_path / "a.jsonl", [event("c", after=state(1, cost=cost))]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entry": "idd"}, r"changelog\.entry: the states of .*no column 'idd'; a similar name is there"),
        ({"others": "wardd"}, r"no column 'after\.wardd'; a similar name is there"),
        ({"order": ("source.lsnn",)}, r"changelog\.order: .*nothing at 'source\.lsnn'"),
        ({"numbers": "note"}, "measured or has ranges but is not a number"),
    ],
)
def test_columns_that_the_events_lack_are_named(tmp_path, changes, message):
    with pytest.raises(SpecError, match=message):
        see(write_lines(tmp_path / "a.jsonl", [event("c", after=state(1))]), **changes)


@pytest.mark.parametrize("lines", [[], ["null", event("t")], [{"id": 1, "ward": "a"}], [event("c", after="text")]])
def test_a_first_file_without_a_state_changes_nothing(tmp_path, lines):
    good = see(write_lines(tmp_path / "b.jsonl", [event("c", after=state(1))]))
    write_lines(tmp_path / "a.jsonl", lines)

    layout = see(tmp_path / "*.jsonl")

    assert replace(layout, files=good.files) == replace(good, source=layout.source)
    assert [row["entry"] for row in read(layout) if row["after"]] == [1]


def test_a_declared_column_may_be_absent_from_the_first_events(tmp_path):
    layout = one(tmp_path, event("c", after=state(1) | {"new": 3}), others="new", types=(("new", "int64"),))

    assert [row["after.new"] for row in read(layout)] == [None, 3]


# Versions and connectors

STORY = [
    (1, None, ("a", 20.5)),
    (2, None, ("a", 7.25)),
    (1, ("a", 20.5), ("b", 20.5)),
    (2, ("a", 7.25), None),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "story"),
    [
        ("1.9-mysql", STORY),
        ("2.7-postgresql", [*STORY, (None, None, None)]),
        ("2.7-sqlserver", STORY),
        ("3.0-mariadb", [STORY[0], STORY[2]]),
        ("3.0-oracle", STORY),
        ("1.9-postgresql-schema", [*STORY[:2], (1, None, ("b", 20.5)), (2, None, None)]),
    ],
)
def test_the_fixtures_of_each_version_give_the_expected_changes(name, story):
    layout = see(FIXTURES / "debezium" / f"{name}.jsonl")

    assert sides(layout) == story
    assert not dead(layout)
    keys = [(row["time"], row["order.0"]) for row in read(layout)]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_the_oldest_mysql_snapshots_have_the_time_of_their_reading():
    layout = see(FIXTURES / "debezium" / "1.9-mysql.jsonl")

    assert read(layout)[0]["time"] == (1_559_033_904_000 + 838) * 1000


# Any changelog

words = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00", exclude_categories=["Cs"]), min_size=1)
contents = st.fixed_dictionaries(
    {"ward": words, "cost": st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32)}
)
changes = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**62), 2**62),
        "ts_us": st.integers(1, 4 * 10**15),
        "lsn": st.integers(0, 2**62),
        "before": st.none() | contents,
        "after": st.none() | contents,
        "wrapped": st.booleans(),
        "as_text": st.booleans(),
    }
).filter(lambda change: change["before"] or change["after"])


@examples(15)
@given(st.lists(changes, min_size=1, max_size=20))
def test_any_changelog_gives_the_rows_of_its_copy_in_plain_json_lines(found):
    rows = [
        {"id": c["id"], "at": _iso(c["ts_us"]), "lsn": c["lsn"], "before": c["before"], "after": c["after"]}
        for c in found
    ]
    with TemporaryDirectory() as folder:
        plain = write_lines(Path(folder) / "plain.jsonl", rows)
        events = write_lines(Path(folder) / "events.jsonl", [_as_event(change) for change in found])
        types = (("cost", "float64"), ("ward", "string"))
        needs = {"numbers": "cost", "others": "ward", "types": types}

        expected = look(plain, "jsonl", before="before", after="after", order=("lsn",), **needs)
        layout = look(events, "debezium", time=None, before=None, after=None, order=("source.lsn",), **needs)

        assert not dead(layout)
        assert read(layout) == read(expected)


def _iso(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 10**6)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06}Z"


def _as_event(change: dict) -> dict:
    states = {}
    for side in ("before", "after"):
        told = change[side]
        if told is not None:
            cost = told["cost"]
            told = {"id": change["id"], **told, "cost": repr(cost) if change["as_text"] and cost is not None else cost}
        states[side] = told
    op = "d" if states["after"] is None else "u" if states["before"] else "c"
    line = event(op, **states, ts_us=change["ts_us"], lsn=change["lsn"])
    return wrapped(line) if change["wrapped"] else line


@pytest.mark.slow
def test_every_line_of_any_file_is_used_or_reported(tmp_path):
    """Lines with damaged, cut, doubled and moved pieces: none is lost, and none ends the reading."""
    chosen = random.Random(11)
    good = [
        event("c", after=state(1)),
        wrapped(event("u", before=state(1), after=state(1, "b", "2.5"))),
        event("d", before=state(1)),
        event("t"),
        event("m") | {"message": {"prefix": "p"}},
        wrapped(None),
        {"ts_ms": T0},
    ]
    texts = [json.dumps(line) for line in good]
    pieces = [
        "null",
        "5",
        '"5"',
        "true",
        "{}",
        "[]",
        '[1,"a"]',
        "1e999",
        "-0",
        "NaN",
        '"\\ud800"',
        '"\\u0000"',
        "{",
        "}",
        "\\",
    ]
    for _ in range(80):
        lines = []
        for _ in range(chosen.randrange(1, 12)):
            line = chosen.choice(texts)
            for _ in range(chosen.randrange(3)):
                begin, end = sorted(chosen.choices(range(len(line) + 1), k=2))
                line = line[:begin] + chosen.choice([*pieces, line[begin:end] * 2, ""]) + line[min(end, begin + 6) :]
            lines.append(line)
        layout = one(tmp_path)
        write_lines(tmp_path / "a.jsonl", lines)

        found = list(parts(layout))
        rows = sum(part.table.num_rows for part in found if isinstance(part, Batch))
        letters = [row for part in found if isinstance(part, pa.Table) for row in part["row"].to_pylist()]
        left_out = sum(part.rows for part in found if isinstance(part, Skipped))

        assert rows + len(letters) + left_out == sum(bool(line.strip()) for line in lines)
        assert all(lines[row - 1].strip() for row in letters)
