"""Cells with an order: the cell of a value, and its label."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.constraint import AtMost
from privacy.measure import Measure
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline
from transforms.common.kinds import to_kind
from transforms.release.published_tables import truth_table

INF, NAN = float("inf"), float("nan")

KEYS = st.builds(
    OrderedKey,
    start=st.integers(-(10**14), 10**14),
    step=st.integers(1, 10**6) | st.sampled_from([1, 2, 5, 10]),
    steps=st.integers(1, 50),
    digits=st.integers(0, 15),
)


@given(key=KEYS, data=st.data())
def test_a_decimal_is_in_the_cell_of_exact_arithmetic(key: OrderedKey, data: st.DataObject) -> None:
    units = st.integers(-3, key.steps * key.step + 3)
    at_edges = st.integers(-1, key.steps + 1).map(lambda edge: edge * key.step)
    found = data.draw(st.lists(units | at_edges, min_size=1, max_size=20))
    texts = [format(Decimal(key.start + unit).scaleb(-key.digits), "f") for unit in found]

    read, bad = to_kind(pa.array(texts), "float64")

    expected = [min(max(unit // key.step, -1), key.steps) + 1 for unit in found]
    assert not bad
    assert key.codes(read).tolist() == expected


@given(st.lists(st.integers(-(10**12), 10**12) | st.integers(-(10**18), 10**18), max_size=4), st.integers(0, 9))
def test_decimals_and_their_texts_have_the_same_cells(units: list[int], scale: int) -> None:
    numbers = [Decimal(unit).scaleb(-scale) for unit in units]
    column = pa.array([None, *numbers, None], pa.decimal128(30, scale))

    read, _ = to_kind(column.slice(1), "float64")

    assert read.to_pylist() == [*map(float, numbers), None]


def test_integers_null_nan_and_infinity_have_defined_cells() -> None:
    key = OrderedKey(start=5, step=5, steps=2, digits=1)  # 0.5, 1, 1.5

    assert key.codes(pa.array([-(2**63), 0, 1, 2, 2**63 - 1, None])).tolist() == [0, 0, 2, 3, 3, -1]
    assert key.codes(pa.array([-INF, -0.0, 0.5, 1.5, INF, NAN, None])).tolist() == [0, 0, 1, 3, 3, -1, -1]


def test_the_largest_number_below_an_edge_is_below_it() -> None:
    key = OrderedKey(start=0, step=1, steps=9, digits=1)

    assert key.codes(pa.array(np.nextafter(np.arange(1, 10) / 10, 0))).tolist() == list(range(1, 10))


def test_close_numbers_are_at_most_one_cell_further_apart_than_their_decimals() -> None:
    key = OrderedKey(start=0, step=1, steps=20, digits=1)
    edges = np.arange(21) / 10
    values = np.concatenate([edges, np.nextafter(edges, -1), np.nextafter(edges, 9)])
    tenths = [Fraction(repr(float(value))) * 10 for value in values]
    codes = key.codes(pa.array(values)).tolist()

    pairs = [
        (abs(x - y), abs(a - b)) for x, a in zip(tenths, codes, strict=True) for y, b in zip(tenths, codes, strict=True)
    ]

    assert all(cells <= math.ceil(far) for far, cells in pairs)
    assert any(cells == far == 3 for far, cells in pairs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": 0},
        {"steps": 0},
        {"steps": 10**15},
        {"start": -(10**15)},
        {"digits": 16},
        {"digits": 1, "moments": True},
    ],
)
def test_edges_that_are_not_exact_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        OrderedKey(**{"start": 0, "step": 1, "steps": 1, **wrong})  # type: ignore[arg-type]


def test_times_are_in_cells_and_names_by_the_microsecond() -> None:
    key = OrderedKey(start=-1, step=1_500_000, steps=2, moments=True)
    times = pa.array([-2, -1, 1_499_998, 1_499_999, 2_999_999, 2**63 - 1, -(2**63), None], pa.timestamp("us", "UTC"))

    assert key.codes(times).tolist() == [0, 1, 1, 2, 3, 3, 0, -1]
    assert key.labels(0, 4).to_pylist() == [
        "below",
        "[1969-12-31T23:59:59.999999Z, 1970-01-01T00:00:01.499999Z)",
        "[1970-01-01T00:00:01.499999Z, 1970-01-01T00:00:02.999999Z)",
        "above",
    ]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (OrderedKey(start=-5, step=5, steps=2), ["below", "[-5, 0)", "[0, 5)", "above"]),
        (OrderedKey(start=-5, step=5, steps=2, digits=1), ["below", "[-0.5, 0)", "[0, 0.5)", "above"]),
        (OrderedKey(start=100, step=50, steps=2, digits=2), ["below", "[1, 1.5)", "[1.5, 2)", "above"]),
        (OrderedKey(start=1, step=1, steps=1, digits=9), ["below", "[0.000000001, 0.000000002)", "above"]),
    ],
)
def test_cells_are_named_in_the_fewest_digits(key: OrderedKey, expected: list[str]) -> None:
    assert key.labels(0, len(key)).to_pylist() == expected
    assert [key.labels(i, i + 1).to_pylist() for i in range(len(key))] == [[name] for name in expected]


def test_a_million_cells_are_coded_and_labelled_quickly() -> None:
    key = OrderedKey(start=0, step=1, steps=10**6, digits=3)
    values = np.arange(10**6) / 1000

    assert np.array_equal(key.codes(pa.array(values)), np.arange(1, 10**6 + 1))
    assert key.labels(10**6 - 1, 10**6 + 2).to_pylist() == ["[999.998, 999.999)", "[999.999, 1000)", "above"]


def test_rows_of_every_chunk_have_labels_of_ranges() -> None:
    query = Query(
        name="ages",
        measure=Measure(kind="count"),
        by=(("age", OrderedKey(start=0, step=5, steps=2)), ("ward", ("a", 7))),
    )
    aggregation = Aggregation(
        queries=(query,), timeline=Timeline(start=0, every=10, windows=2), constraint=AtMost(1), owner=None
    )
    leaves = np.arange(24).reshape(1, 3, 8)

    whole = truth_table(leaves, leaves, aggregation, 0, query.publish, 0)
    part = truth_table(leaves[:, :, 3:6], leaves[:, :, 3:6], aggregation, 0, query.publish, 3)

    cells = [(age, ward) for age in ("below", "[0, 5)", "[5, 10)", "above") for ward in ("a", "7")]
    assert list(zip(*(whole[key].to_pylist() for key in ("age", "ward")), strict=True)) == cells * 2
    assert list(zip(*(part[key].to_pylist() for key in ("age", "ward")), strict=True)) == cells[3:6] * 2
