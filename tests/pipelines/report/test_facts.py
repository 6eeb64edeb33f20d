"""Facts of a report: they agree with the page, with published numbers and with `answer`."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import slackwater
from pipelines import cli
from pipelines.disclosure.facts import NOT_STATED
from pipelines.ledger.account import ledger_document
from pipelines.pages.charts import line_of
from pipelines.pages.course import told
from pipelines.pages.html import written
from pipelines.pages.movements import INSIDE
from pipelines.pages.numbers import Numbers
from pipelines.pages.subject import limits
from pipelines.published.release import published
from pipelines.published.sums import sum_errors
from pipelines.report.differences import differences
from pipelines.report.exact import ExactErrors
from pipelines.report.facts import StatedDifference
from pipelines.report.label import NOT_STATED_BY, Stated
from pipelines.report.latest import _with_interval
from pipelines.report.parts import parts_of
from pipelines.report.sentences import NONE_STANDS_OUT, _latest, sentences_of, without_kind
from pipelines.report.stating import CANCELS, _cancels, facts_of
from pipelines.report.tables import WHY_LESS, _chosen, _note, _texts, differences_table
from privacy.series import Series, SeriesKind
from privacy.upward import shown
from tests.pipelines.pages.elements import Elements
from tests.releases.continued import unpacked

RELEASES = Path(__file__).parents[2] / "releases/0.3.0"


class Made:
    """A page with its facts."""

    def __init__(self, public: Path, folder: Path) -> None:
        self.public, self.file = public, folder / "page.html"
        self.reported = slackwater.report(public, output=self.file)
        self.html = self.file.read_text()
        self.text = Elements(self.html).text
        assert self.reported.facts is not None
        self.facts = self.reported.facts


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("facts")
    return Made(unpacked(RELEASES / "everything", folder) / "public", folder)


@pytest.mark.slow
def test_the_page_states_every_fact(made: Made) -> None:
    text = made.text
    for query in made.facts.queries:
        section = text.partition(f"{query.label} {query.measured[0]}")[2]
        assert section
        assert query.coverage in text
        for series in query.series:
            assert f"{series.kind}: {series.meaning}." in text
            assert series.window in section
            together = [one.text for one in series.latest if not one.cell]
            told = together or ([one.name for one in series.latest] if series.cells <= 6 else [])
            assert [one for one in told if without_kind(one, query) not in section] == []
            whole = [one for one in series.differences if not one.cell and one.minus_window_end < one.window_end]
            assert [
                one.text for one in whole[:1] if without_kind(f"{series.kind}, {one.text}", query) not in section
            ] == []
            for one in series.differences:
                assert one.name in section
                assert one.minus_name in section
    assert all(written(said) in text for said in made.facts.disclosure.values() if said != NOT_STATED)
    assert f"{NOT_STATED_BY} Curator and contact; Intended use. " in text
    assert made.facts.protects in text
    assert {*re.findall(r"slackwater [a-z]+", text)} == set()  # readers can run no command
    release = published(str(made.public))
    of_queries = ledger_document(release.epochs, release.spec, release.plan)["queries"]
    shares = [f"{one['name']} {shown(one['total']['rho'])} {shown(one['spent']['rho'])}" for one in of_queries]
    assert len(shares) > 1
    assert [one for one in shares if one not in text.partition("Share of each query, in rho")[2]] == []
    assert f"{made.facts.numbers:,} numbers from {made.facts.windows} windows of 1 day" in text


def test_a_sum_with_a_narrower_interval_than_a_cell_has_a_reason(made: Made) -> None:
    series = next(one for query in made.facts.queries for one in query.series if one.latest[0].cell is None)
    first, cell = (replace(one, low=0.0, high=10.0) for one in series.latest[:2])

    def reason(high: float | None) -> bool:
        return _cancels(replace(series, latest=(replace(first, high=high), cell)))

    assert [reason(high) for high in (7.9, 8.1, None)] == [True, False, False]
    assert all((CANCELS in query.coverage) == any(map(_cancels, query.series)) for query in made.facts.queries)


@pytest.mark.slow
def test_json_has_the_facts_of_the_page(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(made.public), "-o", str(made.file), "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    facts = json.loads(json.dumps(made.facts.to_json()))
    assert {name: told[name] for name in facts} == facts
    assert told.keys() - facts.keys() == {"file", "pages", "signals", "standing_out"}
    documented = (Path(__file__).parents[3] / "docs/reference/outputs.md").read_text()
    (section,) = re.findall(r"### Facts of a report\n(.*?)\n### ", documented, re.DOTALL)
    query = told["queries"][0]
    series = query["series"][0]
    members = [*told, *query, *series, *series["latest"][0], *series["differences"][0], *series["noise"]]
    assert [name for name in members if f"`{name}`" not in section] == []


def test_the_latest_numbers_are_the_published_ones(made: Made) -> None:
    table = slackwater.show(made.public).table.to_pylist()
    for query in made.facts.queries:
        for series in query.series:
            kind = f"{series.kind.split()[0]}_quantile" if query.of else series.kind.split()[0]
            rows = [
                row["value"]
                for row in table
                if (row["query"], row["kind"]) == (query.query, kind)
                and f"{row['window_end']:%Y-%m-%dT%H:%M:%SZ}" == series.window_end
            ]
            stated = [one.value for one in series.latest if one.cell is not None]
            assert stated == rows
            assert len(rows) == series.cells


@pytest.mark.slow
def test_differences_of_windows_and_cells_are_those_of_answer(made: Made) -> None:
    compared = 0
    for query in made.facts.queries:
        if query.query not in ("covers", "walks", "filtered", "pairs", "poles") or query.of:
            continue
        for series in query.series:
            for one in series.differences:
                found = answered(made.public, query.query, series.kind.split()[0], one)
                assert (one.value, one.low, one.high) == pytest.approx(found, abs=1e-9)
                assert one.low is not None
                assert one.high is not None
                assert one.real == ("higher" if one.low > 0 else "lower" if one.high < 0 else "unclear")
                assert one.probability == 0.95
                compared += 1
    assert compared > 20


def answered(public: Path, query: str, kind: str, one: StatedDifference) -> tuple[float, float, float]:
    """Return the same difference by `answer`."""
    where, less = (
        " and ".join(f"{name} = '{value}'" for name, value in (cell or {}).items()) or None
        for cell in (one.cell, one.minus_cell)
    )
    windows = {"window": one.window_end}
    if one.window_end == one.minus_window_end:
        windows["minus_where"] = str(less)
    else:
        windows["minus"] = one.minus_window_end
    found = slackwater.answer(public, query=query, kind=kind, where=where, **windows)  # type: ignore[arg-type]
    (row,) = found.table.to_pylist()
    assert found.real == (one.real,)
    return row["value"], row["ci_low"], row["ci_high"]


def test_sums_of_cells_have_the_published_interval_and_exact_differences(tmp_path: Path) -> None:
    """Rows of ranges, over keys that share noise: by the covariance of the cells that they add up."""
    release = published(str(unpacked(RELEASES / "ranges", tmp_path) / "public"))
    part = next(part for part in parts_of(release) if part.of == "ranges")
    (numbers, *_) = part.numbers
    errors = ExactErrors(part, numbers, release)
    rows = np.eye(part.query.cells)

    half = [errors.half(row, None) for row in rows]
    found = differences(part, numbers, release, Stated().names, errors)

    assert half == pytest.approx(((numbers.high - numbers.low)[-1] / 2).tolist(), rel=1e-6)
    assert {one.probability for one in found} == {0.95}
    apart = numbers.high[-1, 0] - numbers.low[-2, 0] - (numbers.value[-1, 0] - numbers.value[-2, 0])
    assert found[0].high is not None
    assert found[0].high - found[0].value < 0.99 * apart


def test_other_differences_hold_both_intervals(made: Made) -> None:
    """Of a median and of a mean: from the ends of both intervals, with 90 %."""
    for name, of in (("ages", "quantiles"), ("squares", "")):
        query = next(one for one in made.facts.queries if (one.query, one.of) == (name, of))
        (series,) = query.series
        one = series.differences[0]
        table = slackwater.show(made.public, query=[name]).table.to_pylist()
        rows = [row for row in table if row["kind"] == ("level_quantile" if of else "level")][-2:]
        assert one.probability == 0.9
        assert (one.low, one.high) == pytest.approx(
            (rows[1]["ci_low"] - rows[0]["ci_high"], rows[1]["ci_high"] - rows[0]["ci_low"])
        )


def test_a_repeated_number_has_no_difference_with_an_interval(made: Made) -> None:
    (steered,) = (one.series[0] for one in made.facts.queries if one.query == "steered")

    repeated = [one for one in steered.differences if one.low is None]
    assert steered.latest[0].repeated == bool(repeated)
    assert {one.real for one in repeated} <= {"unknown"}


def test_a_day_a_week_and_a_year_before_are_compared_if_they_are_published(made: Made) -> None:
    release = published(str(made.public))
    part = next(part for part in parts_of(release) if part.name == "walks")
    (level, _) = part.numbers
    few = differences(part, level, release, Stated().names, ExactErrors(part, level, release))
    ends = {one.minus_window_end for one in few}

    assert ends == {"2026-01-04T00:00:00Z"}  # four days are published, so no week
    assert [one.real for one in few] == ["higher"]


def test_a_half_width_is_that_of_the_noise_and_not_of_a_single_number(made: Made) -> None:
    """Two levels of one tree share noisy sums, so their difference has another error than the root of both squares."""
    release = published(str(made.public))
    query = next(one for one in release.spec.queries if one.name == "walks")
    level = query.publish[0]
    alone = sum_errors(query, level, release.plan, np.ones(1), wanted=np.array([2, 3]), others=None, sampled=[])
    both = sum_errors(query, level, release.plan, np.ones(1), wanted=np.array([3]), others=np.array([2]), sampled=[])

    assert both[0, 0] < 0.99 * float(np.hypot(*alone[0]))


def test_many_differences_state_what_chance_explains_and_noisy_series_have_a_hint(made: Made) -> None:
    said = 0
    for query in made.facts.queries:
        known = [1 - one.probability for series in query.series for one in series.differences if one.low is not None]
        wanted = f"If all {len(known)} differences with intervals here were 0 without noise, at most about "
        assert (wanted in differences_table(query)) == (len(known) >= 10)
        said += len(known) >= 10
    assert 0 < said < len(made.facts.queries)
    (walks,) = (query for query in made.facts.queries if query.query == "walks")
    level = replace(walks.series[0], noise={"warning": "mostly noise"})
    assert "more than the noise explains, but most" in differences_table(replace(walks, series=(level,)))
    assert "but most" not in differences_table(walks)
    whole = replace(level, differences=tuple(replace(one, cell=None) for one in level.differences))
    assert "but most" not in differences_table(replace(walks, series=(whole,)))


def test_many_cells_without_a_sum_have_no_latest_number_in_bold(made: Made) -> None:
    (query,) = (one for one in made.facts.queries if one.query == "walks")
    (number,) = query.series[0].latest
    cells = replace(query.series[0], cells=99, latest=(replace(number, cell={"ward": "a"}),))

    assert _latest(query)[query.series[0].window] == [number]
    assert _latest(replace(query, series=(cells,))) == {}


def test_a_sum_without_an_interval_has_the_digits_of_its_cells(made: Made) -> None:
    value, unknown = np.array([[4321.123, 2213.459]]), np.full(1, np.nan)
    series = parts_of(published(str(made.public)))[0].numbers[0].series
    numbers = Numbers(series=series, value=value, low=value - 46.0, high=value + 46.0, total=None)

    assert _with_interval(value.sum(axis=1), unknown, unknown, numbers) == "6,535 (no known interval)"


def test_the_plain_table_and_its_csv_hold_the_published_numbers(made: Made) -> None:
    (section,) = re.findall(r'<section id="query-0".*?</section>', made.html, re.DOTALL)
    (content,) = re.findall(r'download="covers.csv" href="data:text/csv;charset=utf-8;base64,([^"]+)"', section)
    rows = [*csv.DictReader(io.StringIO(base64.b64decode(content).decode()))]
    table = slackwater.show(made.public, query=["covers"]).table.to_pylist()

    assert [(row["kind"], row["window_end"], row["ward"], float(row["value"])) for row in rows] == [
        (row["kind"], f"{row['window_end']:%Y-%m-%dT%H:%M:%SZ}", row["ward"], row["value"]) for row in table
    ]
    plain = section.partition("Plain table")[2]
    assert plain.count('<th scope="row">') == len(rows)


def test_labels_are_on_the_page_and_in_its_tables_and_not_in_the_csv(made: Made) -> None:
    release = published(str(made.public))
    texts = {
        "label covers": "Covers <b>",
        "column ward": "Ward",
        "cell ward: a": "Alpha",
        "title": "T",
        "contact": "me@x",
    }
    about = Stated(texts)
    parts = [part for part in parts_of(release) if part.name == "covers"]

    facts = facts_of(release, parts, about)

    (query,) = facts.queries
    assert (facts.title, facts.contact, query.label) == ("T", "me@x", "Covers <b>")
    assert any(one.text.startswith("level, Alpha: ") for one in query.series[0].latest)
    assert any(
        one.name.startswith("Alpha, the end of 4 January 2026") and one.minus_name == "b"
        for one in query.series[0].differences
    )
    assert query.series[0].latest[1].cell == {"ward": "a"}
    assert about.labelled({"keys": ["ward"], "cells": [["a"], ["b"]]}) == {
        "keys": ["Ward"],
        "cells": [["Alpha"], ["b"]],
    }


@pytest.mark.slow
def test_a_split_report_has_a_page_for_each_query_that_links_back(made: Made, tmp_path: Path) -> None:
    reported = slackwater.report(made.public, output=tmp_path / "a page.html", split=True)

    home = (tmp_path / "a page.html").read_text()
    assert len(reported.pages) == len(made.facts.queries)
    assert 'id="data"' not in home
    for path, query in zip(reported.pages, made.facts.queries, strict=True):
        page = Path(path).read_text()
        assert f'href="{Path(path).name.replace(" ", "%20")}"' in home
        assert 'href="a%20page.html"' in page
        assert without_kind(query.series[0].latest[0].text, query) in Elements(page).text
        assert page.count('class="charts" data-place="0"') == 1


def test_the_note_on_the_plain_table_names_levels_only_if_there_are_any(made: Made) -> None:
    part = parts_of(published(str(made.public)))[0]

    def note(*kinds: SeriesKind) -> str:
        numbers = tuple(replace(part.numbers[0], series=Series(kind=kind)) for kind in kinds)
        return _note(replace(part, numbers=numbers))

    assert "files: a number is that of its window. Below" in note("change", "entered")
    assert "files: a level is the number at window_end. Below" in note("level")
    assert "window_end, others are those of the window. Below" in note("level", "change")


def test_a_large_release_has_its_latest_windows_in_the_plain_table(made: Made) -> None:
    value = np.tile(np.arange(30.0), (100, 1))
    numbers = Numbers(
        series=parts_of(published(str(made.public)))[0].numbers[0].series,
        value=value,
        low=value,
        high=value,
        total=None,
    )

    places, cells = _chosen(numbers, 65)
    few, largest = _chosen(replace(numbers), 4)

    assert (places, len(cells)) == (range(98, 100), 30)
    assert (few, largest.tolist()) == (range(99, 100), [29, 28, 27, 26])


def test_publisher_and_headings_are_in_words_and_what_is_not_stated_is_one_point(tmp_path: Path) -> None:
    release = published(str(unpacked(RELEASES / "ranges", tmp_path) / "public"))
    part = next(part for part in parts_of(release) if part.of == "ranges")
    alone = replace(part, origin=replace(part.origin, ranges=part.origin.ranges[:1]), query=replace(part.query, by=()))
    facts = {"curator": "City <H> (Government). Contact: a@b.", "use": "Not stated by the curator.", "odds": "Odds."}
    facts["chosen"] = "Not stated by the curator. The claim requires more."
    about = Stated({**facts, "contact": "a@b", "source": "A table.", "column age": "Age", "label listed": "Listed"})

    assert [about.heading(one) for one in (part, alone)] == ["Listed, ranges of Age", "Listed, Age 20 to 40"]
    assert about.introduction(" on 1 May") == [
        "<p>Published on 1 May by City &lt;H&gt; (Government). Contact: a@b.</p>\n",
        "<p>Source: A table.</p>\n",
    ]
    assert Stated({"curator": "Not stated by the curator. Contact: a@b.", "contact": "a@b"}).introduction() == [
        "<p>Contact: a@b</p>\n"
    ]
    assert about.points[1:] == [
        ("Choice of parameters", facts["chosen"]),
        ("What a reader can conclude", "Odds."),
        ("Not stated by the curator", "Intended use."),
    ]


def test_a_kind_is_defined_in_each_section_before_its_first_number(made: Made) -> None:
    walks = next(query for query in made.facts.queries if query.query == "walks")
    first = "".join(sentences_of(walks, ()))

    meaning = f"{walks.series[0].kind}: {walks.series[0].meaning}."
    assert 0 < first.index(meaning) < first.index("Latest, ")
    alike = [query for query in made.facts.queries if query.series[0].meaning == walks.series[0].meaning]
    assert made.html.count(meaning) == len(alike) > 1
    (steered,) = (one for one in made.facts.queries if one.query == "steered")
    said = "".join(sentences_of(steered, ()))
    assert 0 < said.index(f"level: {steered.series[0].meaning}.") < said.index("New numbers of level")


def test_a_query_in_which_nothing_stands_out_says_so_if_enough_windows_have_intervals(made: Made) -> None:
    walks = next(query for query in made.facts.queries if query.query == "walks")
    few, enough = walks.series[0], replace(walks.series[0], judged=True)
    kinds = [few, enough, replace(enough, standing_out=("walks, level, noon: 9 ± 1, where 2 is usual",))]

    said = [NONE_STANDS_OUT in "".join(sentences_of(replace(walks, series=(one,)), ())) for one in kinds]
    assert (few.judged, said) == (False, [False, True, False])


def test_intervals_of_another_level_have_a_reason(made: Made) -> None:
    said = {query.name: differences_table(query) for query in made.facts.queries}

    assert WHY_LESS.replace(" %", "&nbsp;%") in said["ages, quantiles"]
    assert "interval" in said["walks"]
    assert "hold at once" not in said["walks"]


def test_a_difference_is_that_of_the_two_numbers_next_to_it(made: Made) -> None:
    """As they are shown: both are rounded, and the words say which one is higher."""
    number, compared = r"(-?[\d,.]+)", 0
    for query in made.facts.queries:
        for one in [difference for series in query.series for difference in series.differences]:
            found = re.search(
                rf"from {number} \(.*?\) to {number} \(.*?\), (?:{number} (lower|higher)|no diff)", one.text
            )
            other = re.search(
                rf": {number} \(.*?\), (?:{number} (lower|higher) than|no diff.*? from) .*, {number} \(", one.text
            )
            if found:
                before, after, size, which = found.groups()
            else:
                assert other, one.text
                after, size, which, before = other.groups()
            before, after, size, text = (
                float((text or "0").replace(",", "")) for text in (before, after, size, one.difference)
            )
            assert after - before == pytest.approx(-size if which == "lower" else size, abs=1e-9), one.text
            assert text == pytest.approx(after - before, abs=1e-9)
            compared += 1
    assert compared > 20


def test_the_page_begins_with_its_main_limits_and_a_link_to_all(made: Made) -> None:
    begin, _, rest = made.html.partition("<nav")
    release = published(str(made.public))

    assert f'{limits(release.spec, made.facts.epsilon)} <a href="#conclusions">What readers can conclude</a>' in begin
    assert rest.count('id="conclusions"><dt>What a reader can conclude</dt>') == 1


def test_each_fact_about_privacy_is_on_the_page_once(made: Made) -> None:
    release = published(str(made.public))
    disclosed = made.facts.disclosure
    folded = re.findall(r'<details class="told"><summary>(.*?)</summary>', made.html)

    assert folded[-2:] == ["Sensitivity, and the noise inside the mechanism", "The claim and its conditions"]
    for heading in ("Privacy unit", "Bounds", "Not protected", "Spent"):
        assert made.text.count(written(disclosed[heading])) == 1, heading
    assert made.text.count(written(release.plan.claim)) == 1
    assert made.text.count(INSIDE) == 1
    assert "medians of all cells and windows query number half of its 95 % interval" in made.text
    assert '<section id="privacy"' not in made.html


def test_numbers_have_the_same_digits_in_sentences_tables_and_charts(made: Made) -> None:
    series = parts_of(published(str(made.public)))[0].numbers[0].series
    for value, low, high in ((54.8, 50.0, 60.0), (1234.5678, 1230.0, 1239.0), (24.0, 20.5, 27.5), (0.0, -9.0, 9.0)):
        columns = (np.array([value]), np.array([low]), np.array([high]))
        numbers = Numbers(series=series, value=columns[0], low=columns[1], high=columns[2], total=None)
        of_chart = told(line_of(*columns), 0)

        assert _with_interval(*columns, numbers).replace("95 % interval ", "") == of_chart
        assert "{} ({} to {})".format(*_texts(value, low, high)) == of_chart
