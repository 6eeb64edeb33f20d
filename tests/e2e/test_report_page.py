"""Pages in a real browser, the report's and the map's: nothing logged, clipped or overlapping, controls that work."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

import slackwater
from examples.stops import show
from pipelines import cli
from pipelines.pages.course import told
from pipelines.pages.pictures.message import message
from pipelines.published.sums import REAL
from tests.browser import IN_BROWSER, browser, faults, logged, resize, torn
from tests.pipelines.local.survey_page import survey_files
from tests.pipelines.pages.all_kinds import STORM, documents, half_width, write_outline, write_page
from tests.pipelines.report.records_page import TOWNS, public_records
from tests.pipelines.report.report_page import NASTY, public_side
from tests.releases.continued import unpacked
from transforms.aggregation.ordered_key import OrderedKey

BY_CALENDAR = Path(__file__).parents[1] / "releases/0.3.0/blocks"

RELEASES = Path(__file__).parents[1] / "releases"

pytestmark = [IN_BROWSER, pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A browser at the page of a release that has a cell named like HTML, levels, changes and sliding windows."""
    folder = tmp_path_factory.mktemp("page")
    output = folder / "report.html"
    assert cli.main(["report", str(public_side(folder)), "-o", str(output)]) == 0
    with browser(folder) as driver:
        driver.get(output.as_uri())
        yield driver


@pytest.fixture
def elsewhere(driver: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """Yield the shared browser, then return it to the page of the release."""
    report = driver.current_url
    yield driver
    driver.get(report)


def text(driver: webdriver.Chrome, selector: str) -> str:
    return driver.find_element(By.CSS_SELECTOR, selector).text


@pytest.mark.few(4)
@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False)])
def test_nothing_is_clipped_and_nothing_overlaps_on_a_screen(driver, width, dark):
    resize(driver, width, dark=dark)

    assert faults(driver) == []
    assert (
        len(driver.find_elements(By.CSS_SELECTOR, "figure.large svg path[stroke], figure.large [aria-label=line] path"))
        == 10
    )
    assert logged(driver) == []


def test_a_phone_shows_whether_changes_are_real_without_scrolling(driver):
    resize(driver, 390)

    tables = driver.find_elements(By.CSS_SELECTOR, "table.stacks")
    driver.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    regions = [one for one in driver.find_elements(By.CSS_SELECTOR, ".scrolls") if one.is_displayed()]
    (row, *_) = tables[0].find_elements(By.CSS_SELECTOR, "tbody tr")
    cells = row.find_elements(By.CSS_SELECTOR, "th, td")
    for region in regions:
        assert driver.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", region), region.text
    assert min(cells, key=lambda one: one.rect["y"]) == cells[-1]
    driver.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = false))")
    resize(driver, 1280)
    assert len({one.rect["y"] for one in cells}) == 1


PAPER = """
const plots = [...document.querySelectorAll('.plot')].filter((one) => one.checkVisibility());
const { breakInside } = getComputedStyle(plots[0].closest('figure'));
return [plots[0].getBoundingClientRect().bottom + scrollY, Math.max(...plots.map((one) => one.clientHeight)),
  document.querySelector('details.told > ul').checkVisibility(), breakInside];
"""
"""JavaScript that returns the bottom of the first chart, the largest height of a chart, whether texts that phones fold
are visible, and whether a figure may end on another page.
"""


def test_a_phone_shows_the_first_chart_early_and_paper_on_the_first_page(elsewhere):
    resize(elsewhere, 390)
    elsewhere.refresh()  # the page folds texts when it loads
    short, top = (
        elsewhere.execute_script("return document.querySelector(arguments[0]).getBoundingClientRect().top", one)
        for one in ("main aside", ".plot")
    )
    folded = not elsewhere.find_element(By.CSS_SELECTOR, "details.told > ul").is_displayed()
    outside = text(elsewhere, "details.told > summary")
    resize(elsewhere, 720, media="print")
    elsewhere.execute_script("dispatchEvent(new Event('beforeprint'))")
    bottom, tallest, told, breaks = elsewhere.execute_script(PAPER)
    resize(elsewhere, 1280)
    elsewhere.refresh()

    assert short < 0.35 * 900  # of a screen
    assert top < 2.2 * 900  # below a warning and what is most important
    assert folded
    assert re.match(
        r"Since the window before: level, .*: from .* to .* \(95 % interval .*\)", outside.replace("\xa0", " ")
    )
    assert bottom < 1000  # of a page of A4
    assert tallest < 500
    assert told
    assert breaks == "auto"
    assert elsewhere.find_element(By.CSS_SELECTOR, "details.told > ul").is_displayed()


def test_few_numbers_have_markers_and_dates_and_copies_name_them_once(driver):
    resize(driver, 1280)
    large = "#query-1 figure.large"

    dates = [one.text for one in driver.find_elements(By.CSS_SELECTOR, f"{large} [aria-label^=x-axis] text")]
    dots = driver.find_elements(By.CSS_SELECTOR, f"{large} [aria-label=dot] circle")
    driver.find_element(By.CSS_SELECTOR, "#query-1 .charts summary").click()
    copied = text(driver, "#query-1 .charts details caption")
    months, weeks, days, at_ends, crowded = driver.execute_script(MONTHS)

    assert dates == ["1 Jan2026", "2 Jan", "3 Jan", "4 Jan"]
    assert len(dots) == 4
    assert copied == "walks, level"
    assert (months[0], months[-1]) == ("Dec\n2025", "Dec")
    assert months.count("Jan\n2026") == 1
    assert weeks == ["5 Jan\n2026", "12 Jan", "19 Jan"]
    assert at_ends
    assert days > 5
    assert crowded == []


