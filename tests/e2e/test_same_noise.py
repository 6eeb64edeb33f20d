"""One run, many runs and a stream publish the same numbers, to the last bit, where each node has the same noise."""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.epochs import plans
from pipelines.store.attempt import own_name
from pipelines.store.store import Store
from privacy.planning.make_plan import make_plan
from privacy.series import Ints
from privacy.strategies.base import Nodes
from tests.e2e.specs import CommandLine, contents, published, write
from tests.e2e.test_interleavings import known_from_the_start
from tests.e2e.test_streaming import ENDS, by_day, stream
from transforms.aggregation import node_sums
from transforms.release import noise

ALL = "[level, change, entered, left, {sliding: 3d, every: 1d}]"
QUERIES = [
    ("{mean: age, min: 0, max: 100}", "disjoint", ALL),
    ("count", "{tree: {branching: 2, height: 3, refine: none}}", ALL),
    ("count", "{tree: {branching: 4, height: 2, refine: subtraction}}", ALL),
    ("count", "{tree: {branching: 2, height: 3, refine: bottom_up}}", ALL),
    ("{sum: age, min: 0, max: 100}", "{tree: {branching: 2, height: 3, refine: least_squares}}", ALL),
    ("count", "{tree: {branching: 2, height: 2, refine: least_squares}}", "[{sliding: 4d, every: 2d}]"),
    ("count", "sliding", "[level, {sliding: 3d, every: 1d}]"),
    ("count", "{factorised: arma}", ALL),
    ("count", "{factorised: square_root}", ALL),
    ("{mean: age, min: 0, max: 100}", "{factorised: window}", "[level, {sliding: 4d, every: 2d}]"),
]
"""Measure, strategy and published kinds: each kind of strategy, one with leaves of two days."""

ADAPTIVE = [
    ("count", "{adaptive: {policy: fixed, interval: 2d}}", "[level]"),
    ("count", "{adaptive: {policy: dsft, samples: 5, threshold: 9}}", "[level]"),
    ("{sum: age, min: 0, max: 100}", "{adaptive: {policy: dsat, samples: 6}}", "[level]"),
    ("count", "{adaptive: bd}", "[level]"),
    ("count", "{adaptive: ba}", "[level]"),
    ("count", "disjoint", ALL),
]
"""Each policy, next to a query of which all windows are published."""

SPECS = {
    "strategies": ("epsilon: 1.0, delta: 1.0e-9, mechanism: gaussian", QUERIES),
    "policies": ("epsilon: 1.0, mechanism: laplace", ADAPTIVE),
}

SPEC = """\
release: wards
changelog: {{format: parquet, path: data/*.parquet, entry: stay, time: at, before: before_, after: after_}}
privacy: {{{budget}, constraint: {{at_most: 4}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-12T00:00:00Z}}
queries:
{queries}
output: {{public: public, private: private}}
"""
QUERY = "  - {{name: q{}, measure: {}, strategy: {}, publish: {}, by: {{{}}}{}}}"
WARDS = "ward: [a, b, other]"
AGES = "ward: [a, other], age: {from: 30, to: 31.5, step: 0.5}"
"""Of the query whose number is 2: stays move through ages, day by day."""
OVER_CELLS = ", cells: {strategy: optimised, for: ranges}"
"""Of the same, where it is not adaptive."""


def recorded(_: object, nodes: Nodes, *, component: int, cells: int) -> Ints:
    """Noise that a node has whenever it is asked for; that of a decision, which is one number, decides."""
    reach = 2**24 if cells == 1 else 2**20
    names = zip(nodes.layer.tolist(), nodes.begin.tolist(), nodes.end.tolist(), strict=True)
    rows = [np.random.default_rng([component, *(1 + n for n in name)]).integers(-reach, reach, cells) for name in names]
    return np.array(rows, dtype=np.int64).reshape(len(rows), cells)


