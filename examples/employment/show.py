"""Show the estimates from a year of reports: a table, and a chart with the truth and with memoised reports.

python -m examples.employment.show        writes out/employment/chart.png
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from numpy.typing import NDArray

from examples.employment.memoised import Memoised, memoised
from examples.employment.men import read_men, resampled
from pipelines.local.survey import read_survey

OUT = Path("out/employment")
COLOURS = ("#1f5fa8", "#b3372f")
Floats = NDArray[np.float64]


def columns(name: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the truth of an answer and its estimates with the ends of their intervals, for each week."""
    estimates = pq.read_table(OUT / "estimates.parquet")
    mine = estimates.filter(pc.equal(estimates["answer"], name))
    truth = pq.read_table(OUT / "truth.parquet")[name].to_numpy().astype(float)
    return truth, *(mine[column].to_numpy() for column in ("value", "ci_low", "ci_high"))


def print_table(names: tuple[str, ...]) -> None:
    print(f"  {'week':>4}" + "".join(f"  {name:>13}  {'estimate':>18}" for name in names))
    found = [columns(name) for name in names]
    for week in range(3, len(found[0][0]), 8):
        cells = (
            f"  {truth[week]:13,.0f}  {value[week]:9,.0f} ± {high[week] - value[week]:6,.0f}"
            for truth, value, _, high in found
        )
        print(f"  {week + 1:>4}" + "".join(cells))
    held = np.mean([(low <= truth) & (truth <= high) for truth, _, low, high in found])
    print(
        f"\n{held:.0%} of the 95 % intervals hold the truth. Everything that a device ever sends has an epsilon of 1."
    )


def draw(names: tuple[str, ...], usual: Memoised, path: Path) -> None:
    """Draw the truth and the estimates on the left, and those of memoised reports on the right.

    Args:
        names: of the answers.
        usual: results of memoised reports.
        path: of the picture.
    """
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for number, (name, colour) in enumerate(zip(names, COLOURS, strict=True)):
        truth, value, low, high = columns(name)
        weeks = np.arange(1, len(truth) + 1)
        left.fill_between(weeks, low, high, color=colour, alpha=0.25, linewidth=0)
        left.plot(weeks, value, ".", color=colour, markersize=4)
        right.plot(weeks, usual.levels[:, number], ".", color=colour, markersize=4)
        for side in (left, right):
            side.plot(weeks, truth, color=colour, linewidth=1, label=name)
            side.set_xlabel("week after release")
    left.set_ylim(bottom=0)
    left.set_ylabel("men")
    left.legend(frameon=False, loc="upper right")
    left.set_title("one report each: epsilon = 1 for all that a device sends", loc="left", fontweight="bold")
    share = usual.shown / usual.changed
    right.set_title(f"memoised reports: {share:.0%} of all changes are visible, with their week", loc="left")
    figure.suptitle("Estimates (points, 95 % bands) and truth (lines) of a million synthetic men", x=0.01, ha="left")
    figure.savefig(path, dpi=130)


def main() -> None:
    if not (OUT / "estimates.parquet").exists():
        raise SystemExit(f"{OUT}/estimates.parquet: there are no estimates yet; make some with `make demo-local`")
    survey, men = read_survey(str(OUT / "design.json")), read_men()
    # For each different answer of a person, of whom most have three: none, not employed, employed.
    usual = memoised(men, resampled(men, survey.people), epsilon=1 / 3)
    print_table(survey.names)
    draw(survey.names, usual, OUT / "chart.png")
    print(f"""
Memoised randomised response, with an epsilon of 1/3 for each of three answers, shows when people change: of
{usual.changed:,} changes, the reports show {usual.shown:,} with their week, with certainty. No epsilon
holds for that.

Files
  page        {OUT}/report.html        open it in a browser
  chart       {OUT}/chart.png
  design      {OUT}/design.json        the design that every device uses
  reports     {OUT}/reports/
  estimates   {OUT}/estimates.parquet

Next steps
  Copy examples/employment/survey.yaml, change `publish` to change, run `local plan`: signs have less error then.""")


if __name__ == "__main__":
    main()
