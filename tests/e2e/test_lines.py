"""Neighbouring changelogs of lines end to end: a row more or less tells nothing of how all other rows are read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from tests.transforms.events import T0, event, wrapped

SPEC = """\
release: wards
changelog: {{path: data/*.jsonl, entry: id, bad_rows: 0.1, {changelog}}}
privacy: {{epsilon: 1.0, constraint: {{at_most: 4}}}}
schedule: {{start: 2020-09-13T00:00:00Z, every: 1d, until: 2020-09-15T00:00:00Z}}
queries:
  - {{name: beds, measure: count, by: {{ward: [1, 2, a]}}, publish: [level, change]}}
  - {{name: cost, measure: {{sum: cost, min: 0, max: 1}}, where: "note = '1'", publish: [level]}}
strategy: disjoint
output: {{public: public, private: private}}
"""
AT = "2020-09-13T12:26:40Z"  # T0
OTHERS = 40

Line = dict[str, Any]
Writer = Callable[[Any, Line | None, Line | None], Line]


def row(entry: Any, before: Line | None, after: Line | None) -> Line:
    return {"id": entry, "at": AT, "before": before, "after": after}


def flat(entry: Any, before: Line | None, after: Line | None) -> Line:
    sides = {"before_": before or {}, "after_": after or {}}
    return {
        "id": entry,
        "at": AT,
        **{side + name: value for side, state in sides.items() for name, value in state.items()},
    }


def debezium(entry: Any, before: Line | None, after: Line | None) -> Line:
    op = "d" if after is None else "c" if before is None else "u"
    return event(op, before and {"id": entry, **before}, after and {"id": entry, **after}, ts_ms=T0)


def datastream(entry: Any, before: Line | None, after: Line | None) -> Line:
    return {
        "source_timestamp": AT,
        "sort_keys": [T0, "0/1"],
        "source_metadata": {"change_type": "DELETE" if after is None else "UPDATE"},
        "payload": {"id": entry, **(after or {})},
    }


SOURCES: dict[str, tuple[str, Writer]] = {
    "objects": ("format: jsonl, time: at, before: before, after: after", row),
    "prefixes": ("format: jsonl, time: at, before: before_, after: after_", flat),
    "debezium": ("format: debezium", debezium),
    "datastream": ("format: datastream", datastream),
}

STATE = {"ward": 1, "cost": 1, "note": 1}
ODD_ROWS = {
    "a state before": (STATE, STATE | {"ward": 2}),
    "a fraction": (None, {"ward": 1.5, "cost": 0.25, "note": 1.5}),
    "a number beyond 64 bits": (None, {"ward": 2**70, "cost": 2**70, "note": 1096373912123456789}),
    "text": (None, {"ward": "a", "cost": "0.5", "note": "x"}),
    "a truth value": (None, {"ward": True, "cost": 1e300, "note": False}),
    "an object": (None, {"ward": {"a": 1}, "cost": [1], "note": {}}),
    "another member": (None, {"ward": None, "cost": None, "note": None, "more": 1}),
}


def truth(folder: Path, monkeypatch: pytest.MonkeyPatch, changelog: str, lines: list[Line]) -> pa.Table:
    """Return the numbers without noise."""
    return truth_of(folder, monkeypatch, changelog, "".join(json.dumps(line) + "\n" for line in lines))


def truth_of(folder: Path, monkeypatch: pytest.MonkeyPatch, changelog: str, text: str) -> pa.Table:
    (folder / "data").mkdir(parents=True)
    (folder / "data/a.jsonl").write_text(text, encoding="utf-8")
    (folder / "spec.yaml").write_text(SPEC.format(changelog=changelog), encoding="utf-8")
    monkeypatch.chdir(folder)
    assert main(["evaluate", "spec.yaml", "--truth=truth.parquet", "--runs=1"]) == 0
    return pq.read_table(folder / "truth.parquet")


@pytest.mark.few(1)
@pytest.mark.parametrize("format_", SOURCES)
def test_one_row_more_changes_no_number_by_more_than_its_own(
    format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changelog, write = SOURCES[format_]
    # As in an initial load; then changes of entries, and the first that is seen of others.
    lines = [write(n, None, STATE) for n in range(OTHERS)]
    lines += [write(n, STATE, STATE | {"ward": 2}) for n in range(OTHERS // 2, 2 * OTHERS)]
    told = truth(tmp_path / "without", monkeypatch, changelog, lines)
    number = told["bounded"].to_numpy()
    assert number.max() >= OTHERS

    for name, (before, after) in ODD_ROWS.items():
        more = [write("odd", before, after), *lines]
        other = truth(tmp_path / name, monkeypatch, changelog, more)["bounded"].to_numpy()

        assert abs(other - number).max() <= 1, name


@pytest.mark.parametrize("format_", ["csv", "jsonl", "datastream"])
def test_one_row_with_an_odd_time_makes_no_others_dead_or_alive(
    format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [AT] * 93 + ["2020-09-13T08Z"] * 4 + ["2020-09-13T08+05"] * 3
    truths = []
    for name, odd in {"without": [], "with": ["noon"], "with a local one": ["2020-09-13 08:00:00"]}.items():
        if format_ == "datastream":
            found = [datastream(n, None, STATE) | {"source_timestamp": at} for n, at in enumerate([*times, *odd])]
            changelog, lines = "format: datastream", [json.dumps(line) for line in found]
        elif format_ == "jsonl":
            found = [row(n, None, STATE) | {"at": at} for n, at in enumerate([*times, *odd])]
            changelog, lines = SOURCES["objects"][0], [json.dumps(line) for line in found]
        else:
            lines = ["id,at,ward,cost,note", *(f"{n},{at},1,1,1" for n, at in enumerate([*times, *odd]))]
            changelog = "format: csv, time: at"
        truths.append(truth_of(tmp_path / name, monkeypatch, changelog, "\n".join(lines) + "\n")["bounded"].to_numpy())

    assert truths[0].max() == 93  # hours alone are no time
    assert all(abs(other - truths[0]).max() <= 1 for other in truths[1:])


def test_bare_and_wrapped_deletions_of_a_key_alone_are_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debezium fills what the log does not hold with blanks: 0, an empty text or false, by the column."""
    blank = {"ward": 0, "cost": 0, "note": ""}
    lines = [debezium(n, blank, None) for n in range(OTHERS)] + [debezium("x", None, STATE)]
    told = truth(tmp_path / "without", monkeypatch, "format: debezium", lines)

    for name, state in {"texts": {"ward": "a", "cost": "1", "note": "1"}, "numbers": STATE}.items():
        more = [wrapped(debezium("odd", None, state)), *lines]
        other = truth(tmp_path / name, monkeypatch, "format: debezium", more)

        assert abs(other["bounded"].to_numpy() - told["bounded"].to_numpy()).max() <= 1


def test_an_empty_file_of_lines_is_an_empty_changelog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changelog, write = SOURCES["objects"]

    empty = truth(tmp_path / "empty", monkeypatch, changelog, [])
    full = truth(tmp_path / "full", monkeypatch, changelog, [write(1, None, STATE)])

    keys = ["query", "kind", "window_start", "window_end", "ward"]
    assert empty.select(keys).equals(full.select(keys))
    assert set(empty["bounded"].to_pylist()) == {0.0}
