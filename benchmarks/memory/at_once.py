"""The same nodes with plain NumPy from all changes at once.

    python -m benchmarks.memory.at_once NAME CELLS WINDOWS

Of a tree: differences of running sums, made in place. Of a filter: its matrix, [windows, windows], times the changes.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from benchmarks.memory.ours import Told
from benchmarks.memory.setting import changes, squares, strategy
from privacy.series import Ints
from privacy.strategies.base import Floats
from privacy.strategies.factorised import Factorised
from privacy.strategies.tree import Tree


def run(name: str, cells: int, windows: int) -> Told:
    chosen = strategy(name, windows)
    leaves = np.empty((1 + windows, cells), dtype=np.int64)
    for row, leaf in zip(leaves, changes(name, cells, windows), strict=True):
        row[:] = leaf[0]
    start = time.perf_counter()
    parts: Sequence[Ints | Floats]
    parts = [filtered(chosen, leaves)] if isinstance(chosen, Factorised) else layers(chosen, leaves)
    seconds = time.perf_counter() - start
    return Told(checksum=sum(squares(part, name) for part in parts), seconds=seconds)


def layers(tree: Tree, leaves: Ints) -> list[Ints]:
    """The initial level, then the complete nodes of each layer, [nodes, cells]."""
    initial_level = leaves[:1].copy()
    leaves[0] = 0
    since = np.cumsum(leaves, axis=0, out=leaves)
    spans = [tree.branching**layer for layer in range(tree.height)]
    return [initial_level, *(np.diff(since[::span], axis=0) for span in spans)]


def filtered(factorised: Factorised, leaves: Ints) -> Floats:
    """[leaves, cells] in floating point, which rounds otherwise than the factorisation does."""
    coefficients = np.concatenate([np.zeros(len(leaves) - 1), factorised.coefficients])
    # Row t holds c_t, ..., c_0, 0, ..., 0: a window of the coefficients, read backwards.
    matrix = np.lib.stride_tricks.sliding_window_view(coefficients, len(leaves))[:, ::-1].copy()
    product: Floats = matrix @ leaves.astype(np.float64)
    return product


if __name__ == "__main__":
    print(json.dumps(asdict(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
