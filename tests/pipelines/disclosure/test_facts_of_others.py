"""The twenty points of a disclosure for sanitised records and for surveys, in words that are true of them."""

from pathlib import Path

import pytest

from pipelines.disclosure.facts import FACTS, labelled
from pipelines.local.facts import disclosure as of_survey
from pipelines.local.plan import plan
from pipelines.local.survey import Survey, read_survey
from pipelines.sanitised.facts import disclosure as of_records
from pipelines.sanitised.spec import load_sanitise
from tests.fuzz.parsers import RECORDS
from tests.pipelines.pages.test_words import refuse_what_no_page_says
from transforms.common.errors import SpecError

ABOUT = """\
about:
  curator: {name: City <Council>, type: Government}
  contact: privacy@city.example
  justification: Epsilon follows the guideline of 2025.
"""
SURVEY = """\
release: answers
local: {answers: [home, work], people: 1000, epsilon: 1.0, constraint: {at_most: 3}, method: METHOD}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-09T00:00:00Z}
"""


def survey(folder: Path, method: str, more: str = "") -> Survey:
    (folder / "survey.yaml").write_text(SURVEY.replace("METHOD", method) + more)
    plan(folder / "survey.yaml", output=folder / "design.json")
    return read_survey(str(folder / "design.json"))


@pytest.mark.parametrize("method", ["signs", "mutations", "once"])
def test_a_survey_states_every_point(tmp_path: Path, method: str) -> None:
    found = of_survey(survey(tmp_path, method, ABOUT))

    assert [*found] == [*FACTS]
    assert all(found.values())
    assert "City <Council> (Government). Contact: privacy@city.example." in found["curator"]
    assert "Epsilon follows the guideline of 2025." in found["chosen"]
    assert "Others see randomised reports alone" in found["trust"]
    refuse_what_no_page_says(" ".join(found.values()))


def test_texts_about_a_survey_do_not_change_the_question_that_devices_answer(tmp_path: Path) -> None:
    plain = survey(tmp_path, "signs")
    (tmp_path / "design.json").unlink()

    assert survey(tmp_path, "signs", ABOUT).design == plain.design


def test_records_state_every_point(tmp_path: Path) -> None:
    (tmp_path / "records.yaml").write_bytes(RECORDS + ABOUT.encode())
    spec = load_sanitise(tmp_path / "records.yaml")
    found = of_records(spec.record, dict(spec.about), program="0.3.0", sampler=1)

    assert [*found] == [*FACTS]
    assert all(found.values())
    assert "City <Council> (Government)" in found["curator"]
    assert "epsilon = 2, delta = 0 for each record" in found["parameters"]
    assert [heading for heading, _ in labelled(found)] == [fact.heading for fact in FACTS.values()]
    refuse_what_no_page_says(" ".join(found.values()))


def test_labels_of_queries_are_refused_where_there_are_no_queries(tmp_path: Path) -> None:
    (tmp_path / "records.yaml").write_bytes(RECORDS + b"about: {title: Records}\n")

    with pytest.raises(SpecError, match="title"):
        load_sanitise(tmp_path / "records.yaml")
