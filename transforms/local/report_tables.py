"""Reports as Arrow tables, and which rows of a table are none. Everything here has been randomised, and is public."""

import numpy as np
import pyarrow as pa

from privacy.local.client import Reports
from privacy.local.design import Design
from privacy.local.signs import Signs

SCHEMA = pa.schema(
    [
        ("person", pa.int64()),
        ("window", pa.int32()),
        ("layer", pa.uint8()),
        ("symbol", pa.uint32()),
        ("sign", pa.int8()),
    ]
)
"""Person and window are numbers from 0; the rest as in `privacy.local.client.Reports`."""

WIDE = pa.schema([(name, pa.int64()) for name in SCHEMA.names])
"""Of rows that no device sends, which fit in no narrower type."""


def table_of(reports: Reports, *, window: int, first: int = 0) -> pa.Table:
    """The reports of a window.

    Args:
        first: the number of the first of the people.
    """
    columns = [
        reports.person + first,
        np.full(len(reports.person), window, dtype=np.int32),
        reports.layer,
        reports.symbol,
        reports.sign,
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)


def usable(design: Design, table: pa.Table, *, people: int) -> np.ndarray:
    """Whether each row is a report that some device of the release could have sent."""
    person, window, layer, symbol, sign = (_numbers(table, name) for name in SCHEMA.names)
    fits = (person >= 0) & (person < people) & (window >= 0) & (window < design.windows)
    fits &= (layer >= 0) & (layer < len(design.layers))
    known = np.where(fits, layer, 0)
    spans = np.array([each.span for each in design.layers])
    limits, signed = [], []
    for each in design.layers:
        signed.append(isinstance(each.randomiser, Signs))
        limits.append(design.basis.questions if isinstance(each.randomiser, Signs) else each.randomiser.count)
    fits &= (window + 1) % spans[known] == 0
    fits &= (symbol >= 0) & (symbol < np.array(limits)[known])
    return fits & ((sign == 1) | ((sign == -1) & np.array(signed)[known]))


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    """As int64, null as -1, which fits nowhere but in `sign`: there 0."""
    column = table[name]
    if column.null_count:
        column = column.fill_null(0) if name == "sign" else column.cast(pa.int64()).fill_null(-1)
    return column.to_numpy().astype(np.int64, copy=False)
