"""Who is protected, in the words of the subject: the first sentence of a page."""

from pathlib import Path

import pytest

from pipelines.epochs.plans import plan_of
from pipelines.pages.definitions import glossary
from pipelines.pages.subject import entries, limits, protects, unit
from pipelines.pages.words import meaning, what_is_measured, who
from pipelines.spec.load import Spec, load
from privacy.series import Series
from tests.pipelines.pages.test_words import AGES, KINDS, QUERY, SPEC
from tests.pipelines.spec_text import changed


def spec_of(folder: Path, kind: str, about: str = "") -> Spec:
    text = SPEC
    for old, new in KINDS[kind][0]:
        text = changed(old, new, text)
    (folder / "spec.yaml").write_text(text + about)
    return load(folder / "spec.yaml")


@pytest.mark.parametrize(
    ("kind", "labels", "said"),
    [
        (
            "entries",
            "",
            "Protects each entry (column stay): noise in all numbers hides whether any one entry is in the data, and "
            "everything about it.",
        ),
        (
            "a span",
            "stay: booking",
            "Protects what each booking does within any 3 days: noise in all numbers hides it. What lasts longer is "
            "protected less.",
        ),
        (
            "owners",
            "person: guest, stay: booking",
            "Protects each guest: noise in all numbers hides whether any one guest is in the data, and everything "
            "about it, in all its bookings together.",
        ),
        (
            "a distance in a span",
            "stay: stop",
            "Protects the place of each stop: noise in all numbers hides where any one stop is within any 1 day, up to "
            "20 in age. Noise does not hide that it is present, when, or anything else about it.",
        ),
    ],
)
def test_a_page_begins_with_who_is_protected(tmp_path: Path, kind: str, labels: str, said: str) -> None:
    about = f"about: {{columns: {{{labels}}}}}\n" if labels else ""

    assert protects(spec_of(tmp_path, kind, about), 1.0) == said


@pytest.mark.parametrize(
    ("kind", "begin"),
    [
        ("entries", "whether any one entry is in the data, "),
        ("a span", "what any one entry did within 3 days, "),
        ("a distance", "where exactly any one entry is, "),
    ],
)
def test_the_main_limits_are_those_of_the_promise(tmp_path: Path, kind: str, begin: str) -> None:
    rest = "why numbers differ, or what the exact numbers are."

    assert [limits(spec_of(tmp_path, kind), epsilon) for epsilon in (10, 10.1)] == [begin + rest, rest]


def test_weak_protection_is_not_called_hiding(tmp_path: Path) -> None:
    assert protects(spec_of(tmp_path, "entries"), 11.0) == (
        "Protects each entry (column stay), but weakly: with epsilon = 11, noise hides little of whether any one entry "
        "is in the data, and everything about it."
    )


def test_sentences_use_the_curator_s_nouns_and_form_no_plural_of_other_texts(tmp_path: Path) -> None:
    query = (QUERY, AGES.replace("count, by", "count, where: \"sex = 'f'\", by"))
    text = changed(*query, SPEC)
    labels = "about: {columns: {stay: %s, age: Age, sex: gender}, cells: {sex: {f: female}}}\n"
    said = {}
    for noun in ("entry", "stay", "Aufenthalt <b>"):
        (tmp_path / "spec.yaml").write_text(text + labels % noun)
        spec = load(tmp_path / "spec.yaml")
        said[noun] = what_is_measured(spec.queries[0], "", spec), unit(spec), entries(spec), who(spec)

    level, entered = (meaning(Series(kind=kind), spec.queries[0], spec) for kind in ("level", "entered"))
    assert level == 'entries that match the condition "whose gender is female" at the end of a window'
    assert entered == 'entries that began to match the condition "whose gender is female" within a window'
    female = "whose gender is female, by Age."
    assert said["stay"] == (f"Count of stays {female}", "stay", "stays", "One stay, with all its changes.")
    assert said["Aufenthalt <b>"] == (
        f"Count of entries {female}",
        "Aufenthalt <b>",
        "entries",
        "One Aufenthalt <b>, with all its changes.",
    )


@pytest.mark.parametrize(
    ("kind", "promise", "data"),
    [
        (
            "ratios",
            "whether any one entry is in the data, and everything about it",
            "contribution bounding and clamping",
        ),
        ("a span", "what any one entry does within any 3 days", "nothing is cut off"),
        ("a distance", "where any one entry is, up to 20 in age", "nothing is cut off"),
    ],
)
def test_the_glossary_has_the_terms_of_the_page_and_repeats_its_promise(
    tmp_path: Path, kind: str, promise: str, data: str
) -> None:
    spec = spec_of(tmp_path, kind)
    page = "<p title='witness'>Noise of bounded data, in windows. <b>Epsilon</b> and changelogs.</p>"
    found = dict(glossary(spec, plan_of(spec), [page]))

    assert [*found] == ["window", "changelog", "noise", "epsilon", "bounded data"]
    assert found["noise"] == f"A random amount in each number. It hides {promise}."
    assert data in found["bounded data"]
    assert ("where one entry is" in found["epsilon"]) == (kind == "a distance")


def test_the_glossary_defines_the_level_of_which_changes_are_published(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        changed("[level, entered]", "[change]", changed("at_most: 4", "at_most: 1", SPEC))
    )
    spec = load(tmp_path / "spec.yaml")
    found = dict(glossary(spec, plan_of(spec), ["change of the level"]))

    level, change = (meaning(Series(kind=kind), spec.queries[0], spec) for kind in ("level", "change"))
    assert found == {"level": f"{level.capitalize()}.", "change": f"{change.capitalize()}."}