LINK = """
const link = document.createElement('a');
link.href = 'walks.html';
document.querySelector('main').append(link);
const { content } = getComputedStyle(link, '::after');
link.remove();
return content;
"""
"""JavaScript that returns what paper shows behind a link to another page."""

FOLDED = """
return ['.told:not([open]) table.stacks', '.compare'].map((one) => document.querySelector(one).checkVisibility());
"""
"""JavaScript that returns whether folded differences and the choice of others are visible."""


def test_nothing_is_clipped_or_torn_on_paper(driver):
    resize(driver, 720, media="print")
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    target = driver.execute_script(LINK)
    folded = driver.execute_script(FOLDED)

    assert faults(driver) == []
    assert torn(driver) == []
    assert [one.is_displayed() for one in driver.find_elements(By.CSS_SELECTOR, ".controls, .copy")].count(True) == 0
    assert folded == [True, False]
    assert target == '" (walks.html)"'
    driver.execute_script("dispatchEvent(new Event('afterprint'))")


def test_a_plan_s_page_fits_a_phone_and_paper(driver, tmp_path):
    spec, page = public_side(tmp_path) / "spec.yaml", tmp_path / "plan.html"
    assert cli.main(["plan", str(spec), "--html", str(page)]) == 0
    report = driver.current_url
    driver.get(page.as_uri())

    for width, media in ((390, "screen"), (720, "print")):
        resize(driver, width, media=media)
        assert faults(driver) == []
    assert logged(driver) == []
    driver.get(report)


def test_intervals_of_samples_are_bars_and_windows_with_new_numbers_dots(elsewhere, tmp_path):
    """Four windows, of which the first and the third are sampled."""
    public, page = unpacked(RELEASES / "0.3.0/span", tmp_path) / "public", tmp_path / "page.html"
    assert cli.main(["report", str(public), "-o", str(page)]) == 0
    elsewhere.get(page.as_uri())
    resize(elsewhere, 1280)

    large = "#query-3 figure.large"
    bars = elsewhere.find_elements(By.CSS_SELECTOR, f"{large} [aria-label=rule][stroke='var(--band)'] line")
    circles = elsewhere.find_elements(By.CSS_SELECTOR, f"{large} [aria-label=dot] circle")
    caption = text(elsewhere, f"{large} .note")
    plot = elsewhere.find_element(By.CSS_SELECTOR, f"{large} .plot")
    plot.send_keys(Keys.END)
    told = text(elsewhere, f"{large} .readout")

    assert (len(bars), len(circles)) == (2, 2)
    assert caption == (
        "Steps: the published number, repeated until new numbers are published. Dots: new numbers. Bars: 95 % "
        "intervals, where they are known."
    )
    assert re.fullmatch(
        r"the end of 4 January 2026: ([\d.]+) \(repeated; new at the end of 3 January 2026, then [\d.]+ to [\d.]+\)",
        told,
    )
    assert faults(elsewhere) == []
    assert logged(elsewhere) == []


