"""What `plan` names as changes for smaller errors: with the numbers that a plan of the changed spec has."""

from pathlib import Path

import pytest

from pipelines import cli
from pipelines.plan.operation import plan
from tests.pipelines.spec_text import changed

SPEC = """\
release: wards
changelog: {format: csv, path: data.csv, entry: stay, time: at}
privacy: {epsilon: 1.0, constraint: {at_most: 8}}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-03-03T00:00:00Z}
queries:
  - {name: beds, measure: count, by: {ward: [a, b]}, publish: [level]}
output: {public: public, private: private}
"""


def written(folder: Path, text: str) -> Path:
    (folder / "spec.yaml").write_text(text)
    return folder / "spec.yaml"


def margin(folder: Path, text: str) -> float:
    found: float = plan(written(folder, text)).document["queries"][0]["accuracy"][0]["half_width"]
    return found


@pytest.mark.slow
def test_each_change_has_the_margin_of_a_plan_with_it(tmp_path: Path) -> None:
    advice = {one.change: one for one in plan(written(tmp_path, SPEC)).advice()}
    now = margin(tmp_path, SPEC)
    total = advice.pop("one cell instead of 2 (says less)")
    last = plan(written(tmp_path, SPEC)).document["queries"][0]["accuracy"][0]["half_width_last"]
    alone = plan(written(tmp_path, SPEC.replace("by: {ward: [a, b]}, ", ""))).document["queries"][0]["accuracy"][0]

    assert total.changed == pytest.approx(alone["half_width_last"])
    assert total.half_width is not None
    assert 1.3 * last < total.half_width < 1.5 * last  # about the root of two cells
    assert total.number == "total of beds, level"
    changes = {
        "at_most: 4 instead of 8 (cuts off more)": SPEC.replace("at_most: 8", "at_most: 4"),
        "windows of 7 days instead of 1 day": SPEC.replace("1d", "1w").replace("03-03", "02-26"),
        "protects: span of 14 days instead of everything (protects less)": SPEC.replace(
            "constraint: {at_most: 8}", "protects: {span: 14d}"
        ),
    }
    assert advice
    for change, one in advice.items():
        assert one.half_width == pytest.approx(now)
        assert one.changed == pytest.approx(margin(tmp_path, changes[change]))
        assert one.changed is not None
        assert one.share == pytest.approx(one.changed / now)
        assert one.share <= 0.9
        assert one.text() == f"{change}: beds, level ± {one.changed:.4g} instead of ± {now:.4g}"
    assert [one.share for one in advice.values()] == sorted(one.share for one in advice.values())


@pytest.mark.slow
def test_the_plan_prints_one_line_with_the_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", str(written(tmp_path, SPEC))]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = plan(tmp_path / "spec.yaml").advice()

    (line,) = [line for line in lines if line.startswith("Smaller errors: ")]
    assert line == f"Smaller errors: {'; '.join(one.text() for one in found)}."
    assert lines[-1].endswith("shares of the budget: --explain.")
    assert not any("Conditions of the claim:" in one for one in lines)


def test_changes_that_do_not_apply_are_left_out(tmp_path: Path) -> None:
    text = changed("{epsilon: 1.0, constraint: {at_most: 8}}", "{epsilon: 1.0, protects: {span: 7d}}", SPEC)
    text = changed("every: 1d", "every: 1w", text).replace("03-03", "02-26").replace("by: {ward: [a, b]}, ", "")

    assert plan(written(tmp_path, text)).advice() == []
