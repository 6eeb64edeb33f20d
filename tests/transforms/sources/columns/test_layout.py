import gzip
import pickle
from dataclasses import replace
from datetime import UTC as UTC_ZONE
from datetime import datetime

import pyarrow as pa
import pytest

from tests.transforms.writing import NOON, UTC, look, read, write_csv, write_jsonl, write_parquet
from transforms.common.errors import InputError, SpecError

AT = pa.array([datetime(2013, 2, 8, 12, tzinfo=UTC_ZONE)], UTC)
COLUMNS = {
    "id": ["a"],
    "s": [{"id": 1}],
    "at": AT,
    "before_x": [1],
    "after_x": [2],
    "before_ward": ["p"],
    "after_ward": ["q"],
}


def test_types_of_a_parquet_file_are_taken_from_its_schema(tmp_path):
    write_parquet(tmp_path / "a.parquet", COLUMNS)

    layout = look(tmp_path / "*.parquet", numbers="x", others="ward")

    assert layout.states == (("ward", "string"), ("x", "int64"))
    assert layout.entry == "string"
    assert pickle.loads(pickle.dumps(layout)) == layout  # noqa: S301


def test_files_are_sorted_and_have_their_sizes(tmp_path):
    for name in ("b", "a"):
        write_parquet(tmp_path / f"{name}.parquet", COLUMNS)

    layout = look(tmp_path / "*.parquet")

    assert [file.path for file in layout.files] == [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    assert all(file.size == (tmp_path / "a.parquet").stat().st_size for file in layout.files)


def test_a_struct_column_is_preferred_to_a_prefix(tmp_path):
    struct = pa.array([{"x": 1}], pa.struct([("x", pa.int32())]))
    write_parquet(tmp_path / "a.parquet", {"id": [7], "at": AT, "before": struct, "after": struct})

    layout = look(tmp_path / "a.parquet", numbers="x", before="before", after="after")

    assert [side.struct for side in layout.sides] == [True, True]
    assert layout.entry == "int64"


@pytest.mark.parametrize("value", ["4", "04", "x", "true", None])
def test_csv_columns_are_text_except_measured_ones(tmp_path, value):
    """If types followed the values, one row would change how all others are read."""
    header = ["id", "at", "seq", "after_x", "after_n"]
    write_csv(tmp_path / "a.csv", header, [["1", NOON, "7", "3", value], ["2", NOON, value or "8", "3", "4"]])

    layout = look(tmp_path / "a.csv", "csv", numbers="x", others="n", before=None, order=("seq",))

    assert dict(layout.states) == {"x": "float64", "n": "string"}
    assert (layout.entry, layout.order) == ("string", ("int64",))


@pytest.mark.parametrize("value", [4, 1.5, "x", True, None, 2**70])
def test_json_columns_are_text_except_measured_ones(tmp_path, value):
    line = {"id": value, "at": NOON, "seq": 7, "after": {"x": 3, "n": value}}
    write_jsonl(tmp_path / "a.jsonl", [line, {"id": 5, "at": NOON, "seq": value, "after": {"x": value}}])

    layout = look(
        tmp_path / "a.jsonl", "jsonl", numbers="x", others="n", before="before", after="after", order=("seq",)
    )

    assert dict(layout.states) == {"x": "float64", "n": "string"}
    assert (layout.entry, layout.order) == ("string", ("int64",))


@pytest.mark.parametrize("before", [None, {"x": 1}, {}])
def test_a_name_in_json_lines_is_an_object_if_it_ends_with_a_letter_or_digit_else_a_prefix(tmp_path, before):
    """The first lines do not decide: in an initial load they have no state before."""
    line = {"id": 5, "at": NOON, "before": before, "after": {"x": 1}, "old_x": None, "new_x": 1}
    path = write_jsonl(tmp_path / "a.jsonl", [line])

    def structs(**changes):
        return [side.struct for side in look(path, "jsonl", **changes).sides]

    assert structs(before="before", after="after") == [True, True]
    assert structs(before="old_", after="new_") == [False, False]
    assert structs(before="before", after="new", forms=(("after", "prefix"),)) == [True, False]


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        (
            {"after_x": 1},
            {"after": "after"},
            r"no member 'after', but some that begin with it; write after: \{prefix: after\}",
        ),
        ({"new_": {"x": 1}}, {"after": "new_"}, r"an object at 'new_'; write after: \{struct: new_\}"),
        ({"after": "x"}, {"after": "after"}, "no object at 'after'"),
        ({"after": {"x": 1}, "p": "a"}, {"after": "after", "owner": "p"}, r"outside .*changelog\.owner: mutation"),
    ],
)
def test_states_that_the_first_lines_lack_are_an_error_with_a_suggestion(tmp_path, line, changes, message):
    path = write_jsonl(tmp_path / "a.jsonl", [{"id": 5, "at": NOON} | line])

    with pytest.raises(SpecError, match=message):
        look(path, "jsonl", before=None, **changes)


