"""Show what the release of flights-2013 published: a table of two weeks, and a chart of the year.

Reads only the public side, as any reader of the release would.

    python -m examples.flights.show        writes out/flights/chart.png
"""

import json
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import date2num
from matplotlib.figure import Figure
from numpy.typing import NDArray

PUBLIC = Path("releases/flights/public")
PRIVATE = Path("releases/flights/private")
CHART = Path("out/flights/chart.png")
REPORT = Path("out/flights/report.html")
SPEC = "examples/flights/spec.yaml"

FROM, UNTIL = date(2013, 2, 3), date(2013, 2, 14)
STORM = (date(2013, 2, 8), date(2013, 2, 9))
Z95 = 1.96  # a day's total adds 27 independent samples of noise: close to normal

# Totals of a day over the cells (noise of different cells is independent). A day's mean delay
# weighs each cell's mean by its published departures; a count below zero has no weight.
DAILY = """
with number as (
    select query, epoch_us(window_start) as start, carrier, origin, value, stddev
    from read_parquet($files) where kind = 'entered'
),
total as (
    select query, start, sum(value) as value, sqrt(sum(stddev ** 2)) as stddev
    from number where query in ('departures', 'cancelled') group by all
),
mean as (
    select 'delay' as query, start,
        sum(w * delay.value) / sum(w) as value,
        sqrt(sum((w * delay.stddev) ** 2)) / sum(w) as stddev
    from number as delay
    join (
        select start, carrier, origin, greatest(value, 0) as w from number
        where query = 'departures'
    ) using (start, carrier, origin)
    where query = 'delay' group by start
)
from total union all by name from mean order by query, start
"""

ONE_CELL = """
select value, ci_low, ci_high from read_parquet($files)
where query = 'departures' and kind = 'entered' and carrier = 'WN' and origin = 'LGA'
    and epoch_us(window_start) = $start
"""

NEW_YORK = np.timedelta64(-5, "h")  # the release's days, as in its spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One number for each day with its 95 % margin of error; arrays of equal length."""

    day: NDArray[np.datetime64]
    value: NDArray[np.float64]
    margin: NDArray[np.float64]

    def on(self, day: date) -> tuple[float, float]:
        """Return the number of a day and its margin."""
        place = int(np.searchsorted(self.day, np.datetime64(day)))
        return float(self.value[place]), float(self.margin[place])


def published() -> list[str]:
    """Return the files of estimates that the manifest lists; other files are not part of the release."""
    manifest = PUBLIC / "manifest.json"
    if not manifest.exists():
        raise SystemExit(f"{manifest}: there is no release yet; make one with `make demo`")
    epochs = json.loads(manifest.read_text())["epochs"]
    return [str(PUBLIC / name) for epoch in epochs for name in epoch["files"] if name.startswith("estimates/")]


def read_daily(files: list[str]) -> dict[str, Series]:
    """Return daily totals and means over all cells, by query."""
    columns = duckdb.connect().execute(DAILY, {"files": files}).fetchnumpy()
    day = (columns["start"].astype("datetime64[us]") + NEW_YORK).astype("datetime64[D]")
    series = {}
    for query in ("departures", "cancelled", "delay"):
        rows = columns["query"] == query
        series[query] = Series(day=day[rows], value=columns["value"][rows], margin=Z95 * columns["stddev"][rows])
    return series


def print_table(daily: dict[str, Series]) -> None:
    print("New York's three airports, February 2013: published numbers, each with its 95 % margin of error\n")
    print(f"  {'day':<10}  {'departures':>14}  {'cancelled':>14}  {'mean delay, min':>16}")
    for day in (FROM + timedelta(days=n) for n in range((UNTIL - FROM).days + 1)):
        cells = [daily[query].on(day) for query in ("departures", "cancelled", "delay")]
        left, cancelled = (f"{value:7.0f} ± {margin:4.0f}" for value, margin in cells[:2])
        delay = f"{cells[2][0]:7.1f} ± {cells[2][1]:4.1f}"
        mark = "   <- the storm" if day in STORM else ""
        print(f"  {day:%a %d %b}  {left:>14}  {cancelled:>14}  {delay:>16}{mark}")


