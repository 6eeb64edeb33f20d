"""Rules for odd input that the readers' documentation states, and files that fuzzing found; all through the harness."""

import json

import pytest

from tests.fuzz.harness import Read, check
from tests.fuzz.seeds import SEEDS
from tests.transforms.writing import dead, look, read, write_csv
from transforms.sources.formats import csv, json_lines

AT = "2013-02-08T12:00:00Z"
GOOD = json.loads(SEEDS["objects"][0].splitlines()[0])
CHANGE = SEEDS["debezium"][0].splitlines()[0].decode()
HEADER, ROW = SEEDS["csv"][0].splitlines()[0], f"a,{AT},1,,,,,,,1,,,,".encode()
DATASTREAM = SEEDS["datastream"][0].splitlines()[0].decode()


def lines(format_: str, *found: bytes | str | dict) -> Read:
    texts = [
        line if isinstance(line, bytes) else line.encode() if isinstance(line, str) else json.dumps(line).encode()
        for line in found
    ]
    result = check(format_, b"\n".join(texts) + b"\n")
    assert result is not None
    return result


def after(text: str) -> str:
    """Return a line with a state of this text."""
    return f'{{"id": "a", "at": "{AT}", "before": null, "after": {text}}}'


# JSON


def test_several_objects_on_a_line_do_not_replace_one_that_spans_lines():
    two = after('{"n": 1}') * 2
    found = lines("objects", GOOD, two, '{"x":', '{"id": "b"}}', GOOD)

    assert sorted(found.rows) == [1, 5]
    assert found.dead == dict.fromkeys((2, 3, 4), json_lines.NOT_JSON)


def test_a_line_with_only_a_byte_order_mark_is_not_blank():
    found = lines(
        "objects",
        GOOD,
        b"\xbb\xbf",
        b"\xef\xbb\xbf\xef",
        b"\xef\xbb\xbf \r",
        b"\xef\xbb\xbf" + json.dumps(GOOD).encode(),
    )

    assert sorted(found.rows) == [1]
    assert sorted(found.dead) == [2, 3, 5]  # 4 is blank


@pytest.mark.parametrize("end", ["\r", " ", "\t \r", " \r\r"])
def test_blanks_may_follow_an_object(end):
    assert sorted(lines("objects", GOOD, json.dumps(GOOD) + end).rows) == [1, 2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"n": -0}', 0),
        ('{"n": 9223372036854775807}', 2**63 - 1),
        ('{"n": 9223372036854775808}', None),
        ('{"n": 1.0}', None),
        ('{"n": 1e3}', None),
        ('{"n": "7"}', 7),
        ('{"n": true}', None),
        ('{"n": 1, "n": 2}', None),
        ('{"n": 1, "note": 1e400}', 1),
        ('{"n": 1, "note": 1, "note": 2}', 1),
        ('{"n": 1, "note": ' + "9" * 5000 + "}", 1),
        ('{"n": 1, "": 2}', 1),
        ('{"\\u006e": 5}', 5),
        ('{"n": 1, "note": "\\ud800"}', None),
        ('{"n": 1, "note": "\\u0000"}', 1),
    ],
)
def test_integers_in_json_are_read_or_refused(text, value):
    found = lines("objects", GOOD, after(text))

    assert (found.rows[2]["after.n"] if 2 in found.rows else None) == value
    assert (2 in found.dead) == (value is None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0", "-0.0"),
        ("NaN", "nan"),
        ("-Infinity", "-inf"),
        ("Inf", "inf"),
        ("1e400", "inf"),
        ("9" * 400, "inf"),
        ("18446744073709551616", "1.8446744073709552e+19"),
    ],
)
def test_floats_in_json_are_read_or_refused(text, value):
    found = lines("objects", GOOD, after(f'{{"cost": {text}}}'))

    assert (str(found.rows[2]["after.cost"]) if 2 in found.rows else None) == value


def test_an_empty_key_is_valid():
    assert lines("objects", GOOD, GOOD | {"id": ""}).rows[2]["entry"] == ""


def test_a_line_with_very_many_digits_causes_no_traceback():
    digits = "9" * 5000
    found = lines("debezium", CHANGE, f'{{"x": {digits[:300]}}}', f'{{"x": {digits}}}', '{"x": Inf}')

    assert sorted(found.dead) == [2, 3, 4]
    flat = SEEDS["jsonl"][0].splitlines()[0].decode()
    assert sorted(
        lines(
            "jsonl",
            flat,
            f'{{"id": "a", "at": "{AT}", "seq": 1, "after_y": Inf}}',
            f'{{"id": "a", "at": "{AT}", "seq": 1, "after_y": "x"}}',
            f'{{"id": "a", "at": "{AT}", "seq": 1}} {{}}',
        ).rows
    ) == [1, 2, 3]


def test_an_escaped_name_equals_the_name_next_to_any_lines():
    escaped = CHANGE.replace('"op"', '"\\u006fp"')

    assert lines("debezium", escaped).rows == {1: lines("debezium", CHANGE).rows[1]}
    assert sorted(lines("debezium", CHANGE, escaped).rows) == [1, 2]


