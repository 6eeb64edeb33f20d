"""The demo of maps: the same steps as `make demo-map`, and its numbers against the stops."""

import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from examples.stops import build, show
from pipelines.cli import main
from pipelines.published.release import published
from tests.test_readme import ROOT, recipe


@pytest.mark.slow
def test_the_maps_follow_the_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of 7,800 squared errors is within 15 % of the published value.

    Of Laplace noise they have a kurtosis of 6 and correlate over two windows at most: 15 % is some five deviations of
    the mean, and the numbers of one map are independent. By Bernstein's inequality less than 1e-6.
    """
    shutil.copytree(ROOT / "examples/stops", tmp_path / "examples/stops")
    monkeypatch.chdir(tmp_path)
    steps = [shlex.split(line.removeprefix(".venv/bin/")) for line in recipe("demo-map") if "stops" in line]

    for step in steps:
        if step[0] == "slackwater":
            assert main(step[1:]) == 0
        else:
            {"build": build, "show": show}[step[-1].rpartition(".")[2]].main()

    city = show.read(published("releases/stops/public"))
    stops = pq.read_table("out/stops/changelog/2017.parquet")
    window = (stops["at"].cast("int64").to_numpy() - 1_483_250_400_000_000) // (28 * 86_400_000_000)
    reason = stops["problem"].to_numpy() == "traffic"
    edges = [np.arange(14), city.lat.edges(0, 29), city.long.edges(0, 19), np.arange(3)]
    truth, _ = np.histogramdd([window, stops["lat"].to_numpy(), stops["long"].to_numpy(), reason], edges)
    errors = city.maps["change"].value - truth
    (query,) = published("releases/stops/public").spec.queries
    (changes,) = (
        table for series, table in published("releases/stops/public").numbers(query) if series.kind == "change"
    )
    stddev = changes["stddev"][0].as_py()
    assert 0.85 < (errors**2).mean() / stddev**2 < 1.15
    assert truth.sum() > 51_000
    assert Path("out/stops/map.png").stat().st_size > 40_000
    page = Path("out/stops/map.html").read_text()
    assert "/*DATA*/" not in page
    assert "PRESENCE" in show.compared(show.bands())
    assert page.count("<tr><td>") == 2 * 13
    assert "<!--" not in page
