"""Rows that a column marks as deletions have no state, for any content of their other columns."""

import pyarrow as pa
import pytest

from tests.transforms.writing import NOON, NOON_US, UTC, dead, look, read, write_csv, write_jsonl, write_parquet
from transforms.common.errors import SpecError
from transforms.sources.inspection import unread_marks

MARKED = {"before": None, "after": None, "numbers": "x", "deleted": ("op", ("D", "true"))}
ROWS = [("a", 1, "I"), ("a", 7, "D"), ("b", 2, None), ("c", 3, "d")]


def written(folder, format_):
    path = folder / f"a.{format_}"
    if format_ == "csv":
        return write_csv(path, ["id", "at", "x", "op"], [[key, NOON, x, op] for key, x, op in ROWS])
    if format_ == "jsonl":
        return write_jsonl(path, [{"id": key, "at": NOON, "x": x, "op": op} for key, x, op in ROWS])
    ids, values, marks = zip(*ROWS, strict=True)
    return write_parquet(path, {"id": ids, "at": pa.array([NOON_US] * 4, UTC), "x": values, "op": marks})


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_a_marked_row_has_no_state_and_any_other_row_has_one(tmp_path, format_):
    layout = look(written(tmp_path, format_), format_, **MARKED)

    assert [(row["entry"], row["after"], row["after.x"]) for row in read(layout)] == [
        ("a", True, 1),
        ("a", False, None),
        ("b", True, 2),
        ("c", True, 3),
    ]


def test_truth_values_mark_as_their_text(tmp_path):
    at = pa.array([NOON_US] * 3, UTC)
    path = write_parquet(tmp_path / "a.parquet", {"id": ["a"] * 3, "at": at, "x": [1] * 3, "op": [True, False, None]})

    assert [row["after"] for row in read(look(path, **MARKED))] == [False, True, True]


def test_a_marked_row_may_hold_anything_except_in_its_key_time_and_owner(tmp_path):
    rows = [["a", NOON, "m", "no number", "D"], ["", NOON, "m", 1, "D"], ["a", NOON, None, 1, "D"]]
    path = write_csv(tmp_path / "a.csv", ["id", "at", "member", "x", "op"], [*rows, ["a", NOON, "m", "no number", "I"]])
    layout = look(path, "csv", **MARKED, owner="member")

    assert [(row["owner"], row["after"]) for row in read(layout)] == [("m", False)]
    assert [row for row, _ in dead(layout)] == [2, 3, 4]


def test_the_owner_in_a_marked_state_is_kept(tmp_path):
    lines = [{"id": "a", "at": NOON, "op": "D", "after": {"member": "m", "x": 1}}]
    forms = (("after", "struct"), ("owner", "states"))
    changes = MARKED | {"after": "after", "forms": forms, "owner": "member"}

    (row,) = read(look(write_jsonl(tmp_path / "a.jsonl", lines), "jsonl", **changes))

    assert (row["after"], row["after.member"], row["after.x"]) == (False, "m", None)


@pytest.mark.parametrize(
    ("column", "message"),
    [("gone", "has no column 'gone'"), ("at", "text, whole numbers or truth values are expected")],
)
def test_a_column_that_cannot_mark_deletions_is_refused(tmp_path, column, message):
    with pytest.raises(SpecError, match=f"changelog.deleted: .*{message}"):
        look(written(tmp_path, "parquet"), **MARKED | {"deleted": (column, ("D",))})


def test_an_unread_column_that_seems_to_mark_deletions_is_reported(tmp_path):
    path = written(tmp_path, "csv")
    plain = MARKED | {"deleted": None}

    assert unread_marks(look(path, "csv", **plain)) == ("op",)
    assert unread_marks(look(path, "csv", **plain, others="op")) == ()
    assert unread_marks(look(path, "csv", **MARKED)) == ()
