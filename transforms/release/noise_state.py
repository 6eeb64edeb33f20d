"""State of a chunk's noise between runs: private, the most secret of all files.

It is a Parquet file with one row: for each part and component the carry of its strategy (privacy.strategies.base.Carry)
and, if several windows make a leaf, the sum of the windows of an incomplete leaf. It holds only what later numbers
need. The commit holds its digest, which is checked before the file is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privacy.counted import counted
from privacy.series import Ints
from privacy.strategies.base import Carry, Floats
from transforms.common.parquet_state import from_parquet, list_of, to_parquet

VERSION = "1"
"""Version of the file's form and of the strategies' carries: a change of either needs another version."""

LEAF = "leaf"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNoise:
    """State of one part and component between two runs.

    Attributes:
        carry: Carry of the strategy.
        leaf: Exact sum of windows of an incomplete leaf, int64 [1, cells]; no row if there are no such windows.
        windows: Number of these windows.
    """

    carry: Carry
    leaf: Ints
    windows: int


def state_to_bytes(parts: Sequence[Sequence[HeldNoise]], *, windows: int, plan: str) -> bytes:
    """Return the state of a chunk as a file.

    Args:
        parts: For each part a `HeldNoise` for each component.
        windows: Number of windows that have closed.
        plan: Digest of the plan under which the noise was sampled.
    """
    columns: dict[str, Ints | Floats] = {}
    for part, components in enumerate(parts):
        for component, held in enumerate(components):
            place = f"{part}.{component}"
            columns[f"{place}.{LEAF}"] = held.leaf
            columns |= {f"{place}.carry.{name}": rows for name, rows in held.carry.integers.items()}
            columns |= {f"{place}.carry.{name}": rows for name, rows in held.carry.floats.items()}
    arrays = {name: list_of(rows.ravel()) for name, rows in columns.items()}
    return to_parquet(arrays, metadata=described(windows=windows, plan=plan))


def described(*, windows: int, plan: str) -> dict[bytes, bytes]:
    """Return the metadata that `opened` checks."""
    return {b"version": VERSION.encode(), b"windows": str(windows).encode(), b"plan": plan.encode()}


def opened(payload: bytes, *, windows: int, plan: str) -> pa.Table:
    """Return the columns of a chunk's state.

    Args:
        payload: The file.
        windows: Number of windows after which it was written.
        plan: Digest of the current plan.

    Raises:
        ValueError: The bytes are damaged, the state has another version or number of windows, or its noise was sampled
            under another plan, whose nodes and scales differ.
    """
    table = from_parquet(payload)
    metadata = table.schema.metadata or {}
    if metadata.get(b"version") != VERSION.encode():
        raise ValueError("the state of noise is not of this version of the program")
    if metadata.get(b"windows") != str(windows).encode():
        raise ValueError(f"the state of noise is not that after {counted(windows, 'window')}")
    if metadata.get(b"plan") != plan.encode():
        raise ValueError(
            "the noise so far was sampled under another plan; continue with that plan (privacy.planning.document)"
        )
    return table


def state_from_bytes(
    payload: bytes, leaves: Sequence[int], *, windows: int, columns: Sequence[int], plan: str
) -> list[list[HeldNoise]]:
    """Return the state that `state_to_bytes` has written.

    Args:
        payload: The file.
        leaves: For each part the number of windows in a leaf.
        windows: Number of windows after which it was written.
        columns: For each part the number of columns of its strategy.
        plan: Digest of the current plan.

    Raises:
        ValueError: As `opened`, or the state is incomplete.
    """
    table = opened(payload, windows=windows, plan=plan)
    found: list[dict[int, dict[str, np.ndarray]]] = [{} for _ in leaves]
    try:
        for column in table.column_names:
            part, component, name = column.split(".", 2)
            rows = table[column].combine_chunks().values.to_numpy().reshape(-1, columns[int(part)])
            found[int(part)].setdefault(int(component), {})[name] = rows
        return [
            [_held(components[component], leaf, windows) for component in sorted(components)]
            for components, leaf in zip(found, leaves, strict=True)
        ]
    except (KeyError, IndexError):
        raise ValueError("the state of noise is incomplete") from None


def _held(arrays: dict[str, np.ndarray], leaf: int, windows: int) -> HeldNoise:
    carried = {name.removeprefix("carry."): rows for name, rows in arrays.items() if name != LEAF}
    return HeldNoise(
        carry=Carry(
            windows=windows // leaf,
            integers={name: rows for name, rows in carried.items() if rows.dtype == np.int64},
            floats={name: rows for name, rows in carried.items() if rows.dtype == np.float64},
        ),
        leaf=arrays[LEAF],
        windows=windows % leaf,
    )
