"""The twenty points of a disclosure, for releases of all kinds: true statements, and none that is false of another."""

from pathlib import Path

import pytest

from pipelines.disclosure.facts import FACTS, Subject, disclosure, page_texts
from pipelines.epochs.plans import plan_of
from pipelines.spec.load import load
from tests.pipelines.pages.test_words import KINDS, SPEC, refuse_what_no_page_says
from tests.pipelines.spec_text import changed

ABOUT = """\
about:
  curator: {name: City <Hospital>, type: Government}
  contact: privacy@hospital.example
  use: Plan the number of beds.
  region: Ireland
  justification: Epsilon follows the guideline of 2025.
"""

SAID = {
    "entries": [
        "Two changelogs that differ by all changes of one entry.",
        "The whole release, up to its end.",
        "Each outcome is more or less likely without the entry: the two differ by a factor of at most 2.72.",
        "Readers cannot conclude whether any one entry is in the data, why numbers differ, or what the exact numbers "
        "are. Sums of numbers after contribution bounding can differ from the true total.",
    ],
    "owners": ["in rho of zero-concentrated differential privacy, add up to 0.01655", "Discrete Gaussian noise"],
    "without an end": [
        "The whole release, however long it runs",
        "Windows of 1 day from 1 January 2026, without an end, in UTC.",
    ],
    "a span": [
        "in what one entry does within 3 days: in one of them it is absent",
        "Epsilon covers everything that one entry does in any 3 days. A difference that lasts longer than 3 days costs",
    ],
    "a distance": [
        "in the same states, except for its place: where one entry is, up to 20 in age.",
        "Readers cannot conclude where exactly any one entry is, why numbers differ, or what the exact numbers are.",
    ],
    "months": ["Windows of 1 month from 1 January 2026 to the end of 30 June 2026, in the time of Europe/Berlin."],
    "adaptive": [
        "Decisions of adaptive queries have separate noise.",
        "Repeated numbers of adaptive queries have neither",
    ],
    "ratios": ["Each cost in cost is clamped to 0 to 9.", "Numbers of cost are ratios of noisy sums"],
}
"""Texts that only this kind of release has, or a few similar ones."""

ONLY = {
    "zero-concentrated": {"owners"},
    "absent during that time": {"a span", "a span of owners without an end", "a span with changes"},
    "except for its place": {"a distance", "a distance in a span"},
    "separate noise": {"adaptive"},
    "Repeated numbers": {"adaptive", "adaptive at fixed times"},
    "ratios of noisy sums": {"ratios"},
    "and clamping": {"ratios"},
    "No change is cut off and no value is clamped": {"a span", "a distance", "a distance in a span"},
    "up to its end": set(KINDS)
    - {"without an end", "a span", "a span of owners without an end", "a span with changes"}
    - {"a distance", "a distance in a span"},
    "more or less likely without the": set(KINDS)
    - {"a span", "a span of owners without an end", "a span with changes", "a distance", "a distance in a span"},
}
"""Phrases that are true of these kinds of releases alone."""


def told(folder: Path, kind: str, more: str = "") -> dict[str, str]:
    text = SPEC
    for old, new in KINDS[kind][0]:
        text = changed(old, new, text)
    (folder / "spec.yaml").write_text(text + more)
    spec = load(folder / "spec.yaml")
    return disclosure(Subject(spec=spec, plan=plan_of(spec), program="0.3.0", sampler=1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_point_is_stated_truly_of_its_kind_of_release(tmp_path: Path, kind: str) -> None:
    found = told(tmp_path, kind)
    text = " ".join(found.values())

    assert list(found) == list(FACTS)
    assert len(FACTS) == 20
    assert all(found.values())
    assert [one for one in SAID.get(kind, []) if one not in text] == []
    assert [one for one in KINDS[kind][2] if one in text] == []
    assert {phrase for phrase in ONLY if phrase in text} == {phrase for phrase, kinds in ONLY.items() if kind in kinds}
    refuse_what_no_page_says(text)


def test_texts_of_the_curator_and_the_witness_are_stated_as_given(tmp_path: Path) -> None:
    found, without = told(tmp_path, "entries", ABOUT), told(tmp_path, "entries")
    (tmp_path / "spec.yaml").write_text(SPEC.replace("private: private}", "private: private, witness: other/file}"))
    spec = load(tmp_path / "spec.yaml")
    witnessed = disclosure(Subject(spec=spec, plan=plan_of(spec), program="", sampler=0))

    assert found["curator"] == "City <Hospital> (Government). Contact: privacy@hospital.example. Region: Ireland."
    assert found["use"] == "Plan the number of beds."
    labels = {"title": "Beds", "description": "What it shows.", "source": "A table.", "label beds": "Occupied beds"}
    labels |= {"contact": "privacy@hospital.example"}
    (tmp_path / "spec.yaml").write_text(
        f"{SPEC}{ABOUT}  title: Beds\n  description: What it shows.\n  source: A table.\n"
        "  labels: {beds: Occupied beds}\n"
    )
    assert page_texts(load(tmp_path / "spec.yaml")) == labels
    assert found["chosen"].startswith("Epsilon follows the guideline of 2025. The claim requires")
    assert without["curator"] == without["use"] == "Not stated by the curator."
    assert "No witness" in without["trust"]
    assert "A witness outside the two folders records each commit" in witnessed["trust"]
    assert witnessed["versions"].startswith("Not stated")
    assert {name for name in FACTS if found[name] != without[name]} == {"curator", "use", "chosen"}
