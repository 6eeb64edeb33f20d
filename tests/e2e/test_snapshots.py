"""Dated snapshots through the command line: numbers match the tables, and an incomplete snapshot stops the run."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.e2e.changelogs import DAYS, START, STATE, Mutation, generate, table
from tests.e2e.definitions import Asked, expected
from tests.e2e.specs import CommandLine, contents, files_under, published
from tests.e2e.test_truth import (
    BY_CLASS,
    OWNERS_BY_CLASS,
    QUERIES,
    TIMELINE,
    _asked,
    assert_equal,
    at_most,
    numbers,
    truth,
    within,
)

DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)
KEY = "k7f3secret"

Table = dict[tuple[str, str], dict[str, Any]]
"""The state of each (person, stay)."""


def tables(mutations: Sequence[Mutation]) -> list[Table]:
    """The table at the beginning of each day, from one before the start to one after the end."""
    ordered = sorted({(m.at, m.seq, m.stay): m for m in mutations}.items())
    state: Table = {}
    for _, m in reversed(ordered):  # in the end the first image of each
        state.pop((m.person, m.stay), None)
        if m.before is not None:
            state[m.person, m.stay] = m.before
    found = []
    for day in range(-1, DAYS + 2):
        while ordered and ordered[0][1].at < START + day * DAY:
            m = ordered.pop(0)[1]
            state.pop((m.person, m.stay), None)
            if m.after is not None:
                state[m.person, m.stay] = m.after
        found.append(dict(state))
    return found


def changes(found: Sequence[Table]) -> Iterator[Mutation]:
    """What happened between the tables, each at the last instant before the later one."""
    known: Table = {}
    for day, now in enumerate(found, -1):
        for person, stay in sorted(known.keys() | now.keys()):
            states = known.get((person, stay)), now.get((person, stay))
            if states[0] != states[1]:
                yield Mutation(stay, person, START + day * DAY - INSTANT, 0, *states)
        known = now


def arrow(now: Table) -> pa.Table:
    """A snapshot's rows."""
    keys = {"person": [person for person, _ in now], "stay": [stay for _, stay in now]}
    states = {field.name: pa.array([s[field.name] for s in now.values()], field.type) for field in STATE}
    return pa.table({name: pa.array(values, pa.string()) for name, values in keys.items()} | states)


