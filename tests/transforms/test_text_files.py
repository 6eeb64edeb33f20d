"""CSV and JSON lines."""

import bz2
import gzip
import json
import lzma
import random
from functools import partial

import pyarrow as pa
import pytest

from tests.fuzz.seeds import SEEDS
from tests.transforms.writing import NOON, NOON_US, dead, look, parts, read, write_csv, write_jsonl
from transforms.common.errors import InputError, SpecError
from transforms.sources.formats import csv, json_lines

HEADER = ["id", "at", "after_x", "after_w"]


def csv_layout(path, **changes):
    return look(path, "csv", **({"numbers": "x", "others": "w", "before": None} | changes))


def json_layout(path, **changes):
    return look(path, "jsonl", **({"numbers": "x", "others": "w", "before": None} | changes))


# CSV


def test_a_file_with_other_marks_between_columns_is_told_of(tmp_path):
    (tmp_path / "a.csv").write_text("id;at;x\n1;2026-01-01T00:00:00Z;3\n")

    with pytest.raises(SpecError, match=r"it has 1 column; .* heading; write the file with commas between columns"):
        csv_layout(tmp_path / "a.csv")


def test_a_file_without_a_heading_shows_no_row_in_messages(tmp_path):
    (tmp_path / "a.csv").write_text("100040,16381,Surgery\n100041,16382,Medicine\n")

    with pytest.raises(SpecError, match=r"has no column 'at'; it has 3 columns; .* heading") as refused:
        csv_layout(tmp_path / "a.csv")

    assert "16381" not in str(refused.value)
    assert "Surgery" not in str(refused.value)


def test_a_heading_that_is_not_utf_8_is_told_of(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,at,Größe\n1,2026-01-01T00:00:00Z,3\n".encode("latin-1"))

    with pytest.raises(InputError, match=r"a\.csv: its heading is not text in UTF-8; save the file as UTF-8"):
        csv_layout(tmp_path / "a.csv")


def test_csv_cells_become_columns_and_empty_cells_null(tmp_path):
    path = write_csv(tmp_path / "a.csv", HEADER, [["007", NOON, "1.5", "p"], ["b", NOON, None, None]])

    assert read(csv_layout(path)) == [
        {"entry": "007", "time": NOON_US, "order.position": 1, "after": True, "after.w": "p", "after.x": 1.5},
        {"entry": "b", "time": NOON_US, "order.position": 2, "after": False, "after.w": None, "after.x": None},
    ]


def test_csv_quotes_hold_commas_quotes_newlines_and_empty_texts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'id,at,after_w\n"a,1",{NOON},"one\ntwo ""three"""\n"",{NOON},""\nc,{NOON},\n')

    rows = read(csv_layout(path, numbers=""))

    assert [row["entry"] for row in rows] == ["a,1", "", "c"]
    assert [row["after.w"] for row in rows] == ['one\ntwo "three"', "", None]
    assert [row["after"] for row in rows] == [True, True, False]


def test_csv_cells_that_the_source_lists_are_null_in_quotes_or_not(tmp_path):
    path = tmp_path / "a.csv"
    quoted = [
        f'"b","{NOON}","",""',
        f'"c","{NOON}","NULL",""',
        f'd,{NOON},,"x"',
        f'"e","{NOON}",\\N,"null"',
        '"","","",""',
    ]
    path.write_text("\n".join(["id,at,after_x,after_w", f'"a","{NOON}","1","p"', *quoted]) + "\n")

    listed = csv_layout(path, nulls=("", "NULL", "\\N"))
    usual = csv_layout(path)

    assert [(row["entry"], row["after"], row["after.x"], row["after.w"]) for row in read(listed)] == [
        ("a", True, 1.0, "p"),
        ("b", False, None, None),
        ("c", False, None, None),
        ("d", True, None, "x"),
        ("e", True, None, "null"),
    ]
    assert dead(listed) == [(6, "column 'id': entry is null"), (6, "column 'at': time is null")][:1]
    assert [row["entry"] for row in read(usual)] == ["a", "d"]


def test_csv_before_and_after_are_read_by_prefix(tmp_path):
    header = ["id", "at", "before_x", "after_x", "after_note", "lsn"]
    path = write_csv(tmp_path / "a.csv", header, [["a", NOON, None, None, "n", 5], ["a", NOON, 1, None, None, 10]])

    rows = read(look(path, "csv", numbers="x", order=("lsn",)))

    assert [(row["before"], row["after"], row["order.0"]) for row in rows] == [(False, True, 5), (True, False, 10)]