def print_one_cell(files: list[str]) -> None:
    start = np.datetime64(STORM[1], "us") - NEW_YORK
    row = duckdb.connect().execute(ONE_CELL, {"files": files, "start": int(start.astype(np.int64))}).fetchone()
    assert row is not None
    value, low, high = row
    print(f"""
The storm is visible, and no single flight is. Example of a small number: Southwest's departures from
LaGuardia on 9 February. Published: {value:.0f}, with an interval from {low:.0f} to {high:.0f}.
One flight more or less changes the truth by 1, in an interval {high - low:.0f} wide. All
{count_rows(files):,} published numbers together raise the odds that some flight exists, or had some
delay, by a factor of at most e = 2.72: epsilon is 1 for everything.""")


def count_rows(files: list[str]) -> int:
    row = duckdb.connect().execute("select count(*) from read_parquet($files)", {"files": files}).fetchone()
    assert row is not None
    return int(row[0])


def draw(daily: dict[str, Series], path: Path) -> None:
    """Draw the year on the left and the weeks around the storm on the right, with a row for each query."""
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = Figure(figsize=(12, 7.5), layout="constrained")
    axes = figure.subplots(3, 2, sharex="col", sharey="row", width_ratios=(3, 1.3))
    titles = ("departures a day", "cancelled a day", "mean departure delay, minutes")
    colours = ("#1f5fa8", "#b3372f", "#3d7a3a")
    for row, query, title, colour in zip(axes, daily, titles, colours, strict=True):
        for side in row:
            plot(side, daily[query], colour)
        row[0].set_title(title, loc="left", fontweight="bold")
    weeks = axes[0][1]
    weeks.set_xlim(np.datetime64("2013-01-28"), np.datetime64("2013-02-22"))
    weeks.set_title("around the storm of 8-9 February", loc="left")
    for side, ticks in zip(axes[2], (month_starts(), weekly()), strict=True):
        side.set_xticks(ticks, [f"{day.astype(object):%d %b}".lstrip("0") for day in ticks])
    axes[0][0].set_ylim(bottom=0)
    figure.suptitle(
        "Flights from New York in 2013, published with epsilon = 1 in total (bands: 95 % intervals)",
        x=0.01,
        ha="left",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def plot(side: Axes, series: Series, colour: str) -> None:
    """Draw one series with its intervals, and mark the storm.

    Args:
        side: axes to draw on.
        series: the numbers.
        colour: of the line.
    """
    first, last = date2num(STORM)  # points are in the middle of their day's grey
    side.axvspan(first - 0.5, last + 0.5, color="#d9d9d9", linewidth=0)
    low, high = series.value - series.margin, series.value + series.margin
    side.fill_between(series.day, low, high, color=colour, alpha=0.3, linewidth=0)
    side.plot(series.day, series.value, color=colour, linewidth=0.9)
    side.set_xlim(series.day[0], series.day[-1])


def month_starts() -> NDArray[Any]:
    return np.arange("2013-01", "2014-01", 2, dtype="datetime64[M]").astype("datetime64[D]")


def weekly() -> NDArray[Any]:
    return np.arange("2013-01-28", "2013-02-23", 7, dtype="datetime64[D]")


def main() -> None:
    files = published()
    daily = read_daily(files)
    print_table(daily)
    print_one_cell(files)
    draw(daily, CHART)
    print(f"""
Files
  report      {REPORT}   open it in a browser
  chart       {CHART}
  estimates   {PUBLIC}/estimates/
  nodes       {PUBLIC}/nodes/         the noisy sums that the estimates are made from
  manifest    {PUBLIC}/manifest.json
  private     {PRIVATE}/              exact facts: never publish this folder

Next steps
  .venv/bin/slackwater plan {SPEC}         what it costs, before any data is read
  .venv/bin/slackwater evaluate {SPEC}     true errors, for the data controller only
  Copy {SPEC}, change `release`, `output` and epsilon
  (or `by`, or the weights), and run the copy. The spec of a release is frozen.
""")
    print(storm(daily))


def storm(daily: dict[str, Series]) -> str:
    """Describe the storm by the published numbers, in one sentence."""
    days = " and ".join(f"{day:%A}, {day.day} {day:%B}" for day in STORM)
    cancelled = " and ".join("{:.0f} ± {:.0f}".format(*daily["cancelled"].on(day)) for day in STORM)
    usual = float(np.median(daily["cancelled"].value))
    return (
        f"The storm: on {days} 2013 a blizzard closed New York's airports.\n"
        f"Of their flights {cancelled} were cancelled in these two days, where {usual:.0f} a day is usual."
    )


if __name__ == "__main__":
    main()
