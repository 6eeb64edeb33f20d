"""Rows of published quantiles, from the plan of a query to its table."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from privacy.cells.choice import CellChoice
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.series import Series, totals
from tests.transforms.plans import laplace_plan
from transforms.aggregation.node_sums import BOUNDED
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline
from transforms.release.linear_chunk import add_noise
from transforms.release.published_columns import estimates_types
from transforms.release.published_tables import estimates_table

AGES = OrderedKey(start=0, step=10, steps=10)
SERIES = (Series(kind="level"), Series(kind="sliding", width=2, every=2))
WINDOWS = 4


@pytest.mark.parametrize("over", [CellChoice(), CellChoice(name="tree", branching=3, workload="prefixes")])
def test_quantiles_of_each_ward_have_separate_rows(over: CellChoice) -> None:
    """With at least 2,000 units in a cell and noise of a deviation below 40, no other cell is practically possible."""
    query = Query(
        name="ages",
        measure=Measure(kind="count"),
        by=(("age", AGES), ("ward", ("a", "b"))),
        publish=SERIES,
        quantiles=(0.5, 0.9),
        over=over,
    )
    other = Query(name="all", measure=Measure(kind="count"))
    plan, aggregation = laplace_plan((query, other), AtMost(1), Timeline(start=0, every=10, windows=WINDOWS))
    leaves = np.random.default_rng(5).integers(2_000, 9_000, (1, 1 + WINDOWS, query.cells))
    (released,) = plan.linear(0, "net")
    nothing = estimates_table(add_noise(-leaves, released), aggregation, released, 0)
    assert nothing.filter(pc.is_valid(nothing["quantile"]))["value"].null_count == (WINDOWS + WINDOWS // 2) * 2 * 2

    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    assert table.schema == pa.schema(estimates_types(aggregation.queries))
    assert aggregation.chunk_cells(0) == query.cells
    assert list(aggregation.cells_of((BOUNDED, 0, "net", 0))) == list(range(query.cells))
    rows = table.filter(pc.is_valid(table["quantile"]))
    assert rows.num_rows == (WINDOWS + WINDOWS // 2) * 2 * 2
    assert rows["age"].null_count == rows["stddev"].null_count == rows.num_rows
    low, high = AGES.edges(0, 11)[[0, *range(11)]], AGES.edges(0, 11)[[*range(11), 10]]
    for series in SERIES:
        exact = totals(series, leaves[0]).reshape(-1, 12, 2)
        for share in query.quantiles:
            cell = (np.cumsum(exact, axis=1) >= share * exact.sum(axis=1, keepdims=True)).argmax(axis=1)
            mine = rows.filter(
                pc.and_(pc.equal(rows["kind"], f"{series.kind}_quantile"), pc.equal(rows["quantile"], share))
            )
            value = mine["value"].to_numpy().reshape(-1, 2)
            assert mine["ward"].to_pylist() == ["a", "b"] * len(exact)
            assert ((low[cell] - 0.5 <= value) & (value <= high[cell] + 0.5)).all()
            assert (mine["ci_low"].to_numpy() <= value.ravel()).all()
            assert (mine["ci_high"].to_numpy() >= value.ravel()).all()
    unchanged = table.filter(pc.is_null(table["quantile"]))
    assert unchanged["kind"].unique().to_pylist() == ["level", "sliding"]
    (plain,) = plan.linear(1, "net")
    plain_table = estimates_table(add_noise(np.ones((1, 1 + WINDOWS, 1), np.int64), plain), aggregation, plain, 0)
    assert plain_table.schema.equals(table.schema)
    assert pa.concat_tables([table, plain_table])["quantile"].null_count == unchanged.num_rows + plain_table.num_rows
