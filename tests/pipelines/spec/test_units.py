"""`measure: units` in a spec: what it means, and with what it is refused."""

from pathlib import Path

import pytest

from privacy.measure import Measure
from tests.pipelines.spec_text import changed, loaded, problems

AGES = "by: {age: {from: 0, to: 100, step: 10}}"
OWNED = changed("unit: entry", "unit: patient", changed("measure: count", "measure: units"))
ALONE = changed("{at_most: 4}", "{at_most: 4, entries: 1}", OWNED)
SUMS = "a unit counts once in each cell, so that sums over cells count it several times"
INSTEAD = "use measure: count, or constraint: {entries: 1}"


def aged(text: str, publish: str = "[level]", more: str = "") -> str:
    by_age = changed("by: {ward: [a, b, other]}", f"{AGES}{more}", text)
    return changed("publish: [level, change]", f"publish: {publish}", by_age)


def test_units_are_a_word_with_its_own_digest(tmp_path: Path) -> None:
    spec = loaded(tmp_path, OWNED)
    assert spec.queries[0].measure == Measure(kind="units")
    assert spec.sha256 != loaded(tmp_path, changed("measure: units", "measure: count", OWNED)).sha256
    (line,) = problems(tmp_path, changed("measure: units", "measure: {units: true}", OWNED))
    assert "queries[0].measure.units: unknown key" in line


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"publish": "[level, {quantiles: [0.5]}]"},
            f"queries[0].publish: quantiles: {SUMS}; remove them, or {INSTEAD}",
        ),
        (
            {"publish": "[level, {ranges: [{age: {from: 50}}]}]"},
            f"queries[0].publish: ranges: {SUMS}; remove them, or {INSTEAD}",
        ),
        ({"more": "\n    cells: {for: ranges}"}, f"queries[0].cells: {SUMS}; remove it, or {INSTEAD}"),
    ],
)
def test_sums_over_cells_need_one_entry_at_a_time(tmp_path: Path, changes: dict[str, str], line: str) -> None:
    (found,) = problems(tmp_path, aged(OWNED, **changes))
    assert found.split(": ", 1)[1] == line
    loaded(tmp_path, aged(ALONE, **changes))
    loaded(tmp_path, aged(changed("measure: count", "measure: units"), **changes))  # each entry is a unit


def test_a_distance_needs_one_entry_at_a_time(tmp_path: Path) -> None:
    bound = "  protects: {distance: {age: 20}, span: 7d}\n  constraint: {entries: 2}\n"
    near = changed("  constraint: {at_most: 4}\n", bound, aged(OWNED))
    near = changed("measure: {mean: waited, min: 0, max: 240}", f"measure: count\n    {AGES}", near)
    (found,) = problems(tmp_path, near)
    assert found.split(": ", 1)[1].startswith("queries[0].measure: units: near entries of one unit may be in one cell")
    loaded(tmp_path, changed("entries: 2", "entries: 1", near))