def test_csv_with_a_header_and_no_rows_is_valid(tmp_path):
    for text in ("id,at,after_x,after_w\n", "id,at,after_x,after_w"):
        (tmp_path / "a.csv").write_text(text)
        layout = csv_layout(tmp_path / "a.csv")

        assert read(layout) == []
        assert dead(layout) == []


def test_csv_rows_that_cannot_be_used_are_dead_letters_with_their_numbers(tmp_path):
    path = tmp_path / "a.csv"
    rows = [
        f"a,{NOON},1,p",
        f"b,{NOON},1",  # 2: too few
        f"c,{NOON},1,p,q",  # 3: too many
        f",{NOON},1,p",  # 4: no key
        "e,,1,p",  # 5: no time
        "f,2013-02-08 12:00:00,1,p",  # 6: no zone
        "g,noon,1,p",  # 7: no time at all
        f"h,{NOON},many,p",  # 8: no number
        f"i,{NOON},2,p",
        f"j,{NOON},1,\udcff",  # 10: not UTF-8
        f"k,{NOON}",  # 11: cut off
    ]
    path.write_bytes("\n".join([",".join(HEADER), *rows]).encode("utf-8", "surrogateescape"))
    layout = csv_layout(path)

    assert [(row["entry"], row["order.position"]) for row in read(layout)] == [("a", 1), ("i", 9)]
    found = dict(dead(layout))
    assert sorted(found) == [2, 3, 4, 5, 6, 7, 8, 10, 11]
    assert found[2] == found[3] == found[11] == "the row has not as many cells as the header"
    assert found[4] == "column 'id': entry is null"
    assert found[5] == "column 'at': time is null"
    assert "without a zone" in found[6]
    assert "not understood: ISO 8601" in found[7]
    assert found[8] == "column 'after_x': value not understood as double"
    assert found[10] == "column 'after_w': not text in UTF-8"


def test_csv_row_numbers_hold_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "_BLOCK", 128)
    wrong = set(random.Random(5).sample(range(1, 201), 60))
    lines = [f"e{row},{NOON},{row}" + ("" if row in wrong else ",w") for row in range(1, 201)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([",".join(HEADER), *lines]) + "\n")
    layout = csv_layout(path)

    rows = read(layout)

    assert all(row["entry"] == f"e{row['order.position']}" for row in rows)
    assert {row["order.position"] for row in rows} == set(range(1, 201)) - wrong
    assert {row for row, _ in dead(layout)} == wrong


@pytest.mark.parametrize("cell", ["\0", '"\0"', "p\0p", '"\0,\n"'])
def test_a_csv_cell_with_a_nul_is_dead_and_takes_no_row_with_it(tmp_path, monkeypatch, cell):
    """Arrow's parser misses commas, quotes and line ends near a NUL, from the second block on and with longer cells."""
    monkeypatch.setattr(csv, "_BLOCK", 2000)
    lines = [f"e{row},{NOON},1," + (cell if row in (50, 90) else "w" * 40) for row in range(1, 101)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([",".join(HEADER), *lines]) + "\n")
    layout = csv_layout(path)

    assert [row["entry"] for row in read(layout)] == [f"e{row}" for row in range(1, 101) if row not in (50, 90)]
    assert dead(layout) == [(row, "column 'after_w': not text in UTF-8") for row in (50, 90)]


@pytest.mark.parametrize("tail", ['"never closed', '"never closed\nf,1\ng,2\n'])
def test_a_csv_file_that_ends_within_quotes_is_dead_as_a_whole(tmp_path, tail):
    path = tmp_path / "a.csv"
    path.write_text(f"id,at,after_x,after_w\na,{NOON},1,p\nb,{NOON},1,{tail}")

    assert (None, "the file ends within quotes; it is truncated, or a quote is not closed") in dead(csv_layout(path))


def test_a_later_csv_file_without_a_needed_column_is_dead_as_a_whole(tmp_path):
    write_csv(tmp_path / "a.csv", HEADER, [["a", NOON, 1, "p"]])
    write_csv(tmp_path / "b.csv", HEADER[:-1], [["b", NOON, 1]])

    assert dead(csv_layout(tmp_path / "*.csv")) == [(None, "the file has no column 'after_w'")]


def test_columns_of_csv_files_may_stand_in_another_order(tmp_path):
    write_csv(tmp_path / "a.csv", HEADER, [["a", NOON, 1, "p"]])
    write_csv(tmp_path / "b.csv", HEADER[::-1], [["q", 2, NOON, "b"]])

    assert [(row["entry"], row["after.x"]) for row in read(csv_layout(tmp_path / "*.csv"))] == [("a", 1.0), ("b", 2.0)]