@pytest.fixture(scope="module")
def other_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return pages of releases that are not sums of a changelog."""
    folder = tmp_path_factory.mktemp("others")
    pages = {name: folder / f"{name}.html" for name in ("records", "survey")}
    assert cli.main(["report", str(public_records(folder)), "-o", str(pages["records"])]) == 0
    assert cli.main(["local", "report", *survey_files(folder), "-o", str(pages["survey"])]) == 0
    return pages


NARROW = """
document.querySelectorAll('details').forEach((one) => (one.open = true));
const tables = [...document.querySelectorAll('.scrolls')].filter((one) => one.getClientRects().length);
const slim = [...document.querySelectorAll('tbody th')].filter((one) => one.getBoundingClientRect().width < 70);
const wide = tables.filter((one) => one.scrollWidth > one.clientWidth);
return [...wide, ...slim].map((one) => one.textContent.slice(0, 40));
"""
"""JavaScript that lists tables that scroll sideways, and names of rows that are too narrow for a word."""


@pytest.mark.parametrize("name", ["records", "survey"])
def test_pages_of_other_kinds_fit_all_widths_and_paper(elsewhere, other_pages, name):
    elsewhere.get(other_pages[name].as_uri())

    for width, media, dark in ((390, "screen", True), (1280, "screen", False), (720, "print", False)):
        resize(elsewhere, width, media=media, dark=dark)
        if media == "print":
            elsewhere.execute_script("dispatchEvent(new Event('beforeprint'))")
            assert max(one.size["height"] for one in elsewhere.find_elements(By.CSS_SELECTOR, ".plot")) < 550
            assert torn(elsewhere) == []
        assert faults(elsewhere) == []
        if width == 390:
            assert elsewhere.execute_script(NARROW) == []
    assert logged(elsewhere) == []
    assert elsewhere.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_estimates_of_records_are_read_by_keys_and_pointer_and_more_of_them_at_a_press(elsewhere, other_pages):
    elsewhere.get(other_pages["records"].as_uri())
    resize(elsewhere, 1280)
    towns, curve = (elsewhere.find_element(By.ID, f"attribute-{place}") for place in (1, 4))

    towns.find_element(By.CSS_SELECTOR, ".plot").send_keys(Keys.ARROW_DOWN)
    by_key = text(elsewhere, "#attribute-1 .readout")
    before = len(towns.find_elements(By.CSS_SELECTOR, "svg [aria-label=dot] circle"))
    towns.find_element(By.CSS_SELECTOR, "button.more").click()
    after = len(towns.find_elements(By.CSS_SELECTOR, "svg [aria-label=dot] circle"))
    plot = curve.find_element(By.CSS_SELECTOR, ".plot")
    webdriver.ActionChains(elsewhere).move_to_element_with_offset(plot, 60 - plot.size["width"] // 2, 0).perform()
    by_pointer = text(elsewhere, "#attribute-4 .readout")
    elsewhere.find_element(By.CSS_SELECTOR, "#attribute-0 summary").click()
    rows = [row.text for row in elsewhere.find_elements(By.CSS_SELECTOR, "#attribute-0 tbody th")]
    told = logged(elsewhere)

    assert by_key.partition(":")[0] in TOWNS
    assert (before, after) == (24, 30)
    assert by_pointer.startswith("hour 00: ")
    assert rows == ["none", "full", NASTY]
    assert told == []


POINTS = """
const points = [];
for (const body of document.querySelectorAll('tbody')) {
  const columns = {};
  for (const cell of body.querySelectorAll('.number')) {
    const at = cell.textContent.indexOf('.'), range = document.createRange();
    if (at < 0 || !/^(?:± )?[-+]?[\\d,.]+$/.test(cell.textContent)) continue;
    range.setStart(cell.firstChild, at);
    range.setEnd(cell.firstChild, at + 1);
    (columns[cell.cellIndex] ??= []).push(range.getBoundingClientRect().left);
  }
  points.push(...Object.values(columns).map((one) => [one.length, Math.max(...one) - Math.min(...one)]));
}
return points;
"""
"""JavaScript that returns for each column how many numbers have a decimal point, and how far apart these are."""


def test_costs_are_decimals_below_each_other_and_the_label_is_copied_by_keys(driver):
    resize(driver, 390)
    driver.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    points = driver.execute_script(POINTS)
    driver.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = false))")
    costs = text(driver, "#ledger tbody")
    (label,) = driver.find_elements(By.CSS_SELECTOR, ".copy")
    label.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    WebDriverWait(driver, 10).until(lambda _: label.find_element(By.CSS_SELECTOR, "[role=status]").text)
    said = label.text
    driver.execute_script("document.querySelector('main').prepend(document.createElement('textarea'))")
    area = driver.find_element(By.TAG_NAME, "textarea")
    area.send_keys(Keys.CONTROL, "v")
    pasted = str(area.get_property("value")).splitlines()
    driver.execute_script("document.querySelector('textarea').remove()")

    assert max(count for count, _ in points) > 4
    assert max(apart for _, apart in points) < 0.5
    assert "0.000000001" in costs
    assert said == "Copy as text Copied."
    assert pasted[0] == "Privacy label"
    assert "Not protected:" in pasted
    assert "- The private folder of the release and the exact data." in pasted
    assert "Copy as text" not in pasted


def test_numbers_of_a_survey_without_reports_are_read_out_as_unknown(elsewhere, other_pages):
    elsewhere.get(other_pages["survey"].as_uri())
    resize(elsewhere, 1280)
    small = elsewhere.find_elements(By.CSS_SELECTOR, "#query-0 .many figure")

    small[2].find_element(By.CSS_SELECTOR, ".plot").send_keys(Keys.HOME)
    first = small[2].find_element(By.CSS_SELECTOR, ".readout").text
    small[1].find_element(By.CSS_SELECTOR, ".plot").send_keys(Keys.END)
    last = small[1].find_element(By.CSS_SELECTOR, ".readout").text
    compared = elsewhere.execute_script("return document.querySelector('#query-0 .compared').textContent")

    assert compared.startswith("employed, the end of 22 June 2025, compared with employed, the end of 15 June 2025: ")
    assert compared.endswith(": +1,000 (90\xa0% interval -5,000 to 7,000), may be noise alone.")
    assert [figure.find_element(By.CSS_SELECTOR, "figcaption").text for figure in small][1] == NASTY
    assert first == "the end of 12 January 2025: unknown"
    assert last == "the end of 22 June 2025: -69,000 (-73,000 to -65,000)"
    assert logged(elsewhere) == []


def test_days_of_a_calendar_are_called_by_its_clocks(driver, tmp_path):
    unpacked(BY_CALENDAR, tmp_path)
    page = tmp_path / "report.html"
    assert cli.main(["report", str(tmp_path / "public"), "-o", str(page)]) == 0
    report = driver.current_url
    driver.get(page.as_uri())
    resize(driver, 1280)

    driver.find_element(By.CSS_SELECTOR, "#query-0 .charts details summary").click()
    rows = [row.text for row in driver.find_elements(By.CSS_SELECTOR, "#query-0 .charts details tbody th")]
    told = faults(driver), logged(driver)
    driver.get(report)

    assert rows[0] == "the end of 1 January 2026"
    assert not any(":" in row for row in rows)
    assert told == ([], [])


def test_the_page_fetches_nothing_and_a_cell_s_name_is_a_text(driver):
    resize(driver, 1280)

    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert NASTY in [node.text for node in driver.find_elements(By.CSS_SELECTOR, "#query-0 .many figcaption")]
    assert driver.title == "kept: published numbers"


def test_kinds_cells_and_search_change_the_charts(driver):
    resize(driver, 1280)
    query = driver.find_element(By.ID, "query-0")
    assert text(driver, "#query-0 .large figcaption") == "covers, level: all cells together"

    query.find_elements(By.CSS_SELECTOR, "input[type=radio]")[1].click()
    query.find_element(By.CSS_SELECTOR, "select").send_keys("a", Keys.TAB)
    search = query.find_element(By.CSS_SELECTOR, "input[type=search]")
    search.send_keys("nothing")
    none = query.text
    search.clear()
    search.send_keys("onerror, IMG")
    query.find_element(By.CSS_SELECTOR, ".charts summary").click()

    assert "None of the cells matches." in none
    assert text(driver, "#query-0 .large figcaption") == "covers, entered: a"
    assert [node.text for node in query.find_elements(By.CSS_SELECTOR, ".many figcaption")] == [NASTY]
    assert len(query.find_elements(By.CSS_SELECTOR, ".charts details tbody tr")) == 4
    assert logged(driver) == []


def test_two_numbers_that_a_reader_chooses_are_compared_as_the_page_states_or_from_their_intervals(driver, tmp_path):
    resize(driver, 1280)
    compare = driver.find_element(By.CSS_SELECTOR, "#query-0 .compare")
    compare.find_element(By.XPATH, "ancestor::details/summary").click()
    first = text(driver, "#query-0 .compared")
    hints = []
    driver.execute_script("slackwater.data.queries[0].series[0].noisy = 'they are noise'")
    for both in (("all cells together", "a"), ("a", "all cells together")):
        for place, cell in zip((1, 3), both, strict=True):
            Select(compare.find_elements(By.TAG_NAME, "select")[place]).select_by_visible_text(cell)
        told = text(driver, "#query-0 .compared")
        hints.append(("more than the noise explains" in told, "but they are noise." in told))
    driver.execute_script("delete slackwater.data.queries[0].series[0].noisy")
    kind, *_ = (Select(one) for one in compare.find_elements(By.TAG_NAME, "select"))

    kind.select_by_visible_text("entered")
    _, cell, _, other, before = (Select(one) for one in compare.find_elements(By.TAG_NAME, "select"))
    cell.select_by_visible_text("a")
    other.select_by_visible_text(NASTY)
    before.select_by_visible_text("3 January 2026")
    told = text(driver, "#query-0 .compared")

    public = public_side(tmp_path)
    numbers = slackwater.show(public, query=["covers"]).table.to_pylist()
    facts = slackwater.report(public, output=tmp_path / "page.html").facts
    place = next(at for at, query in enumerate(facts.queries) if query.of == "quantiles")
    driver.find_element(By.CSS_SELECTOR, f"#query-{place} .compare").find_element(
        By.XPATH, "ancestor::details/summary"
    ).click()
    assert "(90 % interval " in text(driver, f"#query-{place} .compared").replace("\xa0", " ")
    _, stated = facts.series[0]
    one = stated.differences[0]
    assert hints == [(True, False), (True, True)]  # as pipelines/report/differences.py
    assert first.startswith(f"{one.name}, compared with all cells together, {one.minus_name}: ")
    assert first.endswith(f"), {REAL[one.real]}.")
    found = re.fullmatch(
        re.escape(f"a, 4 January 2026, compared with {NASTY}, 3 January 2026: ")
        + r"(-[\d.]+) \(90 % interval (-[\d.]+) to (-[\d.]+)\), lower: more than the noise explains\.",
        told,
    )
    assert found
    wanted = (("entered", "a", 5), ("entered", NASTY, 4))
    one, less = (
        next(row for row in numbers if (row["kind"], row["ward"], row["window_end"].day) == which) for which in wanted
    )
    low, high = one["ci_low"] - less["ci_high"], one["ci_high"] - less["ci_low"]
    value, least, most = map(float, found.groups())
    assert least <= low < value < high <= most
    assert most - least < 1.2 * (high - low)  # the page rounds intervals outward
    assert logged(driver) == []


def test_arrow_keys_read_out_numbers_as_the_pointer_does(driver):
    resize(driver, 1280)
    plot = driver.find_element(By.CSS_SELECTOR, "#query-1 .large .plot")
    label = plot.get_attribute("aria-label")
    assert "walks, level: 4 numbers, the end of 1 January 2026 to the end of 4 January 2026" in label

    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    by_key = text(driver, "#query-1 .large .readout")
    webdriver.ActionChains(driver).move_to_element_with_offset(plot, 60 - plot.size["width"] // 2, 0).perform()
    by_pointer = text(driver, "#query-1 .large .readout")

    assert by_key.startswith("the end of 2 January 2026: ")
    assert by_pointer.startswith("the end of 1 January 2026: ")


def test_ranges_have_separate_charts_that_show_the_chosen_cell(driver, tmp_path: Path):
    folder, page, report = (
        unpacked(RELEASES / "0.3.0/ranges", tmp_path / "kept"),
        tmp_path / "page.html",
        driver.current_url,
    )
    assert cli.main(["report", str(folder / "public"), "-o", str(page)]) == 0
    driver.get(page.as_uri())
    resize(driver, 1280)

    drawn = [node.text for node in driver.find_elements(By.CSS_SELECTOR, "figure.large figcaption")]
    chosen = [
        Select(node.find_elements(By.TAG_NAME, "select")[-1]).first_selected_option.text
        for node in driver.find_elements(By.CSS_SELECTOR, ".charts")
    ]
    options = [one.text for one in driver.find_elements(By.CSS_SELECTOR, "#query-0 .charts option")]
    assert "below 0" in options
    assert options[-1].endswith(" or more")  # not "above"
    assert [text.partition(": ")[0] for text in drawn] == [
        *("listed, level", "listed, ranges of age, level", "whole, level", "found, level")
    ]
    assert [text.partition(": ")[2] for text in drawn] == chosen
    assert {node.text for node in driver.find_elements(By.CSS_SELECTOR, "#query-1 .many figcaption")} == {
        f"{cells}, {ward}" for cells in ("20 to 40", "30 or more") for ward in ("a", "b")
    }
    assert logged(driver) == []
    driver.get(report)


def city() -> show.City:
    """Numbers from 0 to 1,199 in two windows, 5 by 4 cells and two reasons, with intervals of +- 100."""
    value = np.arange(80.0).reshape(2, 5, 4, 2) * 15
    maps = {kind: show.Maps(value=value, half=np.full_like(value, 100.0)) for kind in ("change", "level")}
    band = pa.table({"value": [1234.0, 9.0], "ci_low": [1000.0, -1.0], "ci_high": [1468.0, 19.0]})
    return show.City(
        ends=["2017-01-28", "2017-02-25"],
        lat=OrderedKey(start=44886, step=6, steps=5, digits=3),
        long=OrderedKey(start=-93336, step=8, steps=4, digits=3),
        problems=("suspicious", "traffic"),
        maps=maps,
        downtown={"change": band, "level": band},
    )


def test_the_map_s_page_fits_all_widths_and_is_walked_through_by_keys(driver, tmp_path: Path) -> None:
    page, report = tmp_path / "map.html", driver.current_url
    shown = city()
    show.write_page(shown, (shown.downtown["change"], shown.downtown["change"]), page)
    driver.get(page.as_uri())
    for width, dark in ((390, False), (390, True), (1280, False)):
        resize(driver, width, dark=dark)
        assert faults(driver) == []
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    cells = driver.find_elements(By.CSS_SELECTOR, "#map rect")
    assert len(cells) == 20
    middle = driver.find_element(By.CSS_SELECTOR, "#map rect[tabindex='0']")
    middle.send_keys(Keys.ARROW_UP)
    assert text(driver, "#cell").startswith("855 stops, 95 % interval 714 to 996, latitude 44.904 to 44.910, longitude")
    driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    assert text(driver, "#cell").startswith("795 stops")
    assert len(driver.find_elements(By.CSS_SELECTOR, "#map rect[tabindex='0']")) == 1
    driver.find_element(By.ID, "problem").send_keys("traffic")
    driver.find_element(By.ID, "window").send_keys(Keys.ARROW_RIGHT)
    webdriver.ActionChains(driver).move_to_element(cells[0]).perform()
    assert text(driver, "#cell").startswith("615 stops, 95 % interval 515 to 715")
    assert text(driver, "#when") == "four weeks to 2017-02-25"

    resize(driver, 720, media="print")
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert faults(driver) == []
    assert not driver.find_element(By.ID, "window").is_displayed()
    assert text(driver, "table caption").endswith("NOT that it was made, or when.")
    assert text(driver, ".scrolls tbody tr") == "2017-01-28 1,234 1,000 to 1,468 1,234 1,000 to 1,468"
    resize(driver, 1280, dark=True)
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 22)"
    assert logged(driver) == []
    driver.get(report)


NAMELESS = """
const named = (node) => node.getAttribute('aria-label') || node.closest('label')?.textContent.trim()
  || (node.tagName === 'BUTTON' && node.textContent.trim());
