"""Beam SQL on both sides of a release: SQL makes the rows that it takes, and asks of the rows that it gives.

No test runs this one. It needs Java, and Beam's expansion service for SQL, some hundred megabytes that Beam takes from
Maven Central once. With `wards-in-sql.yaml`, a copy of `wards.yaml` in the README with a name and folders of its own:

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
    """A patient is in a ward from then on; without one the stay is over."""

    stay: int
    at: str
    ward: Optional[str]  # noqa: UP045  # Beam takes `str | None` for something that only Python can read


coders.registry.register_coder(Move, coders.RowCoder)  # else they go to Java as what only Python can read

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
    """Publish the first week of January, and print each ward's mean of its published levels: it costs no privacy.

    Args:
        flags: Beam's.
    """
    with beam.Pipeline(argv=[*flags]) as pipeline:
        moves = pipeline | beam.Create(MOVES).with_output_types(Move)
        estimates = moves | "Tidy" >> SqlTransform(TIDY) | slackwater.Release(spec, until="2026-01-08T00:00:00Z")
        estimates | "Week" >> SqlTransform(WEEK) | beam.Map(lambda row: print(row.ward, row.beds, row.days))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