# Times in text


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2013-02-08T12:00:00Z", NOON_US),
        ("2013-02-08 07:00:00-05:00", NOON_US),
        ("2013-02-08T07:00:00-0500", NOON_US),
        ("2013-02-08T12:00:00.000001999+00:00", NOON_US + 1),
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("2013-02-08T07:00:00", NOON_US),
    ],
)
def test_times_in_text_are_understood_with_their_offset_or_in_the_named_zone(tmp_path, text, microseconds):
    path = write_csv(tmp_path / "a.csv", HEADER, [["a", text, 1, "p"], ["b", NOON, 1, "p"]])

    rows = read(csv_layout(path, timezone="America/New_York"))

    assert [row["time"] for row in rows] == [microseconds, NOON_US]


# JSON lines


def test_json_members_become_columns_and_absent_ones_null(tmp_path):
    lines = [
        {"id": "a", "at": NOON, "after_x": 1, "after_w": "p", "more": [1]},
        {"id": "b", "at": NOON, "after_x": None},
        {"id": "c", "at": NOON, "after_note": 5},
    ]

    assert read(json_layout(write_jsonl(tmp_path / "a.jsonl", lines))) == [
        {"entry": "a", "time": NOON_US, "order.position": 1, "after": True, "after.w": "p", "after.x": 1.0},
        {"entry": "b", "time": NOON_US, "order.position": 2, "after": False, "after.w": None, "after.x": None},
        {"entry": "c", "time": NOON_US, "order.position": 3, "after": True, "after.w": None, "after.x": None},
    ]


def test_json_states_of_members_with_several_types_still_exist(tmp_path):
    lines = [
        {"id": "a", "at": NOON, "after_x": 1, "after_w": "p"},
        {"id": "b", "at": NOON, "after_note": 5},
        {"id": "c", "at": NOON, "after_note": "text"},
        {"id": "d", "at": NOON, "after_note": None},
    ]

    rows = read(json_layout(write_jsonl(tmp_path / "a.jsonl", lines)))

    assert [row["after"] for row in rows] == [True, True, True, False]


NUMBERS = ["1", "1.50", "-0", "1e3", "0.10000000000000000555111", "1096373912123456789", "9" * 30, "true", "false"]


@pytest.mark.parametrize("side", [None, "after_", "after"])
def test_numbers_and_truth_values_of_json_are_the_texts_that_stand_there_beside_any_others(tmp_path, side):
    values = [*NUMBERS, '"1.50"', '"true"', '"a \\" b"', '" 1 : 2 , 3 "', "null"]
    states = {None: '"w": %s', "after_": '"after_w": %s', "after": '"after": {"w": %s, "note": [1, {"w": 2.50}]}'}[side]
    lines = [f'{{"id":{number} , "at": "{NOON}", {states % value}}}' for number, value in enumerate(values)]
    expected = [*NUMBERS, "1.50", "true", 'a " b', " 1 : 2 , 3 ", None]
    alone = [tmp_path / f"{number}.jsonl" for number in range(len(values))]
    for path, line in zip(alone, lines, strict=True):
        path.write_text(line)
    (tmp_path / "all.jsonl").write_text("\n".join(lines))

    layouts = [look(path, "jsonl", others="w", before=None, after=side) for path in [tmp_path / "all.jsonl", *alone]]

    assert [row["after.w"] for row in read(layouts[0])] == expected
    assert [row["after.w"] for layout in layouts[1:] for row in read(layout)] == expected
    assert [row["entry"] for row in read(layouts[0])] == [str(number) for number in range(len(values))]


NO_VALUES = """
    {1: 2} | {"id": tru} | {"id": 1.} | {"id": 01} | {"id": +1} | {"id": .5} | {"id": 1 2} | {"id": 1"x"} | {"id" 1}
    {"id": 1, 2 : 3} | {"id": "a} | {"id": "a\\"} | {"id": 0x1F} | {"id": 1e} | {"id": nul} | {"id": "a", true:1}
"""


@pytest.mark.parametrize("line", [line.strip() for line in NO_VALUES.replace("\n", "|").split("|") if line.strip()])
def test_a_word_that_is_no_value_makes_a_dead_letter_of_its_line_alone(tmp_path, line):
    good = f'{{"id": "a", "at": "{NOON}", "after_x": 1}}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n{line}\n{good}\n")
    layout = look(tmp_path / "a.jsonl", "jsonl", numbers="x", before=None)

    assert len(read(layout)) == 2
    assert dead(layout) == [(2, json_lines.NOT_JSON)]


