"""Parts of a pipeline that do not belong together are refused when they are joined, before any data is read.

Each case changes one fact in one part only. If it ran, the release would claim a guarantee that is not enforced.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, ByClass
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.bounded_sums import SUMS, BoundedSums
from transforms.aggregation.expression import Condition
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.projection import Project
from transforms.aggregation.queries import Query, Timeline
from transforms.common.source import Source
from transforms.release.release import ReleasePlan, ReleaseSums
from transforms.sources.changelog import ReadChangelog
from transforms.sources.inspection import inspect

AGE = Measure(kind="sum", low=0, high=100)
QUERIES = (
    Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b")),)),
    Query(name="age", measure=AGE, column="age"),
)
CLASSES = ByClass("ward", (("a", AtMost(1)), ("b", AtMost(4))))
AGGREGATION = Aggregation(
    queries=QUERIES, timeline=Timeline(start=0, every=10, windows=4), constraint=CLASSES, owner="who"
)


def plan_of(aggregation: Aggregation, **other: Any) -> Plan:
    demands = [query.demand for query in aggregation.queries]
    promise = replace(aggregation.promise(), **other)
    return make_plan(demands, promise, budget=Budget(epsilon=1), mechanism="laplace", accounting="naive")


PLAN = plan_of(AGGREGATION)


@dataclass(frozen=True)
class Parts:
    """Arguments of the four parts of a pipeline: one aggregation, unless a case replaces it."""

    read: str | None = "who"
    project: Aggregation = AGGREGATION
    bound: Aggregation = AGGREGATION
    release: Aggregation = AGGREGATION
    plan: Plan = PLAN
    between: tuple[str, ...] = ()
    past: tuple[str | None, str | None] = (None, None)
    keep: tuple[bool, bool] = (False, False)

    def join(self, folder: Path, shards: int = 2) -> None:
        """Build the pipeline without running it."""
        pipeline = beam.Pipeline()

        def given(collection: Any, part: str) -> Any:
            return collection | f"After{part}" >> beam.Map(lambda row: row) if part in self.between else collection

        rows = given((pipeline | ReadChangelog(layout(folder, self.read)))["rows"], "read")
        projected = given((rows | Project(self.project.projection)).projected, "project")
        past, keep = self.past[0], self.keep[0]
        sums = (projected | BoundedSums(self.bound, shards=shards, past=past, keep=keep))[SUMS]
        release = ReleasePlan(plan=self.plan, aggregation=self.release)
        given(sums, "sums") | ReleaseSums(release, past=self.past[1], keep=self.keep[1])


def layout(folder: Path, owner: str | None) -> Any:
    path = folder / "changelog.parquet"
    table = {"stay": ["s"], "at": [5], "who": ["p"], "ward": ["a"], "age": [50.0]}
    pq.write_table(pa.table(table | {"at": pa.array([5], pa.timestamp("us", "UTC"))}), path)
    source = Source(format="parquet", paths=(str(path),), entry="stay", time="at", before=None, after=None, owner=owner)
    return inspect(source, frozenset({"age"}), frozenset({"ward", "who"}))


def state_of(folder: Path, shards: int) -> str:
    for shard in range(shards):
        (folder / f"units-{shard:05}.parquet").touch()
    return str(folder)


LATER = replace(AGGREGATION, timeline=replace(AGGREGATION.timeline, released=2))


def test_parts_that_belong_together_can_be_joined(tmp_path: Path) -> None:
    Parts(between=("read",)).join(tmp_path)  # rows may come from any step
    Parts(keep=(True, True)).join(tmp_path)
    past = state_of(tmp_path, 2)
    Parts(bound=LATER, release=LATER, project=LATER, past=(past, past)).join(tmp_path)


def other(**facts: Any) -> Aggregation:
    return replace(AGGREGATION, **facts)


MEASURED = (QUERIES[0], replace(QUERIES[1], measure=replace(AGE, high=1e6)))
WHERE = (replace(QUERIES[0], where=Condition.parse("age > 1")), QUERIES[1])
CELLS = (replace(QUERIES[0], by=(("ward", ("a", "b", "other")),)), QUERIES[1])
FAMILIES = (replace(QUERIES[0], publish=(Series(kind="change"), Series(kind="entered"))), QUERIES[1])
LOOSER = ByClass("ward", (("a", AtMost(9)), ("b", AtMost(4))))
OTHER_CLASSES = ByClass("ward", (("b", AtMost(4)), ("a", AtMost(1))))
FOREVER = Timeline(start=0, every=10, windows=5)
DAYS = Timeline(start=0, every=20, windows=4)
ENTRIES = other(owner=None)

MISMATCHES: dict[str, Callable[[], Parts]] = {
    "owners are read, entries bounded": lambda: Parts(
        project=ENTRIES, bound=ENTRIES, release=ENTRIES, plan=plan_of(ENTRIES)
    ),
    "entries are read, owners bounded": lambda: Parts(read=None),
    "other owners are read than bounded": lambda: Parts(read="ward"),
    "owners are projected, entries bounded": lambda: Parts(bound=ENTRIES, release=ENTRIES, plan=plan_of(ENTRIES)),
    "entries are projected, owners bounded": lambda: Parts(read=None, project=ENTRIES),
    "owners are bounded, entries planned for": lambda: Parts(plan=plan_of(ENTRIES)),
    "entries are bounded, owners planned for": lambda: Parts(
        read=None, project=ENTRIES, bound=ENTRIES, release=ENTRIES
    ),
    "values are clamped to wider bounds than planned": lambda: Parts(project=other(queries=MEASURED)),
    "another condition is projected": lambda: Parts(project=other(queries=WHERE)),
    "more cells are projected": lambda: Parts(project=other(queries=CELLS)),
    "one query more is projected": lambda: Parts(project=other(queries=(*QUERIES, replace(QUERIES[1], name="b")))),
    "queries are projected in another order": lambda: Parts(project=other(queries=QUERIES[::-1])),
    "classes are numbered otherwise": lambda: Parts(project=other(constraint=OTHER_CLASSES)),
    "classes are not read": lambda: Parts(project=other(constraint=AtMost(4))),
    "a looser constraint is enforced": lambda: Parts(bound=other(constraint=LOOSER)),
    "a looser constraint is enforced and released": lambda: Parts(
        bound=other(constraint=LOOSER), release=other(constraint=LOOSER)
    ),
    "other windows are summed": lambda: Parts(bound=other(timeline=DAYS)),
    "other windows are summed and released": lambda: Parts(bound=other(timeline=DAYS), release=other(timeline=DAYS)),
    "more windows are released than planned": lambda: Parts(
        bound=other(timeline=FOREVER), release=other(timeline=FOREVER)
    ),
    "another family is summed": lambda: Parts(bound=other(queries=FAMILIES)),
    "another family is released": lambda: Parts(release=other(queries=FAMILIES)),
    "the plan is for narrower bounds": lambda: Parts(
        project=other(queries=MEASURED), bound=other(queries=MEASURED), release=other(queries=MEASURED)
    ),
    "sums without the constraint are released": lambda: Parts(bound=other(exact=True), release=other(exact=True)),
    "sums without the constraint are handed on": lambda: Parts(bound=other(exact=True)),
    "a step stands between projection and sums": lambda: Parts(between=("project",)),
    "a step stands between sums and release": lambda: Parts(between=("sums",)),
    "windows are released already, and no state is given": lambda: Parts(project=LATER, bound=LATER, release=LATER),
    "a state is given, and no window is released": lambda: Parts(past=("past", "past")),
    "noise continues from another state than units": lambda: Parts(
        project=LATER, bound=LATER, release=LATER, past=("past", "elsewhere")
    ),
    "units leave a state, and noise does not": lambda: Parts(keep=(True, False)),
    "noise leaves a state, and units do not": lambda: Parts(keep=(False, True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MISMATCHES)
def test_parts_that_do_not_belong_together_are_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "past").mkdir()
    state_of(tmp_path / "past", 2)

    with pytest.raises(ValueError, match=r"^[^\n]{20,250}$"):
        MISMATCHES[case]().join(tmp_path)


def test_a_state_of_another_number_of_shards_is_refused(tmp_path: Path) -> None:
    past = state_of(tmp_path, 3)

    with pytest.raises(ValueError, match="does not hold the state of 2 shards"):
        Parts(bound=LATER, release=LATER, project=LATER, past=(past, past)).join(tmp_path)
