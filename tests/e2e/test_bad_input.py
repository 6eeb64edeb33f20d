"""Bad input through the command line: one clear line, the right exit code, nothing public, no data in the message."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privacy.counted import counted
from tests.e2e.specs import (
    AGE,
    KEY,
    SCHEMA,
    SECRETS,
    CommandLine,
    Row,
    Said,
    changelog,
    files_under,
    write,
    write_spec,
)

Changes = tuple[tuple[str, str], ...]
Maker = Callable[[Path], None]
"""Writes one changelog file."""

ROWS = changelog()
SPEC_OF: dict[str, Changes] = {
    "parquet": (),
    "csv": (("format: parquet", "format: csv\n  types: {age: float64}"), ("*.parquet", "*.csv*")),
    "jsonl": (("format: parquet", "format: jsonl\n  types: {age: float64}"), ("*.parquet", "*.jsonl*")),
}
FORMATS = tuple(SPEC_OF)
TEXTS = ("csv", "jsonl")
SUM: Changes = (("measure: count", "measure: {sum: age, min: 0, max: 99}"), ('    where: "age >= 0"\n', ""))

UNREAD_FILE = "nothing new was published: a file that cannot be read is never skipped"


def good(path: Path) -> None:
    write(path, ROWS)


def damaged(damage: Callable[[bytes], bytes], rows: list[Row] = ROWS) -> Maker:
    """A file whose bytes are changed after it was written."""

    def make(path: Path) -> None:
        path.write_bytes(damage(write(path, rows).read_bytes()))

    return make


def cut(content: bytes) -> bytes:
    """Return all but the last 40 bytes: the cut is within the last row, or within the footer."""
    return content[:-40]


def retyped(column: str, type_: pa.DataType) -> Maker:
    """A Parquet file in which one column has another type."""

    def make(path: Path) -> None:
        table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
        place = table.schema.names.index(column)
        pq.write_table(table.set_column(place, column, table[column].cast(type_)), path)

    return make


def replaced(old: str, new: str, count: int = -1) -> Maker:
    """A text file with some of its text replaced."""
    return damaged(lambda content: content.replace(old.encode(), new.encode(), count))


def null_key(path: Path) -> None:
    """A file whose seventh row has no key."""
    write(path, with_null_key())


def with_null_key() -> list[Row]:
    return [{**row, "stay": None} if place == 6 else row for place, row in enumerate(ROWS)]


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def refused(
    slackwater: CommandLine, changes: Changes = (), files: Mapping[str, Maker] | None = None, *flags: str
) -> Said:
    """Run the spec on the files and hold what every refusal must keep to."""
    (slackwater.folder / "data").mkdir()
    for name, make in ({"a.parquet": good} if files is None else files).items():
        make(slackwater.folder / "data" / name)
    write_spec(slackwater.folder, *changes)

    said = slackwater("run", "spec.yaml", *flags)

    assert not (slackwater.folder / "public").exists()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert [secret for secret in SECRETS if secret in said.err] == []
    assert [line for line in said.lines if not line.startswith("slackwater: ")] == []
    assert not [path for path in files_under(slackwater.folder) if path.name == "failure.txt"]
    return said


SPECS: list[tuple[str, str, str]] = [
    # text of the spec, its replacement, the line of the error without the file
    ("publish:", "publsh:", "21: queries[0].publsh: unknown key; did you mean 'publish'?"),
    ("before: before_", "befor: before_", "7: changelog.befor: unknown key; did you mean 'before'?"),
    ("epsilon: 1.0", "epsilon: 0", "10: privacy.epsilon: expected a number above 0, not 0"),
    ("epsilon: 1.0", "epsilon: -1", "10: privacy.epsilon: expected a number above 0, not -1"),
    ("epsilon: 1.0", "epsilon: 1.0\n  mechanism: gaussian", "9: privacy.delta: missing; Gaussian noise needs one"),
    ("00Z\n  every", "00\n  every", "13: schedule.start: the time has no zone; write 2026-01-01T00:00:00Z for UTC"),
    ("every: 1d", "every: 2d", "15: schedule.until: windows of 2d from start do not end there; use 2026-01-05"),
    ("[a, b, other]", "[a, b, other, a]", "20: queries[0].by.ward[3]: 'a' is listed already at [0]"),
    ("age >= 0", "age >=", "19: queries[0].where: 'age >=' does not parse"),
    ("age >= 0", "age in (from 'data/a.parquet')", "19: queries[0].where: \"age in (from 'data/a.parquet')\" holds a"),
    (
        "age >= 0",
        "age in (select age from read_parquet('data/a.parquet'))",
        "19: queries[0].where: \"age in (select age from read_parquet('data/a.parquet'))\" holds a",
    ),
    ("age >= 0", "read_text('/etc/passwd') = ''", "19: queries[0].where: \"read_text('/etc/passwd') = ''\" "),
    ("release: wards", "release: [", "1: release: the bracket that opens here is not closed"),
]


@pytest.mark.parametrize(("old", "new", "line"), SPECS, ids=[new for _, new, _ in SPECS])
def test_a_wrong_spec_is_one_line_with_file_line_and_key(
    slackwater: CommandLine, old: str, new: str, line: str
) -> None:
    said = refused(slackwater, ((old, new),))

    assert said.code == 2
    assert len(said.lines) == 1
    assert said.err.startswith(f"slackwater: spec.yaml:{line}")
    assert not (slackwater.folder / "private").exists()


def test_two_mistakes_are_two_lines_in_the_order_of_the_file(slackwater: CommandLine) -> None:
    said = refused(slackwater, (("[a, b, other]", "[a, a]"), ("epsilon: 1.0", "epsilon: 0")))

    assert said.code == 2
    assert [line.split(" ")[1] for line in said.lines] == ["spec.yaml:10:", "spec.yaml:20:"]


def test_a_missing_spec_is_named(slackwater: CommandLine) -> None:
    said = slackwater("run", "nowhere.yaml")

    assert said.code == 2
    assert len(said.lines) == 1
    assert "nowhere.yaml" in said.err


COLUMNS: list[tuple[str, str, str]] = [
    ("entry: stay", "entry: sty", "5: changelog.entry: data/a.parquet has no column 'sty'; did you mean 'stay'?"),
    ("time: at", "time: att", "6: changelog.time: data/a.parquet has no column 'att'; did you mean 'at'?"),
    ("time: at", "time: at\n  order: lsn", "7: changelog.order: data/a.parquet has no column 'lsn'; it has "),
    ("privacy:\n", "privacy:\n  unit: person\n", "10: privacy.unit: data/a.parquet has no column 'before_person'"),
    (
        "age >= 0",
        "aeg >= 0",
        "19: queries[0].where of 'beds': data/a.parquet has no column 'before_aeg'; did you mean 'before_age'? if it "
        "is a text, put it in single quotes: 'aeg'",
    ),
    ("{ward:", "{wrad:", "20: queries[0].by.wrad of 'beds': data/a.parquet has no column 'before_wrad'; did you mean"),
    ("count\n", "{sum: agge, min: 0, max: 9}\n", "18: queries[0].measure of 'beds': data/a.parquet has no column 'bef"),
    (
        "after: after_",
        "after: aftr_",
        "19: queries[0].where of 'beds': data/a.parquet has no column 'aftr_age'; did you",
    ),
    ("count\n", "{sum: ward, min: 0, max: 9}\n", "18: queries[0].measure of 'beds': 'before_ward' (string) and 'after"),
    ("age >= 0", "ward > 3", "19: queries[0].where of 'beds': 'ward > 3' cannot be evaluated: "),
    (
        "age >= 0",
        "age + 1",
        "19: queries[0].where of 'beds': 'age + 1' is not true or false; compare it with something",
    ),
    ("time: at", "time: after_age", "6: changelog.time: column 'after_age' of data/a.parquet is int64; write timesta"),
    ("*.parquet", "*.parket", "4: changelog.path: no file matches 'data/*.parket'; check the path"),
]


@pytest.mark.parametrize(("old", "new", "line"), COLUMNS, ids=[new.strip() for _, new, _ in COLUMNS])
def test_a_missing_or_wrongly_typed_column_is_named_with_its_line(
    slackwater: CommandLine, old: str, new: str, line: str
) -> None:
    said = refused(slackwater, ((old, new),))

    assert said.code == 2
    asked = [told for told in said.lines if told.removeprefix("slackwater: ").startswith(f"spec.yaml:{line}")]
    assert len(asked) == 1, said.err
    assert len(said.lines) == (2 if "sum: ward" in new else 1)  # one for each place that asks for the column


FLAGS = [
    (["--direct_running_mode=multi_threading"], "--direct_running_mode=multi_threading silently loses rows"),
    (["--direct_running_mode", "multi_threading"], "--direct_running_mode=multi_threading silently loses rows"),
    (["--untill=2026-01-03T00:00:00Z"], "--untill: "),
    (["--runner=NoRunner"], "--runner: Unexpected pipeline runner: NoRunner. Valid values are "),
    (["--direct_num_workers=two"], "pipeline options: argument --direct_num_workers: invalid int value: 'two'"),
]


@pytest.mark.parametrize(("flags", "line"), FLAGS, ids=[" ".join(flags) for flags, _ in FLAGS])
def test_an_invalid_flag_is_refused_in_one_line(slackwater: CommandLine, flags: list[str], line: str) -> None:
    said = refused(slackwater, (), None, *flags)

    assert said.code == 2
    assert len(said.lines) == 1
    assert said.err.startswith(f"slackwater: {line}")


FIRST_FILES: list[tuple[str, str, Maker, int, str]] = [
    # format, name, file, exit code, the only line
    *((f, f"a.{f}", damaged(lambda _: b""), 3, f"data/a.{f}: the file is empty (0 bytes)") for f in ("parquet", "csv")),
    ("parquet", "a.parquet", damaged(cut), 3, "data/a.parquet: cannot be read as a Parquet file"),
    ("csv", "a.csv", damaged(lambda _: b"\xff" + KEY.encode()), 3, "data/a.csv: its heading is not text in UTF-8"),
    ("jsonl", "a.jsonl", damaged(lambda _: KEY.encode()), 3, "data/a.jsonl: cannot be read as JSON lines"),
    ("jsonl", "a.jsonl.gz", damaged(cut), 3, "data/a.jsonl.gz: cannot be read as JSON lines"),
    ("csv", "a.csv.gz", damaged(lambda _: gzip.compress(b"")), 3, "data/a.csv.gz: cannot be read as a CSV file"),
    (
        "parquet",
        "a.parquet",
        retyped("at", pa.timestamp("us")),
        2,
        "spec.yaml:6: changelog.time: column 'at' of data/a.parquet has",
    ),
    *(
        (
            f,
            f"a.{f}",
            replaced("00Z", "00"),
            2,
            f"spec.yaml:7: changelog.time: column 'at' of data/a.{f}: time without",  # types take a line
        )
        for f in TEXTS
    ),
    (
        "parquet",
        "a.parquet",
        retyped("at", pa.string()),
        2,
        "spec.yaml:6: changelog.time: column 'at' of data/a.parquet is string",
    ),
    (
        "parquet",
        "a.parquet",
        retyped("before_age", pa.string()),
        2,
        "spec.yaml:19: queries[0].where of 'beds': changelog.types: 'before_age' (string) and 'aft",
    ),
]


@pytest.mark.parametrize(
    ("format_", "name", "make", "code", "line"), FIRST_FILES, ids=[f"{f[1]}: {f[4][-25:]}" for f in FIRST_FILES]
)
def test_an_unreadable_first_file_is_reported_in_one_line(
    slackwater: CommandLine, format_: str, name: str, make: Maker, code: int, line: str
) -> None:
    said = refused(slackwater, SPEC_OF[format_], {name: make})

    assert said.code == code
    assert len(said.lines) == 1
    assert said.err.startswith(f"slackwater: {line}")


LATER_FILES: list[tuple[str, str, Maker, str]] = [
    # format, name of the second file, the file, its line
    ("parquet", "b.parquet", damaged(cut), "the file cannot be read (ArrowInvalid); it may be truncated or gone"),
    ("parquet", "b.parquet", damaged(lambda c: c[:60] + b"\xff" * 400 + c[460:]), "the file cannot be read ("),
    ("parquet", "b.parquet", retyped("at", pa.timestamp("us")), "column 'at' has no time zone; name it as changelog"),
    ("parquet", "b.parquet", retyped("after_age", pa.string()), "column 'after_age' is string, but the first file has"),
    ("csv", "b.csv.gz", damaged(cut), "the file cannot be read to its end"),
    ("csv", "b.csv", damaged(lambda c: c + b'"' + KEY.encode()), "the file ends within quotes; it is truncated, or"),
    ("csv", "b.csv", damaged(lambda _: b"\xff" + KEY.encode()), "the file cannot be read to its end (UnicodeDecodeErr"),
    ("csv", "b.csv", replaced("after_ward", "afterward"), "the file has no column 'after_ward'"),
    ("jsonl", "b.jsonl.gz", damaged(cut), "the file cannot be read to its end"),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("format_", "name", "make", "line"), LATER_FILES, ids=[f"{f[1]}: {f[3]}" for f in LATER_FILES])
def test_an_unreadable_later_file_ends_the_run_for_any_allowed_share_of_bad_rows(
    slackwater: CommandLine, format_: str, name: str, make: Maker, line: str
) -> None:
    tolerant = (("  before:", "  bad_rows: 0.9\n  before:"),)

    said = refused(slackwater, (*SPEC_OF[format_], *tolerant), {f"a.{format_}": good, name: make})

    assert said.code == 3
    assert said.err.startswith(f"slackwater: data/{name}: {line}")
    assert said.lines[1:] == [f"slackwater: {UNREAD_FILE}"]


BAD_ROWS: list[tuple[str, Changes, Maker, int, str]] = [
    # format, more changes of the spec, the file, how many rows are bad, the line of the first
    *((f, (), null_key, 1, "row 7: column 'stay': entry is null") for f in FORMATS),
    ("csv", (), damaged(cut), 1, f"row {len(ROWS)}: the row has a different number of cells than the header"),
    ("jsonl", (), damaged(cut), 1, f"row {len(ROWS)}: the line is not a JSON object in UTF-8"),
    *((f, (), replaced("00Z", "00", 2), 2, "row 1: column 'at': time without a zone: write an offset") for f in TEXTS),
    *(
        (f, (), replaced("2026-01-02T", f"{KEY}T", 1), 1, "row 8: column 'at': time not understood: ISO 8601")
        for f in TEXTS
    ),
    ("csv", SUM, replaced(str(AGE), f"{KEY}x", 1), 1, "row 15: column 'after_age': value not understood as double"),
    (
        "jsonl",
        SUM,
        replaced(f": {AGE}", f': "{KEY}x"', 1),
        1,
        "row 15: column 'after_age': value not understood as double",
    ),
]


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("format_", "changes", "make", "dead", "line"), BAD_ROWS, ids=[f"{b[0]}: {b[4][:40]}" for b in BAD_ROWS]
)
def test_bad_rows_are_reported_by_file_row_and_column_and_end_the_run(
    slackwater: CommandLine, format_: str, changes: Changes, make: Maker, dead: int, line: str
) -> None:
    said = refused(slackwater, (*SPEC_OF[format_], *changes), {f"a.{format_}": make})

    more = f" (and {counted(dead - 1, 'more such row')})" if dead > 1 else ""
    assert said.code == 3
    assert said.lines[0].startswith(f"slackwater: data/a.{format_}: {line}")
    assert said.lines[0].endswith(more)
    assert said.lines[1:] == [
        f"slackwater: nothing new was published: {dead} of {len(ROWS)} rows cannot be used and changelog.bad_rows "
        "allows a share of 0; all of them are listed in private/diagnostics/dead_letters.parquet"
    ]


def test_a_share_of_bad_rows_that_the_spec_allows_lets_the_run_pass_and_is_listed_privately(
    slackwater: CommandLine,
) -> None:
    write(slackwater.folder / "data" / "a.parquet", with_null_key())
    write_spec(slackwater.folder, ("  before:", f"  bad_rows: {1 / len(ROWS)}\n  before:"))

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.err) == (0, "")
    letters = pq.read_table(slackwater.folder / "private" / "diagnostics" / "dead_letters.parquet").to_pylist()
    assert letters == [{"file": "data/a.parquet", "row": 7, "reason": "column 'stay': entry is null"}]


def test_one_bad_row_more_than_the_spec_allows_ends_the_run(slackwater: CommandLine) -> None:
    share = (("  before:", f"  bad_rows: {0.99 / len(ROWS)}\n  before:"),)

    said = refused(slackwater, share, {"a.parquet": null_key})

    assert said.code == 3


@pytest.mark.parametrize("format_", FORMATS)
def test_plan_looks_at_no_data_and_evaluate_refuses_bad_rows_as_run_does(slackwater: CommandLine, format_: str) -> None:
    write(slackwater.folder / "data" / f"a.{format_}", with_null_key())
    write_spec(slackwater.folder, *SPEC_OF[format_])

    assert slackwater("plan", "spec.yaml").code == 0
    said = slackwater("evaluate", "spec.yaml", "--runs=1")

    assert (said.code, said.out) == (3, "")
    assert said.lines[0] == f"slackwater: data/a.{format_}: row 7: column 'stay': entry is null"
