"""Texts of pages for releases of many kinds: statements that each must have, and statements that would be false."""

import json
import re
from pathlib import Path

import pytest

from pipelines import cli
from tests.pipelines.pages.elements import Elements
from tests.pipelines.spec_text import changed
from tests.releases.continued import unpacked

SPEC = """\
release: wards
changelog: {format: csv, path: data.csv, entry: stay, time: at}
privacy: {epsilon: 1.0, constraint: {at_most: 4}}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-06T00:00:00Z}
strategy: disjoint
queries:
  - {name: beds, measure: count, by: {ward: [a, b]}, publish: [level, entered]}
output: {public: public, private: private}
"""
PRIVACY = "{epsilon: 1.0, constraint: {at_most: 4}}"
ENDLESS = (", until: 2026-01-06T00:00:00Z", "")
QUERY = "{name: beds, measure: count, by: {ward: [a, b]}, publish: [level, entered]}"
AGES = "{name: ages, measure: count, by: {age: {from: 0, to: 60, step: 20}}, publish: [level]}"
DIRECT = ("strategy: disjoint", "strategy: direct")

EVERYTHING = "Whether an entry is in the data at all, and so everything about it"
NONE_CUT = "No change is cut off: at the end of each window an entry counts with its current state."
TO_COME = "including future ones"
AT_MOST = "changes of an entry count for each query. Later changes are cut off: the entry keeps counting as it was."
IN_SPAN = "A difference that lasts longer than 3 days costs epsilon once for each 3 days."
ABSENT = "if the entry had been absent during one such period: the two differ by a factor of at most 2.72."
PERSON = "A person with several entries is such a group."

