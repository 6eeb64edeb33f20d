"""Keys numbered by sorting: one code for each key, even for texts that were made to share a hash."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.aggregation.test_sharding import TEXTS, UNITS, splitmix
from transforms.common.hashing import unit_hash, words_of_one_length
from transforms.common.keys import _MULTIPLIER, _mixed, number, sort, take


@given(units=UNITS, cut=st.integers(0, 10))
def test_rows_share_a_code_if_and_only_if_they_share_a_key(units: list[object], cut: int) -> None:
    column = pa.array(units, pa.int64() if units and isinstance(units[0], int) else pa.string())[cut:]

    codes, keys = number(column)

    assert keys.take(codes).equals(column)
    assert sorted(keys.all().to_pylist(), key=str) == sorted(set(column.to_pylist()), key=str)


def test_texts_with_one_hash_are_two_keys() -> None:
    one, other = colliding()
    column = pa.array([one, other, one, "another", other])
    assert len(set(unit_hash(column).tolist())) == 2

    codes, keys = number(column)

    assert keys.take(codes).equals(column)
    assert len(keys) == 3


def test_texts_of_one_length_whose_words_mix_to_one_hash_are_two_keys() -> None:
    chance, ascii_, back = random.Random(), 0x7F7F7F7F7F7F7F7F, pow(int(_MULTIPLIER), -1, 2**64)
    one = [chance.getrandbits(64) & ascii_ for _ in range(2)]
    while True:
        first = chance.getrandbits(64) & ascii_
        mixed = int(_mixed([np.array([word], np.uint64) for word in one], 1)[0])
        second = (mixed * back - first * int(_MULTIPLIER)) % 2**64
        if first != one[0] and second == second & ascii_:
            break
    texts = [b"".join(word.to_bytes(8, "little") for word in words).decode() for words in (one, (first, second))]
    column = pa.array([texts[0], texts[1], texts[0], "of sixteen bytes", texts[1]])
    assert len(set(_mixed(words_of_one_length(column) or [], 5).tolist())) == 2

    codes, keys = number(column)

    assert keys.take(codes).equals(column)
    assert len(keys) == 3


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16, 17, 24, 25])
def test_every_byte_of_texts_of_one_length_tells_keys_apart(length: int) -> None:
    texts = ["-" * length] + ["-" * place + "+" + "-" * (length - place - 1) for place in range(length)]
    column = pa.array(["x", *texts, *texts[::-1], "y"])[1:-1]  # beyond its ends are other texts

    codes, keys = number(column)

    assert keys.take(codes).equals(column)
    assert len(keys) == length + 1


def colliding() -> tuple[str, str]:
    """Return two texts of sixteen letters with one hash: the second word of one compensates for the first."""
    chance = random.Random()

    def word() -> int:
        return int.from_bytes(bytes(chance.choices(range(128), k=8)), "little")

    one = word(), word()
    while True:
        first = word()
        second = splitmix(16 ^ first) ^ splitmix(16 ^ one[0]) ^ one[1]
        if first != one[0] and second & 0x8080808080808080 == 0:
            told = [b"".join(w.to_bytes(8, "little") for w in words).decode() for words in (one, (first, second))]
            return told[0], told[1]


@given(
    words=st.lists(st.sampled_from([0, 1, 2**16, 2**40 + 1, 2**64 - 1]) | st.integers(0, 2**64 - 1), max_size=30),
    shift=st.sampled_from([0, 30, 60]),
)
def test_equal_words_keep_their_order(words: list[int], shift: int) -> None:
    column = np.array(words, dtype=np.uint64) >> np.uint64(shift)

    assert sort(column).tolist() == np.argsort(column, kind="stable").tolist()


def test_long_words_that_differ_in_their_lowest_bits_are_in_order() -> None:
    words = np.array([2**63 + 3, 5, 2**63 + 1, 7, 2**63 + 2, 2**63 + 1, 5], dtype=np.uint64)

    assert sort(words).tolist() == [1, 6, 3, 2, 5, 4, 0]


@given(texts=st.lists(TEXTS, min_size=1, max_size=9) | st.lists(st.sampled_from(["ab", "cd", "é"])), data=st.data())
def test_rows_with_texts_of_any_length_are_taken(texts: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(texts)))
    column = pa.array(texts, pa.string())[cut:]
    rows = np.array(data.draw(st.lists(st.integers(0, len(column) - 1))) if len(column) else [], dtype=np.int64)

    assert take(column, rows).equals(column.take(pa.array(rows)))
