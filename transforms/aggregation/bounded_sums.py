"""From projected rows to bounded exact sums: the private half of every release.

in    pa.Table                                projected rows (transforms.aggregation.projection)
out   (NodeKey, bytes)                        sums of some nodes, an Arrow IPC stream with `node` (int64, as in
                                              transforms.aggregation.leaf_sums) and `sum.<component>`; one element a
                                              shard
"""

from collections.abc import Iterable, Iterator
from functools import partial

import apache_beam as beam
import pyarrow as pa

from transforms.aggregation.node_sums import Aggregation, NodeKey, Summed
from transforms.aggregation.shard_kernel import advance_shard
from transforms.aggregation.sharding import ShardByUnit
from transforms.common import progress
from transforms.common.ipc import from_bytes
from transforms.common.joined import giving, refuse_other
from transforms.common.threaded import Threaded


class BoundedSums(beam.PTransform):
    """Shard by unit, enforce the constraint, sum by window and cell, in one run.

    Raises:
        ValueError: the rows are not projected for this aggregation, or earlier runs have released windows of it.
    """

    def __init__(self, aggregation: Aggregation, *, shards: int) -> None:
        super().__init__()
        self._summed = Summed(aggregation)
        self._aggregation = aggregation
        self._shards = shards

    def expand(self, tables: beam.PCollection[pa.Table]) -> beam.PCollection[tuple[NodeKey, bytes]]:
        refuse_other(tables, self._aggregation.projection, part="BoundedSums", before="Project")
        sums = (
            tables
            | ShardByUnit(shards=self._shards)
            | "GatherUnits" >> beam.GroupByKey()
            | "BoundAndSum"
            >> beam.ParDo(Threaded(partial(_sum_shard, aggregation=self._aggregation))).with_output_types(
                tuple[NodeKey, bytes]
            )
        )
        return giving(sums, self._summed)


def _sum_shard(shard: tuple[int, Iterable[bytes]], aggregation: Aggregation) -> list[tuple[NodeKey, bytes]]:
    table = pa.concat_tables([from_bytes(payload) for payload in shard[1]])
    sums = list(bound_and_sum(table, aggregation))
    progress.advance("bound", table.num_rows)
    return sums


def bound_and_sum(table: pa.Table, aggregation: Aggregation) -> Iterator[tuple[NodeKey, bytes]]:
    """The kernel of one shard where one run sees all of its rows."""
    yield from advance_shard(table, None, aggregation)[0]
