"""CSV changelogs: cells, nulls, quotes, and unusable rows and files."""

import random

import pytest

from tests.transforms.writing import NOON, NOON_US, dead, look, read, write_csv
from transforms.common.errors import InputError, SpecError
from transforms.sources.formats import csv

HEADER = ["id", "at", "after_x", "after_w"]


def csv_layout(path, **changes):
    return look(path, "csv", **({"numbers": "x", "others": "w", "before": None} | changes))


def test_a_file_with_other_separators_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("id;at;x\n1;2026-01-01T00:00:00Z;3\n")

    commas = r"write the file with commas between columns \(docs/how-to/changelogs.md, Files of spreadsheets\)"
    with pytest.raises(SpecError, match=rf"it has 1 column; .* heading; {commas}"):
        csv_layout(tmp_path / "a.csv")


def test_a_column_in_capital_letters_is_similar(tmp_path):
    (tmp_path / "a.csv").write_text("ID,AT,AFTER_X,AFTER_W\n")

    with pytest.raises(SpecError, match="has no column 'at'; the name of column 2 is similar; compare the spelling"):
        csv_layout(tmp_path / "a.csv")


def test_messages_about_a_file_without_a_header_show_no_row(tmp_path):
    (tmp_path / "a.csv").write_text("100040,16381,Surgery\n100041,16382,Medicine\n")

    with pytest.raises(SpecError, match=r"has no column 'at'; it has 3 columns; .* heading") as refused:
        csv_layout(tmp_path / "a.csv")

    assert "16381" not in str(refused.value)
    assert "Surgery" not in str(refused.value)


def test_a_header_that_is_not_utf_8_is_reported(tmp_path):
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
    assert found[2] == found[3] == found[11] == "the row has a different number of cells than the header"
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

    assert (None, "the file ends within quotes; it is truncated, or a quote is unclosed") in dead(csv_layout(path))


def test_a_later_csv_file_without_a_needed_column_is_dead_as_a_whole(tmp_path):
    write_csv(tmp_path / "a.csv", HEADER, [["a", NOON, 1, "p"]])
    write_csv(tmp_path / "b.csv", HEADER[:-1], [["b", NOON, 1]])

    assert dead(csv_layout(tmp_path / "*.csv")) == [(None, "the file has no column 'after_w'")]


def test_columns_of_csv_files_may_stand_in_another_order(tmp_path):
    write_csv(tmp_path / "a.csv", HEADER, [["a", NOON, 1, "p"]])
    write_csv(tmp_path / "b.csv", HEADER[::-1], [["q", 2, NOON, "b"]])

    assert [(row["entry"], row["after.x"]) for row in read(csv_layout(tmp_path / "*.csv"))] == [("a", 1.0), ("b", 2.0)]


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
