"""A changelog that comes in increments: rows late, early, repeated and in any order; and nothing private gets out."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.spec.times import microseconds
from pipelines.store.store import Store
from privacy.constraint import AtMost, ByClass, Constraint, Within
from privacy.measure import Measure
from privacy.series import Series, totals
from tests import reference
from tests.e2e.changelogs import DAYS, START, WRITERS, Mutation, flat, generate, table
from tests.e2e.specs import CommandLine, contents, files_under, published
from tests.pipelines.store.releases import verify
from transforms.aggregation.queries import Query, Timeline

DAY = timedelta(days=1)
TIMELINE = Timeline(start=microseconds(START), every=86_400_000_000, windows=DAYS)
FALSE_ALARM = 1e-6

WARDS, CARES = ("a", "b", "other"), ("in", "out")
SLIDING = Series(kind="sliding", width=3, every=2)
QUERIES = (
    Query(name="beds", measure=Measure(kind="count"), by=(("ward", WARDS),)),
    Query(name="total", measure=Measure(kind="sum", low=-3, high=5), column="x", by=(("care", CARES),)),
)
PUBLISHED = (
    tuple(Series(kind=kind) for kind in ("level", "change", "entered", "left")),
    (Series(kind="level"), SLIDING, Series(kind="entered")),
)

SPEC = """\
release: wards
changelog: {{format: {format}, path: data/*.{format}, entry: stay, time: at, order: [lsn, pos], before: before_,
  after: after_}}
privacy: {{unit: {unit}, {privacy}, constraint: {constraint}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-11T00:00:00Z}}
queries:
  - {{name: beds, measure: count, by: {{ward: [a, b, other]}}, publish: [level, change, entered, left]}}
  - name: total
    measure: {{sum: x, min: -3, max: 5}}
    by: {{care: [in, out]}}
    publish: [level, {{sliding: 3d, every: 2d}}, entered]
strategy: {strategy}
output: {{public: public, private: private, format: {format}}}
"""
HARDLY_ANY_NOISE = "epsilon: 100000000000, delta: 1.0e-9, accounting: zcdp, mechanism: gaussian"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A release, and how its changelog comes: `constraint` as the spec says it and `enforced` as the reference does."""

    constraint: str
    enforced: Constraint
    unit: str = "entry"
    format: str = "parquet"
    strategy: str = "disjoint"
    privacy: str = HARDLY_ANY_NOISE
    flags: tuple[str, ...] = ()
    increments: int = 3
    seed: int = 1

    def spec(self) -> str:
        return SPEC.format(
            format=self.format,
            unit=self.unit,
            privacy=self.privacy,
            constraint=self.constraint,
            strategy=self.strategy,
        )


def at_most(changes: int) -> dict[str, str | Constraint]:
    return {"constraint": f"{{at_most: {changes}}}", "enforced": AtMost(changes)}


def days(number: int) -> Within:
    return Within(number * TIMELINE.every)


CASES = {
    "at most three changes, half a dozen increments": Case(**at_most(3), increments=6, seed=51),
    "at most two changes, csv": Case(**at_most(2), format="csv", seed=52, strategy="{factorised: leaky}"),
    "within two days, jsonl": Case(
        constraint="{within: 2d}",
        enforced=days(2),
        format="jsonl",
        seed=53,
        strategy="{tree: {branching: 3, height: 2}}",
    ),
    "by class, every bundle twice": Case(
        constraint="{by: fare, classes: {pass: {within: 2d}, multi: {at_most: 3}}}",
        enforced=ByClass("fare", (("pass", days(2)), ("multi", AtMost(3)))),
        flags=("--direct_runner_bundle_repeat=1",),
        seed=54,
    ),
    "owner, at most five changes, csv": Case(**at_most(5), unit="person", format="csv", seed=55, strategy="sliding"),
    "owner of the state, by class, jsonl": Case(
        constraint="{by: fare, classes: {pass: {at_most: 1}, multi: {at_most: 6}}}",
        enforced=ByClass("fare", (("pass", AtMost(1)), ("multi", AtMost(6)))),
        unit="nurse",
        format="jsonl",
        seed=56,
    ),
}


@dataclass(frozen=True, slots=True)
class Increment:
    """A file and the run after it: the rows, when it runs, and how many windows have closed by then."""

    rows: list[Mutation]
    moment: datetime
    windows: int

    @property
    def until(self) -> str:
        return f"--until={self.moment.isoformat()}"


def increments(mutations: Iterable[Mutation], number: int, chance: random.Random) -> list[Increment]:
    """The mutations in files that come at random times, a few of them late or early and some again later."""
    hours = chance.sample(range(6, DAYS * 24 - 6), number - 1)
    moments = [START + timedelta(hours=hour) for hour in sorted(hours)] + [START + DAYS * DAY + timedelta(hours=1)]
    rows: list[list[Mutation]] = [[] for _ in moments]
    last = number - 1
    for m in mutations:
        due = next((i for i, moment in enumerate(moments) if m.at < moment), last)
        shift = chance.choices((0, 1, 2, -1), (90, 3, 3, 4))[0]
        comes = min(max(due + shift, 0), last)
        rows[comes].append(m)
        if chance.random() < 0.1:
            rows[chance.randint(comes, last)].append(m)
    for part in rows:
        chance.shuffle(part)
    return [Increment(part, at, min(DAYS, (at - START) // DAY)) for part, at in zip(rows, moments, strict=True)]


def prepare(folder: Path, case: Case) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "spec.yaml").write_text(case.spec(), encoding="utf-8")


def deliver(folder: Path, case: Case, rows: Sequence[Mutation], name: str) -> None:
    """Write a file of the changelog."""
    changelog = flat(table(rows))
    unused = set() if case.unit == "person" else {"person"}
    WRITERS[case.format](
        changelog.select([name for name in changelog.column_names if name not in unused]),
        folder / "data" / f"{name}.{case.format}",
    )


def run_all(slackwater: CommandLine, case: Case, parts: Sequence[Increment]) -> list[dict[str, bytes]]:
    """One run after each increment, and the same run again; the public side after each."""
    prepare(slackwater.folder, case)
    seen: list[dict[str, bytes]] = []
    released = 0
    for number, part in enumerate(parts):
        if part.rows:
            deliver(slackwater.folder, case, part.rows, f"{number:02d}")
        said = slackwater("run", "spec.yaml", part.until, *case.flags)
        assert said.code == 0, said.err
        assert ("nothing is due" in said.out) == (part.windows == released)
        released = part.windows
        seen.append(contents(slackwater.folder / "public"))
        again = slackwater("run", "spec.yaml", part.until, *case.flags)
        assert (again.code, "nothing is due" in again.out) == (0, True)
        assert contents(slackwater.folder / "public") == seen[-1]
    return seen


def charged(m: Mutation, unit: str) -> list[reference.Mutation]:
    """Return the mutation once for each unit that is charged for it."""
    told = reference.Mutation(m.stay, microseconds(m.at), m.seq, m.before, m.after)
    if unit == "entry":
        return [told]
    if unit == "person":
        return [replace(told, owner=m.person)]
    states = {"before": m.before, "after": m.after}
    return [
        replace(
            told,
            owner=nurse,
            **{n: state if state and state["nurse"] == nurse else None for n, state in states.items()},
        )
        for nurse in sorted({state["nurse"] for state in states.values() if state})
    ]


Key = tuple[str, str, int, str]
"""Query, kind, the number of its last window, cell."""


def expected(case: Case, parts: Sequence[Increment]) -> dict[Key, float]:
    """Return every published number, by the slow reference of the late rule."""
    runs: reference.Runs = []
    waiting: list[reference.Mutation] = []
    for part in parts:
        waiting += [told for m in part.rows for told in charged(m, case.unit)]
        if part.windows > (runs[-1][1] if runs else 0):
            runs.append((waiting, part.windows))
            waiting = []
    numbers: dict[Key, float] = {}
    for query, series in zip(QUERIES, PUBLISHED, strict=True):
        (grid,) = (component.grid for component in query.measure.components)
        for one in series:
            (leaves,) = reference.leaf_sums_of_runs(runs, query, one.family, TIMELINE, case.enforced)
            for end, row in zip(one.ends(DAYS), totals(one, leaves), strict=True):
                for cell, value in zip(query.by[0][1], row, strict=True):
                    numbers[query.name, one.kind, int(end), str(cell)] = float(value) * grid
    return numbers


def told(folder: Path) -> dict[Key, float]:
    """Return every published number; each occurs once, with almost no noise."""
    rows = published(folder, "estimates").to_pandas()
    # A Gaussian beyond 40 deviations has a probability below 1e-300.
    assert rows["stddev"].max() < 0.05 / 40
    ends = (pd.to_datetime(rows["window_end"], utc=True) - pd.Timestamp(START)) // pd.Timedelta(DAY)
    cells = np.where(rows["query"] == "beds", rows["ward"], rows["care"])
    keys = list(zip(rows["query"], rows["kind"], ends, cells, strict=True))
    assert set(Counter(keys).values()) == {1}
    return dict(zip(keys, rows["value"], strict=True))


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_increments_follow_the_late_rule(slackwater: CommandLine, case: Case) -> None:
    mutations = generate(case.seed, stays=150, plain=case.format == "jsonl")
    parts = increments(mutations, case.increments, random.Random(case.seed))

    seen = run_all(slackwater, case, parts)

    for before, after in pairwise(seen):
        assert {name: content for name, content in before.items() if name != "manifest.json"}.items() <= after.items()
    numbers, wanted = told(slackwater.folder), expected(case, parts)
    assert numbers.keys() == wanted.keys()
    # Whole counts, and sums of eighths: each is known to less than half a step.
    wrong = {key: (numbers[key], wanted[key]) for key in wanted if abs(numbers[key] - wanted[key]) > 0.05}
    assert wrong == {}
    on_time = expected(case, [Increment([m for part in parts for m in part.rows], parts[-1].moment, DAYS)])
    assert on_time != wanted  # late rows were put to the test
    assert sum(value != 0 for value in wanted.values()) > 50

    manifest = json.loads((slackwater.folder / "public/manifest.json").read_text())
    listed = [name for epoch in manifest["epochs"] for name in epoch["files"]]
    assert [epoch["windows"] for epoch in manifest["epochs"]] == sorted({p.windows for p in parts} - {0})
    assert sorted([*listed, "manifest.json", "spec.yaml", "plan.json"]) == sorted(seen[-1])
    store = Store(str(slackwater.folder / "public"), str(slackwater.folder / "private"))
    verify(store, store.commits())


def test_each_node_has_one_sample_in_all_published_rows_even_if_every_bundle_runs_twice(
    slackwater: CommandLine,
) -> None:
    """With real noise: levels of later epochs are made from nodes that earlier ones told."""
    case = Case(**at_most(3), privacy="epsilon: 1.0", flags=("--direct_runner_bundle_repeat=1",), increments=3, seed=57)

    run_all(slackwater, case, increments(generate(case.seed, stays=60), case.increments, random.Random(5)))

    nodes, estimates = (published(slackwater.folder, side).to_pandas() for side in ("nodes", "estimates"))
    manifest = json.loads((slackwater.folder / "public/manifest.json").read_text())
    assert len(manifest["epochs"]) > 1
    keys = ["query", "layer", "node_start", "node_end", "ward", "care"]
    assert not nodes.duplicated(keys).any()
    levels = estimates[(estimates["query"] == "beds") & (estimates["kind"] == "level")]
    net = nodes[(nodes["query"] == "beds") & ~nodes["layer"].astype(str).str.contains("entered|left")]
    for ward in WARDS:
        told_levels = levels[levels["ward"] == ward].sort_values("window_end")["value"].to_numpy()
        parts = net[net["ward"] == ward].sort_values("node_end")["noisy_value"].to_numpy()
        assert len(parts) == DAYS + 1
        np.testing.assert_array_equal(told_levels, np.cumsum(parts)[1:])


def test_other_names_of_entries_change_no_public_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One entry gets a long name with signs in it, all others change places: rows, columns and values stay."""
    case = Case(**at_most(2), seed=58, increments=2)
    mutations = generate(case.seed, stays=100)
    stays = sorted({m.stay for m in mutations})
    names = dict(zip(stays, ["", *reversed(stays[1:])], strict=True)) | {stays[0]: "Zoë, “the first”\n" * 20}
    sides = []
    for number, renamed in enumerate((mutations, [replace(m, stay=names[m.stay]) for m in mutations])):
        slackwater = CommandLine(tmp_path / str(number), capsys)
        parts = increments(renamed, case.increments, random.Random(7))
        run_all(slackwater, case, parts)
        found = {side: published(slackwater.folder, side) for side in ("nodes", "estimates")}
        files = sorted(re.sub("-[0-9a-f]{16}", "", name) for name in contents(slackwater.folder / "public"))
        sides.append((files, found))

    (files, first), (same_files, second) = sides
    assert files == same_files
    for side, noisy in (("nodes", ["noisy_value"]), ("estimates", ["value", "ci_low", "ci_high"])):
        one, two = first[side], second[side]
        assert one.schema == two.schema
        assert one.drop_columns(noisy).equals(two.drop_columns(noisy))
        for name in noisy:
            np.testing.assert_allclose(one[name], two[name], rtol=0, atol=0.05)


# What may not get out

ENTRIES = 54_037
SIZE = 9_000
"""No public file has as many bytes: no size in the manifest is a count that is larger."""

KEY, UNLISTED = "k7f3planted", "w9d2planted"
LEAK_SPEC = """\
release: wards
changelog: {{format: {format}, path: data/*.{format}, entry: stay, time: at, before: before_, after: after_}}
privacy: {{epsilon: 1.0e-6, constraint: {{at_most: 2}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-05T00:00:00Z}}
queries:
  - {{name: beds, measure: count, by: {{ward: [a, other]}}, publish: [level, change, entered, left],
     weight: 0.001}}
  - name: total
    measure: {{sum: x, min: 0, max: 1000000000}}
    by: {{ward: [a, other]}}
    publish: [level, change, entered]
strategy: disjoint
output: {{public: public, private: private, format: {format}}}
"""


def plant(folder: Path, format_: str, *, first: bool) -> None:
    """All entries on the first day, two in three of them in a ward that the spec does not list; half leave later."""
    number = np.arange(ENTRIES)
    present = number % 2 == 0 if not first else number >= 0
    ward = np.where(number % 3 == 0, "a", UNLISTED)
    x = (number * 2_654_435_761 % 999_999_937).astype(np.float64)  # any large numbers
    at = START + (timedelta(hours=5) if first else timedelta(days=2, hours=5))
    columns = {"stay": [f"{KEY}-{n}" for n in number], "at": pa.array([at] * ENTRIES, pa.timestamp("us", "UTC"))}
    for side, told in (("before", not first), ("after", first)):
        columns[f"{side}_ward"] = pa.array(ward, pa.string()) if told else pa.nulls(ENTRIES, pa.string())
        columns[f"{side}_x"] = pa.array(x) if told else pa.nulls(ENTRIES, pa.float64())
    path = folder / "data" / f"{'first' if first else 'second'}.{format_}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write = pq.write_table if format_ == "parquet" else WRITERS[format_]  # not in groups of 300 rows
    write(pa.table(columns).filter(pa.array(present)), path)


def everything(folder: Path) -> str:
    """Every name and byte under a folder as text; Parquet also as its values."""
    found = []
    for path in files_under(folder):
        found += [str(path.relative_to(folder)), path.read_bytes().decode("latin-1")]
        if path.suffix == ".parquet":
            values = pq.read_table(path)
            found += [str(values.schema), *(f"{value}\n" for column in values.columns for value in column.to_pylist())]
    return "\n".join(found)


def leaks(text: str, secrets: Iterable[str], numbers: Iterable[float]) -> list[str]:
    """Secrets that stand anywhere, and numbers that stand as a whole: 12345, 12345.0 or 1.2345e4."""
    words = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w)", text))
    whole = {float(word) for word in words}
    return [secret for secret in secrets if secret in text] + [str(number) for number in numbers if number in whole]


@pytest.mark.few(1)
@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_no_key_unlisted_ward_exact_sum_or_count_is_anywhere_on_the_public_side(
    slackwater: CommandLine, format_: str
) -> None:
    folder = slackwater.folder
    plant(folder, format_, first=True)
    (folder / "spec.yaml").write_text(LEAK_SPEC.format(format=format_), encoding="utf-8")
    assert slackwater("run", "spec.yaml", "--until=2026-01-02T00:00:00Z").code == 0
    plant(folder, format_, first=False)
    assert slackwater("run", "spec.yaml", "--until=2026-01-05T00:00:00Z").code == 0
    assert slackwater("evaluate", "spec.yaml", "--runs=1", "--truth=private/truth.parquet").code == 0

    truth = pq.read_table(folder / "private/truth.parquet").to_pandas()
    exact = truth[["exact", "bounded"]].abs().to_numpy()
    counts, sums = (np.unique(exact[truth["query"] == name]) for name in ("beds", "total"))
    # Of each ward all, those who leave and those who stay.
    planted = [*counts[counts > SIZE], *sums[sums > 1e12]]
    assert len(planted) >= 6

    # A noisy number is any given integer with probability 1 / 2b at the most, b the smallest scale that a node was
    # drawn with, since a sum of independent draws is no likelier to hit a point than one of them.
    public = everything(folder / "public")
    nodes, estimates = (published(folder, side).to_pandas() for side in ("nodes", "estimates"))
    told_numbers = len(nodes) + 3 * len(estimates)
    assert told_numbers * len(planted) / (2 * nodes["scale"].min()) < FALSE_ALARM
    assert max(len(content) for content in contents(folder / "public").values()) < SIZE

    assert leaks(public, [KEY, UNLISTED], planted) == []
    for name in ("window_start", "window_end"):
        estimates[name] = pd.to_datetime(estimates[name], utc=True)
    both = estimates.merge(truth, on=["query", "kind", "window_start", "window_end", "ward"], validate="one_to_one")
    assert len(both) == len(truth)
    assert not (both["value"] == both["exact"]).any()
    # The search finds values that are in the file.
    rows = pq.read_table(folder / "private/truth.parquet")
    (folder / "truth").mkdir()
    # Named as the changelog names its time, which is what the writers know.
    WRITERS[format_](rows.rename_columns({"window_end": "at"}).drop("window_start"), folder / f"truth/told.{format_}")
    assert leaks(everything(folder / "data"), [KEY, UNLISTED], []) == [KEY, UNLISTED]
    assert leaks(everything(folder / "truth"), [], planted) == [str(number) for number in planted]


# Late rows


def test_a_late_row_counts_in_the_first_open_window_and_published_rows_stay(slackwater: CommandLine) -> None:
    case = Case(**at_most(4))
    state = {"care": "in", "x": 1.0, "n": 1, "fare": "multi", "nurse": "q001"}
    in_a, in_b = {**state, "ward": "a"}, {**state, "ward": "b"}
    enters = Mutation("s000", "p000", START + timedelta(hours=1), 1, None, in_a)
    moves = Mutation("s000", "p000", START + timedelta(days=1, hours=1), 2, in_a, in_b)

    seen = run_all(
        slackwater,
        case,
        [
            Increment([enters], START + 3 * DAY, 3),
            Increment([moves], START + 5 * DAY, 5),  # late by one window and more
            Increment([enters, moves], START + 10 * DAY, 10),  # both again
        ],
    )

    numbers = told(slackwater.folder)
    for ward, changes in (("a", {1: 1, 4: -1}), ("b", {4: 1}), ("other", {})):
        found = {end: round(numbers["beds", "change", end, ward]) for end in range(1, DAYS + 1)}
        assert {end: change for end, change in found.items() if change} == changes
    entered = {key[2:]: round(value) for key, value in numbers.items() if key[:2] == ("beds", "entered")}
    assert {place: count for place, count in entered.items() if count} == {(1, "a"): 1, (4, "b"): 1}
    first, second, third = (
        {name: content for name, content in side.items() if name != "manifest.json"} for side in seen
    )
    assert first.items() < second.items() < third.items()
