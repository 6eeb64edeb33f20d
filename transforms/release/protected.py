"""Public output of one part of a release for a block, as arrays and as bytes that a runner moves."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privacy.planning.linear_part import LinearPart
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.parquet_state import list_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """Noisy nodes and numbers of some cells and windows, in grid steps.

    Attributes:
        nodes: For each component the nodes that the windows complete, int64 [nodes, columns]; columns are cells, or
            nodes of a strategy over cells.
        sums: For each series and component the numbers that end in the windows, [numbers, cells].
    """

    nodes: list[np.ndarray]
    sums: list[list[np.ndarray]]


def columns_of(part: LinearPart, cells: int) -> int:
    """Return the number of columns of a strategy in time: cells, or nodes of a strategy over them."""
    return cells if part.over is None else part.over.nodes


def protected_to_bytes(parts: Sequence[Protected]) -> bytes:
    """Return one row with a list for each array."""
    columns = {}
    for place, part in enumerate(parts):
        for component, nodes in enumerate(part.nodes):
            columns[f"{place}.nodes.{component}"] = nodes
        for number, sums in enumerate(part.sums):
            for component, values in enumerate(sums):
                columns[f"{place}.{number}.{component}"] = values
    return to_bytes(pa.table({name: list_of(values.ravel()) for name, values in columns.items()}))


def protected_from_bytes(payload: bytes, parts: Sequence[LinearPart], cells: int) -> list[Protected]:
    """Return the output that `protected_to_bytes` has written.

    Args:
        payload: The bytes.
        parts: Parts of the plan.
        cells: Number of cells.
    """
    table = from_bytes(payload)

    def array(name: str, columns: int) -> np.ndarray:
        return table[name].combine_chunks().values.to_numpy(zero_copy_only=False).reshape(-1, columns)

    return [
        Protected(
            nodes=[array(f"{place}.nodes.{c}", columns_of(part, cells)) for c in range(len(part.noise))],
            sums=[[array(f"{place}.{n}.{c}", cells) for c in range(len(part.noise))] for n in range(len(part.series))],
        )
        for place, part in enumerate(parts)
    ]
