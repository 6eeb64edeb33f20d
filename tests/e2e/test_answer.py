"""`slackwater answer` on a release of a few days: sums over ranges, differences of days, from the public side alone."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipelines import cli
from pipelines.answer.operation import answers
from pipelines.published.release import published
from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.noise.kinds import Mechanism
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Series
from privacy.smoothing.noise_covariance import noise_weights
from tests.e2e.specs import DAY, NO_NOISE, START, CommandLine, changelog, write, write_spec
from tests.releases.continued import unpacked
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError

RELEASES = Path(__file__).parents[1] / "releases"
KEYS = ("by: {ward: [a, b, other]}", "by: {ward: [a, b, other], age: {from: 30, to: 70, step: 10}}")


def there(day: int, low: float, high: float, ward: str | None = None) -> int:
    """Return the number of stays in a ward and of an age at the end of a day."""
    state: dict[str, tuple] = {}
    for row in sorted(changelog(), key=lambda row: row["at"]):
        state.setdefault(row["stay"], (row["before_ward"], row["before_age"]))
        if row["at"] < START + day * DAY:
            state[row["stay"]] = row["after_ward"], row["after_age"]
    return sum(at is not None and low <= age < high and ward in (None, at) for at, age in state.values())


def test_ranges_and_differences_are_answered_from_the_public_side_alone(tmp_path, capsys):
    write(tmp_path / "data/day.parquet", changelog())
    ranges = "publish: [level, change, {ranges: [{age: {from: 30, to: 50}}, {age: {from: 60}}]}]"
    write_spec(tmp_path, KEYS, NO_NOISE, ('    where: "age >= 0"\n', ""), ("publish: [level, change]", ranges))
    say = CommandLine(tmp_path, capsys)
    for day in ("03", "06"):  # two epochs
        assert say("run", "spec.yaml", f"--until=2026-01-{day}T00:00:00Z").code == 0
    compared = json.loads(say("evaluate", "spec.yaml", "--until=2026-01-03T00:00:00Z", "--runs=1", "--json").out)
    planned = say("plan", "spec.yaml")
    shutil.rmtree(tmp_path / "private")
    shutil.rmtree(tmp_path / "data")

    told = say("answer", "public", "--where", "age >= 30 and age < 50 and ward = 'b'", "--json")
    less = say(
        *("answer", "spec.yaml", "--where", "age >= 40", "--window", "2026-01-05T00:00:00Z"),
        *("--minus", "2026-01-02T00:00:00Z", "--json"),
    )
    text = say("answer", "spec.yaml", "--kind", "change", "--where", "age < 30 or age >= 70")
    cut = say("answer", "spec.yaml", "--where", "age between 40 and 64")
    never = say("answer", "spec.yaml", "--window", "2026-02-01T00:00:00Z")
    same = say("answer", "spec.yaml", *("--window", "2026-01-05T00:00:00Z"), *("--minus", "2026-01-05T00:00:00Z"))

    shown = json.loads(say("show", "public", "--json").out)["estimates"]
    ranged = [row for row in shown if row["kind"] == "level_range"]
    assert len(ranged) == 5 * 2 * 3
    assert [row["value"] for row in ranged if (row["ward"], row["age"]) == ("b", "[60, inf)")] == pytest.approx(
        [there(day, 60, 1e9, "b") for day in range(1, 6)], abs=1e-6
    )
    same_as = [row for row in ranged if (row["ward"], row["age"]) == ("b", "[30, 50)")]
    for one, other in zip(same_as, json.loads(told.out)["answers"], strict=True):
        assert one["window_end"][:19] == other["window_end"][:19]
        for name in ("value", "stddev", "ci_low", "ci_high"):
            assert one[name] == pytest.approx(other[name], abs=1e-9)
    kinds = {number["kind"]: number for number in compared["queries"][0]["numbers"]}
    assert [*kinds] == ["level", "change", "level_range", "change_range"]
    assert kinds["level_range"]["rows"] == 2 * 2 * 3
    assert kinds["level_range"]["rmse_observed"] < 1e-6
    assert kinds["level_range"]["truth"] > 0
    assert "level_range" in planned.out
    assert say("report", "public", "-o", "page.html").code == 0
    assert "beds, ranges" in (tmp_path / "page.html").read_text()
    by_day = [row["value"] for row in json.loads(told.out)["answers"]]
    assert by_day == [there(day, 30, 50, "b") for day in range(1, 6)]
    assert len(set(by_day)) > 1
    (found,) = json.loads(less.out)["answers"]
    assert found["value"] == there(4, 40, 1e9) - there(1, 40, 1e9) != 0
    assert found["ci_low"] <= found["value"] <= found["ci_high"]
    assert "beds, change where age < 30 or age >= 70 (6 cells):" in text.out
    assert "costs no privacy" in text.out
    assert (cut.code, cut.err) == (
        2,
        "slackwater: --where: 'age between 40 and 64' cuts the cell [60, 70) of age; nearest edges: 60, 70; "
        "write age < 60 or age < 70, or >= in the place of <\n",
    )
    assert "the nearest ends are 2026-01-05T00:00:00Z and 2026-01-06T00:00:00Z" in never.err
    assert (same.code, same.err) == (2, "slackwater: --minus: the same window as --window; give another one\n")


def test_sums_under_a_strategy_over_cells_have_the_noise_of_its_nodes(tmp_path, capsys):
    write(tmp_path / "data/day.parquet", changelog())
    cells = "\n    cells: {strategy: tree, branching: 3, for: ranges}"
    write_spec(tmp_path, (KEYS[0], KEYS[1] + cells), ("every: 1d", "every: 5d"))
    assert CommandLine(tmp_path, capsys)("run", "spec.yaml", "--until=2026-01-06T00:00:00Z").code == 0
    release = published(str(tmp_path / "public"))
    (query,) = release.spec.queries
    series, table = next(iter(release.numbers(query)))
    over = release.plan.parts[0].over
    assert over is not None
    one = answers(release, query, series, where="ward = 'b' and age >= 40 and age < 50").to_pylist()[0]
    whole = answers(release, query, series, where="ward = 'b'").to_pylist()[0]
    row = next(row for row in table.to_pylist() if (row["ward"], row["age"]) == ("b", "[40, 50)"))
    assert (one["value"], one["stddev"]) == pytest.approx((row["value"], row["stddev"]))
    assert one["ci_high"] - one["ci_low"] == pytest.approx(row["ci_high"] - row["ci_low"], rel=0.25)
    in_ward = np.repeat([0.0, 1.0, 0.0], 6).reshape(3, 6).T.ravel()  # age is the first key by name
    assert whole["stddev"] / one["stddev"] == pytest.approx(
        (over.variance(in_ward) / over.variances()[np.flatnonzero(in_ward)[2]]) ** 0.5, rel=1e-6
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(RELEASES / "0.3.0/everything", tmp_path_factory.mktemp("kept")) / "public"


def test_one_cell_is_answered_as_it_is_published(kept: Path) -> None:
    """Covers all strategies; each answer has the noise of its strategy."""
    release, compared = published(str(kept)), 0
    for query in release.spec.queries:
        if query.measure.kind != "count" or query.consistent or query.adaptive or not query.by or query.ordered:
            continue
        for series, table in release.numbers(query):
            name, listed = query.by[-1]
            found = answers(release, query, series, where=f"{name} = '{listed[0]}'") if len(query.by) == 1 else None
            if found is not None:
                rows = table.take(list(range(0, table.num_rows, query.cells)))
                for column in ("value", "stddev", "ci_low", "ci_high"):
                    assert found[column].to_pylist() == pytest.approx(rows[column].to_pylist(), rel=1e-3), series
                compared += 1
    assert compared > 3


def test_answers_without_a_known_noise_scale_are_refused(kept: Path, tmp_path: Path) -> None:
    """Such answers are ratios, and cells that were moved to be consistent."""
    refused = set()
    for folder in (kept, unpacked(RELEASES / "0.3.0/ranges", tmp_path) / "public"):
        release = published(str(folder))
        for query in release.spec.queries:
            moved = ("level", "entered", "left") if query.consistent else ()
            for series in query.publish:
                if series.kind in moved or len(query.measure.components) > 1:
                    with pytest.raises(
                        SpecError, match=r"that of a sum is unknown; use.*`slackwater show`|cannot be added up"
                    ) as error:
                        answers(release, query, series, where=None)
                    refused.add("unknown" in str(error.value))
    assert refused == {True, False}


@pytest.mark.parametrize("changed", [{"epochs": []}, {"epochs": [{"files": "x"}]}])
def test_an_invalid_manifest_is_refused(kept: Path, tmp_path: Path, changed: dict, capsys) -> None:
    shutil.copytree(kept, tmp_path / "public")
    manifest = tmp_path / "public/manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changed}))
    query = published(str(kept)).spec.queries[0].name
    assert cli.main(["answer", str(tmp_path / "public"), "--query", query]) == 1
    assert "manifest.json: not a manifest that this version" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ([], "--query: missing; the release has"),
        (["--query", "nil"], "--query nil: no query of the release"),
    ],
)
def test_flags_that_match_nothing_are_refused(kept: Path, flags: list[str], error: str, capsys) -> None:
    assert cli.main(["answer", str(kept), *flags]) == 2
    assert error in capsys.readouterr().err


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_under_sums_over_cells_the_error_of_a_range_follows_their_matrix(mechanism: Mechanism) -> None:
    query = Query(
        name="ages",
        measure=Measure(kind="count"),
        by=(("age", OrderedKey(start=0, step=1, steps=62)),),
        publish=(Series(kind="level"), Series(kind="change")),
        over=CellChoice(name="tree", branching=4, workload="ranges"),
    )
    plan = make_plan(
        [query.demand],
        promise=Promise(constraint=AtMost(4), window=1, windows=20, owner=False),
        budget=Budget(epsilon=1.0, delta=0.0 if mechanism == "laplace" else 1e-9),
        mechanism=mechanism,
        accounting=None,
    )
    chosen = np.zeros(64)
    chosen[11:40] = 1
    for series in query.publish:
        released = plan.publishing(0, series)
        matrix = released.over.spread(np.eye(64, dtype=np.int64)).T
        variance = chosen @ np.linalg.inv(matrix.T @ matrix) @ chosen * released.noise[0].variance
        whole = noise_weights(released.strategy, series, range(20))

        deviation, width = released.sum_errors(series, chosen, np.arange(20), None, [])
        (less,), _ = released.sum_errors(series, chosen, np.array([7]), np.array([3]), [])

        assert deviation**2 == pytest.approx(variance * (whole**2).sum(axis=1), rel=1e-4)
        assert less**2 == pytest.approx(variance * ((whole[7] - whole[3]) ** 2).sum(), rel=1e-4)
        assert ((width / deviation > 1.9) & (width / deviation < 2.2)).all()
