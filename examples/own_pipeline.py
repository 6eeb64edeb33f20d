"""Your own pipeline: read a changelog, release protected counts, and process them in another step.

It publishes the days on which more than 100 flights were cancelled at an airport of New York, according to the whole
interval. Run it from the top of the project, after `make demo` has built the changelog:

    .venv/bin/python -m examples.own_pipeline 'out/flights/changelog/*.parquet' releases/alarms

Python code replaces the spec here. docs/pipelines.md explains this file.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam as beam
import pyarrow.compute as pc

from pipelines.epochs.flags import options_of
from pipelines.spec.times import microseconds, parse_time
from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.bounded_sums import SUMS, BoundedSums
from transforms.aggregation.expression import Condition
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.projection import Project
from transforms.aggregation.queries import Query, Timeline
from transforms.common.errors import InputError, RefusedError
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.sinks import WriteTables
from transforms.common.source import Source
from transforms.release.release import ESTIMATES, ReleasePlan, ReleaseSums
from transforms.sources.changelog import DEAD, READ, ReadChangelog
from transforms.sources.diagnostics import WriteDiagnostics, diagnose
from transforms.sources.inspection import inspect

MANY = 100
DAY = 86_400_000_000  # microseconds, as all times

AGGREGATION = Aggregation(
    queries=(
        Query(
            name="cancelled",
            measure=Measure(kind="count"),
            where=Condition.parse("status = 'cancelled'"),
            by=(("origin", ("EWR", "JFK", "LGA")),),
            publish=(Series(kind="entered"),),
        ),
    ),
    timeline=Timeline(start=microseconds(parse_time("2013-01-01T00:00:00-05:00")), every=DAY, windows=365),
    constraint=AtMost(1),
)


def plan() -> Plan:
    """Return the plan of the noise for the bounded sums of `AGGREGATION`."""
    return make_plan(
        [query.demand for query in AGGREGATION.queries],
        AGGREGATION.promise(),
        budget=Budget(epsilon=0.5),
        mechanism="laplace",
        accounting="naive",
    )


def alarms(part: tuple[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the rows whose whole interval is above `MANY`. This is post-processing, which costs no privacy."""
    name, payload = part
    estimates = from_bytes(payload)
    yield name, to_bytes(estimates.filter(pc.greater(estimates["ci_low"], MANY)))


def run(changelog: str, folder: Path, flags: Sequence[str] = ()) -> str:
    """Release once into `folder`/public; return the statement of the guarantee.

    Args:
        changelog: glob of the changelog's files.
        folder: of the release.
        flags: Beam pipeline options.

    Raises:
        RefusedError: the folder holds a release already.
        InputError: rows cannot be used; nothing was published.
    """
    public, draft, private = folder / "public", folder / "private" / "draft", folder / "private"
    if public.exists():
        raise RefusedError(f"{public}: released already; a second release spends a second budget")
    source = Source(
        format="parquet",
        paths=(changelog,),
        entry="entry_id",
        time="event_time",
        before="before_",
        after="after_",
    )
    made = plan()
    layout = inspect(source, numbers=frozenset(), others=AGGREGATION.queries[0].columns)
    with beam.Pipeline(options=options_of(flags)) as pipeline:
        read = pipeline | ReadChangelog(layout)
        projected = read["rows"] | Project(AGGREGATION.projection)
        bounded = projected.projected | BoundedSums(AGGREGATION, shards=4)
        released = bounded[SUMS] | ReleaseSums(ReleasePlan(plan=made, aggregation=AGGREGATION))
        released[ESTIMATES] | "Alarms" >> beam.FlatMap(alarms) | WriteTables(str(draft), format_="csv")
        dead = (read[DEAD], projected[DEAD]) | beam.Flatten()
        (dead, read[READ]) | WriteDiagnostics(str(private))
    found = diagnose(str(private))
    if found.dead or found.files:
        raise InputError(f"{private}/dead_letters.parquet lists rows that cannot be used; nothing was published")
    draft.rename(public)
    return made.statement


if __name__ == "__main__":
    print(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
