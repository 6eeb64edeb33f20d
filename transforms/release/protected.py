"""What one part of a release makes public of a block, as arrays and as bytes that a runner moves."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privacy.planning.plan import Released
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.parquet_state import list_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """Noisy nodes and numbers of some cells and windows, in grid steps.

    Attributes:
        nodes: for each component [nodes, columns], those that the windows complete; columns are cells, or nodes of a
            strategy over cells.
        sums: for each series and component [numbers, cells], those that end in them.
    """

    nodes: list[np.ndarray]
    sums: list[list[np.ndarray]]


def columns_of(part: Released, cells: int) -> int:
    """What a strategy in time works on: cells, or nodes of a strategy over them."""
    return cells if part.over is None else part.over.nodes


def protected_to_bytes(parts: Sequence[Protected]) -> bytes:
    """One row, a list for each array."""
    columns = {}
    for place, part in enumerate(parts):
        for component, nodes in enumerate(part.nodes):
            columns[f"{place}.nodes.{component}"] = nodes
        for number, sums in enumerate(part.sums):
            for component, values in enumerate(sums):
                columns[f"{place}.{number}.{component}"] = values
    return to_bytes(pa.table({name: list_of(values.ravel()) for name, values in columns.items()}))


def protected_from_bytes(payload: bytes, parts: Sequence[Released], cells: int) -> list[Protected]:
    """What `protected_to_bytes` was given."""
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
