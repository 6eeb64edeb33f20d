"""Keys whose values are listed: a cell for each value, and for a row that has no listed value the cell `other`, if any.

Values are compared as text, unless all of them and the column are whole numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.kinds import one_chunk, to_key, unmasked, valid

Scalar = str | int | bool

OTHER = "other"
"""Name of the cell for every value that is not listed, including null."""


@dataclass(frozen=True, slots=True)
class ListedKey:
    """Cells of one key whose values are listed.

    Attributes:
        cells: The value of each cell.

    >>> wards = ListedKey(("a", "other"))
    >>> len(wards), wards.codes(pa.array(["a", "x", None])).tolist()
    (2, [0, 1, 1])
    """

    cells: tuple[Scalar, ...]

    def __len__(self) -> int:
        """Number of cells."""
        return len(self.cells)

    def codes(self, column: pa.ChunkedArray | pa.Array) -> np.ndarray:
        """Return the cell of each value, int32 [n]: the place in the list, that of `other` for other values, or -1."""
        listed = [value for value in self.cells if value != OTHER]
        places = [place for place, value in enumerate(self.cells) if value != OTHER]
        return places_in(column, listed, places, self.cells.index(OTHER) if OTHER in self.cells else -1)

    def published(self, first: int, last: int, kind: pa.DataType) -> pa.Array:
        """Return the values of cells `first` to `last - 1` as published: whole numbers, or texts.

        Args:
            first: First cell.
            last: One past the last cell.
            kind: Type of the published column.
        """
        values = self.cells[first:last]
        return pa.array(values if pa.types.is_integer(kind) else [as_text(value) for value in values], kind)


def places_in(
    column: pa.ChunkedArray | pa.Array, listed: Sequence[Scalar], codes: Sequence[int], unlisted: int
) -> np.ndarray:
    """Return a code for each value of a column, int32 [n]; a dictionary is mapped once.

    Args:
        column: The values.
        listed: Values that have a code.
        codes: Their codes.
        unlisted: Code of all other values and of null.
    """
    column = one_chunk(column)
    if pa.types.is_dictionary(column.type):
        of_dictionary = np.append(places_in(column.dictionary, listed, codes, unlisted), np.int32(unlisted))
        code = of_dictionary.take(unmasked(column.indices), mode="clip")
        return (code - unlisted) * valid(column) + unlisted if column.null_count else code
    if pa.types.is_integer(column.type) and all(type(value) is int for value in listed):
        found = pc.index_in(column.cast(pa.int64()), value_set=pa.array(listed, type=pa.int64()))
    else:
        wanted = pa.array([as_text(value) for value in listed], type=pa.string())
        found = pc.index_in(to_key(column, "string")[0], value_set=wanted)
    return np.array([*codes, unlisted], dtype=np.int32)[found.fill_null(-1).to_numpy(zero_copy_only=False)]


def as_text(value: Scalar) -> str:
    """Return a value as text, as columns of text have it.

    >>> as_text(True), as_text(7)
    ('true', '7')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
