"""Drift of levels over three years, with a protected span of time and with everything protected.

    python -m benchmarks.spans           # half a minute

Numbers are the clinic's beds by ward and day (`clinic.py`). `slackwater run` makes each release in one run over all
days, and `slackwater evaluate` adds the truth; nightly runs would publish numbers with the same bias and noise. Results
do not depend on a sample of noise: standard deviations are the published ones, and the bias is the bounded truth minus
the exact truth.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.emptied import emptied
from benchmarks.spans.clinic import spec, write_stays
from benchmarks.throughput.process import measure

OUT = Path("out/benchmarks/spans")
YEARS, YEAR = 3, 365
DELTA = 1e-9
ONE_BED = "constraint: {entries: 1}"
"""A patient is in one bed at a time, which is public knowledge."""
RELEASES = {
    "any 30 days": f"protects: {{span: 30d}}, {ONE_BED}",
    **{
        f"everything, `at_most: {changes}`": f"constraint: {{at_most: {changes}, entries: 1}}"
        for changes in (4, 16, 64, 256)
    },
}

Floats = np.ndarray


def by_year(numbers: pa.Table, name: str) -> Floats:
    """Return a column as an array [years, days x wards]."""
    return np.asarray(numbers.sort_by([("window_end", "ascending"), ("ward", "ascending")])[name]).reshape(YEARS, -1)


def released(number: int, privacy: str) -> tuple[pa.Table, pa.Table]:
    """Run a release, and return its published numbers and the truth."""
    folder = OUT / str(number)
    folder.mkdir()
    path, truth = folder / "spec.yaml", folder / "private/truth.parquet"
    path.write_text(spec(OUT, folder, privacy=privacy, days=YEARS * YEAR, delta=DELTA))
    slackwater = [sys.executable, "-m", "pipelines"]
    measure([*slackwater, "run", str(path)], folder / "run.log")
    measure([*slackwater, "evaluate", str(path), "--runs=1", f"--truth={truth}"], folder / "evaluate.log")
    return pq.read_table(folder / "public/estimates"), pq.read_table(truth)


def row(name: str, estimates: pa.Table, truth: pa.Table) -> str:
    """Return a line of the table.

    Args:
        name: of the release.
        estimates: published numbers.
        truth: exact and bounded numbers.
    """
    cut = by_year(truth, "bounded") - by_year(truth, "exact")
    stddev = by_year(estimates, "stddev")
    bias = [f"{mean:+.1f}" if mean else "0" for mean in cut.mean(axis=1)]
    noise = [f"{np.sqrt(year):.1f}" for year in (stddev**2).mean(axis=1)]
    # The noise has mean 0 for all data.
    rmse = [f"{np.sqrt(year):.1f}" for year in (cut**2 + stddev**2).mean(axis=1)]
    return f"| {name} | {' | '.join([*bias, *noise, *rmse])} |"


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    emptied(OUT)
    write_stays(OUT / "stays.csv", YEARS * YEAR)
    years = range(1, YEARS + 1)
    columns = [
        f"{what}, year {year}" if year == 1 else str(year) for what in ("bias", "noise", "RMSE") for year in years
    ]
    print(f"| protected | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}", flush=True)
    for number, (name, privacy) in enumerate(RELEASES.items()):
        estimates, truth = released(number, privacy)
        print(row(name, estimates, truth), flush=True)
    taken = ", ".join(f"{mean:.1f}" for mean in by_year(truth, "exact").mean(axis=1))
    print(f"\nMean number of occupied beds of a ward, by year: {taken}.")


if __name__ == "__main__":
    main()