return [...document.querySelectorAll('input, select, button, .plot, [role=region]')]
  .filter((node) => node.getClientRects().length && !named(node)).map((node) => node.outerHTML.slice(0, 80));
"""
"""JavaScript that lists visible controls and charts without a name for screen readers."""


MONTHS = """
const spans = d3.range(13).map((month) => [11, 11, 12].map((from) => Date.UTC(2025, from + month)));
const series = { kind: "level", step: 1, width: 1, spans, cells: [{ v: spans }] };
const day = 86400000, step = 7 * day, first = Date.UTC(2026, 0, 12);
const weeks = { kind: "entered", step, width: step, window: step, first, cells: [{ v: [1, 2, 3] }] };
const days = { kind: "level", step: day, width: day, window: day, first, cells: [{ v: d3.range(40) }] };
const ends = d3.range(40).map((place) => new Date(first + place * day)), written = d3.utcFormat("%-d %b");
const drawn = [series, weeks, days].map((one) => slackwater.dates(one, ends, 1000)), { ticks, tickFormat } = drawn[2];
const apart = (one, width) => {
  const count = one.cells[0].v.length, when = (place) => +slackwater.span(one, place)[2];
  const { ticks, tickFormat } = slackwater.dates(one, ends, width);
  const long = one === days ? ends[39] - ends[0] : when(count - 1) - when(0);
  const half = (time, at) => slackwater.widest(tickFormat(time, at).split("\\n")) / 2;
  const sides = ticks.map((time, at) => [(time / long) * width, half(time, at)]);
  return d3.pairs(sides).every(([[from, half], [to, other]]) => to - from >= half + other);
};
return [...drawn.slice(0, 2).map(({ ticks, tickFormat }) => ticks.map(tickFormat)), ticks.length,
  ticks.every((time, at) => tickFormat(time, at).split("\\n")[0] === written(time - day)),
  d3.range(30, 900, 10).filter((width) => ![series, days].every((one) => apart(one, width)))];
