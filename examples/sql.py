"""Beam SQL before and after a release: SQL prepares its input rows, and queries its output rows.

No test runs this example. It needs Java, and Beam's expansion service for SQL, several hundred megabytes that Beam
downloads from Maven Central once. `wards-in-sql.yaml` is a copy of `wards.yaml` in the README with another name and
other folders:

    .venv/bin/python -m examples.sql wards-in-sql.yaml
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple, Optional

import apache_beam as beam
from apache_beam import coders
from apache_beam.transforms.sql import SqlTransform

import slackwater


class Move(NamedTuple):
    """From this time on, a patient is in a ward; without a ward, the stay is over."""

    stay: int
    at: str
    ward: Optional[str]  # noqa: UP045  # Beam treats `str | None` as readable by Python only


coders.registry.register_coder(Move, coders.RowCoder)  # otherwise Java cannot read them

MOVES = [
    Move(1, "2026-01-01T08:00:00Z", " surgery"),
    Move(2, "2026-01-01T09:30:00Z", "medicine"),
    Move(1, "2026-01-02T11:00:00Z", "medicine"),
    Move(2, "2026-01-03T10:00:00Z", None),
]
TIDY = "SELECT stay, `at`, TRIM(ward) AS ward FROM PCOLLECTION"
WEEK = """
SELECT ward, AVG(`value`) AS beds, COUNT(*) AS days
FROM PCOLLECTION
WHERE kind = 'level'
GROUP BY ward
"""


def run(spec: str, flags: Sequence[str]) -> None:
    """Publish the first week of January, and print the mean of each ward's published levels, which costs no privacy.

    Args:
        spec: path of the spec.
        flags: Beam pipeline options.
    """
    with beam.Pipeline(argv=[*flags]) as pipeline:
        moves = pipeline | beam.Create(MOVES).with_output_types(Move)
        estimates = moves | "Tidy" >> SqlTransform(TIDY) | slackwater.Release(spec, until="2026-01-08T00:00:00Z")
        estimates | "Week" >> SqlTransform(WEEK) | beam.Map(lambda row: print(row.ward, row.beds, row.days))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