def test_a_duplicate_member_makes_a_dead_letter():
    for twice in ('"op": "d", ', '"source": null, ', '"after": null, '):
        assert sorted(lines("debezium", CHANGE, "{" + twice + CHANGE[1:]).dead) == [2]
    for twice in ('"sort_keys": [1], ', '"sort\\u005fkeys": [1], ', '"payload": null, '):
        assert sorted(lines("datastream", DATASTREAM, "{" + twice + DATASTREAM[1:]).dead) == [2]


# CSV


def test_csv_text_that_ends_other_files_is_an_ordinary_row():
    found = lines("csv", HEADER, ROW, b"\x03end of file\x03", ROW)

    assert (sorted(found.rows), sorted(found.dead)) == ([1, 3], [2])


def test_csv_of_one_column_has_no_more_rows_than_lines(tmp_path):
    for day in ("2013-02-08", "2013-02-09"):
        write_csv(tmp_path / f"{day}.csv", ["id"], [["a"], ["b"]])
    layout = look(tmp_path / "%Y-%m-%d.csv", "csv", time=None, before=None, after=None, every=86_400_000_000)

    assert [row["entry"] for row in read(layout)] == ["a", "b", "a", "b"]
    assert not dead(layout)


def test_csv_rows_of_wrong_length_that_are_not_utf8_are_the_only_dead_letters():
    found = lines(
        "csv", HEADER, ROW, b"\xff,\xc3", ROW, ROW.replace(b"a,", b"\xe2\x82,"), ROW.replace(b"a,", b"\x1a,"), ROW
    )

    assert (sorted(found.rows), found.fault) == ([1, 3, 6], None)
    assert found.dead == {2: "the row has a different number of cells than the header"} | dict.fromkeys(
        (4, 5), "column 'id': not text in UTF-8"
    )


def test_unneeded_csv_columns_may_share_a_name():
    assert sorted(lines("csv", HEADER + b",after_note", ROW + b",n").rows) == [1]


def test_csv_line_ends_within_quotes_survive_any_block_size(tmp_path, monkeypatch):
    rows = [[f"e{row}\r\n{'é😀' * (row % 11)}", AT, "p"] for row in range(300)]
    path = write_csv(tmp_path / "a.csv", ["id", "at", "w"], rows)
    layout = look(path, "csv", before=None, after="", others="w")
    monkeypatch.setattr(csv, "_BLOCK", 251)

    assert [row["entry"] for row in read(layout)] == [row[0] for row in rows]
    assert not dead(layout)


def test_csv_row_within_an_open_quote_is_not_used():
    found = lines("csv", HEADER, ROW, ROW + b'"open')

    assert sorted(found.rows) == [1]
    assert "quotes" in str(found.fault)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1", "1.0"),
        ("+1", "1.0"),
        ("-0", "-0.0"),
        (".5", "0.5"),
        ("1e400", "inf"),
        ("nan", "nan"),
        ("0x1F", None),
        (" 1", None),
        ("1,0", None),
        ("", "None"),
        ('""', None),
    ],
)
def test_floats_in_csv_are_read_or_refused(cell, value):
    row = ROW.removesuffix(b"1,,,,") + f"{cell},,,,".encode()
    found = lines("csv", HEADER, row)

    assert (str(found.rows[1]["after.cost"]) if found.rows else None) == value


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("007", 7),
        ("-0", 0),
        ("0x1F", 31),
        ("0xFFFFFFFFFFFFFFFF", -1),
        ("+1", None),
        ("1.0", None),
        ("9223372036854775808", None),
    ],
)
def test_integers_in_csv_are_read_or_refused(cell, value):
    found = lines("csv", HEADER, ROW.replace(b"Z,1,", f"Z,{cell},".encode()))

    assert (found.rows[1]["order.0"] if found.rows else None) == value


# Times


@pytest.mark.parametrize(
    ("time", "used"),
    [
        ("0001-01-01T00:00:00Z", True),
        ("9999-12-31T23:59:59.999999999Z", True),
        ("0000-01-01T00:00:00Z", True),
        ("-0001-01-01T00:00:00Z", False),
        ("10000-01-01T00:00:00Z", False),
        ("2013-02-08T12:00:00z", False),
        ("2013-02-08T12:00:60Z", False),
        ("2013-02-08T24:00:00Z", False),
        ("2013-02-30T12:00:00Z", False),
        ("2013-02-08T12:00:00+24:00", False),
        ("2013-02-08T12:00:00-23:59", True),
        ("2013-02-08T12:00:00 Z", False),
        ("20130208T120000Z", False),
        ("2013-02-08", False),
        ("1360324800", False),
        ("", False),
    ],
)
def test_unusual_times_are_read_or_refused(time, used):
    for found in (
        lines("csv", HEADER, ROW.replace(AT.encode(), (f'"{time}"').encode())),
        lines("objects", GOOD, GOOD | {"at": time}),
    ):
        assert (not found.dead) == used
