"""Rows of published ranges, from the plan of a query to its table: exact deviations, and intervals that cover."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from privacy.cells.choice import CellChoice
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.planning.linear_part import LinearPart
from privacy.series import Series, totals
from privacy.strategies.choice import Choice
from tests.transforms.plans import laplace_plan
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline
from transforms.release.in_time import in_time
from transforms.release.linear_chunk import add_noise
from transforms.release.published_tables import estimates_table, truth_table
from transforms.release.range_tables import by_range

AGES = OrderedKey(start=0, step=10, steps=10)
HOURS = OrderedKey(start=0, step=6, steps=2)
SERIES = (Series(kind="level"), Series(kind="sliding", width=2, every=2), Series(kind="entered"))
BOXES = (((3, 12), (0, 4)), ((0, 5), (1, 2)))
WINDOWS = 4


def setting(
    measure: Measure,
    over: CellChoice,
    windows: int = WINDOWS,
    released: int = 0,
    publish: tuple[Series, ...] = SERIES,
    strategy: Choice = Choice(),  # noqa: B008 - a frozen value
) -> tuple[Aggregation, LinearPart]:
    query = Query(
        name="ages",
        measure=measure,
        by=(("age", AGES), ("hour", HOURS), ("ward", ("a", "b"))),
        publish=publish,
        ranges=BOXES,
        over=over,
        strategy=strategy,
    )
    other = Query(name="all", measure=Measure(kind="count"), by=(("age", (1, 2)),))
    timeline = Timeline(start=0, every=10, windows=WINDOWS)
    plan, aggregation = laplace_plan((query, other), AtMost(2), timeline)
    timeline = replace(timeline, windows=windows, released=released)
    return replace(aggregation, timeline=timeline), plan.linear(0, "net")[0]


def of_kind(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pa.compute.equal(table["kind"], kind))


def exact(leaves: np.ndarray, series: Series) -> np.ndarray:
    """Return sums of ranges, [numbers, ranges x wards], of dense leaves [windows, cells]."""
    grid = totals(series, leaves).reshape(-1, 12, 4, 2)
    return np.stack([grid[:, a:b, c:d].sum(axis=(1, 2)) for (a, b), (c, d) in BOXES], axis=1).reshape(len(grid), -1)


@pytest.mark.parametrize("over", [CellChoice(), CellChoice(name="tree", branching=3, workload="ranges")])
def test_each_range_has_a_row_for_each_ward_with_the_deviation_of_its_noise(over: CellChoice) -> None:
    """Deviations are compared with a dense matrix; an error beyond 10 deviations has a probability below 1e-6."""
    aggregation, released = setting(Measure(kind="count"), over)
    cells = aggregation.queries[0].cells
    leaves = np.random.default_rng(5).integers(0, 9_000, (1, 1 + WINDOWS, cells))

    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    boxes = np.zeros((2, 2, 12, 4, 2))
    for place, ((a, b), (c, d)) in enumerate(BOXES):
        for ward in (0, 1):
            boxes[place, ward, a:b, c:d, ward] = 1
    boxes = boxes.reshape(4, cells)
    of_cells = boxes if released.over is None else released.over.solve(boxes)
    (noise,) = released.noise
    for series in SERIES[:2]:
        rows = of_kind(table, f"{series.kind}_range")
        numbers = len(series.ends(WINDOWS))
        assert rows["ward"].to_pylist() == ["a", "b"] * 2 * numbers
        assert rows["age"].to_pylist() == (["[20, inf)"] * 2 + ["(-inf, 40)"] * 2) * numbers
        assert rows["hour"].to_pylist() == (["(-inf, inf)"] * 2 + ["[0, 6)"] * 2) * numbers
        in_time = released.strategy.variances(series, WINDOWS) * noise.variance
        expected = np.sqrt(np.outer(in_time, (boxes * of_cells).sum(axis=1)))
        assert rows["stddev"].to_numpy() == pytest.approx(expected.ravel())
        truth = exact(leaves[0], series).ravel()
        assert (abs(rows["value"].to_numpy() - truth) < 10 * expected.ravel()).all()
        widths = (rows["ci_high"].to_numpy() - rows["ci_low"].to_numpy()) / 2 / expected.ravel()
        assert ((widths > 1.9) & (widths < (2.05 if released.over is None else 2.25))).all()
        cells_of = of_kind(table, series.kind)["value"].to_numpy().reshape(numbers, cells)
        assert rows["value"].to_numpy() == pytest.approx((cells_of @ boxes.T).ravel())
    found = truth_table(leaves, leaves, aggregation, 0, SERIES[:2], 0)
    assert of_kind(found, "level_range")["exact"].to_pylist() == exact(leaves[0], SERIES[0]).ravel().tolist()
    assert (
        found.schema.names[:7]
        == table.schema.names[:7]
        == ["query", "kind", "window_start", "window_end", "age", "hour", "ward"]
    )


def test_a_window_in_which_no_number_ends_has_no_rows_of_ranges() -> None:
    """The rows of other windows continue as if all were made at once."""
    aggregation, released = setting(Measure(kind="count"), CellChoice(), windows=3, released=2)
    leaves = np.ones((1, 1 + WINDOWS, aggregation.queries[0].cells), dtype=np.int64)
    protected, late = add_noise(leaves, released), []
    for series, each in zip(released.series, protected.sums, strict=True):
        late.append([sums[len(series.ends(2)) : len(series.ends(3))] for sums in each])

    table = estimates_table(type(protected)(nodes=protected.nodes, sums=late), aggregation, released, 0)

    assert [of_kind(table, f"{kind}_range").num_rows for kind in ("level", "sliding")] == [4, 0]


def test_ranges_of_weighted_levels_have_the_noise_of_their_windows() -> None:
    """Each cell has independent noise: the variance of a range is that of one cell times the number of cells."""
    weighted = Choice(name="direct", weights=(1.0, 8.0))
    aggregation, released = setting(Measure(kind="count"), CellChoice(), publish=SERIES[:1], strategy=weighted)
    leaves = np.zeros((1, 1 + WINDOWS, aggregation.queries[0].cells), dtype=np.int64)

    table = estimates_table(add_noise(leaves, released), aggregation, released, 0)

    of_cell = of_kind(table, "level")["stddev"].to_numpy().reshape(WINDOWS, -1)[:, :1]
    of_range = of_kind(table, "level_range")["stddev"].to_numpy().reshape(WINDOWS, 4)
    assert of_range == pytest.approx(of_cell * np.sqrt([36, 36, 5, 5]))
    assert of_cell[0] > 2 * of_cell[1]


def test_means_of_a_range_are_those_of_all_its_entries() -> None:
    """The noise of 5 cells or more exceeds 10 deviations with probability below 1e-6."""
    aggregation, released = setting(Measure(kind="mean", low=0, high=10), CellChoice())
    cells, grid = aggregation.queries[0].cells, aggregation.queries[0].measure.components[1].grid
    leaves = np.zeros((2, 1 + WINDOWS, cells), dtype=np.int64)
    leaves[0, 0] = 10**6
    leaves[1, 0] = np.arange(cells) % 5 * int(10**6 / grid)

    rows = of_kind(estimates_table(add_noise(leaves, released), aggregation, released, 0), "level_range")

    count, total = (exact(component, SERIES[0]).ravel() for component in leaves)
    mean = 5 + total * grid / count
    of_count, of_total = (noise.variance for noise in released.noise)
    in_time = np.repeat(released.strategy.variances(SERIES[0], WINDOWS), 4) * np.tile([36, 36, 5, 5], WINDOWS)
    deviation = np.sqrt(in_time * (of_total * grid**2 + of_count * (mean - 5) ** 2)) / count
    value, stddev, low, high = (rows[name].to_numpy() for name in ("value", "stddev", "ci_low", "ci_high"))
    assert stddev == pytest.approx(deviation, rel=1e-3)
    assert (abs(value - mean) < 10 * deviation).all()
    assert ((value - low > 2 * deviation) & (high - value > 2 * deviation) & (high - low < 7 * deviation)).all()
    assert (high - low > 5.5 * deviation).all()  # both components together: 97.5 % each
    assert by_range(aggregation.queries[0]).by[0][1] == ("[20, inf), (-inf, inf)", "(-inf, 40), [0, 6)")


def test_intervals_use_the_largest_of_unequal_weights_in_time() -> None:
    refined = Choice(name="tree", refine="least_squares")
    aggregation, released = setting(Measure(kind="count"), CellChoice(), publish=SERIES[:1], strategy=refined)
    weights = released.strategy.weights(SERIES[0], WINDOWS)
    found = [one for _, one in in_time(SERIES[0], aggregation, released)]
    assert any(one.weight is None for one in found)
    for one, sizes in zip(found, weights, strict=True):
        assert one.largest == pytest.approx((sizes**2).max() / (sizes**2).sum())
        assert (one.weight is None) == (sizes.min() < sizes.max())
