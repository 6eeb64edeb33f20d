"""The demo of local reports, with fewer men: the same steps as `make demo-local`."""

import shlex
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from examples.employment import report, show
from examples.employment.memoised import memoised
from examples.employment.men import EMPLOYED, GONE, changes_of, levels_of, read_men, resampled
from pipelines.cli import main
from tests.test_readme import ROOT, recipe

PEOPLE = 20_000


@pytest.mark.slow
def test_the_demo_follows_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """104 numbers within 6.2 deviations: all but with probability 104 * 6e-10."""
    spec = (ROOT / "examples/employment/survey.yaml").read_text()
    (tmp_path / "examples/employment").mkdir(parents=True)
    (tmp_path / "examples/employment/survey.yaml").write_text(spec.replace("1000000", str(PEOPLE)))
    (tmp_path / "out/employment").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    steps = [shlex.split(line.removeprefix(".venv/bin/")) for line in recipe("demo-local") if "employment" in line]

    for step in steps:
        if step[0] == "slackwater":
            assert main(step[1:]) == 0
        else:
            {"report": report, "show": show}[step[-1].rpartition(".")[2]].main()
    sent = sorted((path.name, path.stat().st_mtime_ns) for path in Path("out/employment/reports").iterdir())
    report.main()

    found, truth = (pq.read_table(f"out/employment/{name}.parquet") for name in ("estimates", "truth"))
    expected = np.stack([truth[name].to_numpy() for name in ("employed", "not employed")], axis=1).ravel()
    assert (np.abs(found["value"].to_numpy() - expected) < 6.2 * found["stddev"].to_numpy()).all()
    assert Path("out/employment/chart.png").stat().st_size > 20_000
    assert Path("out/employment/report.html").stat().st_size > 500_000
    page = Path("out/employment/report.html").read_text()
    assert "How many of a million simulated men have work" in page
    assert "20,000 reports are counted, and none is missing. None was left out." in page
    assert "Signatures of the reports were not verified. " in page.partition("<nav")[0]
    assert "issing reports" not in page
    assert len(steps) == 5
    assert sorted((path.name, path.stat().st_mtime_ns) for path in Path("out/employment/reports").iterdir()) == sent


def test_the_men_match_the_study_and_memoised_reports_reveal_when_values_change() -> None:
    men = read_men()
    chosen = resampled(men, 5_000)
    changes = changes_of(men, chosen, first=7)
    lived = np.full((5_000, 53), GONE)
    for person, window, answer in zip(*(changes[name].to_numpy() for name in changes.column_names), strict=True):
        lived[person - 7, window:] = answer

    usual = memoised(men, chosen, epsilon=1.0)

    assert men.shape == (432, 52)
    assert np.bincount(men.ravel() + 1).tolist() == [2655, 9278, 10531]
    assert (lived[:, :52] == men[chosen]).all()
    assert levels_of(men, chosen)[:, 0].tolist() == (men[chosen] == EMPLOYED).sum(axis=0).tolist()
    # A report changes if the memoised answers differ: with probability 2/3 at most, and never otherwise.
    assert usual.changed == changes.num_rows
    assert 0.2 * usual.changed < usual.shown < usual.changed
