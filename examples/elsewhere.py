"""A changelog that lies in no files: rows that a pipeline has from a query, a service or a library of one's own.

`Project` takes batches from any step. docs/pipelines.md goes through it; tests hold it against the same rows in files.
"""

import apache_beam as beam
import pyarrow as pa

from transforms.aggregation.bounded_sums import SUMS, BoundedSums
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.projection import Project
from transforms.common.batches import Batch


def batch_of(changes: pa.Table) -> Batch:
    """Changes with the columns `flight`, `at`, and a struct on each side, as `Project` reads them."""
    columns = {
        "entry": changes["flight"].cast(pa.string()),
        "time": changes["at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
    }
    if columns["entry"].null_count or columns["time"].null_count:
        raise ValueError("a change without a key or a time")  # decide here: nobody sees them again
    for side in ("before", "after"):
        state = changes[side].combine_chunks()
        columns[side] = state.is_valid()
        names, values = [field.name for field in state.type], state.flatten()  # null where the state is
        columns |= {f"{side}.{name}": value for name, value in zip(names, values, strict=True)}
    return Batch("query", 1, pa.table(columns))


def bounded(changes: beam.PCollection[pa.Table], aggregation: Aggregation) -> beam.PCollection:
    """Exact sums after contribution bounding; `Release` goes on from there."""
    batches = changes | "AsBatches" >> beam.Map(batch_of)
    projected = batches | Project(aggregation.projection)
    sums = projected["projected"] | BoundedSums(aggregation, shards=4)
    return sums[SUMS]
