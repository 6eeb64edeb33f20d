"""What is kept of a query that is published adaptively from one run to the next: exact levels, the most secret of all.

A Parquet file with one row, of the form and under the name that other chunks' states have (noise_state): the exact
level, what was published last (or its sketch, or groups), and the rest of the carry as JSON. It is committed with what
was decided: whoever goes on, goes on from decisions that were published, and from no others.
"""

import json

import numpy as np
import pyarrow as pa

from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.grouping import unpacked
from privacy.adaptive.sketch import Over, read
from privacy.codec import Codec
from privacy.series import Ints
from transforms.common.parquet_state import list_of, to_parquet
from transforms.release.adaptive_levels import RunningLevel
from transforms.release.noise_state import described, opened


def level_to_bytes(level: Ints, carry: AdaptiveCarry, *, plan: str) -> bytes:
    """The state after the carry's windows.

    Args:
        plan: the digest of the plan that decisions and noise are of.
    """
    columns = {
        "level": list_of(level),
        "published": list_of(carry.published),
        "carry": pa.array([json.dumps(Codec().write(carry))]),
    }
    return to_parquet(columns, metadata=described(windows=carry.windows, plan=plan))


def level_from_bytes(
    payload: bytes, *, windows: int, cells: int, plan: str, over: Over | None = None, grouped: bool = False
) -> RunningLevel:
    """What `level_to_bytes` was given.

    Args:
        windows: after how many the state must be.
        plan: the digest of the plan that goes on.
        over: what samples are made with; None: each cell has noise of its own.
        grouped: whether cells are smoothed over groups of windows.

    Raises:
        ValueError: damaged bytes, a state of another version or after other windows, or of another plan.
    """
    table = opened(payload, windows=windows, plan=plan)

    def array(name: str) -> Ints:
        values: Ints = table[name].combine_chunks().values.to_numpy()
        return values

    try:
        level, published, document = array("level"), array("published"), json.loads(table["carry"][0].as_py())
    except KeyError:
        raise _not_whole() from None
    carry: AdaptiveCarry = Codec().read(AdaptiveCarry, document, "carry", published=published)
    if level.dtype != np.int64 or (len(level), carry.windows) != (cells, windows):
        raise _not_whole()
    if grouped:
        unpacked(published, cells)
    elif over is not None:
        read(over, published)
    elif len(published) != cells:
        raise _not_whole()
    return RunningLevel(level=level, carry=carry)


def _not_whole() -> ValueError:
    return ValueError("the state of levels is not whole")
