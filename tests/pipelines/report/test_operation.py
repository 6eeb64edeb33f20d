"""`slackwater report`: contents and sources of the page; tests/e2e/test_report_page.py tests its appearance."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import slackwater
from pipelines import cli
from pipelines.pages.charts import CELLS, NUMBERS, WINDOWS, Times, chart_document, shown_cells
from pipelines.pages.html import written
from pipelines.pages.numbers import Floats, Numbers, numbers_of, outstanding, signal
from pipelines.published.release import published
from pipelines.report.drawing import headlined
from pipelines.report.parts import ReportPart, repeated_totals
from pipelines.spec.times import people_time
from privacy.accounting.accounting import Budget
from privacy.adaptive.bd import Bd
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.protection import Span
from privacy.series import Series
from tests.pipelines.pages.elements import Elements
from tests.pipelines.report.report_page import public_side
from transforms.aggregation.queries import Query

DAY = 86_400_000_000
DAYS = Times(start=0, window=DAY)
Sums = tuple[Floats, Floats]
LEVEL, ENTERED = Series(kind="level"), Series(kind="entered")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return public_side(tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def page(public: Path) -> Elements:
    output = public.parent / "kept.html"
    assert cli.main(["report", str(public), "-o", str(output)]) == 0
    return Elements(output.read_text())


def plan_of(query: Query, *, budget: Budget, windows: int = 12, owner: bool = False) -> Plan:
    return make_plan(
        [query.demand],
        promise=Promise(constraint=AtMost(2), window=DAY, windows=windows, owner=owner),
        budget=budget,
        mechanism="laplace" if budget.delta == 0 else "gaussian",
        accounting=None,
    )


@pytest.mark.slow
def test_the_page_states_the_promise_and_the_spent_budget(page: Elements, public: Path) -> None:
    manifest = json.loads((public / "manifest.json").read_text())
    told = " ".join(page.text.split())

    conditions = json.loads((public / "plan.json").read_text())["conditions"]
    assert conditions
    assert [condition for condition in conditions if written(condition) not in told] == []
    assert written(manifest["statement"].split(". ")[0]) in told
    assert manifest["spec_sha256"] in told
    assert "At most 4 changes of an entry count for each query." in told
    moments = [datetime.fromisoformat(epoch["committed_at"]) for epoch in manifest["epochs"]]
    assert all(f"{at.day} {at:%B %Y, %H:%M}" in told for at in moments)
    assert "the end of 4 January 2026" in told
    assert "Read and agreed" not in told


def test_the_page_begins_with_the_latest_numbers_and_their_intervals(page: Elements, public: Path) -> None:
    """With an interval that holds the whole of the published one."""
    rows = [row for row in slackwater.show(public).table.to_pylist() if row["query"] == "poles"]
    wanted = r"the end of 4 January 2026: ([\d.]+) \(95 % interval ([\d.]+) to ([\d.]+)\)\."
    last = rows[-1]
    found = [re.match(wanted, section) for section in page.text.split("Latest, ")[1:]]
    numbers = [tuple(map(float, one.groups())) for one in found if one]

    ((value, low, high),) = [one for one in numbers if abs(one[0] - last["value"]) <= 5.1e-5]
    assert last["ci_low"] - 1e-4 < low <= last["ci_low"] <= last["ci_high"] <= high < last["ci_high"] + 1e-4
    assert low < value < high


@pytest.mark.slow
def test_the_latest_number_of_all_cells_has_the_interval_of_their_sum(public: Path, tmp_path: Path) -> None:
    """As `answer` computes it, also of cells that share noise."""
    release = published(str(public))
    found, shared = [], 0
    for query in release.spec.queries:
        if query.cells == 1 or len(query.measure.components) > 1:
            continue
        for kind in [series.kind for series in query.publish]:
            (row,) = slackwater.answer(public, query=query.name, kind=kind, window=release.until).table.to_pylist()
            if row["ci_low"] is not None:
                found.append((row["ci_low"], row["ci_high"]))
        for series, table in release.numbers(query):
            total = numbers_of(series, table, query, release.plan).total
            if query.ordered and series.kind != "sliding" and total is not None:
                shared += 1
                (row,) = slackwater.answer(
                    public, query=query.name, kind=series.kind, window=release.until
                ).table.to_pylist()
                ends = row["ci_low"], row["ci_high"]
                assert (total[0][-1] - total[1][-1], total[0][-1] + total[1][-1]) == pytest.approx(ends)
    assert cli.main(["report", str(public), "-o", str(tmp_path / "page.html")]) == 0
    told = Elements((tmp_path / "page.html").read_text()).text

    said = re.findall(r"all cells together: [-\d.,]+ \(95 % interval ([-\d.,]+) to ([-\d.,]+)\)", told)

    assert len(said) == len(found) > shared > 0
    for (low, high), ends in zip(said, found, strict=True):
        told_low, told_high = float(low.replace(",", "")), float(high.replace(",", ""))
        assert told_low <= ends[0] < ends[1] <= told_high
        assert told_high - told_low < 1.2 * (ends[1] - ends[0])


def test_an_unwritable_output_is_reported_in_one_line(
    public: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "page.html"
    folder.mkdir()

    assert cli.main(["report", str(public), "-o", str(folder)]) == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("slackwater: ")
    assert str(folder) in line
    assert line.endswith("; remove it, or name a file")


def test_the_page_asks_no_network_and_takes_no_name_for_html(page: Elements) -> None:
    tags = [tag for tag, _ in page.found]
    links = [value for _, attributes in page.found for key in ("src", "href") if (value := attributes.get(key))]
    policy = next(attributes["content"] for _, attributes in page.found if "http-equiv" in attributes)

    assert "img" not in tags
    assert tags.count("script") > 6
    assert all(link.startswith(("#", "data:,", "data:text/csv;")) for link in links)
    assert str(policy).startswith("default-src 'none';")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--outline", "city.geojson"], "city.geojson: No such file or directory"),
        (["-o", "report.pdf"], "-o report.pdf: the name must end in .html"),
        (["-o", "public/report.html"], "-o public/report.html: lies in the public folder"),
        (["--runner=FlinkRunner"], "report runs no pipeline"),
    ],
)
def test_an_impossible_report_is_refused(public, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(public.parent)

    assert cli.main(["report", "public", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(public.parent.rglob("report.*"))


def test_the_interval_of_all_cells_together_is_held_by_their_noise() -> None:
    """400 samples of the noise of a total; a correct width fails with probability 1e-6 at most."""
    query = Query(name="beds", measure=Measure(kind="count"), by=(("ward", tuple("abcde")),), publish=(LEVEL,))
    plan = plan_of(query, budget=Budget(epsilon=0.5))
    zeros = pa.table(dict.fromkeys(("value", "ci_low", "ci_high"), np.zeros(12 * 5)))

    found = numbers_of(LEVEL, zeros, query, plan)

    assert found.total is not None
    released = plan.publishing(0, LEVEL)
    (noise,), (*_, weights) = released.noise, released.strategy.weights(LEVEL, 12)
    samples = 400
    drawn = noise.noise(samples * 5 * len(weights)).reshape(samples, 5, len(weights)).astype(float)
    held = int((np.abs((drawn * weights).sum(axis=(1, 2))) <= found.total[1][-1]).sum())
    # Rounding outward to whole steps and unequal weights take a percent at most.
    assert binom.ppf(5e-7, samples, 0.95) <= held <= binom.ppf(1 - 5e-7, samples, 0.96)


def test_the_interval_of_all_cells_of_a_sample_is_held_by_its_noise() -> None:
    """400 samples of the noise of each total; correct widths fail with probability 1e-6 each at most.

    A sample of `bd` has the noise of the units that it takes: half of those that a span has left.
    """
    by, adaptive = (("ward", tuple("abcde")),), Bd()
    query = Query(name="beds", measure=Measure(kind="count"), by=by, publish=(LEVEL,), adaptive=adaptive)
    plan = make_plan(
        [query.demand],
        Promise(constraint=AtOnce(1), window=DAY, windows=12, owner=False, protects=Span(7 * DAY)),
        budget=Budget(epsilon=0.5),
        mechanism="laplace",
        accounting=None,
    )
    sampled = np.array([True, False, True] + [False] * 9)
    columns = dict.fromkeys(("value", "ci_low", "ci_high"), np.zeros(12 * 5))

    found = numbers_of(LEVEL, pa.table({**columns, "sampled": np.repeat(sampled, 5)}), query, plan)

    assert found.total is not None
    assert found.repeated is not None
    assert found.repeated.tolist() == np.isnan(found.total[1]).tolist() == (~sampled).tolist()
    part, samples = plan.parts[0], 400
    for window, units in ((0, part.scales.units // 2), (2, part.scales.units // 4)):
        drawn = part.scales.sample(units).noise(samples * 5).reshape(samples, 5).sum(axis=1)
        held = int((np.abs(drawn) <= found.total[1][window]).sum())
        assert binom.ppf(5e-7, samples, 0.95) <= held <= binom.ppf(1 - 5e-7, samples, 0.96)
    wrong = pa.table({**columns, "sampled": np.zeros(12 * 5, dtype=bool)})
    with pytest.raises(ValueError, match="is the first and was not"):
        numbers_of(LEVEL, wrong, query, plan)


def test_means_ratios_and_single_cells_have_no_total() -> None:
    by = (("ward", ("a", "b")),)
    mean = Query(name="wait", measure=Measure(kind="mean", low=0, high=9), by=by, publish=(ENTERED,))
    alone = Query(name="all", measure=Measure(kind="count"), publish=(ENTERED,))

    for query in (mean, alone):
        rows = pa.table(dict.fromkeys(("value", "ci_low", "ci_high"), np.zeros(12 * query.cells)))
        assert numbers_of(ENTERED, rows, query, plan_of(query, budget=Budget(epsilon=1.0))).total is None


def test_rows_that_are_sums_have_no_total() -> None:
    query = Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b")),), publish=(LEVEL,))
    rows = pa.table(dict.fromkeys(("value", "ci_low", "ci_high"), np.zeros(12 * 2)))

    assert numbers_of(LEVEL, rows, query, plan_of(query, budget=Budget(epsilon=1.0)), of_cells=False).total is None


def test_a_page_shows_the_largest_of_thousands_of_cells_and_says_so() -> None:
    listed = tuple(f"c{number:04}" for number in range(5000))
    query = Query(name="beds", measure=Measure(kind="count"), by=(("ward", listed),), publish=(LEVEL,))
    value = np.tile(np.arange(5000.0), (12, 1))
    numbers = Numbers(series=LEVEL, value=value, low=value - 1, high=value + 1, total=None)

    document = chart_document(query, [numbers], plan_of(query, budget=Budget(epsilon=1.0)), times=DAYS, queries=1)
    few = shown_cells([numbers] * 8, 5000, queries=10)

    assert [*document["cells"][0], *document["cells"][-1]] == ["c4999", f"c{5000 - CELLS:04}"]
    assert (len(document["cells"]), document["of"]) == (CELLS, 5000)
    assert len(few) == NUMBERS // 10 // (8 * 12) < CELLS


def test_a_page_of_very_many_series_shows_their_last_windows_and_says_how_many_are_left_out() -> None:
    query = Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b")),), publish=(LEVEL,) * 6)
    value = np.tile(np.arange(2000.0)[:, None], (1, 2))
    total = value.sum(axis=1), np.ones(2000)
    numbers = [Numbers(series=LEVEL, value=value, low=value - 1, high=value + 1, total=total)] * 6

    alone, shared = (
        chart_document(query, numbers, plan_of(query, budget=Budget(epsilon=1.0)), times=DAYS, queries=queries)
        for queries in (1, 100)
    )

    assert {len(line["v"]) for one in alone["series"] for line in one["cells"]} == {WINDOWS}
    written = [line for one in shared["series"] for line in (*one["cells"], one["total"])]
    assert 0 < sum(len(line["v"]) for line in written) <= 1.5 * NUMBERS // 100  # cells, and their sum
    assert {one["left"] + len(one["total"]["v"]) for one in shared["series"]} == {2000}
    assert all(line["v"][-1] == value[-1, 0] for one in shared["series"] for line in one["cells"])


def test_intervals_on_the_page_are_rounded_outward_but_not_to_zero() -> None:
    query = Query(name="beds", measure=Measure(kind="count"), publish=(LEVEL,))
    value = np.array([[1234.5678], [-0.01], [17.25]])
    numbers = Numbers(series=LEVEL, value=value, low=value - 17, high=value + 17, total=None)

    document = chart_document(query, [numbers], plan_of(query, budget=Budget(epsilon=1.0)), times=DAYS, queries=1)
    (line,) = document["series"][0]["cells"]

    assert line == {"v": [1235, 0, 17], "lo": [1217, -18, 0.25], "hi": [1252, 17, 35]}


def test_windows_of_a_calendar_follow_its_clocks() -> None:
    """From where a number is, where its last window begins, and where that ends."""
    query = Query(name="came", measure=Measure(kind="count"), publish=(Series(kind="sliding", width=2),))
    value = np.zeros((2, 1))
    numbers = Numbers(series=query.publish[0], value=value, low=value - 1, high=value + 1, total=None)
    times = Times(start=0, window=30 * DAY, boundaries=np.array([0, 31, 59, 90]) * DAY)

    document = chart_document(query, [numbers], plan_of(query, budget=Budget(epsilon=1.0)), times=times, queries=1)

    ms = DAY // 1000
    assert document["series"][0]["spans"] == [[0, 31 * ms, 59 * ms], [31 * ms, 59 * ms, 90 * ms]]


def test_levels_that_are_repeated_have_no_interval_on_the_page() -> None:
    """Of a query that is published adaptively: JSON knows no NaN, and a browser takes none."""
    query = Query(name="beds", measure=Measure(kind="count"), publish=(LEVEL,))
    value, unknown = np.array([[5.0], [5.0]]), np.array([[4.0], [np.nan]])
    repeated = np.array([False, True])
    numbers = Numbers(series=LEVEL, value=value, low=unknown, high=unknown + 2, total=None, repeated=repeated)

    document = chart_document(query, [numbers], plan_of(query, budget=Budget(epsilon=1.0)), times=DAYS, queries=1)
    found = signal(numbers, within=None)

    assert document["series"][0]["cells"] == [{"v": [5, 5], "lo": [4, None], "hi": [6, None]}]
    assert document["series"][0]["repeated"] == [False, True]
    assert (numbers.count, numbers.repeats) == (2, 1)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert found is not None
    assert (found.half, found.lost) == (1.0, 0.0)


def test_intervals_decide_which_numbers_are_mostly_noise() -> None:
    value = np.arange(10.0)[:, None]

    def noisy(half: float, within: tuple[float, float] | None) -> bool:
        one = Numbers(series=LEVEL, value=value, low=value - half, high=value + half, total=None)
        found = signal(one, within=within)
        assert found is not None
        return found.noisy

    assert [noisy(half, None) for half in (4.0, 5.0)] == [False, True]  # 0 to 4, and 0 to 5, hold zero
    assert [noisy(half, (0.0, 10.0)) for half in (2.5, 2.6)] == [False, True]
    assert len(outstanding(np.zeros(7), np.ones(7))) == 0  # too few to say what is usual


def test_a_release_before_its_first_sliding_window_can_be_run_and_read(tmp_path: Path) -> None:
    """Sliding windows of two days have no number yet; the first window has one entry."""
    (tmp_path / "stays.csv").write_text("id,at,age,stay,sex\n1,2026-01-01T10:00:00Z,1,2,f\n")
    age, stay = "age: {from: 0, to: 10, step: 5}", "stay: {from: 0, to: 1000, step: 5}"
    queries = "".join(
        f"  - {{name: {name}, measure: count, by: {{{by}}}, publish: [{more}{{sliding: 2d}}]}}\n"
        for name, by, more in (
            ("quantile", age, "{quantiles: [0.5]}, "),
            ("box", f"{age}, {stay}", ""),
            ("level", age, "level, "),
            ("sexes", "sex: [f, m]", "level, {marginals: [[]]}, "),
            ("whole", "", ""),
        )
    )
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        f"release: early\nchangelog: {{format: csv, path: {tmp_path}/*.csv, entry: id, time: at, "
        "types: {age: float64, stay: float64}}\n"
        "privacy: {epsilon: 1.0, constraint: {at_most: 2}}\n"
        "schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-05T00:00:00Z}\n"
        f"strategy: disjoint\nqueries:\n{queries}"
        f"output: {{public: {tmp_path}/public, private: {tmp_path}/private, format: csv}}\n"
        "about: {curator: Us, columns: {id: stay <b>}}\n"
    )
    slackwater.run(spec, until="2026-01-02T00:00:00Z")

    assert set(slackwater.show(spec).table["query"].to_pylist()) == {"level", "sexes"}
    facts = slackwater.report(spec, output=tmp_path / "page.html").facts
    assert facts is not None
    page = (tmp_path / "page.html").read_text()
    assert "Protects each stay &lt;b&gt;: " in page
    committed = published(str(tmp_path / "public")).epochs[-1].committed_at
    assert f"<p>Published on {people_time(committed).partition(',')[0]} by Us.</p>" in page
    assert "up to the end of 1 January 2026, in UTC." in page
    public = slackwater.report(tmp_path / "public", output=tmp_path / "public.html").facts
    assert public is not None
    assert public.protects == facts.protects
    assert [query.of for query in facts.queries if query.query == "sexes"] == ["", "total"]
    assert page.count('<div class="charts"') == len(facts.queries) - 1  # the total is that of all cells together
    assert "The number of all cells together is published, as the total." in page
    (section,) = re.findall(r"<h2[^>]*>sexes</h2>.*?</section>", page, re.DOTALL)
    (saved,) = re.findall(r'download="sexes.csv" href="data:text/csv;charset=utf-8;base64,(.*?)"', section)
    rows = [*csv.DictReader(io.StringIO(base64.b64decode(saved).decode()))]
    assert [row["sex"] for row in rows if row["kind"] == "level, total"] == ["all"]
    assert "Save 3 numbers as CSV" in section
    assert section.partition("Plain table")[2].count('<th scope="row">') == 3
    before, _, chart = section.partition('<div class="charts"')
    assert ("Latest, " in before, "Latest, " in chart) == (False, True)  # the script begins its chart with it
    kinds = {(query.query, series.kind.split()[0]): len(series.latest) for query, series in facts.series}
    assert kinds["level", "level"] == 5
    assert kinds["box", "sliding"] == 0
    for query in ("quantile", "box", "level", "whole"):
        assert slackwater.answer(spec, query=query, kind="sliding").table.num_rows == 0
    assert set(slackwater.smooth(spec).table["kind"].to_pylist()) == {"level"}


def test_charts_that_begin_with_the_sum_of_all_cells_have_no_latest_number_above() -> None:
    line, picture = {"v": [1], "lo": [0], "hi": [2]}, {"kind": "bars"}
    one = {"part": "", "picture": picture, "series": [{"first": 0.0, "total": line}, {"first": 0.0, "untotalled": {}}]}

    assert headlined(one)
    assert not headlined({**one, "series": [*one["series"], {"first": 0.0}]})
    assert headlined({**one, "series": [*one["series"], {"first": None}]})
    assert not any(headlined({**one, **other}) for other in ({"part": "total"}, {"picture": {"kind": "quantiles"}}))
    assert not headlined({"part": "", "series": one["series"]})


def test_a_total_is_repeated_only_if_it_is_the_sum_of_all_cells() -> None:
    query = Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b")),), publish=(LEVEL,))
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    sums = value.sum(axis=1), np.ones(2)

    def parts(total: Sums | None, whole: Floats) -> list[ReportPart]:
        cells = Numbers(series=LEVEL, value=value, low=value, high=value, total=total)
        shown = replace(cells, value=whole[:, None], total=None)
        given = [("", cells), ("total", shown), ("by ward", shown)]
        return [
            ReportPart(origin=query, query=query, name="beds", of=of, within=None, numbers=(one,)) for of, one in given
        ]

    assert repeated_totals(parts(sums, sums[0])) == [1]
    assert repeated_totals(parts(sums, sums[0] + 1)) == []
    assert repeated_totals(parts(None, sums[0])) == []
