"""Loading of valid specs."""

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.spec.load import load
from privacy.constraint import AtMost, ByClass, Within
from privacy.measure import Measure
from privacy.series import Series
from tests.pipelines.spec_text import GOOD, changed, loaded
from transforms.aggregation.queries import Query

DAY = 86_400_000_000
TEMPLATES = sorted((Path(__file__).parents[3] / "templates" / "specs").glob("*.yaml"))


def _micros(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1_000_000


def test_times_and_durations_are_whole_microseconds(tmp_path: Path) -> None:
    schedule = loaded(tmp_path, changed("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00")).schedule

    assert (schedule.start, schedule.every) == (_micros(2026, 1, 1), DAY)
    assert schedule.until == _micros(2026, 2, 1)


def test_a_schedule_may_have_no_end(tmp_path: Path) -> None:
    text = changed("  until: 2026-02-01T00:00:00Z\n", "")

    assert loaded(tmp_path, text).schedule.until is None


def test_queries_have_their_measure_cells_and_columns(tmp_path: Path) -> None:
    spec = loaded(tmp_path, GOOD)

    beds, waited = spec.queries

    assert beds.by == (("ward", ("a", "b", "other")),)
    assert (beds.cells, beds.columns) == (3, {"ward"})
    assert beds.publish == (Series(kind="level"), Series(kind="change"))
    assert waited == Query(name="waited", measure=Measure(kind="mean", low=0, high=240), column="waited")
    assert (waited.cells, waited.publish, waited.columns) == (1, (Series(kind="change"),), {"waited"})


def test_keys_of_cells_are_sorted_and_their_values_keep_order_and_type(tmp_path: Path) -> None:
    by = "{ward: [NO, on, other], floor: [3, 1], urgent: [true, false]}"

    query = loaded(tmp_path, changed("{ward: [a, b, other]}", by)).queries[0]

    assert query.by == (
        ("floor", (3, 1)),
        ("urgent", (True, False)),
        ("ward", ("NO", "on", "other")),
    )
    assert query.cells == 12


@pytest.mark.parametrize(
    ("delta", "asked", "mechanism", "accounting"),
    [
        ("0", "auto", "laplace", "naive"),
        ("1.0e-9", "auto", "auto", None),
        ("1.0e-9", "auto\n  accounting: rdp", "auto", "rdp"),
        ("1.0e-9", "laplace", "laplace", "naive"),
        ("1.0e-9", "gaussian", "gaussian", None),
        ("1.0e-9", "gaussian\n  accounting: zcdp", "gaussian", "zcdp"),
        ("0", "laplace\n  accounting: paper", "laplace", "paper"),
    ],
)
def test_without_delta_the_noise_is_settled_and_with_one_it_may_be_left_to_the_planner(
    tmp_path: Path, delta: str, asked: str, mechanism: str, accounting: str | None
) -> None:
    spec = loaded(tmp_path, changed("delta: 0", f"delta: {delta}\n  mechanism: {asked}"))

    assert (spec.privacy.mechanism, spec.privacy.accounting) == (mechanism, accounting)
    assert not any(query.measure.fine for query in spec.queries)


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("{at_most: 4}", AtMost(4)),
        ("{within: 1d12h}", Within(36 * 3_600_000_000)),
        ("{within: 0s}", Within(0)),
        (
            "{by: fare, classes: {pass: {within: 31d}, multi: {at_most: 20}}}",
            ByClass("fare", (("multi", AtMost(20)), ("pass", Within(31 * DAY)))),
        ),
    ],
)
def test_constraints_are_those_of_the_mathematics(tmp_path: Path, text: str, constraint: object) -> None:
    assert loaded(tmp_path, changed("{at_most: 4}", text)).privacy.constraint == constraint


