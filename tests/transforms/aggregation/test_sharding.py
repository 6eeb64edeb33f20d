"""Routing by unit: the hash never changes, all rows of a unit are in one shard, and no row is lost."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.aggregation.sharding import ShardByUnit, shard_table
from transforms.common.hashing import unit_hash
from transforms.common.ipc import from_bytes, to_bytes

PINNED_TEXTS = {
    "": 0xA706DD2F4D197E6F,
    "a": 0xC1E5E0204F6DC8C7,
    "stay-7": 0xA20BE97425C466BE,
    "12345678": 0xF45ECC6817441404,
    "123456789": 0x487BCDA96DEB1EED,
    "Zoë": 0x9C3A05C4C85CC492,
    "x" * 40: 0x299B8D199A8974F0,
}
PINNED_NUMBERS = {
    0: 0xE220A8397B1DCDAF,  # the first output of splitmix64 with seed 0
    1: 0x910A2DEC89025CC1,
    -1: 0xE4D971771B652C20,
    2**63 - 1: 0x2A67D7552E039EA7,
}

TEXTS = st.text(max_size=20) | st.text(alphabet="ab\0é", max_size=3)
UNITS = st.lists(TEXTS, max_size=40) | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40)


def splitmix(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def slow_hash(key: str) -> int:
    """Return the hash by its definition: the length, then at least one word of eight bytes, least significant first."""
    content = key.encode()
    result = len(content)
    for begin in range(0, max(1, len(content)), 8):
        result = splitmix(result ^ int.from_bytes(content[begin : begin + 8], "little"))
    return splitmix(result)


def test_hashes_of_texts_never_change() -> None:
    """Carried state is in the shards that they select."""
    assert unit_hash(pa.array(list(PINNED_TEXTS))).tolist() == list(PINNED_TEXTS.values())


def test_hashes_of_numbers_never_change() -> None:
    assert unit_hash(pa.array(list(PINNED_NUMBERS))).tolist() == list(PINNED_NUMBERS.values())


@given(st.lists(TEXTS | st.text(min_size=30, max_size=60), max_size=20))
def test_the_hash_of_a_text_depends_only_on_its_bytes(keys: list[str]) -> None:
    assert unit_hash(pa.array(keys, pa.string())).tolist() == [slow_hash(key) for key in keys]


LAYOUTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("kind", LAYOUTS, ids=str)
@given(keys=st.lists(TEXTS, min_size=2, max_size=20), data=st.data())
def test_the_hash_does_not_depend_on_layout_or_slices(kind: pa.DataType, keys: list[str], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(keys)))
    end = data.draw(st.integers(begin, len(keys)))

    hashes = unit_hash(pa.array(keys).cast(kind).slice(begin, end - begin))

    assert hashes.tolist() == unit_hash(pa.array(keys)).tolist()[begin:end]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
def test_a_number_is_hashed_alike_in_every_width(kind: pa.DataType) -> None:
    numbers = [-128, -1, 0, 1, 127]

    assert unit_hash(pa.array(numbers, kind)).tolist() == unit_hash(pa.array(numbers, pa.int64())).tolist()


@pytest.mark.parametrize("column", ["unit", "entry"])
@given(units=UNITS, shards=st.integers(1, 9), cut=st.integers(0, 40))
def test_no_row_is_lost_and_each_unit_has_one_shard(column: str, units: list[object], shards: int, cut: int) -> None:
    rows = pa.table(
        {column: units, "row": np.arange(len(units)), "time": np.arange(len(units)) * 10**15 - 10**16}
        | ({"entry": [f"e{row}" for row in range(len(units))]} if column == "unit" else {})
    )
    parts = [rows.slice(0, cut), rows.slice(cut)]
    shard_of: dict[object, set[int]] = {}
    found = []

    for part in parts:
        for shard, payload in shard_table(part, shards=shards):
            assert 0 <= shard < shards
            table = from_bytes(payload)
            assert table.num_rows > 0
            found += table.to_pylist()
            for unit in table[column].to_pylist():
                shard_of.setdefault(unit, set()).add(shard)

    assert sorted(found, key=lambda row: row["row"]) == rows.to_pylist()
    assert all(len(where) == 1 for where in shard_of.values())


def test_units_are_spread_evenly() -> None:
    """By Bernstein's inequality an even hash fails this for less than one in a million sets of keys."""
    units, shards, off = 64_000, 64, 220
    false_alarm = 2 * shards * np.exp(-off * off / (2 * units / shards + 2 * off / 3))
    keys = pa.array([f"stay-{number:08}" for number in range(units)])

    counts = np.bincount((unit_hash(keys) % np.uint64(shards)).astype(int), minlength=shards)

    assert false_alarm < 1e-6
    assert np.abs(counts - units // shards).max() < off


def test_a_slice_is_encoded_without_the_rest_of_its_table() -> None:
    rows = pa.table({"entry": [f"{number}" * 50 for number in range(10_000)]})

    assert len(to_bytes(rows.slice(5, 2))) < 2_000
    assert from_bytes(to_bytes(rows.slice(5, 2))).equals(rows.slice(5, 2))


@pytest.mark.slow
def test_more_than_65536_shards_keep_units_together() -> None:
    """A unit in two shards would have its contribution bound twice."""
    shards = 2**17
    units = [f"u{i}" for i in range(2_000)]
    where: dict[str, set[int]] = {unit: set() for unit in units}
    for rows in (units, units[::-1]):
        table = pa.table({"entry": rows, "time": pa.array(range(len(rows)), pa.int64())})
        for shard, part in shard_table(table, shards=shards):
            for unit in from_bytes(part)["entry"].to_pylist():
                where[unit].add(shard)

    expected = unit_hash(pa.array(units)) % np.uint64(shards)
    assert where == {unit: {int(shard)} for unit, shard in zip(units, expected, strict=True)}


def test_zero_shards_are_refused() -> None:
    with pytest.raises(ValueError, match="shards: expected at least 1, not 0"):
        ShardByUnit(shards=0)
