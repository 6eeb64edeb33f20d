"""Sanitised records whose page has all that a page can have: names like HTML, long ones, many values, a long curve."""

import shutil
from contextlib import chdir
from pathlib import Path

import pyarrow as pa

from pipelines import cli
from tests.pipelines.report.report_page import NASTY
from transforms.common.sinks import write_table

PEOPLE = 400
TOWNS = [f"town {number}, of which the name is longer than a narrow screen has room for" for number in range(30)]
HOURS = [f"hour {number:02}" for number in range(24)]

SPEC = f"""\
sanitise: people
records: {{format: parquet, path: data/people.parquet, entry: person}}
columns:
  - {{name: work, kind: category, values: [none, full, '{NASTY}'], missing: none, epsilon: 14.0}}
  - {{name: town, kind: category, values: {TOWNS!r}, missing: '{TOWNS[0]}', epsilon: 0.0625, delta: 1.0e-3}}
  - {{name: age, kind: number, min: 18, max: 98, step: 1, epsilon: 0.0625}}
  - {{name: ills, kind: set, values: [asthma, gout], epsilon: 9.0}}
  - {{name: load, kind: curve, points: {HOURS!r}, min: 0, max: 5, step: 0.5, epsilon: 30.0}}
  - {{name: stars, kind: category, values: ['1', '2', '3', '4', '5'], missing: '2', distances: order, epsilon: 0.5}}
output: {{public: public, private: private}}
"""


def public_records(folder: Path) -> Path:
    """Return the public folder, with only the spec next to it."""
    each = range(PEOPLE)
    columns = {
        "person": [f"k7f3secret-{one}" for one in each],
        "work": [["none", "full"][one % 2] for one in each],
        "town": [TOWNS[one % 30] for one in each],
        "age": [18 + one % 70 for one in each],
        "ills": [["asthma", "asthma;gout"][one % 2] for one in each],
        "stars": [str(1 + one % 3) for one in each],
        **{hour: [place / 8 for _ in each] for place, hour in enumerate(HOURS)},
    }
    (folder / "data").mkdir()
    write_table(pa.table(columns), str(folder / "data/people.parquet"))
    (folder / "spec.yaml").write_text(SPEC)
    with chdir(folder):
        assert cli.main(["sanitise", "spec.yaml", "--estimates", "estimates.csv"]) == 0
    for name in ("private", "data"):
        shutil.rmtree(folder / name)
    return folder / "public"
