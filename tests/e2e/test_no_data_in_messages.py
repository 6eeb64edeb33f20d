"""Whole commands on files with a marker in each kind of place: no message, log, dead letter or public file shows it.

The places of single formats are in tests/fuzz/test_no_data_in_messages.py. Results that commands print on request, such
as the columns of `changelog --suggest`, are not messages.
"""

import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.specs import SPEC, CommandLine, changelog, files_under, write, write_spec
from tests.pipelines.spec_text import changed

MARK = "Zq7marker"
GOOD = changelog(12)
_OBJECT = {"stay": MARK, "at": {MARK: MARK}, "after_ward": [MARK], "before_ward": None}
CSV = (("format: parquet", "format: csv\n  types: {age: float64}\n  bad_rows: 0.95"), ("*.parquet", "*"))
JSONL = (("format: parquet", "format: jsonl\n  types: {age: float64}\n  bad_rows: 0.95"), ("*.parquet", "*"))
DEBEZIUM = (
    ("format: parquet", "format: debezium\n  bad_rows: 0.95"),
    ("*.parquet", "*"),
    ("  time: at\n  before: before_\n  after: after_\n", ""),
)


def _csv(*lines: str) -> str:
    return "\n".join(["stay,at,before_ward,before_age,after_ward,after_age", *lines, ""])


def _event(**members: object) -> str:
    source = {"ts_ms": 1767225600000, "lsn": 5, "table": MARK}
    return json.dumps({"op": "c", "source": source, "before": None, "after": {"stay": MARK, "ward": "a"}} | members)


ROW = f"{MARK},2026-01-01T10:00:00Z,,,{MARK},7"
CASES: dict[str, tuple[tuple[tuple[str, str], ...], dict[str, bytes | str]]] = {
    "no heading": (CSV, {"a.csv": f"{ROW}\n"}),
    "other separators": (CSV, {"a.csv": f"{MARK};at;{MARK}\n"}),
    "a later file without a heading": (CSV, {"a.csv": _csv(ROW), "b.csv": f"{ROW}\n"}),
    "wrong values": (
        CSV,
        {"a.csv": _csv(ROW, f"{MARK},{MARK},,,{MARK},{MARK}", f"{MARK},2026-01-01,,{MARK}", f'"{MARK}" {MARK},x,y')},
    ),
    "an open quote": (CSV, {"a.csv": _csv(ROW, f'{MARK},2026-01-01T10:00:00Z,,,"{MARK},7', ROW)}),
    "another encoding": (
        CSV,
        {"a.csv": _csv(ROW, ROW).encode() + f"{MARK}\xff,\xff,,,{MARK}\xff,1\n".encode("latin-1")},
    ),
    "a heading in another encoding": (CSV, {"a.csv": f"{MARK}\xff,at\n".encode("latin-1")}),
    "a truncated gz": (CSV, {"a.csv": _csv(ROW), "b.csv.gz": gzip.compress(_csv(*[ROW] * 900).encode())[:-20]}),
    "a gz under another name": (CSV, {"a.csv": gzip.compress(_csv(ROW).encode())}),
    "objects for values": (JSONL, {"a.jsonl": json.dumps(_OBJECT) + "\n"}),
    "members that are values": (JSONL, {"a.jsonl": json.dumps({MARK: 1, f"after_{MARK}": {MARK: MARK}}) + "\n"}),
    "broken lines": (
        JSONL,
        {
            "a.jsonl": json.dumps({"stay": MARK, "at": "2026-01-01T00:00:00Z", "after_ward": MARK, "after_age": MARK})
            + f'\n{{"{MARK}": "{MARK}\n[["{MARK}"]]\n{MARK}\n{{"stay": {MARK}}}\n{{"at": "\\ud800{MARK}"}}\n'
        },
    ),
    "no events": (DEBEZIUM, {"a.json": json.dumps({"op": MARK, MARK: MARK, "after": {MARK: 1}}) + "\n"}),
    "odd events": (
        DEBEZIUM,
        {
            "a.json": "\n".join(
                [
                    _event(),
                    _event(op=MARK),
                    _event(source={"ts_ms": MARK}),
                    _event(after={MARK: MARK}),
                    _event(after={"stay": {MARK: 1}, "ward": "a"}),
                    _event(op="d", before={"stay": MARK, "ward": MARK}),
                    "",
                ]
            )
        },
    ),
}