"""
"""JavaScript that returns labels of levels of thirteen months, and of changes of three weeks, and for levels of forty
days the number of ticks, and whether each is at the end of its day; then the widths at which labels of dates overlap.
"""


FIRST = """
const numbers = [[5, -9, 19], [50, 40, 60], [70, -10, 90], [60, 50, 70]];
const lines = numbers.map(([v, lo, hi]) => ({ v: [v], lo: [lo], hi: [hi] }));
const items = lines.map((line, at) => ({ name: "abcd"[at], line }));
const { ranked, largest, apart, bars, colouring } = slackwater, merged = { picture: { merged: 2, axes: [{}] } };
const means = { zero: false, within: [0, 90] }, count = (plot, what) => plot.querySelectorAll(what).length;
const [plot] = bars(means, { cells: lines }, 0, items, { room: 500, title: "means" });
const below = [{ v: [-60], lo: [-70], hi: [-50] }, { v: [60], lo: [50], hi: [70] }];
const how = (kind) => colouring({ counts: true }, below, false, { kind }).how.endsWith("come from noise alone.");
return [ranked({}, items, ({ line }) => line).map(({ name }) => name).join(""),
  ...[{}, merged].map((one) => largest(one, { cells: lines }, 0, items, "Largest").join(" ")),
  apart(9, 11, 5), apart(9, 19, 5),
  ["[aria-label=dot] circle", "[aria-label=bar] rect", "[stroke-dasharray] line"].map((one) => count(plot, one)),
  ["level", "change"].map(how),
  slackwater.element("p", {}, "level, \u05d0\u05d1 \u05d2: 5 (4 to 6)").textContent];