def test_an_empty_first_file_changes_nothing(tmp_path):
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b""))
    asked = {"numbers": "x", "others": "w p", "before": "before", "after": "after", "order": ("seq",), "owner": "p"}

    alone = look(tmp_path / "*", "jsonl", **asked)
    line = {"id": 1, "at": NOON, "seq": 1, "after": {"x": 1, "w": 2, "p": 3}}
    write_jsonl(tmp_path / "c.jsonl", [line])
    together = look(tmp_path / "*", "jsonl", **asked)

    assert replace(alone, files=together.files) == together
    assert [row["after.w"] for row in read(together)] == ["2"]


def test_a_declared_type_is_taken_as_it_is(tmp_path):
    write_csv(tmp_path / "a.csv", ["id", "at", "after_zip"], [["1", NOON, "0712"]])

    layout = look(tmp_path / "a.csv", "csv", others="zip", before=None, types=(("zip", "string"),))

    assert layout.states == (("zip", "string"),)


def test_columns_with_ranges_are_numbers_or_times_in_text_too_and_other_rows_are_dead_letters(tmp_path):
    rows = [
        ["1", NOON, "0.3", "2013-02-08"],
        ["2", NOON, "some", NOON],
        ["3", NOON, "", "soon"],
        ["4", NOON, "1e3", ""],
    ]
    write_csv(tmp_path / "a.csv", ["id", "at", "after_x", "after_due"], rows)

    layout = look(tmp_path / "a.csv", "csv", numbers="x", times="due", others="x due", before=None)

    assert layout.states == (("due", "timestamp"), ("x", "float64"))
    assert [(row["entry"], row["after.x"]) for row in read(layout)] == [("1", 0.3), ("4", 1000.0)]


def test_the_owner_is_a_column_of_the_mutation_if_there_is_one(tmp_path):
    write_parquet(tmp_path / "a.parquet", {**COLUMNS, "person": [3]})

    assert look(tmp_path / "a.parquet", owner="person", others="person").owner == "int64"
    assert look(tmp_path / "a.parquet", owner="person", others="person").states == ()
    of_state = look(tmp_path / "a.parquet", owner="ward", others="ward")
    assert (of_state.owner, of_state.states) == (None, (("ward", "string"),))


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"numbers": "xx"}, r"a\.parquet has no column 'before_xx'; did you mean 'before_x'"),
        ({"others": "wardd"}, "'before_wardd'; did you mean 'before_ward'"),
        ({"entry": "idd"}, r"changelog\.entry: .*'idd'; did you mean 'id'"),
        ({"time": "att"}, r"changelog\.time: .*'att'; did you mean 'at'"),
        ({"order": ("lsn",)}, r"changelog\.order: .*'lsn'"),
        ({"entry": "after.id"}, r"no column 'after\.id'; did you mean 'after_x'"),
        ({"owner": "person"}, "'before_person'"),
        ({"numbers": "ward"}, "measured or has ranges but is not a number"),
        ({"numbers": "x", "types": (("x", "string"),)}, "measured or has ranges but is not a number"),
        ({"times": "ward"}, "'before_ward' .* has ranges of times but is not a time"),
        ({"times": "x"}, "'before_x' .* has ranges of times but is not a time"),
    ],
)
def test_a_column_that_is_missing_or_cannot_be_measured_is_named(tmp_path, needs, message):
    write_parquet(tmp_path / "a.parquet", COLUMNS)

    with pytest.raises(SpecError, match=message):
        look(tmp_path / "a.parquet", **needs)