SNAPSHOTS = (
    ("format: parquet", "format: snapshots\n  every: 1d"),
    ("  time: at\n  before: before_\n  after: after_\n", ""),
    ('    where: "age >= 0"\n', ""),
)
IN_CSV = (*SNAPSHOTS, ("data/*.parquet", "data/%Y-%m-%d.csv"))
IN_PARQUET = (*SNAPSHOTS, ("*.parquet", "%Y-%m-%d.parquet"))
_TABLE = "stay,ward,age\n"
_WRONG = (
    f"{_TABLE}1,a,7\n{MARK}3,a,7\n{MARK}4,{MARK},8\n{MARK}4,{MARK},9\n{MARK}\n"
    f"{MARK}2,\xff{MARK},\xff{MARK}\n{MARK}\xff,a,{MARK}\n"
)


def _days(ending: str, content: bytes, **others: bytes | str) -> dict[str, bytes | str]:
    """Files of a snapshot each day; `others` replace those of some days."""
    return {f"2026-01-0{day}.{ending}": others.get(f"d{day}", content) for day in range(1, 7)}


def _parquet(columns: dict[str, Any], **metadata: str) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), out)
    return out.getvalue().to_pybytes()


_CSV_DAY = f"{_TABLE}1,a,7\n{MARK}3,a,7\n{MARK}4,a,7\n".encode()
_PARQUET_DAY = _parquet({"stay": ["1"], "ward": ["a"]})
_INIT = ("--unit=entry", "--epsilon=1", "--span=14d", "--start=2026-01-01", "--every=1d", "--timezone=UTC")
_RECORDS = """\
sanitise: people
records: {format: csv, path: data/people.csv, entry: person}
columns:
  - {name: work, kind: category, values: [none, full], missing: none, epsilon: 14.0}
  - {name: age, kind: number, min: 18, max: 98, step: 1, epsilon: 0.1}
output: {public: public, private: private}
"""


def _suggest(ending: str) -> tuple[tuple[str, ...], ...]:
    """Commands that read the first file without a spec; the columns that they name are not all there."""
    at, columns = f"data/*.{ending}", ("--entry=stay", "--time=at")
    return (
        ("changelog", at, "--suggest", *columns),
        ("changelog", at, "-o", "copy"),
        ("init", "first.yaml", f"--path={at}", *columns, *_INIT),
        ("init", "other.yaml", f"--path={at}", "--entry=nothing", "--time=at", *_INIT, "--by=ward=a,b"),
        ("init", "third.yaml", f"--path={at}", *columns, f"--unit={MARK[:-1]}x"),
    )


def _records(ending: str) -> tuple[tuple[str, str], ...]:
    return (("format: csv", f"format: {ending}"), ("people.csv", f"people.{ending}"))


