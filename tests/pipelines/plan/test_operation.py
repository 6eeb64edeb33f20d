"""Text of `slackwater plan`: its errors hold for the noise, and its warnings and searches are right."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from pipelines import cli
from pipelines.epochs.plans import plan_of
from pipelines.plan.accuracy import ratio_error
from pipelines.plan.operation import plan, whole_document
from pipelines.plan.variants import least_epsilon
from pipelines.spec.load import load
from privacy.measure import Measure
from tests.e2e.specs import CommandLine, write_spec
from tests.pipelines.spec_text import GOOD, changed

BEDS = 'where: "age >= 0"'


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write_spec(tmp_path)
    return CommandLine(tmp_path, capsys)


def warnings(folder: Path, *changes: tuple[str, str]) -> list[str]:
    spec = load(write_spec(folder, *changes))
    found: list[str] = whole_document(spec, plan_of(spec), 5)["warnings"]
    return found


def test_a_row_states_the_margin_of_error_of_a_number_and_explain_states_why(slackwater: CommandLine) -> None:
    write_spec(slackwater.folder, (BEDS, f"{BEDS}\n    expected: 400"))

    plain, explained = slackwater("plan", "spec.yaml").out, slackwater("plan", "spec.yaml", "--explain").out

    rows = [line.split() for line in plain.splitlines() if line.startswith("beds")]
    assert [row[1] for row in rows] == ["level", "change"]
    assert all(row[3] == "±" and row[-2].endswith("%") for row in rows)
    assert "sensitivities and shares of the budget: --explain" in plain
    assert "paper" not in plain
    assert "net: a unit moves the nodes by L1" in explained


def test_95_percent_of_numbers_are_within_the_margin_of_error_of_plan(slackwater: CommandLine) -> None:
    """A right half width of the last level fails with probability 1e-6 at most, over 400 samples of its noise."""
    spec = load(slackwater.folder / "spec.yaml")
    plan = plan_of(spec)
    level = whole_document(spec, plan, 5)["queries"][0]["accuracy"][0]
    released = plan.publishing(0, spec.queries[0].publish[0])
    (*_, weights) = released.strategy.weights(spec.queries[0].publish[0], 5)

    drawn = released.noise[0].noise(400 * len(weights)).reshape(400, len(weights)) * weights
    held = int((np.abs(drawn.sum(axis=1)) <= level["half_width_last"]).sum())

    assert binom.ppf(5e-7, 400, 0.95) <= held <= binom.ppf(1 - 5e-7, 400, 0.97)
    assert level["half_width"] < level["half_width_last"]  # disjoint windows add up


@pytest.mark.parametrize("kind", ["mean", "second_moment", "variance"])
def test_a_ratio_over_enough_entries_is_within_the_stated_error(kind: str) -> None:
    """Worst noise within the half widths, over entries that hold anything within the bounds."""
    measure = Measure(kind=kind, low=-4, high=8)
    components, entries = measure.components, 60
    widths = [9.0 * component.grid * component.largest for component in components]
    chance = np.random.default_rng(3)
    for _ in range(300):
        values = measure.project(chance.choice([-4.0, -1.0, 2.0, 8.0], entries, p=chance.dirichlet([0.5] * 4)))
        sums = [column.sum().astype(float) for column in measure.contributions(values, entries)]
        noise = [chance.choice([-1, 1]) * width / c.grid for width, c in zip(widths, components, strict=True)]
        off = measure.estimate([np.array(s + z) for s, z in zip(sums, noise, strict=True)]) - measure.estimate(
            [np.array(s) for s in sums]
        )
        assert abs(float(off)) <= ratio_error(measure, widths, entries) * (1 + 1e-9)
    assert ratio_error(measure, widths, 9) == np.inf


WARNED = [
    (
        [("epsilon: 1.0", "epsilon: 6.0")],
        "privacy.epsilon: 6 is above 5: published numbers may change odds by a factor of 403",
    ),
    (
        [("epsilon: 1.0", "epsilon: 1.0\n  delta: 1.0e-4")],
        "privacy.delta: 0.0001 is above 1e-05: one in 1 / delta people",
    ),
    ([("at_most: 4", "at_most: 7")], "privacy.constraint.at_most: 7 changes for 5 windows: noise is the same as for 6"),
    (
        [("  before: before_\n", "  expires: 28d\n"), ("constraint: {at_most: 4}", "protects: {span: 14d}")],
        "privacy.protects.span: 2w is not longer than changelog.expires: a single event changes states for 4w",
    ),
    ([("measure: count", "measure: {sum: age, min: 60, max: 90}")], "query beds: each value is 60 or more from zero"),
]


@pytest.mark.parametrize(("changes", "warning"), WARNED, ids=[warning for _, warning in WARNED])
def test_plan_warns_of_weak_promises_and_wasted_budget(tmp_path, changes, warning):
    assert warnings(tmp_path) == []
    assert any(one.startswith(warning) for one in warnings(tmp_path, *changes))


def test_plan_warns_if_noise_is_half_of_the_expected_value(tmp_path):
    of = lambda expected: warnings(tmp_path, (BEDS, f"{BEDS}\n    expected: {expected}"))  # noqa: E731

    assert of(1000) == []
    assert ", and 40 is expected. Use fewer and larger cells than 3 or a smaller contribution bound" in of(40)[0]


@pytest.mark.slow
def test_specs_stand_side_by_side(slackwater: CommandLine) -> None:
    write_spec(slackwater.folder, ("epsilon: 1.0", "epsilon: 2.0"), name="two.yaml")

    varied = json.loads(
        slackwater("plan", "spec.yaml", "--vary", "epsilon=0.5,1", "--vary", "at_most=2,4", "--json").out
    )
    both = slackwater("plan", "spec.yaml", "--compare", "two.yaml").out

    names = [spec["spec"] for spec in varied["specs"]]
    halves = [spec["accuracy"]["beds: level"]["half_width"] for spec in varied["specs"]]
    assert names == [f"epsilon={epsilon}, at_most={k}" for epsilon in (0.5, 1) for k in (2, 4)]
    assert halves[0] > halves[2]
    assert halves[1] > halves[0]
    assert [line.split()[:2] for line in both.splitlines()[1:3]] == [["spec.yaml", "1"], ["two.yaml", "2"]]
    assert [path.name for path in sorted(slackwater.folder.iterdir())] == ["spec.yaml", "two.yaml"]
    assert "warning" not in both
    much = slackwater("plan", "spec.yaml", "--vary", "epsilon=1,6").out
    assert "\nwarning: epsilon=6: privacy.epsilon: 6 is above 5: " in much
    assert "warning: epsilon=1:" not in much
    all_much = slackwater("plan", "spec.yaml", "--vary", "epsilon=6", "--vary", "at_most=2,4").out
    assert all_much.count("\nwarning: privacy.epsilon: 6 is above 5: ") == all_much.count("warning: ") == 1


@pytest.mark.slow
def test_the_least_epsilon_for_an_error_reaches_it_and_a_percent_less_does_not(slackwater: CommandLine) -> None:
    said = slackwater("plan", "spec.yaml", "--target", "beds=30", "--json")
    told = json.loads(said.out)["specs"][0]

    halves = [number["half_width"] for number in told["accuracy"].values()]
    assert max(halves) <= 30
    text = changed("epsilon: 1.0", f"epsilon: {0.98 * told['epsilon']}", (slackwater.folder / "spec.yaml").read_text())
    (slackwater.folder / "less.yaml").write_text(text)
    less = json.loads(slackwater("plan", "less.yaml", "--json").out)["queries"][0]["accuracy"]
    assert max(number["half_width"] for number in less) > 30
    best = slackwater("plan", "spec.yaml", "--target", "beds=30", "--vary", "at_most=4,2").out
    assert "The least of all: at_most=2" in best


def test_a_search_that_reaches_nothing_says_so() -> None:
    assert least_epsilon(lambda epsilon: 30.0, 20.0) is None
    assert least_epsilon(lambda epsilon: 0.0, 20.0) == pytest.approx(1e-4, rel=0.3)


REFUSED = [
    (["--vary", "epsilon"], "--vary epsilon: expected a key and its values, such as privacy.epsilon=0.5,1,2"),
    (["--vary", "epsilon=1,,2"], "--vary epsilon=1,,2: expected a key and its values"),
    (
        ["--vary", "at_least=2"],
        "--vary at_least: spec.yaml: the spec has no such key (did you mean at_most?); write it",
    ),
    (["--vary", "ranges=2"], "--vary ranges: spec.yaml: the spec has no such key; write it there first"),
    (["--vary", "privacy.delta=0"], "--vary privacy.delta: spec.yaml: the spec has no such key; write it there first"),
    (["--vary", "epsilon=-1"], "slackwater: spec.yaml with epsilon=-1: privacy.epsilon: "),
    (["--html", "public/plan.html"], "--html public/plan.html: lies in the public folder"),
    (["--vary", "epsilon=" + ",".join("1" * 65)], "--vary: 65 specs to plan, at most 64; vary fewer values"),
    (["--target", "beds"], "--target beds: expected a query and a margin of error, such as beds=20"),
    (["--target", "wards=20"], "--target wards: no query of the spec; it has beds"),
    (["--html", "plan.pdf"], "--html plan.pdf: the name must end in .html"),
    (
        ["--html", "plan.html", "--target", "beds=20"],
        "--html: is for one plan; leave out --compare, --vary and --target",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), [one for one in REFUSED if one[1]], ids=[m for _, m in REFUSED if m])
def test_impossible_variants_are_refused(slackwater: CommandLine, arguments: list[str], message: str) -> None:
    said = slackwater("plan", "spec.yaml", *arguments)

    assert (said.code, said.out) == (2, "")
    assert message in said.err


def test_a_target_is_refused_for_errors_that_depend_on_the_data(slackwater: CommandLine) -> None:
    write_spec(
        slackwater.folder, ("measure: count", "measure: {mean: age, min: 0, max: 100}"), ("[level, change]", "[level]")
    )

    said = slackwater("plan", "spec.yaml", "--target", "beds=20")

    assert "--target beds: its error depends on the data; targets are for counts and sums" in said.err
    assert "entries or more" in slackwater("plan", "spec.yaml").out


def test_a_plan_is_a_page_too(tmp_path: Path, slackwater: CommandLine) -> None:
    write_spec(tmp_path, ("epsilon: 1.0", "epsilon: 6.0"), ("[a, b, other]", "['<b>', b, other]"))

    assert slackwater("plan", "spec.yaml", "--html", "plan.html").code == 0

    page = (tmp_path / "plan.html").read_text()
    assert "privacy.epsilon: 6 is above 5" in page
    assert "(6, 0)-differential privacy" in page
    assert "<script" not in page
    assert cli.main(["plan", str(tmp_path / "spec.yaml"), "--html", str(tmp_path / "plan.html"), "--json"]) == 0


OWNED = changed("unit: entry", "unit: patient", changed("measure: count", "measure: units"))


@pytest.mark.slow
def test_a_plan_compares_units_with_entries(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    units = changed("by: {ward: [a, b, other]}", "by: {}", changed("{at_most: 4}", "{at_most: 8}", OWNED))
    units = changed("publish: [level, change]", "publish: [level]", units)
    units = changed("until: 2026-02-01", "until: 2026-01-09", units)
    margins = {}
    for kind in ("units", "count"):
        spec.write_text(changed("delta: 0", "delta: 1.0e-9", changed("measure: units", f"measure: {kind}", units)))
        planned = plan(spec)
        query, ratio = planned.document["queries"]
        number = query["accuracy"][0]
        margins[kind] = (number["half_width"], number["instead"]["half_width"])
        other = {"units": "count", "count": "units"}[kind]
        assert number["instead"]["measure"] == other
        if kind == "count":  # the text takes seconds, since it compares other plans
            assert f"{other}: ± {number['instead']['half_width']:.4g}" in planned.text()
        assert "instead" not in ratio["accuracy"][0]
    assert margins["units"] == pytest.approx(margins["count"][::-1])
    assert margins["units"][0] < margins["units"][1] / 2
    spec.write_text(changed("{at_most: 4}", "{at_most: 4, entries: 1}", OWNED))
    assert "instead" not in plan(spec).document["queries"][0]["accuracy"][0]
    spec.write_text(GOOD)
    assert "instead" not in plan(spec).document["queries"][0]["accuracy"][0]


@pytest.mark.parametrize(
    ("start", "over"),
    [
        ("2150-01-05T00:00:00Z, every: 1d", "365 windows of 1 day (the schedule has no end)"),
        ("2150-01-05T00:00:00Z, every: 500d", "1 window of 500 days (the schedule has no end)"),
        ("2150-01-01, every: 1mo, timezone: Europe/Berlin", "12 windows of 1 month in Europe/Berlin (the schedule"),
    ],
)
def test_a_release_without_an_end_that_begins_later_has_the_errors_of_its_first_year(
    tmp_path: Path, start: str, over: str
) -> None:
    text = changed("  start: 2026-01-01T00:00:00Z\n  every: 1d\n  until: 2026-02-01T00:00:00Z\n", "", GOOD)
    text = changed("  constraint: {at_most: 4}\n", "  protects: {span: 600d}\n", text)
    path = tmp_path / "spec.yaml"
    path.write_text(changed("schedule:\n", f"schedule: {{start: {start}}}\n", text))

    document = plan(path).to_json()

    assert document["over"].startswith(over)
    assert document["queries"][0]["accuracy"][0]["half_width_last"] > 0


def test_null_removes_a_key_that_varies(slackwater: CommandLine) -> None:
    span = ("constraint: {at_most: 4}", "protects: {span: 2d}")
    write_spec(slackwater.folder, span)

    said = slackwater("plan", "spec.yaml", "--vary", "schedule.until=null,2026-01-06T00:00:00Z")
    refused = slackwater("plan", "spec.yaml", "--vary", "schedule.until=none")

    assert [line.split()[0] for line in said.out.splitlines()[1:3]] == [
        "schedule.until=null",
        "schedule.until=2026-01-06T00:00:00Z",
    ]
    assert refused.code == 2
    assert refused.err.endswith("not 'none'; null removes a key\n")
