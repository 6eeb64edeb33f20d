"""Our strategies, one window in each step, with levels and without noise; nodes only enter a checksum.

python -m benchmarks.memory.ours NAME CELLS WINDOWS
"""

import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from benchmarks.memory.setting import changes, squares, strategy
from privacy.series import Ints, Series
from privacy.strategies.base import Nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Measurements that a process reports about itself.

    Attributes:
        checksum: the sum of squares of all nodes, in counts.
        seconds: time to make nodes, without imports, the changes and the checksum.
        carries: bytes carried after the initial level, half of the windows and all; empty if all is done at once.
        half: peak memory in bytes until half of the windows.
    """

    checksum: float
    seconds: float
    carries: Sequence[int] = ()
    half: int = 0


def no_noise(nodes: Nodes, *, cells: int) -> Ints:
    return np.zeros((len(nodes.end), cells), dtype=np.int64)


def run(name: str, cells: int, windows: int) -> Told:
    """Step a strategy through all windows, and return the measurements.

    Args:
        name: one of `NAMES`.
        cells: number of cells.
        windows: number of windows.
    """
    chosen, carry = strategy(name, windows), None
    carries: list[int] = []
    checksum, seconds, half = 0.0, 0.0, 0
    for window, leaf in enumerate(changes(name, cells, windows)):
        start = time.perf_counter()
        nodes, _, carry = chosen.step(carry, leaf, series=[Series(kind="level")], sample=partial(no_noise, cells=cells))
        seconds += time.perf_counter() - start
        checksum += squares(nodes, name)
        if window in (0, windows // 2, windows):
            held = [*carry.integers.values(), *carry.floats.values()]
            assert all(rows.base is None for rows in held)  # a view would keep more bytes alive than it has
            carries.append(sum(rows.nbytes for rows in held))
        if window == windows // 2:
            half = peak()
    return Told(checksum=checksum, seconds=seconds, carries=tuple(carries), half=half)


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    print(json.dumps(asdict(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
