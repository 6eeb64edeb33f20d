"""The contribution of a unit to the exact sums is a function of its rows: files give the sum of all contributions."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from privacy.constraint import AtMost, AtOnce, ByClass, Constraint, Within
from privacy.measure import Measure
from tests.dense import dense
from tests.fates.test_fates import SEED, SPECS
from tests.strategies import ALL
from tests.transforms.writing import parts, source
from transforms.aggregation.node_sums import Aggregation, NodeKey
from transforms.aggregation.projection import project
from transforms.aggregation.queries import Query, Timeline
from transforms.aggregation.shard_kernel import advance_shard
from transforms.aggregation.shard_state import ShardState
from transforms.aggregation.sharding import shard_table
from transforms.common.batches import Batch
from transforms.common.ipc import from_bytes
from transforms.sources.inspection import inspect

DAY = 86_400_000_000
TIMELINE = Timeline(start=16_000 * DAY, every=DAY, windows=4)
QUERIES = (
    Query(name="all", measure=Measure(kind="count"), publish=ALL),
    Query(name="beds", measure=Measure(kind="count"), by=(("w", ("a", "b", "other")),)),
    Query(name="cost", measure=Measure(kind="sum", low=-3, high=500), column="x", by=(("w", ("a", "b")),)),
)
CONSTRAINTS: dict[str, Constraint] = {
    "at most": AtMost(3),
    "at once": AtMost(6, entries=2),
    "window ends": AtOnce(2),
    "within": Within(2 * DAY),
    "by class": ByClass("w", (("a", AtMost(2)), ("b", Within(DAY)))),
}
_FAR = 2**63 - 1
TIMES = [16_000 * DAY + step * DAY // 2 for step in range(-2, 10)]
FAR_TIMES = [-_FAR, _FAR, 0, 2**62, -(2**62)]
ORDERS = [0, 1, 2, -1, -_FAR - 1, _FAR, 2**32, 256]
WARDS = ["a", "b", "c", "", "b" * 500, None]
NUMBERS = [0.0, -0.0, 1.5, 404.0, 1e300, float("-inf"), float("nan"), None]


def table_of(choose: Random, *, numbers: bool, owned: bool) -> pa.Table:
    """Return rows of a few units, tied, repeated and far apart in time."""
    odd_keys = [-_FAR - 1, 256, _FAR, 2**53 + 1] if numbers else ["", "a", "é😀", "k" * 300, "a\0"]
    keys = [*odd_keys, *(key if numbers else f"{key}" for key in range(8))]
    rows = []
    for _ in range(60):
        states = [
            None if choose.random() < 0.3 else {"w": choose.choice(WARDS), "x": choose.choice(NUMBERS)} for _ in "ba"
        ]
        at = choose.choice(TIMES if choose.random() < 0.95 else FAR_TIMES)
        rows.append([choose.choice(keys), choose.choice(keys), at, choose.choice(ORDERS), *states])
        if choose.random() < 0.2:
            rows.append(rows[choose.randrange(len(rows))])
    kind, state = (pa.int64() if numbers else pa.string()), pa.struct([("w", pa.string()), ("x", pa.float64())])
    types = [kind, kind, pa.timestamp("us", "UTC"), pa.int64(), state, state]
    names = ["id", "owner", "at", "seq", "before", "after"]
    table = pa.table(
        [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)], names
    )
    return table if owned else table.drop_columns("owner")


def sums(
    folder: Path, rows: list[pa.Table], aggregation: Aggregation, choose: Random, **more: object
) -> dict[NodeKey, np.ndarray]:
    """Return dense sums of two runs, each of which reads the new rows."""
    folder.mkdir(parents=True)
    for name, table in zip("ab", rows, strict=True):
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=choose.choice([3, 100]))
    layout = inspect(
        source(f"{folder}/*", before="before", after="after", owner=aggregation.owner, **more),
        frozenset("x"),
        frozenset("w"),
    )
    payloads: dict[NodeKey, list[bytes]] = {key: [] for key in aggregation.node_keys()}
    states: dict[int, ShardState] = {}
    for run, (file, windows) in enumerate(zip(layout.files, (2, TIMELINE.windows), strict=True)):
        found: dict[int, list[pa.Table]] = defaultdict(list)
        for part in parts(replace(layout, files=(file,)), batch_rows=choose.choice([2, 7, 1000])):
            if isinstance(part, Batch):
                for shard, payload in shard_table(project(part.table, aggregation.projection)[0], shards=3):
                    found[shard].append(from_bytes(payload))
        timeline = replace(TIMELINE, windows=windows, released=2 * run)
        for shard in range(3):
            new = pa.concat_tables(found[shard]) if shard in found else None
            told, states[shard] = advance_shard(new, states.get(shard), replace(aggregation, timeline=timeline))
            for key, payload in told:
                payloads[key].append(payload)
    return {key: dense(found, aggregation, key) for key, found in payloads.items()}


@pytest.mark.hypothesis  # `make search` selects by this mark
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_unit_adds_the_same_sums_with_or_without_others(name: str, tmp_path: Path) -> None:
    counted = 0
    for number in range((SPECS + 1) // 2):
        choose = Random(f"{SEED} {name} {number}")
        unit = {"within": "id", "at once": "owner", "window ends": "owner"}.get(name) or choose.choice(["id", "owner"])
        aggregation = Aggregation(
            queries=QUERIES,
            timeline=TIMELINE,
            constraint=CONSTRAINTS[name],
            owner="owner" if unit == "owner" else None,
        )
        order = {"order": ("seq",)} if choose.random() < 0.5 else {}
        runs = [table_of(choose, numbers=(number + len(name)) % 2 == 0, owned=unit == "owner") for _ in range(2)]

        together = sums(tmp_path / f"{number}", runs, aggregation, choose, **order)
        alone = [
            sums(
                tmp_path / f"{number}-{place}",
                [run.filter(pc.equal(run[unit], key)) for run in runs],
                aggregation,
                choose,
                **order,
            )
            for place, key in enumerate(pc.unique(pa.chunked_array([*runs[0][unit].chunks, *runs[1][unit].chunks])))
        ]

        for key, found in together.items():
            assert np.array_equal(found, sum(one[key] for one in alone)), (name, number, key)
        counted += sum(int(np.abs(found).sum()) for found in together.values())
    assert counted > 10 * SPECS
