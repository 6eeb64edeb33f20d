"""From projected rows to bounded exact sums: the private half of every release.

    in    pa.Table             projected rows (transforms.aggregation.projection), of files that no run has read
    out   (NodeKey, bytes)     under `SUMS`: sums of some nodes, of the windows that close in this run, an Arrow IPC
                               stream with `node` (int64, as in transforms.aggregation.leaf_sums) and `sum.<component>`
          (name, bytes)        under `STATE`, if it is kept: a file for each shard, with which the next run starts

The kernel is transforms.aggregation.shard_kernel. Each run processes every shard, also one without new rows, since the
windows of its state close too.
"""

from collections.abc import Iterable
from functools import partial

import apache_beam as beam
import pyarrow as pa

from privacy.checks import at_least
from privacy.counted import counted
from transforms.aggregation.node_sums import Aggregation, NodeKey, Summed
from transforms.aggregation.shard_kernel import advance_shard, sum_shard
from transforms.aggregation.shard_state import STATE, file_of, state_from_bytes, state_to_bytes
from transforms.aggregation.sharding import ShardByUnit, received
from transforms.common import progress
from transforms.common.joined import giving, refuse_other
from transforms.common.several import Collections
from transforms.common.sinks import is_there, read_bytes
from transforms.common.threaded import Threaded

SUMS = "sums"


class BoundedSums(beam.PTransform):
    """Transform that shards rows by unit, bounds contributions, and sums by window and cell.

    Args:
        aggregation: Queries, windows and contribution bound.
        shards: Number of shards, the same in all runs of a release.
        past: Folder with the state that the previous run left; None in the first run.
        keep: Whether to write a state for the next run.
        exchange: Folder on a disk that all workers share, through which rows pass as files
            (transforms.common.exchange); None: rows pass through the runner.

    Raises:
        ValueError: The rows are not projected for this aggregation, the state has another number of shards, or it is
            missing although the timeline has released windows.
    """

    def __init__(
        self,
        aggregation: Aggregation,
        *,
        shards: int,
        past: str | None = None,
        keep: bool = False,
        exchange: str | None = None,
    ) -> None:
        super().__init__()
        at_least("shards", shards, 1)
        self._summed = Summed(aggregation, past, keep)
        self._aggregation = aggregation
        self._shards = shards
        self._past = past
        self._keep = keep
        self._exchange = exchange

    def expand(self, tables: beam.PCollection[pa.Table]) -> Collections:
        refuse_other(tables, self._aggregation.projection, part="BoundedSums", before="Project")
        if self._past is not None:
            _refuse_other_shards(self._past, self._shards)
        work = partial(
            advance, aggregation=self._aggregation, past=self._past, keep=self._keep, exchange=self._exchange
        )
        every = tables.pipeline | "EveryShard" >> beam.Create(
            [(shard, b"") for shard in range(self._shards)], reshuffle=False
        ).with_output_types(tuple[int, bytes])
        advanced = (
            (tables | ShardByUnit(shards=self._shards, exchange=self._exchange), every)
            | "WithQuietShards" >> beam.Flatten()
            | "GatherUnits" >> beam.GroupByKey()
            | "BoundAndSum" >> beam.ParDo(Threaded(work)).with_output_types(tuple[NodeKey, bytes])
        )
        states = advanced | "States" >> beam.Filter(_is_state)
        return {
            SUMS: giving(advanced | "Sums" >> beam.Filter(lambda part: not _is_state(part)), self._summed),
            STATE: states | "NameStates" >> beam.Map(_named).with_output_types(tuple[str, bytes]),
        }


def advance(
    shard: tuple[int, Iterable[bytes]], aggregation: Aggregation, past: str | None, keep: bool, exchange: str | None
) -> list[tuple[NodeKey, bytes]]:
    """Return the sums of one shard and, if `keep`, its state under the key `STATE`.

    Args:
        shard: Its number, and the payloads with its rows (`received`).
        aggregation: Queries, windows and contribution bound.
        past: Folder with the state that the previous run left; None in the first run.
        keep: Whether to return a state for the next run.
        exchange: As in `BoundedSums`.
    """
    number, payloads = shard
    sent = [payload for payload in payloads if payload]
    if exchange is None:
        sent.sort()  # Runners repeat this step with payloads in another order; its state must be the same.
    tables = [received(payload, exchange) for payload in sent]
    rows = pa.concat_tables(tables) if tables else None
    state = None if past is None else state_from_bytes(read_bytes(f"{past}/{file_of(number)}"))
    if keep:
        sums, after = advance_shard(rows, state, aggregation)
        sums.append(((STATE, number, "net", 0), state_to_bytes(after)))
    else:
        sums = sum_shard(rows, state, aggregation)
    progress.advance("bound", 0 if rows is None else rows.num_rows)
    return sums


def _refuse_other_shards(past: str, shards: int) -> None:
    """Refuse a state with another number of shards, where units would not find their usage.

    Files are looked up by name, since a folder that this account may not list would look empty.
    """
    last, another = (is_there(f"{past}/{file_of(shard)}") for shard in (shards - 1, shards))
    if not last or another:
        raise ValueError(f"{past}: does not hold the state of {counted(shards, 'shard')}; keep the number")


def _is_state(part: tuple[NodeKey, bytes]) -> bool:
    return part[0][0] == STATE


def _named(part: tuple[NodeKey, bytes]) -> tuple[str, bytes]:
    return file_of(part[0][1]), part[1]
