"""A changelog without files: rows that a pipeline gets from a query, a service or your own library.

`Project` takes batches from any step. docs/pipelines.md explains this file. Tests compare it with the same rows
in files.
"""

import apache_beam as beam
import pyarrow as pa

from transforms.aggregation.bounded_sums import SUMS, BoundedSums
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.projection import Project
from transforms.common.batches import Batch


def batch_of(changes: pa.Table) -> Batch:
    """Convert changes with the columns `flight`, `at` and a struct on each side to the form that `Project` reads."""
    columns = {
        "entry": changes["flight"].cast(pa.string()),
        "time": changes["at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
    }
    if columns["entry"].null_count or columns["time"].null_count:
        raise ValueError("a change without a key or a time")  # decide here: later steps do not see them
    for side in ("before", "after"):
        state = changes[side].combine_chunks()
        columns[side] = state.is_valid()
        names, values = [field.name for field in state.type], state.flatten()  # null where the state is
        columns |= {f"{side}.{name}": value for name, value in zip(names, values, strict=True)}
    return Batch("query", 1, pa.table(columns))


def bounded(changes: beam.PCollection[pa.Table], aggregation: Aggregation) -> beam.PCollection:
    """Return exact sums after contribution bounding; `ReleaseSums` continues with them."""
    batches = changes | "AsBatches" >> beam.Map(batch_of)
    projected = batches | Project(aggregation.projection)
    sums = projected["projected"] | BoundedSums(aggregation, shards=4)
    return sums[SUMS]
