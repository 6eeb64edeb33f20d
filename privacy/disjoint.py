"""The disjoint strategy (DCR): every window is a node of its own, and so is the level at the start.

A level is then the opening node plus all changes so far, so its noise grows with the number of windows; a change
is one node. The strategy has no state: `advance` hands each leaf on.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacy.sensitivity import Family

Kind = Literal["change", "level", "entered", "left"]
KINDS: tuple[Kind, ...] = ("change", "level", "entered", "left")


def family_of(kind: Kind) -> Family:
    """The family of nodes that a published number is made from.

    >>> family_of("level")
    'net'
    """
    return "net" if kind == "change" or kind == "level" else kind


def advance(carry: None, leaves: NDArray[np.int64]) -> tuple[NDArray[np.int64], None]:
    """Exact node values for the windows that closed: [windows, cells] leaves are [windows, cells] nodes."""
    return leaves, carry


def combine(kind: Kind, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Published sums from node values.

    Args:
        nodes: [1 + windows, cells], row 0 the opening node (zeros where it is not released).

    Returns:
        [windows, cells]: the level at each window's end, or what happened in each window.
    """
    return np.cumsum(nodes, axis=0)[1:] if kind == "level" else nodes[1:]


def terms(kind: Kind, windows: int) -> NDArray[np.int64]:
    """How many independent draws of noise each window's number holds, [windows].

    >>> terms("level", 3).tolist()
    [2, 3, 4]
    """
    return np.arange(2, windows + 2) if kind == "level" else np.ones(windows, dtype=np.int64)