NUMBERS = ("value", "stddev", "ci_low", "ci_high", "noisy_value")


def numbers(folder: Path, side: str) -> pa.Table:
    """All rows that are published, in an order that does not depend on files."""
    table = published(folder, side)
    keys = [name for name in table.column_names if name not in NUMBERS]
    return table.sort_by([(key, "ascending") for key in keys])


def committed_is_all_that_was_made(private: Path) -> None:
    """Files that the plan did not name would be left out of the release, or of the state that the next run needs."""
    for commit in Store(f"{private}-none", str(private)).commits()[-2:]:
        made = contents(private / "attempts" / commit.attempt)
        named = {own_name(name, commit.attempt) for name in commit.files} | {f"state/{name}" for name in commit.state}
        assert {name for name in made if name.startswith(("nodes/", "estimates/", "state/"))} == named


@pytest.mark.parametrize(("budget", "asked"), SPECS.values(), ids=SPECS)
def test_one_run_many_runs_and_a_stream_publish_the_same_numbers(budget, asked, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(noise, "sample_noise", recorded)
    plan = cache(make_plan)
    monkeypatch.setattr(plans, "make_plan", lambda demands, promise, **asked: plan(tuple(demands), promise, **asked))
    monkeypatch.setattr(node_sums, "CHUNK_CELLS", 2)  # of three cells, which makes two chunks
    days = by_day(known_from_the_start())
    folders = {way: tmp_path / way for way in ("one run", "runs", "stream")}
    for folder in folders.values():
        (folder / "data").mkdir(parents=True)
        queries = "\n".join(
            QUERY.format(
                number, *query, *((AGES, OVER_CELLS if asked is QUERIES else "") if number == 2 else (WARDS, ""))
            )
            for number, query in enumerate(asked)
        )
        (folder / "spec.yaml").write_text(SPEC.format(budget=budget, queries=queries))

    for day, rows in enumerate(days):
        write(folders["one run"] / f"data/day-{day}.parquet", rows)
    until = f"--until={ENDS[-1]:%Y-%m-%dT%H:%M:%SZ}"
    with monkeypatch.context() as blocks:
        blocks.setattr(node_sums, "BLOCK_LEAVES", 4)  # two windows
        said = CommandLine(folders["one run"], capsys)("run", "spec.yaml", until)
    assert said.code == 0, said.err
    for day, rows in enumerate(days):
        write(folders["runs"] / f"data/day-{day}.parquet", rows)
        if day in (0, 2, 4):
            until = f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}"
            said = CommandLine(folders["runs"], capsys)("run", "spec.yaml", until, "--shards=3")
            assert said.code == 0, said.err
    monkeypatch.chdir(folders["stream"])
    write(Path("data/day-0.parquet"), days[0])  # columns are read from the first files
    stream(days)

    for way in ("one run", "runs"):
        committed_is_all_that_was_made(folders[way] / "private")
    last = next(number for number, query in enumerate(asked) if query[2] == ALL)
    names = [path.name for path in (folders["one run"] / "public/nodes").rglob(f"q{last}-net-*")]
    assert len(names) == 2 * 3  # chunks and blocks
    for side in ("nodes", "estimates"):
        tables = {way: numbers(folder, side) for way, folder in folders.items()}
        assert tables["one run"].num_rows > 0
        assert [way for way, table in tables.items() if not table.equals(tables["one run"])] == []
        of_row = [name for name in tables["runs"].column_names if name not in NUMBERS]
        assert tables["runs"].group_by(of_row).aggregate([]).num_rows == tables["runs"].num_rows
    for number, (_, strategy, _) in enumerate(asked):
        rows = tables["runs"].filter(pc.equal(tables["runs"]["query"], f"q{number}"))
        sampled = set(rows["sampled"].to_pylist()) if asked is ADAPTIVE else {None}
        assert sampled == ({True, False} if "adaptive" in strategy else {None})
