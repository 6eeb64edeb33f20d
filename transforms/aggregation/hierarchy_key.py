"""Hierarchy of the listed values of a key: inner nodes over them, such as states over towns.

The values, in the order of the hierarchy, are the cells of the key. Level 0 has the values; level 1 has the deepest
inner nodes, and so on up to the root. A value or node that ends above a level is a node by itself there, so that each
level is a partition of the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

Scalar = str | int | bool


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the key, or an inner node with nodes below it.

    Attributes:
        name: The value, or the name of the inner node.
        below: Nodes below it; empty for a value.
    """

    name: Scalar
    below: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """Inner nodes of one level above the cells.

    Attributes:
        names: name of each inner node.
        places: its place among all nodes of the level.
        begins, ends: its first cell, and the one after the last.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Levels above the cells of a key, from the deepest inner nodes up.

    Attributes:
        children: Number of nodes below each node of each level (`privacy.cells.nested`).
        levels: Inner nodes of each level.
    """

    children: tuple[tuple[int, ...], ...]
    levels: tuple[Level, ...]


def values_of(nodes: Sequence[Node]) -> tuple[Scalar, ...]:
    """Return the values below some nodes, in order."""
    found: list[Scalar] = []
    for node in nodes:
        found.extend(values_of(node.below) if node.below else (node.name,))
    return tuple(found)


def hierarchy_of(top: Sequence[Node], *, root: str) -> Hierarchy:
    """Return the levels of a hierarchy; the level above several top nodes is the root.

    Args:
        top: Nodes and values at the top.
        root: Name of the root.

    >>> found = hierarchy_of([Node("Bavaria", (Node("Munich"), Node("Hof"))), Node("other")], root="all")
    >>> found.children, [(level.names, level.begins, level.ends) for level in found.levels]
    (((2, 1), (2,)), [(('Bavaria',), (0,), (2,)), (('all',), (0,), (3,))])
    """
    partitions = [list(top)]  # from the top down
    while any(node.below for node in partitions[-1]):
        partitions.append([below for node in partitions[-1] for below in node.below or (node,)])
    upper = partitions[-2::-1] if len(partitions) > 1 else []
    children = [tuple(len(node.below) or 1 for node in nodes) for nodes in upper]
    levels = [_level(nodes) for nodes in upper]
    if len(top) > 1:
        children.append((len(top),))
        levels.append(Level(names=(root,), places=(0,), begins=(0,), ends=(len(partitions[-1]),)))
    return Hierarchy(children=tuple(children), levels=tuple(levels))


def _level(nodes: Sequence[Node]) -> Level:
    sizes = [len(values_of([node])) for node in nodes]
    ends = list(accumulate(sizes))
    inner = [place for place, node in enumerate(nodes) if node.below]
    return Level(
        names=tuple(str(nodes[place].name) for place in inner),
        places=tuple(inner),
        begins=tuple(ends[place] - sizes[place] for place in inner),
        ends=tuple(ends[place] for place in inner),
    )
