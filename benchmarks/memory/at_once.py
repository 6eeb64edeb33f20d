"""Nodes of the measured strategies with plain NumPy, from all changes at once.

    python -m benchmarks.memory.at_once NAME CELLS WINDOWS

Nodes of a tree are differences of running sums, made in place. Nodes of a filter are its matrix [windows, windows]
times the changes.
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
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.tree.tree import Tree


def run(name: str, cells: int, windows: int) -> Told:
    """Make all nodes of a strategy at once, and return the measurements.

    Args:
        name: one of `NAMES`.
        cells: number of cells.
        windows: number of windows.
    """
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
    """Return the initial level, then the complete nodes of each layer, [nodes, cells]."""
    initial_level = leaves[:1].copy()
    leaves[0] = 0
    since = np.cumsum(leaves, axis=0, out=leaves)
    spans = [tree.branching**layer for layer in range(tree.height)]
    return [initial_level, *(np.diff(since[::span], axis=0) for span in spans)]


def filtered(factorised: Factorised, leaves: Ints) -> Floats:
    """Return nodes [leaves, cells] in floating point; the factorisation rounds differently."""
    coefficients = np.concatenate([np.zeros(len(leaves) - 1), factorised.coefficients])
    # Row t holds c_t, ..., c_0, 0, ..., 0: a window of the coefficients, read backwards.
    matrix = np.lib.stride_tricks.sliding_window_view(coefficients, len(leaves))[:, ::-1].copy()
    product: Floats = matrix @ leaves.astype(np.float64)
    return product


if __name__ == "__main__":
    print(json.dumps(asdict(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
