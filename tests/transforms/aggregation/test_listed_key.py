import pyarrow as pa
import pytest

from transforms.aggregation.listed_key import ListedKey


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (pa.array(["a", "other", "z", None]), ("a", "other"), [0, 1, 1, 1]),
        (pa.array(["a", "b", "z", None]), ("b", "a"), [1, 0, -1, -1]),
        (pa.array(["a", "b"]), ("other",), [0, 0]),
        (pa.array(["a", "z"]), ("other", "a"), [1, 0]),
        (pa.array([1, 2, None]), (2, 1), [1, 0, -1]),
        (pa.array([1, 2, None]), (2, "other"), [1, 0, 1]),
        (pa.array([True, False, None]), (False, True), [1, 0, -1]),
        (pa.array(["1", "2"]), (1,), [0, -1]),
        (pa.array([], pa.string()), ("a",), []),
        (pa.array([], pa.string()).dictionary_encode(), ("a",), []),
        (pa.array([None, None], pa.string()).dictionary_encode(), ("a",), [-1, -1]),
    ],
    ids=str,
)
def test_a_cell_is_the_place_in_the_list(column: pa.Array, values: tuple[str], expected: list[int]) -> None:
    assert ListedKey(values).codes(column).tolist() == expected


def test_whole_numbers_are_published_as_numbers_only_if_the_column_has_them() -> None:
    key = ListedKey((7, 8, 9))

    assert key.published(1, 3, pa.int64()).to_pylist() == [8, 9]
    assert key.published(0, 2, pa.string()).to_pylist() == ["7", "8"]
    assert ListedKey((True, "other")).published(0, 2, pa.string()).to_pylist() == ["true", "other"]
