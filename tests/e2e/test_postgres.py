"""A real PostgreSQL: results from its change stream equal the results of SQL on its tables."""

import gzip
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.specs import CommandLine, published
from tests.postgres.capture import TOMBSTONE, UNAVAILABLE
from tests.postgres.server import server
from tests.postgres.stays import EVERY, TABLES
from tests.postgres.truth import QUERIES, Numbers
from tests.postgres.workload import Lived, live

SPEC = """\
release: hospital
changelog: {{format: debezium, path: data/*, entry: id, types: {{price: float64, age: int64, insured: bool}}}}
privacy: {{{privacy}, constraint: {{at_most: 100}}}}
schedule: {{start: "{start}", every: 1s, until: "{until}"}}
queries: [{queries}]
strategy: disjoint
output: {{public: public, private: private}}
"""
HARDLY_ANY_NOISE = "epsilon: 100000000000, delta: 1.0e-9, accounting: zcdp, mechanism: gaussian"

TOLERANCE = 1e-6
"""Prices of 1.50 or more, on a grid of a millionth."""


"""Without REPLICA IDENTITY FULL and without a snapshot, where an entry's first event is its deletion."""


@pytest.fixture(scope="module")
def lived() -> Lived:
    with server() as address:
        return live(address)


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def deliver(folder: Path, lines: list[str], number: int) -> None:
    """Write a file of the topic's dump; the second one is compressed."""
    text = "".join(line + "\n" for line in lines).encode()
    data = folder / "data"
    data.mkdir(exist_ok=True)
    name = f"part-{number}.jsonl"
    path = data / (f"{name}.gz" if number else name)
    path.write_bytes(gzip.compress(text) if number else text)


def write_spec(folder: Path, lived: Lived, *, privacy: str = "epsilon: 1.0") -> None:
    queries = ", ".join(f"{{name: {q.name}, {q.spec}, publish: [{', '.join(q.kinds)}]}}" for q in QUERIES)
    text = SPEC.format(
        privacy=privacy,
        start=lived.start.isoformat(),
        until=(lived.start + lived.windows * EVERY).isoformat(),
        queries=queries,
    )
    (folder / "spec.yaml").write_text(text, encoding="utf-8")


def told(table: pa.Table, lived: Lived, column: str) -> Numbers:
    """Return a column of published rows or of the truth, keyed as in the SQL."""
    rows = table.select(["query", "kind", "window_start", "ward", column]).to_pylist()
    return {
        (row["query"], row["kind"], (row["window_start"] - lived.start) // EVERY, row["ward"] or ""): row[column]
        for row in rows
    }


def assert_same(got: Numbers, wanted: Numbers, tolerance: float = TOLERANCE) -> None:
    """The same numbers in all cells that the spec lists; the SQL leaves out those with nothing in them."""
    nothing = {query.name: query.nothing for query in QUERIES}
    full = {key: wanted.get(key, nothing[key[0]]) for key in got}
    assert set(wanted) <= set(got)
    wrong = {k: (got[k], n) for k, n in full.items() if got[k] != n and not abs((got[k] or 0) - (n or 0)) <= tolerance}
    assert not wrong, (len(wrong), dict(list(wrong.items())[:8]))


def events(lines: list[str]) -> list[dict[str, Any]]:
    """Return the events of a file, without their envelopes."""
    documents = [json.loads(line) for line in lines if line != TOMBSTONE]
    return [document.get("payload", document) for document in documents]


@pytest.mark.few(2)
@pytest.mark.parametrize("table", TABLES)
def test_triggers_record_the_contents_of_the_tables(lived: Lived, table: str) -> None:
    windows = {window for _, _, window, _ in lived.tables[table]}
    remembered = {k: n for k, n in lived.history[table].items() if k[1] == "level" and k[2] in windows}

    assert len(windows) == 8
    assert lived.tables[table] == pytest.approx(remembered)


@pytest.mark.parametrize("table", TABLES)
def test_the_stream_has_every_difficult_kind_of_mutation(lived: Lived, table: str) -> None:
    parts = [events(lines) for lines in lived.files[table]]
    found = [*parts[0], *parts[1]]
    full = table.endswith("full")

    assert {e["op"] for e in found} == set("rcudmt" if table.startswith("emptied") else "rcudm")
    assert sum(lines.count(TOMBSTONE) for lines in lived.files[table]) == sum(e["op"] == "d" for e in found)
    # A transaction that changes one entry often, at one time; rows that one record of the log holds; redelivery.
    assert max(Counter((e["after"]["id"], e["source"]["ts_ms"]) for e in parts[1] if e.get("after")).values()) >= 4
    assert max(Counter(e["source"]["lsn"] for e in parts[1]).values()) >= 20
    assert len({e["source"]["lsn"] for e in parts[0]} & {e["source"]["lsn"] for e in parts[1]}) >= 40
    # Without the old row there is no image before an update, and a synthetic one before a delete.
    assert {e["before"] is not None for e in found if e["op"] == "u"} == {full}
    assert any(e["before"]["price"] is not None for e in found if e["op"] == "d") == full
    assert any(UNAVAILABLE in (e.get("after") or {}).values() for e in found) != full


@pytest.mark.few(2)
@pytest.mark.parametrize("table", [*TABLES, "late_full", "late_default"])
def test_the_truth_matches_sql(lived: Lived, table: str, slackwater: CommandLine) -> None:
    for number, lines in enumerate(lived.files[table]):
        deliver(slackwater.folder, lines, number)
    write_spec(slackwater.folder, lived)

    said = slackwater("evaluate", "spec.yaml", "--truth", "truth.parquet", "--runs=1", "--shards=3")

    assert said.code == 0, said.err
    read = json.loads((slackwater.folder / "private/diagnostics/read.json").read_text())
    skipped = [count for reasons in read["rows_skipped"].values() for count in reasons.values()]
    assert sum(read["rows_read"].values()) + sum(skipped) == sum(map(len, lived.files[table]))
    truth = pq.read_table(slackwater.folder / "truth.parquet")
    exact = told(truth, lived, "exact")
    assert len(exact) == lived.windows * (3 * 4 + 4 + 2 * 2 + 1)
    assert_same(exact, lived.history[table])
    assert exact == told(truth, lived, "bounded")  # the constraint binds nobody here
    for key, level in lived.tables.get(table, {}).items():
        assert exact[key] == pytest.approx(level, abs=TOLERANCE)


@pytest.mark.few(1)
@pytest.mark.parametrize("table", ["stays_full", "emptied_default"])
def test_a_release_in_two_runs_matches_sql(lived: Lived, table: str, slackwater: CommandLine) -> None:
    write_spec(slackwater.folder, lived, privacy=HARDLY_ANY_NOISE)
    for number, moment in enumerate((lived.delivered, lived.start + timedelta(days=1))):
        deliver(slackwater.folder, lived.files[table][number], number)
        said = slackwater("run", "spec.yaml", f"--until={moment.isoformat()}", "--shards=2")
        assert said.code == 0, said.err

    rows = published(slackwater.folder, "estimates")
    noise = max(rows["stddev"].to_pylist())
    assert 0 < noise < 0.02
    got = told(rows, lived, "value")
    # At 6 standard deviations, the probability that any of 200 rows has a larger error is below 1e-6.
    assert_same(got, lived.history[table], TOLERANCE + 6 * noise)
