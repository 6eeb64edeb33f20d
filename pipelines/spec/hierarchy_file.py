"""A hierarchy in a public file, CSV or Parquet, as `{tree: {path: places.csv, child: town, parent: state}}`.

The published spec holds the nodes themselves, so that readers need no file.
"""

import os
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from pipelines.spec.errors import wrong
from pipelines.spec.words import show
from transforms.aggregation.hierarchy_key import Node

KEYS = {"path", "child", "parent"}

MOST_LEVELS = 8
"""Most levels of inner nodes, with the root."""


def is_file(tree: Any) -> bool:
    """Return whether a tree is given as a file."""
    return isinstance(tree, dict) and tree.keys() == KEYS and all(isinstance(one, str) for one in tree.values())


def nodes_of_file(tree: dict[str, str]) -> tuple[Node, ...]:
    """Return the nodes of a file, in the order in which their rows come; a child without a parent is at the top.

    Raises:
        PydanticCustomError: The file cannot be read, or its rows are not a tree.
    """
    path = tree["path"]
    below: dict[str | None, list[str]] = {None: []}
    parents: dict[str, str | None] = {}
    for child, parent in zip(*_columns(path, tree["child"], tree["parent"]), strict=True):
        if child is None:
            raise wrong(f"{path}: a row without {tree['child']}; name each child", "tree")
        if child in parents:
            raise wrong(f"{path}: {show(child)} has two rows; each child has one parent", "tree")
        parents[child] = parent
        below.setdefault(parent, []).append(child)
    tops = dict.fromkeys(name for name in below if name is not None and name not in parents)
    top = [*tops, *below[None]]

    def node(name: str, depth: int) -> Node:
        if depth > MOST_LEVELS:
            raise wrong(f"{path}: more than {MOST_LEVELS} levels below {show(top[0])}", "tree")
        return Node(name, tuple(node(child, depth + 1) for child in below.get(name, ())))

    found = tuple(node(name, 0) for name in top)
    if sum(map(_size, found)) < len(parents) + len(tops):
        raise wrong(f"{path}: some nodes are below themselves; each needs a way to the top", "tree")
    return found


def plain(nodes: tuple[Node, ...]) -> list[Any]:
    """Return nodes as a spec lists them."""
    return [{str(node.name): plain(node.below)} if node.below else node.name for node in nodes]


def _columns(path: str, child: str, parent: str) -> tuple[list[str | None], list[str | None]]:
    try:
        parquet = path.endswith(".parquet")
        names = pq.read_schema(path).names if parquet else pyarrow.csv.open_csv(path).schema.names
        if missing := [name for name in (child, parent) if name not in names]:
            raise wrong(f"{path}: has no column {show(missing[0])}; it has {', '.join(names)}", "tree")
        if parquet:
            table = pq.read_table(path, columns=[child, parent])
        else:
            types = dict.fromkeys((child, parent), pa.string())
            table = pyarrow.csv.read_csv(
                path,
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=types, include_columns=[child, parent], strings_can_be_null=True, null_values=[""]
                ),
            )
        columns = [pc.cast(table.column(name), pa.string()).to_pylist() for name in (child, parent)]
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise wrong(f"{path}: cannot be read ({reason}); check the path, relative to where you run", "tree") from None
    except pa.ArrowException as error:
        problem = f"cannot be read as a table ({str(error).splitlines()[0]}); write CSV with commas, or Parquet"
        raise wrong(f"{path}: {problem}", "tree") from None
    return columns[0], columns[1]


def _size(node: Node) -> int:
    return 1 + sum(map(_size, node.below))
