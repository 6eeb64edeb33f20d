"""A synthetic clinic that the docs mention: patients come for days, leave, and come again, without end."""

import csv
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2023, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PATIENTS = 600

SPEC = """\
release: clinic
changelog: {{format: csv, path: {folder}/stays.csv, entry: stay, time: at, after: now_}}
privacy: {{unit: patient, epsilon: 1.0, delta: {delta}, {privacy}}}
schedule: {{start: 2023-01-01T00:00:00Z, every: 1d, until: {until}}}
queries:
  - name: beds
    measure: count
    by: {{ward: [a, b]}}
    publish: [level]
output: {{public: {output}/public, private: {output}/private}}
"""


def spec(folder: Path | str, output: Path | str, *, privacy: str, days: int, delta: float) -> str:
    """Return a spec that publishes the daily level of both wards.

    Args:
        folder: of the changelog.
        output: folder of the release.
        privacy: keys for the protection and the contribution bound.
        days: number of windows.
        delta: of the budget.
    """
    until = (START + days * DAY).isoformat()
    return SPEC.format(folder=folder, output=output, privacy=privacy, until=until, delta=delta)


def write_stays(path: Path, days: int) -> None:
    """Write stays of patients who come for days, change the ward in half of them, leave, and come again days later.

    The first days do not depend on the number of days.
    """
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["stay", "at", "patient", "now_ward"])
        for patient in range(PATIENTS):
            chance = random.Random(patient)
            stay, day = 0, chance.uniform(0, 14)
            while day < days:
                length, moves, ward = chance.uniform(2, 12), chance.random() < 0.5, chance.choice("ab")
                changes = [(day, ward), *([(day + length / 2, "ba"["ab".index(ward)])] if moves else [])]
                for when, now in [*changes, (day + length, "")]:
                    rows.writerow([f"{patient}-{stay}", (START + when * DAY).isoformat(), patient, now])
                stay, day = stay + 1, day + length + chance.uniform(0, 12)