@pytest.mark.parametrize("name", ["", "a\0b", "~/0", "it's", '"', "\\", "é" * 300, "after_", "x\u2028"])
@pytest.mark.parametrize("value", ["1", "{}"])
@pytest.mark.parametrize("after", [None, "after", "after_"])
def test_a_member_may_have_any_name(tmp_path, name, value, after):
    own, long = json.dumps(name), json.dumps(f"after_{name}")
    said = f'{own}: {value}, {long}: {value}, "after": {{{own}: {value}, "x": 1}}, "after_x": 1, "x": 1'
    (tmp_path / "a.jsonl").write_text(f'{{"id": "a", "at": "{NOON}", {said}}}\n{{"id": "b", "at": "{NOON}"}}\n')
    layout = look(tmp_path / "a.jsonl", "jsonl", numbers="x", before="before_", after=after)

    assert dead(layout) == []
    assert [(row["entry"], row["after"], row["after.x"]) for row in read(layout)] == [
        ("a", True, 1.0),
        ("b", False, None),
    ]


@pytest.mark.parametrize("odd", ['{"a": 1}', "[]", '"x", "after_note": 2', "5", '"\\u0000"', "null"])
@pytest.mark.parametrize("prefix", ["after_", "after"])
def test_the_image_of_a_state_is_of_all_its_members_and_depends_on_no_other_line(tmp_path, prefix, odd):
    def line(entry, note):
        states = {side: {"x": 1, "note": note} for side in ("before", "after")}
        if prefix == "after":
            return {"id": entry, "at": NOON, **states}
        members = {f"{side}_{name}": value for side, state in states.items() for name, value in state.items()}
        return {"id": entry, "at": NOON} | dict(sorted(members.items(), key=lambda item: item[0], reverse=entry == "c"))

    lines = [json.dumps(line(entry, note)) for entry, note in (("a", 1), ("b", "1"), ("c", 1), ("d", None))]
    strange = json.dumps(line("e", "odd")).replace('"odd"', odd)
    images = []
    for number, text in enumerate(["\n".join(lines), "\n".join([strange, *lines])]):
        (tmp_path / f"{number}.jsonl").write_text(f"{text}\n")
        sides = {"before": prefix.replace("after", "before"), "after": prefix}
        layout = look(tmp_path / f"{number}.jsonl", "jsonl", others="x", **sides)
        (batch,) = (part for part in parts(layout) if not isinstance(part, pa.Table))
        images.append(dict(zip(batch.table["entry"].to_pylist(), batch.table["image.after"].to_pylist(), strict=True)))
        assert batch.table["image.before"].equals(batch.table["image.after"])

    assert images[1] | images[0] == images[1]
    assert images[0]["a"] == images[0]["b"] == images[0]["c"] != images[0]["d"] != 0


def test_json_objects_are_states(tmp_path):
    lines = [
        {"id": 1, "at": NOON, "before": None, "after": {"x": 1, "w": "p"}},
        {"id": 1, "at": NOON, "before": {"x": 1, "w": "p"}, "after": {"x": None, "note": 3}},
        {"id": 1, "at": NOON, "before": {}, "after": {"x": None, "w": None, "note": None}},
        {"id": 1, "at": NOON, "before": {"note": {}}, "after": {"note": []}},
    ]

    layout = json_layout(write_jsonl(tmp_path / "a.jsonl", lines), before="before", after="after")

    assert [(row["before"], row["after"], row["after.x"]) for row in read(layout)] == [
        (False, True, 1.0),
        (True, True, None),
        (False, False, None),
        (True, True, None),
    ]


