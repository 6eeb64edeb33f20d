"""Estimates from sanitised records as one table: shares of values, of combinations and of elements, and means.

    attribute   names of the attributes, separated by blanks
    value       the value, the element or the column; for combinations their values, with blanks; null for a mean
    kind        share or mean
    estimate, stddev, ci_low, ci_high   unbiased; 95 % intervals (`privacy.sanitised.estimates`)

Shares are of records that have the value, or count as having it because they have no valid one.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.sanitised.attributes import Attribute, Category, Curve, Number, Subset
from privacy.sanitised.estimates import Estimate, element_shares, joint_shares, means, shares
from privacy.sanitised.record import Sanitisation
from transforms.sanitised.columns import SEPARATOR, to_codes

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("attribute", "value", "kind")),
        *((name, pa.float64()) for name in ("estimate", "stddev", "ci_low", "ci_high")),
    ]
)

LARGEST = 1_000_000
"""Most combinations whose shares can be estimated at once."""


def estimated(records: pa.Table, record: Sanitisation, *, separator: str = SEPARATOR) -> pa.Table:
    """Return the estimates of each attribute.

    Args:
        records: Sanitised records.
        record: How they were sanitised.
        separator: Text between the elements of a set.

    Raises:
        ValueError: There are no records.
    """
    return pa.concat_tables([_ESTIMATES[type(one)](records, one, separator) for one in record.attributes])


def joint(records: pa.Table, categories: Sequence[Category]) -> pa.Table:
    """Return the shares of all combinations of some categories' values.

    Raises:
        ValueError: A category is named twice, there are too many combinations or no records, or the shares of a
            response cannot be estimated.
    """
    if len({one.name for one in categories}) < len(categories):
        raise ValueError("a category is named twice; noise is of one sample, and would be taken for two")
    shape = tuple(len(one.values) for one in categories)
    if np.prod(shape, dtype=np.float64) > LARGEST:
        raise ValueError(f"{np.prod(shape, dtype=np.float64):.0f} combinations are more than {LARGEST}; take fewer")
    codes = tuple(to_codes([records[one.name]], one)[:, 0] for one in categories)
    counts = np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)
    found = joint_shares(counts, [one.response.channel() for one in categories])
    values = [" ".join(combination) for combination in product(*(one.values for one in categories))]
    return _table(" ".join(one.name for one in categories), values, "share", found)


def _of_category(records: pa.Table, attribute: Category, _: str) -> pa.Table:
    codes = to_codes([records[attribute.name]], attribute)[:, 0]
    counts = np.bincount(codes, minlength=len(attribute.values))
    try:
        return _table(attribute.name, attribute.values, "share", shares(counts, attribute))
    except ValueError:  # a response without estimates of shares
        if not records.num_rows:
            raise
        return SCHEMA.empty_table()


def _of_set(records: pa.Table, attribute: Subset, separator: str) -> pa.Table:
    found = to_codes([records[attribute.name]], attribute, separator).sum(axis=0)
    return _table(attribute.name, attribute.values, "share", element_shares(found, records.num_rows, attribute))


def _of_grid(records: pa.Table, attribute: Number | Curve, _: str) -> pa.Table:
    numbers = np.stack([pc.cast(records[name], pa.float64()).to_numpy() for name in attribute.columns], 1)
    values = [None] if attribute.estimates is None else attribute.columns
    return _table(attribute.name, values, "mean", means(numbers, attribute.noise_of_each, attribute.grid.step))


_ESTIMATES: Mapping[type[Attribute], Callable[[pa.Table, Any, str], pa.Table]] = {
    Number: _of_grid,
    Curve: _of_grid,
    Category: _of_category,
    Subset: _of_set,
}


def _table(attribute: str, values: Sequence[str | None], kind: str, found: Estimate) -> pa.Table:
    rows = len(values)
    numbers = [pa.array(part.ravel()) for part in (found.value, found.stddev, found.low, found.high)]
    texts = [pa.array([attribute] * rows), pa.array(values, pa.string()), pa.array([kind] * rows)]
    return pa.Table.from_arrays([*texts, *numbers], schema=SCHEMA)
