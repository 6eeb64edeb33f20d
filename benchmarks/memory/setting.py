"""The measured strategies, and their input."""

from collections.abc import Iterator

import numpy as np

from privacy.series import Ints
from privacy.strategies.base import Floats
from privacy.strategies.factorised.exponential_kernel import Exponentials
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.fitting import dyadic, zolotarev
from privacy.strategies.tree.tree import Tree

NAMES = ("tree-16-3", "tree-2-10", "arma")
"""Two trees without a horizon, by branching and height, and a Toeplitz factorisation."""

FINE = 2**24
"""Grid steps in a count of one for Gaussian noise (privacy.measure.STEPS)."""


def strategy(name: str, windows: int) -> Tree | Factorised:
    """Return one of `NAMES`; the factorisation's poles are for four changes within its horizon."""
    if name == "arma":
        return Factorised(
            kernel=Exponentials(poles=dyadic(*zolotarev(4 / windows, 1 / windows, 5))),
            windows=windows,
            initial_level=True,
        )
    branching, height = (int(number) for number in name.split("-")[1:])
    return Tree(branching=branching, height=height, refine="none", windows=None, initial_level=True)


def steps(name: str) -> int:
    """Return the number of grid steps in a count of one."""
    return FINE if name == "arma" else 1


def changes(name: str, cells: int, windows: int) -> Iterator[Ints]:
    """Yield the initial level, then each window's changes: [1, cells] in grid steps, the same in every process.

    Args:
        name: one of `NAMES`.
        cells: number of cells.
        windows: number of windows.
    """
    rng = np.random.default_rng(2024)
    for _ in range(1 + windows):
        yield rng.integers(-4, 4, (1, cells), dtype=np.int8, endpoint=True).astype(np.int64) * steps(name)


def squares(nodes: Ints | Floats, name: str) -> float:
    """Return the sum of squared nodes, in counts: a checksum that takes one row at a time to save memory.

    Args:
        nodes: in grid steps, [nodes, cells].
        name: one of `NAMES`.
    """
    return sum(float(np.square(row / steps(name)).sum()) for row in nodes)