def write(now: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(now, path, row_group_size=100)
    else:
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(now, sink)
        text = sink.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A release of snapshots: `constraint` for the spec, `allowed` for the definitions."""

    constraint: str
    allowed: str
    unit: str = "entry"
    path: str = "data/%Y-%m-%d.parquet"
    seed: int = 1
    flags: tuple[str, ...] = ()

    def spec(self, *, privacy: str = "epsilon: 1.0", queries: Sequence[Asked] = QUERIES) -> str:
        changelog = {"format": "snapshots", "path": self.path, "entry": "stay"}
        return "\n".join(
            [
                "release: wards",
                f"changelog: {json.dumps(changelog | {'shrink': 0.9})}",
                f"privacy: {{unit: {self.unit}, {privacy}, constraint: {self.constraint}}}",
                f"schedule: {{start: {START.isoformat()}, every: 1d, until: {(START + DAYS * DAY).isoformat()}}}",
                "queries:",
                *(f"  - {{name: {q.name}, {q.spec}, publish: [{', '.join(map(_asked, q.kinds))}]}}" for q in queries),
                "strategy: disjoint",
                "output: {public: public, private: private}",
            ]
        )

    def deliver(self, folder: Path, day: int, now: Table) -> list[Path]:
        """The files of one day's snapshot; two, if the path is a glob."""
        path = folder / (START + day * DAY).strftime(self.path)
        rows = arrow(now)
        rows = rows if self.unit == "person" else rows.drop_columns(["person"])
        if "*" not in path.name:
            write(rows, path)
            return [path]
        parts = [path.with_name(path.name.replace("*", str(part))) for part in (0, 1)]
        half = rows.num_rows // 2
        for part, cut in zip(parts, (rows.slice(0, half), rows.slice(half)), strict=True):
            write(cut, part)
        return parts


CASES = {
    "at most two changes": Case(**at_most(2), seed=61),
    "within four days, csv": Case(**within(4), seed=62, path="data/%Y/stays-%Y%m%d.csv"),
    "by class, two files, every bundle twice": Case(
        **BY_CLASS, seed=63, path="data/%Y-%m-%d/*.parquet", flags=("--direct_runner_bundle_repeat=1",)
    ),
    "owner, at most five changes": Case(**at_most(5), unit="person", seed=64),
    "owner, by class, packed csv": Case(**OWNERS_BY_CLASS, unit="nurse", seed=65, path="data/%d.%m.%Y.csv.gz"),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_truth_matches_the_definitions_on_the_tables(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tables(generate(case.seed, stays=200))
    for day, now in enumerate(found, -1):
        case.deliver(tmp_path, day, now)
    (tmp_path / "spec.yaml").write_text(case.spec(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("transforms.sources.snapshots.SPAN", 3)
    monkeypatch.setattr("transforms.sources.snapshots.GROUP_BYTES", 10_000)

    told = numbers(truth(tmp_path, *case.flags, shards=3))

    changelog = table(list(changes(found)))
    changelog = changelog.append_column("moment", changelog["at"].cast(pa.int64()))
    changelog = changelog.append_column("seq", pa.array([0] * len(changelog)))
    wanted = expected(changelog, QUERIES, unit=case.unit, allowed=case.allowed, ordered=False, timeline=TIMELINE)
    assert_equal(told, wanted)
    assert told["exact"].to_pylist() != told["bounded"].to_pylist()
    beds = {
        (row["day"], row["cell"]): row["exact"]
        for row in told.to_pylist()
        if (row["query"], row["kind"]) == ("beds", "level")
    }
    for day, now in enumerate(found[2 : 2 + DAYS]):  # the table when the day ends, by itself
        wards = [state["ward"] if state["ward"] in ("a", "b") else "other" for state in now.values()]
        assert {ward: beds[day, ward] for ward in ("a", "b", "other")} == {
            ward: wards.count(ward) for ward in ("a", "b", "other")
        }


# Increments

RUNS = (4, 5, DAYS)
"""The days after whose snapshots there is a run: every day, or after a few."""

HARDLY_ANY_NOISE = "epsilon: 100000000000, delta: 1.0e-9, accounting: zcdp, mechanism: gaussian"


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "case",
    [Case(**at_most(2), seed=66), Case(**at_most(5), unit="person", seed=67, path="data/%Y-%m-%d/*.csv")],
    ids=["entries", "owners, csv in two files"],
)
def test_one_run_a_day_publishes_the_rows_of_one_run(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tables(generate(case.seed, stays=120))
    daily, once = CommandLine(tmp_path / "daily", capsys), CommandLine(tmp_path / "once", capsys)
    for slackwater in (daily, once):
        slackwater.folder.mkdir()
        asked = [query for query in QUERIES if query.name in ("beds", "total")]
        (slackwater.folder / "spec.yaml").write_text(case.spec(privacy=HARDLY_ANY_NOISE, queries=asked))
    for day, now in enumerate(found, -1):
        case.deliver(once.folder, day, now)
        last = case.deliver(daily.folder, day, now)
        if day in RUNS:
            said = daily("run", "spec.yaml", f"--until={(START + day * DAY).isoformat()}")
            assert (said.code, "released" in said.out) == (0, True), said.err
            for old in files_under(daily.folder / "data"):
                if old not in last:  # which is all that is needed again
                    old.unlink()
    assert once("run", "spec.yaml").code == 0

    keys = ["query", "kind", "window_start", "window_end", "ward"]
    first, second = (
        published(slackwater.folder, "estimates").to_pandas().sort_values(keys).reset_index(drop=True)
        for slackwater in (daily, once)
    )
    # A Gaussian beyond 40 deviations has a probability below 1e-300.
    assert first["stddev"].max() < 0.02 / 40
    assert first[keys].equals(second[keys])
    assert (first["value"] - second["value"]).abs().max() < 0.05  # sums are of eighths
    assert (first["value"].abs() > 1).sum() > 50


# Incomplete snapshots

BAD_SPEC = """\
release: wards
changelog: {format: snapshots, path: data/%Y-%m-%d.parquet, entry: stay}
privacy: {epsilon: 1.0, constraint: {at_most: 4}}
schedule: {start: 2026-01-02T00:00:00Z, every: 1d, until: 2026-02-01T00:00:00Z}
queries: [{name: beds, measure: count, by: {ward: [a, b]}, publish: [level]}]
strategy: disjoint
output: {public: public, private: private}
"""


def snapshot(folder: Path, day: int, rows: int = 10) -> Path:
    """The snapshot of 2026-01-`day`."""
    path = folder / f"data/2026-01-{day:02d}.parquet"
    keys = [f"{KEY}-{key}" for key in range(rows)]
    write(pa.table({"stay": keys, "ward": pa.array(["a"] * rows, pa.string())}), path)
    return path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


BAD: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "a day is missing": (
        lambda folder: (folder / "data/2026-01-03.parquet").unlink(),
        ["snapshots are missing: data/2026-01-03.parquet; ", "add them, or end earlier with --until"],
    ),
    "the last day is missing": (
        lambda folder: (folder / "data/2026-01-05.parquet").unlink(),
        ["snapshots are missing: data/2026-01-05.parquet; ", "--until"],
    ),
    "half of the rows": (
        lambda folder: snapshot(folder, 4, 5),
        ["data/2026-01-04.parquet: this snapshot has 5 usable rows, and the one before it 10", "20%"],
    ),
    "no rows": (lambda folder: snapshot(folder, 5, 0), ["data/2026-01-05.parquet: this snapshot has 0 usable rows"]),
    "a truncated file": (
        lambda folder: cut(snapshot(folder, 4)),
        ["data/2026-01-04.parquet: the file cannot be read", "never skipped"],
    ),
    "an empty file": (
        lambda folder: (folder / "data/2026-01-04.parquet").write_bytes(b""),
        ["data/2026-01-04.parquet: the file is empty"],
    ),
    "no date": (
        lambda folder: snapshot(folder, 32),
        ["data/2026-01-32.parquet: its path holds no date that 'data/%Y-%m-%d.parquet' can mean"],
    ),
    "another type": (
        lambda folder: write(pa.table({"stay": [f"{KEY}-1"], "ward": [START]}), folder / "data/2026-01-04.parquet"),
        [
            "data/2026-01-04.parquet: column 'ward' is timestamp[us, tz=UTC], but the first file has string there",
            "never skipped",
        ],
    ),
}


@pytest.mark.few(8)
@pytest.mark.parametrize(("damage", "told"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_an_incomplete_snapshot_stops_the_run(
    slackwater: CommandLine, command: str, damage: Callable[[Path], Any], told: list[str]
) -> None:
    (slackwater.folder / "spec.yaml").write_text(BAD_SPEC, encoding="utf-8")
    for day in range(1, 6):
        snapshot(slackwater.folder, day)
    damage(slackwater.folder)

    said = slackwater(command, "spec.yaml", "--until=2026-01-05T12:00:00Z")

    assert said.code == 3, said.err
    for words in told:
        assert words in said.err
    assert "Traceback" not in said.err
    assert KEY not in said.out + said.err
    assert not (slackwater.folder / "public").exists() or files_under(slackwater.folder / "public") == []


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("data/*.parquet", "spec.yaml:2: changelog.path: a snapshot is known by the date in its path; %Y is missing"),
        ("data/%y-%m-%d.parquet", "spec.yaml:2: changelog.path: %y is not one of %Y %m %d"),
        ("data/%Y-%m-%d", "spec.yaml:2: changelog.path: the end of the path says the format"),
    ],
)
def test_a_path_without_a_date_is_a_wrong_spec(slackwater: CommandLine, path: str, told: str) -> None:
    (slackwater.folder / "spec.yaml").write_text(BAD_SPEC.replace("data/%Y-%m-%d.parquet", path), encoding="utf-8")

    said = slackwater("plan", "spec.yaml")

    assert (said.code, told in said.err) == (2, True), said.err


def change(path: Path) -> None:
    write(pa.table({"stay": [f"{KEY}-1"], "ward": ["b"]}), path)


LATER_BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a late one": (lambda folder: snapshot(folder, 1), "data/2026-01-01.parquet: comes late"),
    "the last one is gone": (
        lambda folder: (folder / "data/2026-01-03.parquet").unlink(),
        "data/2026-01-03.parquet: gone, but the next snapshot is compared with it",
    ),
    "the last one has changed": (
        lambda folder: change(folder / "data/2026-01-03.parquet"),
        "data/2026-01-03.parquet: has changed since an earlier run read it",
    ),
    "a day is missing": (
        lambda folder: (folder / "data/2026-01-04.parquet").rename(folder / "data/2026-01-05.parquet"),
        "snapshots are missing: data/2026-01-04.parquet; ",
    ),
    "a shrink since the last one": (
        lambda folder: snapshot(folder, 4, 7),
        "data/2026-01-04.parquet: this snapshot has 7 usable rows, and the one before it 10",
    ),
}


def test_a_later_run_needs_the_last_snapshot_and_all_later_ones(slackwater: CommandLine) -> None:
    folder = slackwater.folder
    (folder / "spec.yaml").write_text(BAD_SPEC, encoding="utf-8")
    for day in (2, 3):
        snapshot(folder, day)
    assert slackwater("run", "spec.yaml", "--until=2026-01-03T00:00:00Z").code == 0
    public = contents(folder / "public")
    (folder / "data").rename(folder / "kept")

    for damage, told in LATER_BAD.values():
        shutil.rmtree(folder / "data", ignore_errors=True)
        shutil.copytree(folder / "kept", folder / "data")  # times of change too
        snapshot(folder, 4)
        damage(folder)
        said = slackwater("run", "spec.yaml", "--until=2026-01-04T12:00:00Z")
        assert (said.code, told in said.err) == (3, True), said.err
        assert contents(folder / "public") == public
        assert KEY not in said.out + said.err

    shutil.rmtree(folder / "data")
    shutil.copytree(folder / "kept", folder / "data")
    (folder / "data/2026-01-02.parquet").unlink()  # an older one than the last may go
    assert slackwater("run", "spec.yaml", "--until=2026-01-03T12:00:00Z").code == 0
    snapshot(folder, 4)
    snapshot(folder, 5, 1)  # half-written, and not needed yet
    assert slackwater("run", "spec.yaml", "--until=2026-01-04T00:00:00Z").code == 0
    assert slackwater("run", "spec.yaml", "--until=2026-01-05T00:00:00Z").code == 3
    recorded = json.loads((folder / "public/manifest.json").read_text())
    assert [epoch["windows"] for epoch in recorded["epochs"]] == [1, 2]