KINDS = {
    "entries": (
        [],
        [
            EVERYTHING,
            f"At most 4 {AT_MOST}",
            "74 % sure",
            "One entry (one value of stay), with all its changes.",
            PERSON,
        ],
        [TO_COME, "owner", "such period"],
    ),
    "one change of an owner, whose other entries are cut off": (
        [(PRIVACY, "{unit: person, epsilon: 1.0, constraint: {at_most: 1}}")],
        ["level (entries that are present at the end of a window)"],
        ["each is counted once"],
    ),
    "one window and one change": (
        [("until: 2026-01-06", "until: 2026-01-02"), ("at_most: 4", "at_most: 1"), ("entered]", "entered, change]")],
        [
            "over 1 window of 1 day.",
            "At most 1 change of an entry counts for each query.",
            "level (entries that came by the end of a window: each is counted once, and stays counted)",
            "change (entries that came within a window: each is counted once)",
        ],
        ["change of the level"],
    ),
    "owners": (
        [
            (
                PRIVACY,
                "{unit: person, epsilon: 1, delta: 1.0e-9, mechanism: gaussian, constraint: {at_most: 4, entries: 1}}",
            )
        ],
        [
            "One owner (one value of person), with all changes of all its entries (values of stay).",
            "At most 4 changes of an owner count for each query.",
            "Changes stop counting once earlier ones have put more than 1 entry of it into the query at once.",
            "at most 2.72, except with probability 0.000000001.",
            "twice epsilon and more than twice delta.",
        ],
        ["an entry is in the data", PERSON, "sure after reading"],
    ),
    "units": (
        [("epsilon: 1.0", "unit: person, epsilon: 1.0"), ("measure: count", "measure: units")],
        [
            "Count of owners with an entry there by ward.",
            "level (owners that are present at the end of a window)",
            "entered (owners that came within a window)",
        ],
        ["entries that"],
    ),
    "within": (
        [("at_most: 4", "within: 36h")],
        ["Changes of an entry count up to 36 hours after its first one."],
        ["At most 4"],
    ),
    "classes": (
        [("{at_most: 4}", "{by: fare, classes: {pass: {within: 2d}, single: {at_most: 1}}}")],
        [
            "The fare of an entry's first state decides. For pass: Changes of an entry count up to 2 days",
            "For single: At most 1 change of an entry counts",
            "as it was. Others contribute nothing.",
        ],
        ["..", ".;"],
    ),
    "without an end": ([ENDLESS], [EVERYTHING, f"windows together, {TO_COME}.", "the schedule has no end"], []),
    "a span": (
        [(PRIVACY, "{epsilon: 1.0, protects: {span: 3d}}"), DIRECT],
        [
            "Epsilon is 1 and delta is 0 for everything that one entry does in any 3 days.",
            "Everything that one entry does in any 3 days, until the release ends, compared with being absent",
            "What an entry does for longer than 3 days, such as a habit or a long stay, is protected less.",
            "entered (entries that came within a window (each entry counts at most once in a window))",
            *(IN_SPAN, ABSENT, NONE_CUT),
            "One entry (one value of stay). A person with several is protected for each alone.",
        ],
        [EVERYTHING, "for as long as", "owner", "sure after reading", TO_COME, "all changes of"],
    ),
    "a span of owners without an end": (
        [(PRIVACY, "{unit: person, epsilon: 1.0, protects: {span: 1d}, constraint: {entries: 2}}"), ENDLESS, DIRECT],
        [
            "Everything that one owner does in any day, for as long as the release runs",
            "One owner (one value of person), with all its entries (values of stay).",
            "A difference that lasts longer than 1 day costs epsilon once for each day.",
            "At the end of each window at most 2 entries of an owner can count. No change is cut off",
            "entered (entries that came within a window (at most 2 entries of one owner count in a window))",
        ],
        ["until the release ends", PERSON],
    ),
    "a span with changes": (
        [(PRIVACY, "{unit: person, epsilon: 1.0, protects: {span: 3d}, constraint: {at_most: 3, entries: 1}}")],
        [
            "At the end of each window at most 1 entry of an owner can count. In each 3 days at most 3 changes of an "
            "owner can count; all that it changes within one window is one change.",
            "entered (entries that are present at the end of a window and not at its start)",
        ],
        ["No change is cut off", "for each query"],
    ),
    "a distance": (
        [(PRIVACY, "{epsilon: 1.0, protects: {distance: {age: 20}}}"), (QUERY, AGES)],
        [
            "Where one entry is, up to 20 in age, until the release ends. That an entry is present at all, when, and "
            "everything else about it is NOT hidden. Places further apart cost epsilon once for each such distance.",
            "if the entry had been elsewhere within that distance: the two differ",
            "That an entry is present at all, when, and everything about it except age.",
            NONE_CUT,
        ],
        [EVERYTHING, "lasts longer than", "one such period"],
    ),
    "a distance in a span": (
        [(PRIVACY, "{epsilon: 1.0, protects: {span: 1d, distance: {age: 20}}}"), (QUERY, AGES), ENDLESS, DIRECT],
        [
            "Where one entry is in any day, up to 20 in age, for as long as the release runs.",
            "A difference that lasts longer than 1 day costs epsilon once for each day.",
            "had been elsewhere within that distance during one such period",
        ],
        [EVERYTHING],
    ),
    "adaptive": (
        [(QUERY, AGES.replace("[level]}", "[level], strategy: {adaptive: {policy: dsat, samples: 2}}}"))],
        ["The data decide, privately, which windows get new numbers; the other windows repeat them."],
        ["New numbers are published every"],
    ),
    "adaptive at fixed times": (
        [(QUERY, AGES.replace("[level]}", "[level], strategy: {adaptive: {policy: fixed, interval: 2d}}}"))],
        ["New numbers are published every 2 days; the windows between repeat them."],
        ["The data decide"],
    ),
    "ranges": (
        [(QUERY, AGES.replace("[level]", "[level, {ranges: [{age: {from: 20}}]}]"))],
        ["ages level_range 1 ±", "the count of entries by age reveals something about everybody"],
        ["ages level_range 5"],
    ),
    "ratios": (
        [(QUERY, "{name: cost, measure: {second_moment: cost, min: 0, max: 9}, where: 'age > 3', publish: [level]}")],
        [
            "cost: Second moment of cost over entries whose age is above 3, each value clamped to 0 to 9. Windows of 1 "
            "day.",
            "the second moment of cost over entries reveals something about everybody",
        ],
        ["beds"],
    ),
    "months": (
        [
            ("{start: 2026-01-01T00:00:00Z, every: 1d", "{start: 2026-01-01, every: 1mo, timezone: Europe/Berlin"),
            ("until: 2026-01-06T00:00:00Z", "until: 2026-07-01"),
            ("[level, entered]", "[level, {sliding: 2mo}]"),
        ],
        [
            "over 6 windows of 1 month in Europe/Berlin",
            "sliding (entries that came, minus those that went, over 2 months, in steps of 1 month)",
        ],
        ["entered"],
    ),
}


