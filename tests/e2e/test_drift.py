"""What README and guide say of levels whose units have used up their constraint, on the clinic that they speak of."""

import csv
import random
import re
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.e2e.specs import START, CommandLine

ROOT = Path(__file__).resolve().parents[2]
PATIENTS, DAYS, AT_MOST = 600, 56, 4
SPEC = f"""\
release: clinic
changelog: {{format: csv, path: stays.csv, entry: stay, time: at, after: now_}}
privacy: {{unit: patient, epsilon: 1.0, constraint: {{at_most: {AT_MOST}}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-02-26T00:00:00Z}}
queries:
  - name: beds
    measure: count
    by: {{ward: [a, b]}}
    publish: [level]
output: {{public: public, private: private}}
"""


def write_clinic(path: Path) -> None:
    """Patients who come for days, half of the times change the ward, go, and come again some days later."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["stay", "at", "patient", "now_ward"])
        for patient in range(PATIENTS):
            chance = random.Random(patient)
            stay, day = 0, chance.uniform(0, 14)
            while day < DAYS:
                length, moves, ward = chance.uniform(2, 12), chance.random() < 0.5, chance.choice("ab")
                changes = [(day, ward), *([(day + length / 2, "ba"["ab".index(ward)])] if moves else [])]
                for when, now in [*changes, (day + length, "")]:
                    rows.writerow([f"{patient}-{stay}", (START + timedelta(days=when)).isoformat(), patient, now])
                stay, day = stay + 1, day + length + chance.uniform(0, 12)


def told(page: str) -> tuple[int, ...]:
    """The two numbers of a page."""
    pattern = rf"clinic of {PATIENTS} patients .*`at_most: {AT_MOST}`, .*?(\d+) beds after {DAYS} days where (\d+) are"
    found = re.search(pattern, " ".join((ROOT / page).read_text().split()))
    assert found is not None, page
    return tuple(int(number) for number in found.groups())


def test_levels_drift_as_the_pages_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_clinic(tmp_path / "stays.csv")
    (tmp_path / "spec.yaml").write_text(SPEC)

    said = CommandLine(tmp_path, capsys)("evaluate", "spec.yaml", "--runs=1", "--truth=private/truth.parquet")

    assert said.code == 0, said.err
    truth = pq.read_table(tmp_path / "private/truth.parquet")
    last = truth.filter(pc.equal(truth["window_end"], pc.max(truth["window_end"])))
    found = tuple(round(pc.sum(last[name]).as_py()) for name in ("bounded", "exact"))
    assert found == told("README.md") == told("docs/guide.md")
