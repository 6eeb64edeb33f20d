"""What a release keeps of a chunk from one run to the next: private, the most secret of all.

A Parquet file with one row: for each part and component the carry of its strategy (privacy.strategies.base.Carry), and
the sum of the windows of a leaf that is not full, where several windows make a leaf. Only what later numbers need is in
it. Its digest stands in the commit, and is checked before anything is read from it.
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
"""Of the file's form and of what strategies carry: a change of either needs another."""

LEAF = "leaf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Between two runs, of one part and component.

    Attributes:
        carry: the strategy's.
        leaf: [1, cells], the exact sum of windows that make no whole leaf yet; no row if there are none.
        windows: how many these are.
    """

    carry: Carry
    leaf: Ints
    windows: int


def state_to_bytes(parts: Sequence[Sequence[Held]], *, windows: int, plan: str) -> bytes:
    """The state of a chunk after so many windows, for each part a `Held` for each component.

    Args:
        plan: the digest of the plan that its noise is of.
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
    """The metadata that `opened` asks for."""
    return {b"version": VERSION.encode(), b"windows": str(windows).encode(), b"plan": plan.encode()}


def opened(payload: bytes, *, windows: int, plan: str) -> pa.Table:
    """The columns of a chunk's state.

    Raises:
        ValueError: damaged bytes, a state of another version or after other windows, or noise that was sampled under
            another plan, whose nodes and scales are not those of this one.
    """
    table = from_parquet(payload)
    metadata = table.schema.metadata or {}
    if metadata.get(b"version") != VERSION.encode():
        raise ValueError("the state of noise is not of this version of the program")
    if metadata.get(b"windows") != str(windows).encode():
        raise ValueError(f"the state of noise is not that after {counted(windows, 'window')}")
    if metadata.get(b"plan") != plan.encode():
        raise ValueError(
            "the noise so far was sampled under another plan; go on with that one (privacy.planning.document)"
        )
    return table


def state_from_bytes(
    payload: bytes, leaves: Sequence[int], *, windows: int, columns: Sequence[int], plan: str
) -> list[list[Held]]:
    """What `state_to_bytes` was given.

    Args:
        leaves: for each part, how many windows make a leaf.
        windows: after how many the state must be.
        columns: for each part, on how many its strategy works.
        plan: the digest of the plan that goes on.

    Raises:
        ValueError: as `opened`, or a state that is not whole.
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
        raise ValueError("the state of noise is not whole") from None


def _held(arrays: dict[str, np.ndarray], leaf: int, windows: int) -> Held:
    carried = {name.removeprefix("carry."): rows for name, rows in arrays.items() if name != LEAF}
    return Held(
        carry=Carry(
            windows=windows // leaf,
            integers={name: rows for name, rows in carried.items() if rows.dtype == np.int64},
            floats={name: rows for name, rows in carried.items() if rows.dtype == np.float64},
        ),
        leaf=arrays[LEAF],
        windows=windows % leaf,
    )
