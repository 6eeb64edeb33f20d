"""Reports as Arrow tables, and tests of rows. Reports are randomised, and public."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.local.client import Reports
from privacy.local.design import Design
from privacy.local.signatures import signatures
from transforms.common.kinds import one_chunk, to_mask

SIGNATURE = "signature"
"""Optional column, as in `privacy.local.signatures`."""

SCHEMA = pa.schema(
    [
        ("person", pa.int64()),
        ("window", pa.int32()),
        ("layer", pa.uint8()),
        ("symbol", pa.uint32()),
        ("sign", pa.int8()),
        ("design", pa.string()),
    ]
)
"""Columns of reports. Person and window are numbers from 0; the others as in `privacy.local.client.Reports`."""

NUMBERS = SCHEMA.names[:-1]


def table_of(reports: Reports, *, window: int, first: int = 0) -> pa.Table:
    """Return the reports of a window as a table.

    Args:
        reports: The reports.
        window: Number of the window.
        first: Number of the first of the people.
    """
    rows = len(reports.person)
    columns = [
        reports.person + first,
        np.full(rows, window, dtype=np.int32),
        reports.layer,
        reports.symbol,
        reports.sign,
        pa.repeat(reports.design, rows),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)


def usable(design: Design, table: pa.Table, *, people: int) -> np.ndarray:
    """Return whether each row is a report that some device of the release could have sent, bool [rows].

    Args:
        design: Design of the survey.
        table: Rows.
        people: Number of people.
    """
    person, window, layer, symbol, sign = (_numbers(table, name) for name in NUMBERS)
    fits = (person >= 0) & (person < people) & (window >= 0) & (window < design.windows)
    fits &= (layer >= 0) & (layer < len(design.layers))
    known = np.where(fits, layer, 0)
    spans = np.array([each.span for each in design.layers])
    limits = [each.randomiser.values(design.basis) for each in design.layers]
    signed = [each.randomiser.signed for each in design.layers]
    fits &= (window + 1) % spans[known] == 0
    fits &= (symbol >= 0) & (symbol < np.array(limits)[known])
    return fits & ((sign == 1) | ((sign == -1) & np.array(signed)[known]))


def authentic(secret: bytes, design: Design, table: pa.Table) -> np.ndarray:
    """Return whether each row has the signature of its person's device, bool [rows].

    Args:
        secret: The collector's secret.
        design: Design of the survey.
        table: Rows, all of them usable.
    """
    expected = signatures(secret, design, *(_numbers(table, name) for name in NUMBERS))
    found = table[SIGNATURE].cast(pa.string())
    return to_mask(pc.fill_null(pc.equal(found, pa.array(expected, pa.string())), False))


def of_design(table: pa.Table, mark: str) -> np.ndarray:
    """Return whether each row has the mark of a design, or no mark, bool [rows]."""
    texts = one_chunk(table["design"].cast(pa.dictionary(pa.int32(), pa.string())))
    return to_mask(pc.fill_null(pc.equal(texts.dictionary, mark).take(texts.indices), True))


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    """Return a column as int64, with null as -1, which is invalid in every column except `sign`: there as 0."""
    column = one_chunk(table[name])
    if column.null_count:
        column = column.fill_null(0) if name == "sign" else column.cast(pa.int64()).fill_null(-1)
    return column.to_numpy().astype(np.int64, copy=False)
