"""The report's page in a real browser: nothing in the console, nothing clipped or overlapping, controls that work."""

from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pipelines import cli
from tests.browser import NO_BROWSER, browser, faults, logged, resize
from tests.pipelines.report_page import NASTY, public_side

pytestmark = [NO_BROWSER, pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A browser at the page of a release that has a cell named like HTML, levels, changes and sliding windows."""
    folder = tmp_path_factory.mktemp("page")
    output = folder / "report.html"
    assert cli.main(["report", str(public_side(folder)), "-o", str(output)]) == 0
    with browser(folder) as driver:
        driver.get(output.as_uri())
        yield driver


def text(driver: webdriver.Chrome, selector: str) -> str:
    return driver.find_element(By.CSS_SELECTOR, selector).text


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False)])
def test_nothing_is_clipped_and_nothing_overlaps_on_a_screen(driver, width, dark):
    resize(driver, width, dark=dark)

    assert faults(driver) == []
    assert (
        len(driver.find_elements(By.CSS_SELECTOR, "figure.large svg path[stroke], figure.large [aria-label=line] path"))
        == 7
    )
    assert logged(driver) == []


def test_nothing_is_clipped_on_paper(driver):
    resize(driver, 720, media="print")
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")

    assert faults(driver) == []
    assert not driver.find_element(By.CSS_SELECTOR, ".controls").is_displayed()
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


def test_the_page_fetches_nothing_and_a_cell_s_name_is_a_text(driver):
    resize(driver, 1280)

    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert NASTY in [node.text for node in driver.find_elements(By.CSS_SELECTOR, "#query-0 .many figcaption")]
    assert driver.title == "kept: published numbers"


def test_kinds_cells_and_search_change_what_is_drawn(driver):
    resize(driver, 1280)
    query = driver.find_element(By.ID, "query-0")
    assert text(driver, "#query-0 .large figcaption") == "covers, level: all cells together"

    query.find_elements(By.CSS_SELECTOR, "input[type=radio]")[1].click()
    query.find_element(By.CSS_SELECTOR, "select").send_keys("a", Keys.TAB)
    query.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("IMG")
    query.find_element(By.CSS_SELECTOR, "summary").click()

    assert text(driver, "#query-0 .large figcaption") == "covers, entered: a"
    assert [node.text for node in query.find_elements(By.CSS_SELECTOR, ".many figcaption")] == [NASTY]
    assert len(query.find_elements(By.CSS_SELECTOR, "details tbody tr")) == 4
    assert logged(driver) == []


def test_arrow_keys_read_out_numbers_as_the_pointer_does(driver):
    resize(driver, 1280)
    plot = driver.find_element(By.CSS_SELECTOR, "#query-1 .large .plot")
    assert "walks, level: 4 numbers, end of Thu 1 Jan 2026 to end of Sun 4 Jan 2026" in plot.get_attribute("aria-label")

    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    by_key = text(driver, "#query-1 .large .readout")
    webdriver.ActionChains(driver).move_to_element_with_offset(plot, 60 - plot.size["width"] // 2, 0).perform()
    by_pointer = text(driver, "#query-1 .large .readout")

    assert by_key.startswith("end of Fri 2 Jan 2026: ")
    assert by_pointer.startswith("end of Thu 1 Jan 2026: ")
