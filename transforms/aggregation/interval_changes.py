"""The changes of one shard's intervals: their begins, and then their ends.

in    pa.Table      projected rows of one shard, with `until`
out   pa.Table      twice as many rows at most, without `until`
      Codes         their units and chains, which are encoded once for a begin and its end
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from transforms.aggregation.chains import Codes, encode
from transforms.aggregation.projection import nothing
from transforms.common.intervals import UNTIL, split_intervals


def changes_of(rows: pa.Table) -> tuple[pa.Table, Codes | None]:
    """Return the changes of projected rows, with their codes; rows that are no intervals are changes themselves."""
    if UNTIL not in rows.column_names:
        return rows, None
    begins, ends, ended = split_intervals(rows, nothing)
    codes = encode(begins, None)
    unit, chain = (np.concatenate([each, each[ended]]) for each in (codes.unit, codes.chain))
    return pa.concat_tables([begins, ends]), replace(codes, unit=unit, chain=chain)