def test_json_lines_that_cannot_be_used_are_dead_letters_with_their_numbers(tmp_path):
    good = f'{{"id": "a", "at": "{NOON}", "after_x": 1, "after_w": "p"}}'
    lines = [
        good,
        "null",  # 2
        "",  # not a row, but a line
        "[1]",  # 4
        good.replace('"p"', '{"p": 5}'),  # 5: not a value
        good.replace("1,", '"many",'),  # 6: not a number
        good + good,  # 7
        good.replace('"a"', '"a", "id": "b"'),  # 8: a member twice
        good.replace('"p"', '"\udcff"'),  # 9: not UTF-8
        good,
        good.replace('"a"', "null"),  # 11: no key
        good.replace("T12:00:00Z", "T12:00:00"),  # 12: no zone
        f"  {good}",  # 13: not at the line's begin
        good.replace('"p"', "[" * 10**6 + "]" * 10**6),  # 14: would overflow a parser's stack
        good[:-20],  # 15: cut off
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    layout = json_layout(path)

    assert [row["order.position"] for row in read(layout)] == [1, 10]
    found = dict(dead(layout))
    assert sorted(found) == [2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15]
    assert {found[row] for row in (2, 4, 7, 9, 13, 14, 15)} == {json_lines.NOT_JSON}
    assert found[5] == json_lines.NOT_OF_FORM
    assert found[6] == "column 'after_x': value not understood as double"
    assert found[11] == "column 'id': entry is null"
    assert "without a zone" in found[12]


def test_json_row_numbers_hold_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_BLOCK", 200)
    lines = [{"id": f"e{row}", "at": NOON, "after_x": row, "after_w": "p" * (row % 7)} for row in range(1, 301)]
    path = write_jsonl(tmp_path / "a.jsonl", lines)
    path.write_text(path.read_text().replace('{"id": "e150"', '{"id": e150'))
    layout = json_layout(path)

    rows = read(layout)

    assert all(row["entry"] == f"e{row['order.position']}" for row in rows)
    assert len(rows) == 299
    assert [row for row, _ in dead(layout)] == [150]


# Compressed files


def test_gzip_is_read_by_its_extension(tmp_path):
    lines = [{"id": "a", "at": NOON, "after_x": 1, "after_w": "p"}]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(f"id,at,after_x,after_w\na,{NOON},1,p\n".encode()))

    assert read(json_layout(write_jsonl(tmp_path / "a.jsonl.gz", lines))) == read(csv_layout(tmp_path / "a.csv.gz"))


@pytest.mark.parametrize(
    ("pack", "ending", "told"),
    [
        (gzip.compress, "", "compressed with gzip, but its name does not say so; add .gz to it"),
        (bz2.compress, "", "compressed with bz2, but its name does not say so; add .bz2 to it"),
        (
            lambda text: pa.compress(text, "zstd", asbytes=True),
            "",
            "compressed with zstd, but its name does not say so;",
        ),
        (lzma.compress, "", "compressed with xz; unpack it, or compress it with gzip, bz2 or zstd"),
        (bytes, ".gz", "name ends with .gz, but it is not compressed with gzip; rename it"),
        (bz2.compress, ".gz", "name ends with .gz, but it is not compressed with gzip; rename it"),
    ],
)
def test_a_file_that_is_compressed_otherwise_than_its_name_says_is_told_so(tmp_path, pack, ending, told):
    own = {"time": None, "before": None, "after": None, "numbers": "", "others": "ward"}
    for format_, extension, layout in (
        ("csv", "csv", partial(look, format_="csv", order=("seq",))),
        ("objects", "jsonl", partial(look, format_="jsonl", before="before", after="after")),
        ("debezium", "json", partial(look, format_="debezium", **own)),
        ("datastream", "ndjson", partial(look, format_="datastream", **own)),
        ("avro", "avro", partial(look, format_="datastream", **own)),
    ):
        if not (format_ == "avro" and ending):
            folder = tmp_path / format_
            folder.mkdir()
            (folder / f"b.{extension}{ending}").write_bytes(pack(SEEDS[format_][0]))
            with pytest.raises(InputError) as caught:
                layout(folder / "*")
            assert told in str(caught.value)

            (folder / f"a.{extension}").write_bytes(SEEDS[format_][0])
            letters = dead(layout(folder / "*"))
            assert [reason for row, reason in letters if row is None] == [str(caught.value).split(": ", 1)[1]]


@pytest.mark.parametrize(("name", "inspect"), [("a.csv.gz", csv_layout), ("a.jsonl.gz", json_layout)])
def test_a_truncated_gzip_file_is_dead_as_a_whole(tmp_path, name, inspect):
    word = random.Random(3)
    path = tmp_path / name
    if name.startswith("a.csv"):
        text = "\n".join([",".join(HEADER), *(f"{word.random()},{NOON},1,p" for _ in range(1000))])
    else:
        line = f'"at": "{NOON}", "after_x": 1, "after_w": "p"}}'
        text = "\n".join(f'{{"id": "{word.random()}", {line}' for _ in range(1000))
    path.write_bytes(gzip.compress(text.encode()))
    layout = inspect(path)
    path.write_bytes(path.read_bytes()[:-500])

    assert None in dict(dead(layout))
