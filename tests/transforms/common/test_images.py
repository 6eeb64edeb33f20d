"""Digests of whole states: equal for equal states in any layout, and never changed."""

import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.transforms.writing import UTC, look, parts, write_csv, write_parquet
from transforms.common.batches import Batch
from transforms.common.images import digest, shared

INTEGERS = [pa.int8(), pa.int16(), pa.int64(), pa.uint8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
MIDNIGHT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LISTS = [pa.list_(pa.int64()), pa.large_list(pa.int8()), pa.list_view(pa.float64())]


def alone(values: pa.Array) -> list[int]:
    return digest([("x", values)], np.ones(len(values), dtype=bool)).to_pylist()


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ([0, 1, None, 100], INTEGERS),
        (["", "a", None, "longer than a word of it", "é"], [*TEXTS, pa.dictionary(pa.int8(), pa.string())]),
        ([MIDNIGHT, None], [pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns", "UTC")]),
        ([[1, 2], [2, 1], [], None, [None], [1]], LISTS),
        ([{"a": 1, "b": "x"}, {"a": None, "b": "x"}, None], [pa.struct([("a", kind), ("b", pa.string())])
                                                           for kind in INTEGERS]),
        ([Decimal("1.50"), None, Decimal("1.25")], [pa.decimal128(9, 2), pa.decimal256(40, 2)]),
        ([datetime.date(2026, 1, 1), None], [pa.date32()]),
        ([True, None, False], [pa.bool_()]),
    ],
)  # fmt: skip
def test_a_value_has_one_digest_in_any_layout_and_null_adds_nothing(
    values: list[Any], types: list[pa.DataType]
) -> None:
    first = alone(pa.array(values, types[0]))

    for kind in types:
        array = pa.array(values, kind)
        assert alone(array) == first
        assert alone(array.slice(1)) == first[1:]
    assert len(set(first)) == len(first)
    [nothing] = digest([], np.ones(1, dtype=bool)).to_pylist()
    assert [first[place] for place, value in enumerate(values) if value is None] == [nothing]


def test_a_fractional_float_is_digested_by_its_bits_except_zeros_and_nans() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    told = alone(pa.array([0.5, -0.5, 0.0, -0.0, *nans, np.inf, -np.inf, 2.0**63, 1e300, 2.0**53 + 2]))

    assert told[2] == told[3]
    assert told[4] == told[5]
    assert len(set(told)) == len(told) - 2


def test_a_digest_depends_on_names_and_not_on_the_order_of_columns() -> None:
    a, b, one = pa.array(["x"]), pa.array(["y"]), np.ones(1, dtype=bool)

    forth = digest([("a", a), ("b", b)], one)

    assert forth.equals(digest([("b", b), ("c", pa.nulls(1)), ("a", a)], one))
    assert not forth.equals(digest([("a", b), ("b", a)], one))
    assert digest([("a", a)], ~one).to_pylist() == [0]


def test_many_states_have_different_digests() -> None:
    """A random function would have a collision among these 1.3 million pairs with probability 3e-4."""
    numbers = pa.array([n for n in range(40) for _ in range(40)])
    others = pa.array([str(m) for _ in range(40) for m in range(40)])

    told = digest([("n", numbers), ("m", others)], np.ones(1600, dtype=bool)).to_pylist()

    assert len(set(told)) == 1600


def test_digests_never_change_since_private_state_holds_them() -> None:
    states = [("ward", pa.array(["a", None, "surgery"])), ("n", pa.array([1, -5, None])), ("x", pa.array([0.5, 2, 3]))]

    assert digest(states, np.ones(3, dtype=bool)).to_pylist() == [1004080541, 1165216861, 1631800767]


def test_values_that_arrow_cannot_cast_have_distinct_digests() -> None:
    months = [pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([1, 2, 4])]
    kinds = pa.array([0, 1, 0], pa.int8())
    either = pa.UnionArray.from_sparse(kinds, [pa.array([1.5, 0, 2.5]), pa.array([b"", b"\xff", b""], pa.binary())])

    told = alone(pa.array([*months, months[0]])) + alone(either)

    assert told[0] == told[2]
    assert len(set(told)) == len(told) - 1
    assert told == [3862993166, 1485696824, 3862993166, 3923822442, 63076458, 718122002]  # also permanent


def test_only_columns_that_both_sides_have_once_enter_the_digest() -> None:
    assert shared([["x", "written_at", "ward", "n", "n"], ["ward", "x", "n", "id"]]) == ["ward", "x"]


def told(path: Any, format_: str, **changes: Any) -> list[tuple[int, int]]:
    """Return both digests of each row; no query reads anything."""
    tables = [part.table for part in parts(look(path, format_, **changes)) if isinstance(part, Batch)]
    return [(row["image.before"], row["image.after"]) for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("form", ["csv", "flat", "struct"])
def test_readers_digest_columns_that_no_query_reads(tmp_path: Any, form: str) -> None:
    wards = [None, "a", "b", "a", None]
    rows = [
        ["e", f"2026-01-0{n}T00:00:00Z", before, None, after, after and f"written {n}"]
        for n, (before, after) in enumerate(pairwise(wards), 1)
    ]
    header = ["id", "at", "before_ward", "before_x", "after_ward", "after_batch"]
    path = tmp_path / f"a.{form}"
    if form == "csv":
        found = told(write_csv(path, header, rows), "csv")
    elif form == "flat":
        columns = {name: pa.array(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)}
        columns["at"] = columns["at"].cast(UTC)
        found = told(write_parquet(path, columns), "parquet")
    else:
        states = [[None if row[at] is None else {"ward": row[at]} for row in rows] for at in (2, 4)]
        columns = {
            "id": ["e"] * 4,
            "at": pa.array([row[1] for row in rows]).cast(UTC),
            "before_": states[0],
            "after_": states[1],
        }
        found = told(write_parquet(path, columns), "parquet")

    (none, a), (same_a, b), (same_b, again), (last, gone) = found
    assert none == gone == 0
    assert a == same_a == again == last != b == same_b