@pytest.mark.parametrize("keys", [[[1]], [True], pa.array([b"a"]), AT])
def test_a_key_must_be_a_whole_number_or_a_string(tmp_path, keys):
    write_parquet(tmp_path / "a.parquet", {**COLUMNS, "id": keys})

    with pytest.raises(SpecError, match=r"changelog\.entry: column 'id' of .* whole numbers or strings"):
        look(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1_360_324_800], "int64; write timestamps"),
        ([NOON], "string; write timestamps"),
        (AT.cast(pa.timestamp("us")), r"no time zone; name it as changelog\.timezone"),
    ],
)
def test_a_parquet_time_must_be_a_timestamp_with_a_zone(tmp_path, times, message):
    write_parquet(tmp_path / "a.parquet", {**COLUMNS, "at": times})

    with pytest.raises(SpecError, match=message):
        look(tmp_path / "a.parquet")


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("time", "message"),
    [(1_360_324_800, "not understood"), ("2013-02-08 12:00:00", "without a zone"), ("noon", "not understood")],
)
def test_a_time_in_text_must_be_iso_8601_with_an_offset(tmp_path, format_, time, message):
    path = tmp_path / f"a.{format_}"
    if format_ == "csv":
        write_csv(path, ["id", "at", "after_x"], [["a", time, 1]])
    else:
        write_jsonl(path, [{"id": "a", "at": time, "after_x": 1}])

    with pytest.raises(SpecError, match=message):
        look(path, format_, before=None)


def test_a_naive_time_is_allowed_with_a_time_zone(tmp_path):
    write_csv(tmp_path / "a.csv", ["id", "at", "after_x"], [["a", "2013-02-08 12:00:00", 1]])

    assert look(tmp_path / "a.csv", "csv", before=None, timezone="America/New_York").entry == "string"


def test_a_nested_column_cannot_be_part_of_a_state(tmp_path):
    write_parquet(tmp_path / "a.parquet", {**COLUMNS, "before_tags": [["t"]], "after_tags": [["t"]]})

    with pytest.raises(SpecError, match=r"'before_tags'.*of no one type"):
        look(tmp_path / "a.parquet", others="tags")


def test_a_duplicate_csv_column_is_refused(tmp_path):
    write_csv(tmp_path / "a.csv", ["id", "at", "after_x", "after_x"], [["a", NOON, 1, 2]])

    with pytest.raises(SpecError, match="'after_x' twice"):
        look(tmp_path / "a.csv", "csv", before=None, numbers="x")


def test_a_glob_without_files_is_an_error_of_the_spec(tmp_path):
    with pytest.raises(SpecError, match=r"no file matches .*none-\*"):
        look(tmp_path / "none-*.parquet")


def test_an_empty_file_is_named_at_any_place(tmp_path):
    write_parquet(tmp_path / "a.parquet", COLUMNS)
    (tmp_path / "b.parquet").touch()

    with pytest.raises(InputError, match=r"b\.parquet: the file is empty"):
        look(tmp_path / "*.parquet")


@pytest.mark.parametrize("format_", ["parquet", "jsonl", "csv"])
def test_a_first_file_of_another_format_is_an_input_error(tmp_path, format_):
    path = tmp_path / f"a.{format_}"
    path.write_bytes(b"\n" if format_ == "csv" else b"PAR1 is not enough")

    with pytest.raises(InputError, match=rf"a\.{format_}: cannot be read as"):
        look(path, format_)


def test_a_truncated_first_parquet_file_is_an_input_error(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", COLUMNS)
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(InputError, match="truncated"):
        look(path)
