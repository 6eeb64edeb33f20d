"""A changelog that comes in increments: rows late, early, repeated and in any order; and nothing private gets out."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.store import Store
from pipelines.times import microseconds
from privacy.constraint import AtMost, ByClass, Constraint, Within
from privacy.measure import Measure
from privacy.series import Series, totals
from tests import reference
from tests.e2e.changelogs import DAYS, START, WRITERS, Mutation, flat, generate, table
from tests.e2e.specs import CommandLine, contents, files_under, published
from transforms.queries import Query, Timeline

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
HARDLY_ANY_NOISE = "epsilon: 1000000000, delta: 1.0e-9, accounting: zcdp, mechanism: gaussian"


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
    increments: int = 6
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
    "at most three changes, thirty increments": Case(**at_most(3), increments=30, seed=51),
    "at most two changes, csv": Case(**at_most(2), format="csv", seed=52, strategy="{factorised: leaky}"),
    "within two days, jsonl": Case(
        constraint="{within: 2d}", enforced=days(2), format="jsonl", seed=53, strategy="{tree: {branching: 3, height: 2}}"
    ),
    "by class, every bundle twice": Case(
        constraint="{by: fare, classes: {pass: {within: 2d}, multi: {at_most: 3}}}",
        enforced=ByClass("fare", (("pass", days(2)), ("multi", AtMost(3)))),
        flags=("--direct_runner_bundle_repeat=1",),
        seed=54,
    ),
    "owner, at most five changes, csv": Case(**at_most(5), unit="person", format="csv", seed=55, strategy="auto"),
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
    """A file of the changelog."""
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
    """The mutation as each unit that answers for it has it."""
    told = reference.Mutation(m.stay, microseconds(m.at), m.seq, m.before, m.after)
    if unit == "entry":
        return [told]
    if unit == "person":
        return [replace(told, owner=m.person)]
    states = {"before": m.before, "after": m.after}
    return [
        replace(told, owner=nurse, **{n: state if state and state["nurse"] == nurse else None for n, state in states.items()})
        for nurse in sorted({state["nurse"] for state in states.values() if state})
    ]


Key = tuple[str, str, int, str]
"""Query, kind, the number of its last window, cell."""


def expected(case: Case, parts: Sequence[Increment]) -> dict[Key, float]:
    """Every number that is published, by the late rule's slow reference."""
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
                for (cell,), value in zip(query.cell_keys(), row, strict=True):
                    numbers[query.name, one.kind, int(end), str(cell)] = float(value) * grid
    return numbers


def told(folder: Path) -> dict[Key, float]:
    """Every number that is published, each once; and hardly any noise is in it."""
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_increments_tell_what_the_late_rule_says(slackwater: CommandLine, case: Case) -> None:
    mutations = generate(case.seed, stays=200, plain=case.format == "jsonl")
    parts = increments(mutations, case.increments, random.Random(case.seed))

    seen = run_all(slackwater, case, parts)

    for before, after in zip(seen, seen[1:], strict=False):
        assert {name: content for name, content in before.items() if name != "manifest.json"}.items() <= after.items()
    numbers, wanted = told(slackwater.folder), expected(case, parts)
    assert numbers.keys() == wanted.keys()
    # Whole counts, and sums of eighths: each is told to less than half a step.
    wrong = {key: (numbers[key], wanted[key]) for key in wanted if abs(numbers[key] - wanted[key]) > 0.05}
    assert wrong == {}
    on_time = expected(case, [Increment([m for part in parts for m in part.rows], parts[-1].moment, DAYS)])
    assert on_time != wanted  # late rows were put to the test
    assert sum(value != 0 for value in wanted.values()) > 50

    manifest = json.loads((slackwater.folder / "public/manifest.json").read_text())
    listed = [name for epoch in manifest["epochs"] for name in epoch["files"]]
    assert [epoch["windows"] for epoch in manifest["epochs"]] == sorted({p.windows for p in parts} - {0})
    assert sorted([*listed, "manifest.json", "spec.yaml"]) == sorted(seen[-1])
    store = Store(str(slackwater.folder / "public"), str(slackwater.folder / "private"))
    store.verify(store.commits())
