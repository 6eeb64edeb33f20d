"""Conversion of record columns to codes, and of sanitised codes to columns (`privacy.sanitised.attributes`).

The content of a column decides only the code: a null, an invalid number and an unlisted value all have one. So no
record is left out because of its content, and none is an error.

A set is a list, or a text of elements with a separator between them; blanks around an element are ignored. The output
is a text, in the order of the list of elements.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.noise.odds import Integers
from privacy.sanitised.attributes import Attribute, Category, Curve, Number, Subset
from privacy.sanitised.record import Sanitisation
from transforms.common.kinds import decode, is_text, one_chunk, plain, to_key, to_kind, to_mask

SEPARATOR = ";"

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_BYTES = (pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)


def source_columns(record: Sanitisation) -> list[str]:
    """Return the columns that are read, which are also those of the output.

    >>> from privacy.sanitised.attributes import Category
    >>> source_columns(Sanitisation(attributes=(Category.planned("ward", ["a", "b"], missing="a", epsilon=1.0),)))
    ['ward']
    """
    return [column for attribute in record.attributes for column in attribute.columns]


def to_codes(columns: Sequence[pa.Array], attribute: Attribute, separator: str = SEPARATOR) -> Integers:
    """Return the codes of records, int64 [records, width].

    Args:
        columns: Values of `attribute.columns`.
        attribute: The attribute.
        separator: Text between the elements of a set that is a text.
    """
    return CONVERSIONS[type(attribute)].codes(columns, attribute, separator)


def to_columns(codes: Integers, attribute: Attribute, separator: str = SEPARATOR) -> dict[str, pa.Array]:
    """Return sanitised codes as columns with the names of `attribute.columns`.

    Args:
        codes: Sanitised codes, int64 [records, width].
        attribute: The attribute.
        separator: Text between the elements of a set.
    """
    return CONVERSIONS[type(attribute)].columns(codes, attribute, separator)


def _step_codes(columns: Sequence[pa.Array], attribute: Number | Curve, _: str) -> Integers:
    numbers = [to_kind(_scalars(column), "float64")[0] for column in columns]
    filled = [pc.fill_null(values, float("nan")).to_numpy(zero_copy_only=False) for values in numbers]
    return np.stack([attribute.grid.codes(values, missing=attribute.missing) for values in filled], axis=1)


def _step_columns(codes: Integers, attribute: Number | Curve, _: str) -> dict[str, pa.Array]:
    values = attribute.grid.values(codes)
    return {name: pa.array(values[:, place]) for place, name in enumerate(attribute.columns)}


def _value_codes(columns: Sequence[pa.Array], attribute: Category, _: str) -> Integers:
    places = pc.index_in(_texts(columns[0]), value_set=pa.array(attribute.values, pa.string()))
    return _integers(pc.fill_null(places, attribute.missing))[:, None]


def _value_columns(codes: Integers, attribute: Category, _: str) -> dict[str, pa.Array]:
    return {attribute.name: pa.array(attribute.values, pa.string()).take(pa.array(codes[:, 0]))}


def _set_codes(columns: Sequence[pa.Array], attribute: Subset, separator: str) -> Integers:
    return _memberships(columns[0], attribute.values, separator)


def _set_columns(codes: Integers, attribute: Subset, separator: str) -> dict[str, pa.Array]:
    ends = np.append(0, np.cumsum(codes.sum(axis=1)))
    elements = pa.array(attribute.values, pa.string()).take(pa.array(np.nonzero(codes)[1]))
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), elements)
    return {attribute.name: pc.binary_join(lists, separator)}


@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversion of attributes of one kind, as `to_codes` and `to_columns`; codes are kept as type `kept`."""

    codes: Callable[[Sequence[pa.Array], Any, str], Integers]
    columns: Callable[[Integers, Any, str], dict[str, pa.Array]]
    kept: pa.DataType = field(default_factory=pa.int64)


CONVERSIONS: Mapping[type[Attribute], Conversion] = {
    Number: Conversion(_step_codes, _step_columns),
    Curve: Conversion(_step_codes, _step_columns),
    Category: Conversion(_value_codes, _value_columns),
    Subset: Conversion(_set_codes, _set_columns, kept=pa.int8()),
}


def _texts(column: pa.Array) -> pa.Array:
    """Return values as texts; whole floats like integers, as in keys."""
    return to_key(_scalars(column), "string")[0]


def _scalars(column: pa.Array) -> pa.Array:
    """Return values without a dictionary, and bytes as text; times, lists and objects become null."""
    values = plain(one_chunk(column))
    if any(is_bytes(values.type) for is_bytes in _BYTES):
        values = values.cast(pa.binary())
    values, _ = decode(values)
    usable = pa.types.is_primitive(values.type) and not pa.types.is_temporal(values.type)
    return values if usable or is_text(values.type) or pa.types.is_decimal(values.type) else pa.nulls(len(values))


def _memberships(column: pa.Array, elements: Sequence[str], separator: str) -> Integers:
    column = one_chunk(column)
    if not any(is_list(column.type) for is_list in _LISTS):
        column = pc.split_pattern(_texts(column), separator)
    inside = pc.utf8_trim_whitespace(_texts(pc.list_flatten(column)))
    places = pc.index_in(inside, value_set=pa.array(elements, pa.string()))
    known = places.is_valid()
    codes = np.zeros((len(column), len(elements)), dtype=np.int64)
    sizes = _integers(
        pc.fill_null(pc.list_value_length(column), 0)
    )  # a null list can have elements below it, which do not count
    of_record = np.repeat(np.arange(len(column)), sizes)
    codes[of_record[to_mask(known)], _integers(places.filter(known))] = 1
    return codes


def _integers(values: pa.Array) -> Integers:
    return values.cast(pa.int64()).to_numpy(zero_copy_only=False)