"""
"""JavaScript that returns the order of some cells, the message about them and if each adds up two, ends of bands, the
numbers of dots, bars and limits of means, whether the legend of a level and of a change says that numbers below zero
come from noise, and a text with a name that is written from right to left, in isolating signs.
"""


NO_LARGEST = (
    "No largest cell can be named: the intervals of b and c overlap that of d: 60 (50 to 70), the highest that is not "
    "mostly noise. 2 of 4 cells cannot be distinguished from zero."
)


STEPS = """
const light = (colour) => {
  const linear = (one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4);
  const [red, green, blue] = colour.match(/\\d+/g).map(linear);
  return 116 * Math.cbrt(0.2126 * red + 0.7152 * green + 0.0722 * blue) - 16;
};
const steps = (scale) => [...scale.querySelectorAll('i')].map((one) => light(getComputedStyle(one).backgroundColor));
return [...document.querySelectorAll('.scale')].map(steps);
"""
"""JavaScript that returns the lightness (CIE L*) of each step of each scale of colours."""


LEGEND = """
const line = (value) => ({v: [value], lo: [value - 24], hi: [value + 24]});
const texts = (scale) => [...scale.querySelectorAll('.step')].map((one) => one.textContent).join(' ');
const legend = (values) => slackwater.colouring({}, values.map(line), false).legend().map(texts);
const alike = d3.range(1000, 1020), far = d3.range(1000, 1400);
return [alike, [...far, 90000], [...far, -1100, 10]].map(legend);
"""
"""JavaScript that returns legends: of cells that are alike, of a spike, and of numbers below and near zero."""


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[int, dict[str, Any]]]]:
    """Return a page with charts of all kinds, and the place and the data of each."""
    folder, drawn = tmp_path_factory.mktemp("charts"), documents()
    write_outline(folder / "city.geojson")
    write_page(folder / "page.html", drawn, folder / "city.geojson")
    return folder / "page.html", {one["name"]: (place, one) for place, one in enumerate(drawn)}


def test_charts_of_all_kinds_fit_and_say_their_main_message(elsewhere, charts):
    page, drawn = charts
    elsewhere.get(page.as_uri())

    for width, media, dark in ((390, "screen", True), (1280, "screen", False), (720, "print", False)):
        resize(elsewhere, width, media=media, dark=dark)
        if media == "print":
            elsewhere.execute_script("dispatchEvent(new Event('beforeprint'))")
            assert max(one.size["height"] for one in elsewhere.find_elements(By.CSS_SELECTOR, ".plot")) < 550
            assert text(elsewhere, f"#query-{drawn['wards'][0]} .legend + .note").startswith(
                "28 of 30 cells in the order"
            )
        assert faults(elsewhere) == []
        assert elsewhere.execute_script(NAMELESS) == []
        scales = elsewhere.execute_script(STEPS)
        assert max(map(len, scales)) == 6
        for steps in scales:  # visible without hue
            assert min(steps) > 25 or not dark  # lighter than the page
            assert min([abs(one - other) for one, other in pairwise(steps)], default=14) > 12
    assert elsewhere.execute_script(FIRST) == [
        "dbca",
        *(NO_LARGEST, f"{NO_LARGEST.replace('cell', 'bar')} Each bar adds up 2 cells."),
        *([7.5, 12.5], [9, 19], [4, 0, 2], [True, False]),
        "level, \u2068\u05d0\u05d1 \u05d2\u2069: 5 (4 to 6)",
    ]
    fan = f"#query-{drawn['medians, quantiles'][0]} .pictured svg"
    bands = elsewhere.find_elements(By.CSS_SELECTOR, f"{fan} [aria-label=area]")
    compared = elsewhere.find_element(By.CSS_SELECTOR, f"#query-{drawn['medians, quantiles'][0]} .compared")
    assert (compared.get_attribute("textContent") or "").startswith(
        "median, the end of 25 March 2026, compared with median"
    )
    assert len({one.get_attribute("fill") for one in bands}) == len(bands) == 3
    assert logged(elsewhere) == []
    assert elsewhere.execute_script("return performance.getEntriesByType('resource').length") == 0
    for place, one in drawn.values():
        said = " ".join(message(one, [data for _, data in drawn.values()]))
        if said:
            assert text(elsewhere, f"#query-{place} .pictured .said") == said
        if said and one["picture"]["kind"] != "crossed":  # a table needs no other text
            label = elsewhere.find_element(By.CSS_SELECTOR, f"#query-{place} .pictured .plot").get_attribute(
                "aria-label"
            )
            assert said in label
    assert len(elsewhere.find_elements(By.CSS_SELECTOR, "path.outline")) == 2
    notes = {name: text(elsewhere, f"#query-{drawn[name][0]} .large > .note") for name in ("people", "all")}
    least = text(elsewhere, f"#query-{drawn['people'][0]} .large [aria-label^='y-axis tick label'] text")
    assert "The vertical axis does not start at 0." in notes["people"]  # flat lines far from zero
    assert float(least) > 1000
    assert "axis" not in notes["all"]
    small = {name: text(elsewhere, f"#query-{drawn[name][0]} .charts > .note") for name in ("people", "rare")}
    assert "Each chart has its own scale" in small["people"]  # they would be flat lines on one scale
    assert "scale" not in small["rare"]

    series = f"#query-{drawn['all'][0]} .large"
    line = drawn["all"][1]["series"][0]["cells"][0]
    said = text(elsewhere, f"{series} .extremes")
    assert said.startswith("Highest, ")
    assert f": {told(line, STORM)}, which stands out; no other interval overlaps it. Lowest, " in said
    assert re.search(r"; the intervals? of [1-9] other windows? overlaps? it\.$", said)
    label = elsewhere.find_element(By.CSS_SELECTOR, f"{series} .plot").get_attribute("aria-label")
    assert said in (label or "").replace("\u00a0", " ")


def test_bars_are_in_the_order_of_their_window_and_charts_in_that_of_the_keyboard(elsewhere, charts):
    page, drawn = charts
    resize(elsewhere, 1280)
    elsewhere.get(page.as_uri())
    (wards, data), (ages, _) = drawn["wards"], drawn["ages"]

    def order(window: int) -> list[str]:
        lines = zip(data["cells"], data["series"][0]["cells"], strict=True)
        return [name for (name,), _ in sorted(lines, key=lambda one: (one[1]["lo"][window] <= 0, -one[1]["v"][window]))]

    elsewhere.find_element(By.CSS_SELECTOR, f"#query-{wards} input[type=range]").send_keys(Keys.HOME)
    plot = elsewhere.find_element(By.CSS_SELECTOR, f"#query-{wards} .pictured .plot")
    plot.send_keys(*[Keys.ARROW_RIGHT] * 20)
    last = text(elsewhere, f"#query-{wards} .pictured .readout")
    more = elsewhere.find_element(By.CSS_SELECTOR, f"#query-{wards} .pictured button.more")
    more.send_keys(Keys.ENTER)
    moved = elsewhere.switch_to.active_element.get_attribute("class")  # the button is gone
    names = [
        one.text for one in elsewhere.find_elements(By.CSS_SELECTOR, f"#query-{wards} .pictured [aria-label^=y] text")
    ]
    places = elsewhere.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((one) => one.className)",
        f"#query-{ages} :is(.pictured .plot, .large)",
    )

    assert names == order(0)
    assert order(0)[:20] != order(-1)[:20]
    assert last.startswith(f"{order(0)[19]}: ")
    assert moved == "plot"
    assert places == ["plot", "large", "plot"]


def test_windows_boxes_and_nodes_are_chosen_by_keys(elsewhere, charts):
    page, drawn = charts
    resize(elsewhere, 1280)  # before the page is there, so that it draws its charts once
    elsewhere.get(page.as_uri())
    (stops, data), (ages, histogram), (places, _), (people, _) = (
        drawn[name] for name in ("stops", "ages", "places", "people")
    )

    frames = [text(elsewhere, f"#query-{stops} .legend .key:has(.ring)")]
    lowest = text(elsewhere, f"#query-{stops} .pictured [aria-label^=y-axis] text")
    elsewhere.find_element(By.CSS_SELECTOR, f"#query-{stops} .pictured .jump").send_keys(Keys.ENTER)
    frames += [text(elsewhere, f"#query-{one} .legend .key:has(.ring)") for one in (stops, ages)]
    back = elsewhere.switch_to.active_element.text  # it keeps the focus
    shown = text(elsewhere, f"#query-{stops} .pictured .said")
    marked = text(elsewhere, f"#query-{stops} .pictured svg text.noted")
    plot = elsewhere.find_element(By.CSS_SELECTOR, f"#query-{stops} .pictured .plot")
    columns = [elsewhere.find_element(By.CSS_SELECTOR, f"#query-{stops} {one}").rect for one in (".picture", ".large")]
    plot.send_keys(Keys.HOME)
    plot.send_keys(Keys.SHIFT, Keys.ARROW_UP, Keys.ARROW_RIGHT)
    box = text(elsewhere, f"#query-{stops} .pictured .readout")
    half = elsewhere.execute_script(
        "const query = slackwater.data.queries[arguments[0]], box = [[1, 3], [1, 3]];"
        "return slackwater.halfWidth(query.picture, query.series[0], 7, 0, box)",
        stops,
    )
    plot.send_keys(Keys.ENTER)
    chosen = Select(elsewhere.find_element(By.CSS_SELECTOR, f"#query-{stops} .pictured ~ .controls select"))
    problem = Select(elsewhere.find_element(By.CSS_SELECTOR, f"#query-{stops} .controls select"))
    every = text(elsewhere, f"#query-{stops} .pictured .total, #query-{stops} .pictured .note")
    problem.select_by_visible_text("traffic")
    of_traffic = text(elsewhere, f"#query-{stops} .pictured .total")
    problem.select_by_visible_text("all values")
    outer = [one.text for one in elsewhere.find_elements(By.CSS_SELECTOR, f"#query-{ages} .picture svg > text")]
    peak = text(elsewhere, f"#query-{ages} .peak")
    slider = elsewhere.find_element(By.CSS_SELECTOR, f"#query-{ages} input[type=range]")
    slider.send_keys(Keys.HOME)
    first = text(elsewhere, f"#query-{ages} .pictured .said")
    elsewhere.find_element(By.CSS_SELECTOR, f"#query-{places} .pictured .plot").send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    trail = text(elsewhere, f"#query-{places} .trail")
    total = text(elsewhere, f"#query-{places} .pictured .total")
    beyond = text(elsewhere, f"#query-{stops} .pictured .legend + .note")
    edges = elsewhere.find_elements(By.CSS_SELECTOR, f"#query-{stops} .scale")[-1].text.split()
    legends = elsewhere.execute_script(LEGEND)
    jobs, data_of_jobs = drawn["jobs"]
    Select(elsewhere.find_element(By.CSS_SELECTOR, f"#query-{jobs} .controls select")).select_by_visible_text("f")
    elsewhere.find_element(By.CSS_SELECTOR, f"#query-{jobs} .pictured .plot").send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    below = text(elsewhere, f"#query-{jobs} .pictured .said")
    elsewhere.find_element(By.CSS_SELECTOR, f"#query-{jobs} .pictured .plot").send_keys(
        *[Keys.ARROW_DOWN] * 2, Keys.ENTER
    )
    leaf_over_time = text(elsewhere, f"#query-{jobs} .large figcaption")
    table = text(elsewhere, f"#query-{people} .crossed tbody tr:last-child")
    together = text(elsewhere, f"#query-{people} .total")

    assert shown == " ".join(message(data, window=STORM))
    assert marked in shown  # the largest cell of the map has its number and interval next to it
    assert re.fullmatch(r"1,[\d,]+ \(1,[\d,]+ to 1,[\d,]+\)", marked)
    assert columns[1]["x"] >= columns[0]["x"] + columns[0]["width"] > 600
    assert every.startswith("All cells: ")
    everything, outside = data["series"][0]["totals"][1], data["series"][0]["outside"]["lines"][1]
    assert of_traffic == (
        f"All cells of traffic: {told(everything, STORM)}, of which {told(outside, STORM)} have no place on the map"
    )
    assert frames == [
        "largest cell, with its 95 % interval",
        "largest cell of all windows, with its 95 % interval",
        "highest number of all windows, with its 95 % interval; others may be higher",
    ]
    assert back == "Back to the last window"
    assert lowest == "44.89"  # the lowest edge is at 44.886
    assert outer[:2] == ["age below 0", "age 100 or more"]
    number, when = outer[2].split(")")
    assert peak.startswith("Highest number of all windows: age [")
    assert f", {when}: {number})." in peak
    cells = [data["series"][0]["cells"][place]["v"][STORM] for place in (12, 13, 23, 24)]
    assert box.startswith("4 cells, lat 44.886 to 44.914, long -93.336 to -93.304: sum ")
    value, low, high = (float(one.replace(",", "")) for one in re.findall(r"-?[\d,.]*\d", box.partition("sum ")[2]))
    assert value == pytest.approx(sum(cells))
    assert half == pytest.approx(half_width(data, STORM, [(1, 3), (1, 3)], every=True))
    assert 0 <= high - value - half <= 4 * data["series"][0]["unit"]
    assert 0 <= value - low - half <= 4 * data["series"][0]["unit"]
    assert chosen.first_selected_option.text == "[44.9, 44.914), [-93.32, -93.304)"
    assert first == " ".join(message(histogram, window=0))
    assert trail == "all \u203a Bavaria"
    assert total.startswith("Bavaria: ")
    assert together == f"All cells: {told(drawn['people, total'][1]['series'][0]['cells'][0], -1)}"
    assert legends == [
        ["1000 1019"],
        ["1000 1100 1200 1300 1380 1404 90k"],
        ["\u22121200 \u22121100 \u22121000", "1000 1100 1200 1300 1375 1399"],
    ]
    lines = [line["v"][STORM] for line in data["series"][0]["cells"][: 14 * 11]]
    inside = [lines[row * 11 + column] for row in range(1, 13) for column in range(1, 10)]
    found = re.fullmatch(r"46 further cells are below or above .*; their sum is ([\d,-]+) \(.*\)\.", beyond)
    assert found
    assert abs(float(found[1].replace(",", "")) - (sum(lines) - sum(inside))) <= 4
    assert float(edges[-1]) >= max(inside) > float(edges[-2])
    leaf = data_of_jobs["series"][0]["cells"][0]
    assert leaf_over_time == "jobs, level: f, Hof"
    assert below.startswith(f"Largest: Munich: {told(leaf, -1)}.")
    assert re.fullmatch(r"all [\d,]+ ± [\d.]+ [\d,]+ ± [\d.]+ [\d,]+ ± [\d.]+", table)
    assert logged(elsewhere) == []
