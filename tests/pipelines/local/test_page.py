"""The page of a survey: how it begins, and sentences that depend on how devices report."""

import re
from dataclasses import replace

import pytest

from pipelines import cli
from pipelines.local import words
from pipelines.local.estimated import read_estimates
from pipelines.local.facts import disclosure
from pipelines.local.page import page_of
from pipelines.local.promise import sent
from pipelines.local.quality import Told
from pipelines.local.survey import Survey, read_survey
from pipelines.pages.numbers import Numbers
from privacy.local.bound import LocalBound
from privacy.local.candidates import candidates
from privacy.series import Series
from tests.pipelines.local.survey_page import SPEC, WINDOWS, survey_files
from tests.pipelines.report.test_operation import Elements
from transforms.local.distinct import LEFT_OUT

ABOUT = """\
about: {title: People & work, description: In twelve towns., source: Nobody., curator: The office, contact: a@b.example}
"""
UNDEFINED = ("symbol", "local model", "singling out", "unbiased", "randomised response", "agreed")
"""Words of experts that pages do not explain, and of forms that readers cannot fill in."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return survey_files(tmp_path_factory.mktemp("survey"))


@pytest.fixture(scope="module")
def surveys(files: tuple[str, str]) -> dict[str, Survey]:
    """The survey with each kind of design: its method, whether it is a tree, and what a report is."""
    survey, found = read_survey(files[0]), {}
    for one in candidates(survey.design.space, LocalBound(at_most=2), windows=25, epsilon=2.0):
        randomiser = one.design.layers[0].randomiser
        tree = " tree" if len(one.design.layers) > 1 else ""
        found.setdefault(f"{one.method}{tree}, {randomiser.report}", replace(survey, design=one.design))
    return found


def text_of(page: str) -> str:
    return " ".join(Elements(page).text.split()).replace("\xa0", " ")


def page_with(survey: Survey, estimates: str, told: Told | None, peak: float = 0.0) -> str:
    """Return the page, with the first answer of the eleventh window this much higher."""
    found = [
        Numbers(series=Series(kind=one.kind), value=one.value, low=one.low, high=one.high, total=None)
        for one in read_estimates(estimates, survey)[0]
    ]
    for column in (found[0].value, found[0].low, found[0].high):
        column[10, 0] += peak
    return page_of(survey, found, signals=[], warnings=[], told=told)


def test_the_page_begins_with_the_highest_and_the_lowest_level(files: tuple[str, str]) -> None:
    begins = [
        text_of(page_with(read_survey(files[0]), files[1], None, peak)).partition("Answers How many")[0]
        for peak in (0.0, 50_000.0)
    ]

    levels = (
        "highest at the end of 23 March 2025: 80,000 (77,000 to 83,000), lowest at the end of 12 January 2025: 20,000"
    )
    assert [f"employed: {levels}" in begin for begin in begins] == [False, True]


def test_the_highest_level_is_named_where_not_all_answers_are_drawn(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.pages.charts.CELLS", 2)

    page = text_of(page_with(read_survey(files[0]), files[1], None, 50_000.0))

    assert "employed: highest at the end of 23 March 2025: 80,000" in page.partition("Answers How many")[0]


def test_the_page_begins_with_who_is_protected_and_what_the_curator_states(files, tmp_path):
    spec, design, output = (tmp_path / name for name in ("survey.yaml", "design.json", "page.html"))
    spec.write_text(SPEC + ABOUT)
    assert cli.main(["local", "plan", str(spec), "-o", str(design)]) == 0
    assert cli.main(["local", "report", str(design), files[1], "-o", str(output)]) == 0

    page = output.read_text()
    text = text_of(page)
    begin = text.index("People & work Each of the 90,000 people is protected by their own device: it randomises every")
    told = ("report before anything leaves it", "Published by The office.", "In twelve towns.", "Source: Nobody.")
    told = (*told, "Do not conclude: which answer a person gave", f"{2 * 3 * WINDOWS} numbers", "delta = 0.000001")
    places = [text.index(one, begin) for one in told]
    assert places == sorted(places)
    assert "<title>People &amp; work: results</title>" in page
    assert '<a href="#limits">All limits</a>' in page.partition("<nav")[0]
    assert text.index("signatures of the reports") < text.index("How many of 90,000 people give each answer")


@pytest.mark.parametrize(
    ("verified", "said"),
    [
        (True, "Each counted report has a valid signature"),
        (False, "Signatures of the reports were not verified. Unless"),
    ],
)
def test_signatures_are_stated_before_the_numbers(files, verified, said):
    survey = read_survey(files[0])
    told = Told(
        design="", signatures_verified=verified, counted=7, left_out=dict.fromkeys(LEFT_OUT, 0), left_out_by_file=()
    )

    page = page_with(survey, files[1], told)
    start = page.partition("<nav")[0]
    assert said in text_of(start)
    assert ('class="warning"' in start) is not verified
    assert "7 reports are counted. None was left out." in text_of(page)


def test_no_page_has_words_that_it_does_not_define(files, surveys):
    assert len(surveys) == 6
    for survey in surveys.values():
        texts = [*disclosure(survey).values(), *words.devices(survey), *words.measured(survey, complete=False)]
        assert [(word, one) for one in texts for word in UNDEFINED if word in one.lower()] == []
    page = text_of(page_with(read_survey(files[0]), files[1], None)).lower()
    assert [word for word in UNDEFINED if word in page] == []


def test_the_glossary_has_the_terms_that_the_page_uses(files, surveys):
    found = {}
    for name in ("once, a symbol", "signs, a sign"):
        page = page_with(surveys[name], files[1], None)
        found[name] = re.findall("<dt>(.*?)</dt>", page.partition('id="glossary"')[2].replace("&nbsp;", " "))
    once, signs = found.values()

    assert {"differential privacy", "collector", "spec", "window", "level", "change", "95 % interval"} <= {*once}
    assert ["contribution bound" in one for one in (once, signs)] == [False, True]
    assert "rounding" in once
    assert "delta" in once


def test_samples_limits_and_intervals_are_described_as_the_devices_report(surveys):
    for name, survey in surveys.items():
        once, tree = name.startswith("once"), "tree" in name
        scaled, covers = words.scaled(survey, complete=False), words.coverage(survey, complete=False)
        assert ("those of a random sample, about 1 device in 25. Each number is scaled up from" in scaled) is once
        assert ("several windows together: each draws by chance which." in scaled) is tree
        assert ("All devices report on every window, so nothing is a sample" in scaled) is not (once or tree)
        assert scaled.endswith(" Missing reports are taken to be like those that arrived.")
        assert ("the chance that decides which devices report when" in covers) is (once or tree)
        bounded = [" ".join(words.limits(survey, complete=False)), covers]
        assert ["beyond the contribution bound" in one for one in bounded] == [not once] * 2
        assert words.expected(survey) == (90_000 if once else None if tree else 90_000 * 25)
        assert ("Which device has sent a report" in disclosure(survey)["odds"]) is once
        assert "issing" not in words.scaled(survey, complete=True) + words.coverage(survey, complete=True)


def test_a_device_sends_what_its_randomiser_draws(surveys):
    (once,), (sign,) = (sent(surveys[f"once, a {one}"].design, 1) for one in ("symbol", "sign"))
    (change,) = sent(surveys["signs, a sign"].design, 1)

    assert words.devices(surveys["once, a symbol"]) == [
        f"All people: 1 report, once. A report is one of 4 values (an answer, or none): the true one with probability "
        f"{once['truth']:.3g}, each other one with {once['other']:.3g}."
    ]
    assert words.devices(surveys["once, a sign"])[0].endswith(
        f"with the truth with probability {(1 + sign['gain']) / 2:.3g}."
    )
    (said,) = words.devices(surveys["signs, a sign"])
    assert f"the truth with probability {(1 + change['gain']) / 2:.3g}, and either with probability 0.5 if" in said
    assert said.endswith(
        "2 such reports is drawn together. Between two people, answers can make a difference in at most 4 of them."
    )
    assert (
        "All people: 25 reports, every 7 days. A report is one of 13"
        in words.devices(surveys["mutations, a symbol"])[0]
    )
    assert "every 14 days." in words.devices(surveys["mutations tree, a symbol"])[1]