_SANITISE = (("sanitise", "spec.yaml"),)
_STAYS = (
    ("format: parquet", "format: csv\n  types: {age: float64}"),
    ("*.parquet", "*"),
    ("  time: at\n  before: before_\n  after: after_\n", "  from: at\n  to: left\n"),
)
_STAY = f"{MARK},2026-01-01T10:00:00Z,2026-01-02T10:00:00Z,{MARK},7"
_OF_STAYS = ("--entry=stay", "--to=left")
_COPIES = (("run", "spec.yaml"), ("changelog", "spec.yaml", "-o", "copy"))
Commands = tuple[tuple[str, ...], ...]
OTHERS: dict[str, tuple[str, str, tuple[tuple[str, str], ...], dict[str, bytes | str], Commands]] = {
    "snapshots with wrong rows": (
        "the entry is in this snapshot already",
        SPEC,
        IN_CSV,
        _days("csv", _CSV_DAY, d3=_WRONG.encode("latin-1")),
        _COPIES,
    ),
    "a snapshot without a heading": (
        "it has 2 columns",
        SPEC,
        IN_CSV,
        _days("csv", _CSV_DAY, d1=f"{MARK},{MARK}\n1,a\n"),
        _COPIES,
    ),
    "a snapshot that lost rows": (
        "has 1 usable row",
        SPEC,
        IN_CSV,
        _days("csv", _CSV_DAY, d3=f"{_TABLE}{MARK}3,{MARK},7\n"),
        _COPIES,
    ),
    "a snapshot of other types": (
        "but the first file has string",
        SPEC,
        IN_PARQUET,
        _days("parquet", _PARQUET_DAY, d3=_parquet({"stay": [MARK], "ward": [[MARK]]}, mark=MARK)),
        _COPIES,
    ),
    "stays with wrong times": (
        "the end is before the start",
        SPEC,
        _STAYS,
        {
            "a.csv": "\n".join(
                [
                    f"stay,at,left,ward,age\n{_STAY}",
                    _STAY.replace("2026-01-01", "2026-01-03"),
                    _STAY.replace("2026-01-02T10:00:00Z", MARK),
                    _STAY.replace("2026-01-01T10:00:00Z", MARK),
                    f"{MARK},{MARK},{MARK},{MARK},{MARK}\n{MARK}\n",
                ]
            )
        },
        _COPIES,
    ),
    "first stays with wrong ends": (
        "time not understood",
        SPEC,
        (),
        {"a.csv": f"stay,at,left,ward\n{MARK},2026-01-01T10:00:00Z,{MARK},{MARK}\n"},
        (
            ("changelog", "data/*.csv", "--suggest", *_OF_STAYS, "--from=at"),
            ("changelog", "data/*.csv", "-o", "copy", *_OF_STAYS, "--from=at"),
            ("init", "first.yaml", "--path=data/*.csv", *_OF_STAYS, "--time=at", *_INIT),
        ),
    ),
    "evaluate": (
        "time not understood",
        SPEC,
        (("format: parquet", "format: csv\n  types: {age: float64}"), ("*.parquet", "*")),
        {"a.csv": _csv(ROW, f"{MARK},{MARK},,,{MARK},{MARK}", MARK)},
        (("evaluate", "spec.yaml", "--runs=1"),),
    ),
    "a first file without a heading": ("it has 3 columns", SPEC, (), {"a.csv": f"{MARK},{MARK},7\n"}, _suggest("csv")),
    "a first file with semicolons": (
        "with a semicolon in its name",
        SPEC,
        (),
        {"a.csv": f"stay;at;{MARK}\n{MARK};1;2\n"},
        _suggest("csv"),
    ),
    "a first file with a name twice": (
        "column 'at' twice",
        SPEC,
        (),
        {"a.csv": f"{MARK},stay,at,at\n{MARK},1,2,3\n"},
        _suggest("csv"),
    ),
    "a first file in another encoding": (
        "not text in UTF-8",
        SPEC,
        (),
        {"a.csv": f"{MARK}\xff,at\n".encode("latin-1")},
        _suggest("csv"),
    ),
    "a first file with other times": (
        "time not understood",
        SPEC,
        (),
        {"a.csv": f"stay,at,ward\n{MARK},{MARK},{MARK}\n"},
        _suggest("csv"),
    ),
    "first lines with objects": (
        "the 1 column that it could be",
        SPEC,
        (),
        {"a.json": json.dumps(_OBJECT)},
        _suggest("json"),
    ),
    "first lines of an event": (
        "have no column 'stay'",
        SPEC,
        (),
        {"a.json": json.dumps({"op": MARK, "source": {MARK: 1}, "after": {MARK: MARK}})},
        (("changelog", "data/*.json", "--suggest", "--entry=stay"), ("changelog", "data/*.json", "-o", "copy")),
    ),
    "first lines of another event": (
        "have no column 'stay'",
        SPEC,
        (),
        {"a.json": json.dumps({"uuid": MARK, "payload": {MARK: MARK}, "source_metadata": MARK})},
        (("changelog", "data/*.json", "--suggest", "--entry=stay"), ("changelog", "data/*.json", "-o", "copy")),
    ),
    "records": (
        "the file ends within quotes",
        _RECORDS,
        _records("csv"),
        {"people.csv": f'person,work,age\n{MARK},{MARK},{MARK}\n,{MARK},1\n{MARK},a,2\n{MARK}\n{MARK},"{MARK}\n'},
        _SANITISE,
    ),
    "records without a heading": (
        "it has 2 columns",
        _RECORDS,
        _records("csv"),
        {"people.csv": f"{MARK},{MARK}\n"},
        _SANITISE,
    ),
    "records as objects": (
        "an object or a list in the place of a value",
        _RECORDS,
        _records("jsonl"),
        {
            "people.jsonl": json.dumps({"person": MARK, "work": MARK, "age": MARK})
            + f"\n{json.dumps({'person': {MARK: 1}, 'work': [MARK], 'age': MARK})}\n"
            + f'{{"{MARK}\n["{MARK}"]\n{{"work": "{MARK}"}}\n'
        },
        _SANITISE,
    ),
    "records of other types": (
        "entry is null",
        _RECORDS,
        _records("parquet"),
        {"people.parquet": _parquet({"person": [MARK, None], "work": [MARK] * 2, "age": [MARK] * 2}, mark=MARK)},
        _SANITISE,
    ),
}
"""Readers and commands that CASES do not have: words of a message, a spec, its changes, files, and the commands."""


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.mark.few(20)
@pytest.mark.parametrize("case", [*CASES, *OTHERS])
def test_no_command_shows_a_value_or_a_name_of_a_file(
    case: str, slackwater: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told, text, *rest = OTHERS[case] if case in OTHERS else ("", SPEC, *CASES[case], _of_all(case))
    changes, files, commands = rest
    folder = slackwater.folder
    (folder / "data").mkdir()
    for name, content in files.items():
        (folder / "data" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for old, new in changes:
        text = changed(old, new, text)
    (folder / "spec.yaml").write_text(text)

    said = [slackwater(*command) for command in commands]

    assert {one.code for one in said} <= {0, 1, 2, 3}
    assert any(one.err and told in one.out + one.err for one in said)
    assert [*shown([one.out + one.err for one in said])] == []
    assert [*shown([caplog.text])] == []
    assert [path for path in files_under(folder / "public") if MARK.encode() in path.read_bytes()] == []
    letters = [path for path in files_under(folder) if path.name == "dead_letters.parquet"]
    assert [*shown(reason for path in letters for reason in pq.read_table(path)["reason"].to_pylist())] == []


def _of_all(case: str) -> tuple[tuple[str, ...], ...]:
    changes, _ = CASES[case]
    glob = f"data/*.{'json' if 'debezium' in changes[0][1] else changes[0][1].split()[1].rstrip()}*"
    return (
        ("plan", "spec.yaml"),
        ("run", "spec.yaml"),
        ("changelog", "spec.yaml", "-o", "copy", "--bad-rows=0.95"),
        ("changelog", glob, "-o", "other"),
        ("ledger", "spec.yaml"),
        ("metrics", "spec.yaml", "--private"),
    )


def shown(texts: Iterator[str] | list[str]) -> Iterator[str]:
    """The lines with the marker, in any case."""
    return (line for text in texts for line in text.splitlines() if MARK.lower() in line.lower())


def test_a_column_of_parquet_is_named_and_its_values_are_not(slackwater: CommandLine) -> None:
    """Names and types in a schema of Parquet are public, so messages help with them."""
    write(slackwater.folder / "data/a.parquet", GOOD)
    write_spec(slackwater.folder, ("{ward:", "{wrad:"))

    said = slackwater("run", "spec.yaml")

    assert "did you mean 'before_ward'" in said.err
    assert "secret" not in said.err


def test_only_suggest_lists_names_of_a_csv_file(slackwater: CommandLine) -> None:
    (slackwater.folder / "data.csv").write_text(f"{MARK},at,ward\n1,2026-01-01T00:00:00Z,a\n")

    refused = slackwater("changelog", "data.csv", "-o", "copy")
    explored = slackwater("changelog", "data.csv", "--suggest")

    assert MARK not in refused.err
    assert "--suggest" in refused.err
    assert f"one of '{MARK}', 'at', 'ward'" in explored.err