def refuse_what_no_page_says(text: str) -> None:
    """Check that a text has no mistake that is wrong on every page."""
    nouns = "window|epoch|cell|change|entrie|number|measurement|record|owner|node|day|month"
    assert re.findall(rf"\b1 (?:{nouns})s\b", text) == []
    assert re.findall(r"hospital|`| [.,](?!\.)|\bNone\b(?! counts)|\bnan\b|For ever|[.:;,][;,]", text) == []


@pytest.mark.parametrize(("changes", "said", "unsaid"), KINDS.values(), ids=KINDS)
def test_a_plan_makes_true_statements_about_its_release(tmp_path, changes, said, unsaid):
    text = SPEC
    for old, new in changes:
        text = changed(old, new, text)
    (tmp_path / "spec.yaml").write_text(text)

    assert cli.main(["plan", str(tmp_path / "spec.yaml"), "--html", str(tmp_path / "plan.html"), "--json"]) == 0

    page = Elements((tmp_path / "plan.html").read_text()).text
    assert [one for one in said if one not in page] == []
    assert [one for one in unsaid if one in page] == []
    assert page.count("-differential privacy of the whole release") == 1
    refuse_what_no_page_says(page)


FINISHED = "All windows are published, so nothing more will be spent."
LEFT = "The remaining budget is for future windows, and for nothing else."
BY_ITSELF = "The budget is for each such period separately, so there is no remainder: future windows"

KEPT = {
    "0.3.0/everything": (
        [
            *(
                LEFT,
                "remaining",
                "from 4 windows of 1 day",
                "Quantiles of age over entries.",
                "-: published adaptively",
            ),
            "level: quantiles of age over entries that are present at the end of a window.",
            "level: mean of age over entries that are present at the end of a window.",
            "New numbers of level: in all 4 windows. The 95 % interval of a difference of two new numbers is made of",
            "Weak protection: epsilon is 1e+07.",
            "about 10^4,342,945 (e^epsilon) times as likely as without the entry",
        ],
        [BY_ITSELF],
    ),
    "0.3.0/span": (
        [
            BY_ITSELF,
            "within any 3 days, but weakly: with epsilon = 1e+07, noise hides little of it. What lasts longer is",
            "Do not conclude: why numbers differ, or what the exact numbers are. What readers can conclude",
            "Counts are of regions",
            "windows. A flat stretch repeats a number: it is no evidence that nothing changed.",
            ": all cells together: 24 (repeated from the window before, then with the 95 % interval",
        ],
        ["remaining"],
    ),
    "0.3.0/blocks": (
        [
            "windows of 1 day, up to",
            ", in the time of Europe/Berlin. A window",
            "In each 4 days at most 2 changes of an entry",
        ],
        [LEFT],
    ),
    "0.3.0/owners": (
        ["Sensitivity, and the noise inside the mechanism", "In each 3 days at most 2 changes of an owner"],
        [LEFT],
    ),
    "0.3.0/distance": (
        ["hides little of where any one entry is within any 3 days, up to 20 in age. Noise does not hide", BY_ITSELF],
        ["remaining"],
    ),
    "0.3.0/ranges": (["Count of entries by ranges of age and ward.", "The budget, for one entry"], []),
}


@pytest.mark.slow
@pytest.mark.parametrize(("release", "said", "unsaid"), [(name, *words) for name, words in KEPT.items()], ids=KEPT)
def test_a_report_makes_true_statements_about_its_release(tmp_path, capsys, release, said, unsaid):
    """And counts as many numbers as `show` has."""
    folder = unpacked(Path(__file__).parents[2] / "releases" / release, tmp_path)
    assert cli.main(["show", str(folder / "public"), "-o", str(tmp_path / "all.csv"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]

    assert cli.main(["report", str(folder / "public"), "-o", str(tmp_path / "report.html")]) == 0

    page = Elements((tmp_path / "report.html").read_text()).text
    assert [one for one in [*said, f"{rows:,} numbers"] if one not in page] == []
    assert [one for one in unsaid if one in page] == []
    assert page.count("-differential privacy of the whole release") == 1
    refuse_what_no_page_says(page.replace("on 1 measurements", "as that version said"))
