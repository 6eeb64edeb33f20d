"""Whole commands on files with a marker in each kind of place: no message, log, dead letter or public file shows it.

The places of single formats are in tests/fuzz/test_no_data_in_messages.py. Results that commands print on request, such
as the columns of `changelog --suggest`, are not messages.
"""

import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.specs import CommandLine, changelog, files_under, write, write_spec

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


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.mark.parametrize("case", CASES)
def test_no_command_shows_a_value_or_a_name_of_a_file(
    case: str, slackwater: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    changes, files = CASES[case]
    folder = slackwater.folder
    (folder / "data").mkdir()
    for name, content in files.items():
        (folder / "data" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    write_spec(folder, *changes)
    glob = f"data/*.{'json' if 'debezium' in changes[0][1] else changes[0][1].split()[1].rstrip()}*"

    said = [
        slackwater("plan", "spec.yaml"),
        slackwater("run", "spec.yaml"),
        slackwater("changelog", "spec.yaml", "-o", "copy", "--bad-rows=0.95"),
        slackwater("changelog", glob, "-o", "other"),
        slackwater("ledger", "spec.yaml"),
        slackwater("metrics", "spec.yaml", "--private"),
    ]

    assert {one.code for one in said} <= {0, 1, 2, 3}
    assert any(one.err for one in said)
    assert [*shown([one.out + one.err for one in said])] == []
    assert [*shown([caplog.text])] == []
    assert [path for path in files_under(folder / "public") if MARK.encode() in path.read_bytes()] == []
    letters = [path for path in files_under(folder) if path.name == "dead_letters.parquet"]
    assert [*shown(reason for path in letters for reason in pq.read_table(path)["reason"].to_pylist())] == []


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


def test_a_table_of_a_private_survey_or_record_shows_no_value(slackwater: CommandLine) -> None:
    folder = slackwater.folder
    (folder / "data").mkdir()
    (folder / "data/first.csv").write_text(f"{MARK},{MARK}x\n{MARK},{MARK}\n")
    (folder / "sanitise.yaml").write_text(
        "release: r\nrecords: {format: csv, path: data/*.csv, entry: person}\ncolumns:\n"
        "  - {name: sex, kind: category, values: [f, m], missing: f, epsilon: 1.0}\n"
        "output: {public: public, private: private}\n"
    )

    said = slackwater("sanitise", "sanitise.yaml")

    assert said.code in (1, 2, 3)
    assert [*shown([said.out + said.err])] == []
