"""A release that protects places up to a distance: what it says, what it publishes, and what it refuses."""

import pytest

from pipelines.spec.load import load
from pipelines.spec.times import MICROSECOND
from privacy.protection import Span
from tests.e2e.specs import DAY, NO_NOISE, CommandLine, changelog, published, write, write_spec
from tests.e2e.test_answer import there

KEYS = ("by: {ward: [a, b, other]}", "by: {ward: [a, b, other], age: {from: 30, to: 70, step: 10}}")
NEAR = ("  constraint: {at_most: 4}", "  protects: {span: 3d, distance: {age: 10}}")
ANYONE = ('    where: "age >= 0"\n', "")
UNTIL = ("  until: 2026-01-06T00:00:00Z\n", "")
LEVELS = ("publish: [level, change]", "publish: [level, change]\n    cells: {strategy: prefix, for: ranges}")


def test_places_are_published_and_the_claim_states_which_facts_are_not_hidden(tmp_path, capsys):
    say = CommandLine(tmp_path, capsys)
    write(tmp_path / "data/day.parquet", changelog())
    write_spec(tmp_path, KEYS, NEAR, ANYONE, LEVELS, NO_NOISE, ("strategy: disjoint", "strategy: direct"))
    for day in ("03", "06"):
        ran = say("run", "spec.yaml", f"--until=2026-01-{day}T00:00:00Z")
        assert ran.code == 0, ran.err
    statement = (tmp_path / "public/manifest.json").read_text()
    assert "where one privacy unit is in any 3 days, up to 10 in age" in statement
    assert "PRESENCE IS NOT HIDDEN" in statement
    levels = {
        (row["window_end"].day - 1, row["ward"], row["age"]): row["value"]
        for row in published(tmp_path, "estimates").to_pylist()
        if row["kind"] == "level"
    }
    for day in range(1, 6):
        for low in (30, 40, 50, 60):
            assert levels[day, "b", f"[{low}, {low + 10})"] == pytest.approx(there(day, low, low + 10, "b"), abs=1e-6)
    ledger = say("ledger", "spec.yaml")
    assert "up to 10 in age" in ledger.out


def test_without_a_span_the_claim_covers_a_whole_release_that_ends(tmp_path, capsys):
    whole = (NEAR[0], NEAR[1].replace("span: 3d, ", ""))
    write_spec(tmp_path, KEYS, whole, ANYONE, LEVELS)

    protects = load(tmp_path / "spec.yaml").privacy.protects

    assert isinstance(protects, Span)
    assert protects.boundaries(DAY // MICROSECOND) == 5 + 1  # the ends of all windows, and the start


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([KEYS, NEAR], "where: reads age"),
        ([NEAR, ANYONE], "has no range of age"),
        ([KEYS, ANYONE, (NEAR[0], NEAR[1].replace("age: 10", "age: 2d"))], "ranges of another kind"),
        ([KEYS, ANYONE, (NEAR[0], NEAR[1] + "\n" + NEAR[0])], "may use up their changes at different times"),
        ([KEYS, ANYONE, (NEAR[0], NEAR[1].replace("span: 3d, ", "")), UNTIL], "the release has no end: add span: 14d"),
        ([KEYS, ANYONE, NEAR, (LEVELS[0], "publish: [level, left]")], "entered and left reveal where"),
        ([KEYS, ANYONE, NEAR, ("measure: count", "measure: {sum: age, min: 0, max: 9}")], "measure: reads age"),
        ([KEYS, ANYONE, (NEAR[0], NEAR[1].replace("age: 10", "age: 0"))], "more than zero"),
        ([KEYS, ANYONE, (NEAR[0], NEAR[1].replace("age: 10", "height: 1, age: 1"))], "no query has ranges of it"),
    ],
)
def test_settings_that_distinguish_near_units_are_refused(changes, error, tmp_path, capsys):
    write_spec(tmp_path, *changes)
    said = CommandLine(tmp_path, capsys)("plan", "spec.yaml")
    assert said.code == 2
    assert error in said.err