def test_a_constraint_of_owners_may_limit_their_entries_at_one_time(tmp_path: Path) -> None:
    owned = changed("unit: entry", "unit: person")
    by_class = "{by: fare, classes: {pass: {at_most: 2}, multi: {at_most: 20, entries: 3}}}"

    plain = loaded(tmp_path, changed("{at_most: 4}", "{at_most: 4, entries: 1}", owned)).privacy.constraint
    classed = loaded(tmp_path, changed("{at_most: 4}", by_class, owned)).privacy.constraint

    assert plain == AtMost(4, entries=1)
    assert classed == ByClass("fare", (("multi", AtMost(20, entries=3)), ("pass", AtMost(2))))


STATES = "states: {none: [a], a: [b], b: [a, c], c: [none]}"


def test_a_state_machine_gives_the_constraint_if_it_is_missing(tmp_path: Path) -> None:
    privacy = loaded(tmp_path, changed("constraint: {at_most: 4}", STATES)).privacy

    assert privacy.constraint == AtMost(3)
    assert privacy.bound is not None
    assert privacy.bound.merged == (("a", "b"),)


def test_a_constraint_wins_over_the_state_machine_and_both_are_shown(tmp_path: Path) -> None:
    text = changed("constraint: {at_most: 4}", f"constraint: {{at_most: 2}}\n  {STATES}")

    privacy = loaded(tmp_path, text).privacy

    assert privacy.constraint == AtMost(2)
    assert privacy.bound is not None
    assert privacy.bound.k == 3


def test_the_unit_is_the_entry_unless_an_owner_is_named(tmp_path: Path) -> None:
    assert loaded(tmp_path, GOOD).privacy.owner is None
    assert loaded(tmp_path, changed("unit: entry", "unit: person")).privacy.owner == "person"


def test_the_source_of_the_reader_has_the_settings_of_the_changelog(tmp_path: Path) -> None:
    states = "before: b_\n  after: a_\n  types: {y: bool, x: int64}"
    more = f"time: at\n  {states}\n  order: lsn\n  timezone: UTC"
    owners = changed("unit: entry", "unit: person", changed("time: at", more))

    source = loaded(tmp_path, owners).changelog.source

    assert (source.format, source.paths) == ("parquet", ("data/*.parquet",))
    assert (source.entry, source.time, source.owner) == ("stay", "at", "person")
    assert (source.before, source.after, source.order) == ("b_", "a_", ("lsn",))
    assert (source.timezone, source.types) == ("UTC", (("x", "int64"), ("y", "bool")))
    assert loaded(tmp_path, GOOD).changelog.source.owner is None


def test_the_null_value_of_csv_is_stated_once_and_applies_to_snapshots_too(tmp_path: Path) -> None:
    csv = changed("format: parquet", "format: csv\n  nulls: ['NULL', '', 'NULL']")
    snapshots = changed("  time: at\n", "", changed("data/*.parquet", "data/%Y-%m-%d.csv.gz"))
    snapshots = changed("format: parquet", "format: snapshots\n  nulls: ''", snapshots)

    assert loaded(tmp_path, csv).changelog.source.nulls == ("", "NULL")
    assert loaded(tmp_path, snapshots).changelog.source.nulls == ("",)


def test_a_spec_knows_its_file_and_crosses_processes(tmp_path: Path) -> None:
    spec = loaded(tmp_path, GOOD)

    assert (spec.path, spec.base) == (tmp_path / "spec.yaml", tmp_path)
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301
    assert hash(spec) == hash(loaded(tmp_path, GOOD))


def test_an_output_next_to_one_with_a_similar_name_is_allowed(tmp_path: Path) -> None:
    text = changed("private: out/private", "private: out/public-not")

    assert loaded(tmp_path, text).output.private == "out/public-not"


def test_there_are_template_specs() -> None:
    assert len(TEMPLATES) >= 4


@pytest.mark.parametrize("path", TEMPLATES, ids=[path.stem for path in TEMPLATES])
def test_a_template_spec_is_right(path: Path) -> None:
    spec = load(path)

    assert spec.release.split("-")[0] == path.stem
    assert all(query.columns or query.cells == 1 for query in spec.queries)
