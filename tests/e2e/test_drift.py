"""The figures in the docs for levels that drift are those of the clinic that the docs describe."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.spans.clinic import PATIENTS, spec, write_stays
from tests.e2e.specs import CommandLine
from tests.test_tables import tables

ROOT = Path(__file__).resolve().parents[2]
DAYS, AT_MOST = 56, 4


def told(page: str) -> tuple[int, ...]:
    """Return the two numbers of a page."""
    pattern = rf"clinic of {PATIENTS} patients .*`at_most: {AT_MOST}`, .*?(\d+) beds after {DAYS} days, when (\d+) are"
    found = re.search(pattern, " ".join((ROOT / page).read_text().split()))
    assert found is not None, page
    return tuple(int(number) for number in found.groups())


def test_levels_drift_as_the_pages_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_stays(tmp_path / "stays.csv", DAYS)
    constraint = f"constraint: {{at_most: {AT_MOST}}}"
    (tmp_path / "spec.yaml").write_text(spec(".", ".", privacy=constraint, days=DAYS, delta=0.0))

    said = CommandLine(tmp_path, capsys)("evaluate", "spec.yaml", "--runs=1", "--truth=private/truth.parquet")

    assert said.code == 0, said.err
    truth = pq.read_table(tmp_path / "private/truth.parquet")
    last = truth.filter(pc.equal(truth["window_end"], pc.max(truth["window_end"])))
    found = tuple(round(pc.sum(last[name]).as_py()) for name in ("bounded", "exact"))
    assert found == told("docs/protection.md") == told("docs/explanation/spans.md")


def test_pages_quote_the_benchmark_of_three_years() -> None:
    """The benchmark itself takes half a minute."""
    (found,) = (t for t in tables(ROOT / "benchmarks/README.md") if t[0][0] == "protection")
    last = {what: [round(float(number)) for number in numbers[2::3]] for what, *numbers in found[1:]}
    pages = ("docs/protection.md", "docs/explanation/spans.md")
    protection, spans = (" ".join((ROOT / page).read_text().split()) for page in pages)

    span = last.pop("any 30 days")
    few, all_of_them = (last[f"everything, `at_most: {changes}`"] for changes in (64, 256))
    errors = [rmse for _, _, rmse in last.values()]
    assert (
        f"error of {min(errors)} to {max(errors)} beds with `at_most` of 4 to 256. With `protects: {{span: 30d}}` the "
        f"error is {span[2]}, without bias" in protection
    )
    assert f"is {few[0]} too high on average with `at_most: 64`, before noise of {few[1]}." in spans
    assert span[0] == all_of_them[0] == 0
    unbiased = "it has no bias and noise of"
    assert f"{unbiased} {all_of_them[1]}. With `protects: {{span: 30d}}` {unbiased} {span[1]}" in spans
