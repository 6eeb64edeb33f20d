"""The shape of a key with a hierarchy in a spec: `{tree: {Bavaria: [Munich, Nuremberg], Hesse: [Kassel]}}`."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import PrivateAttr, field_serializer, model_validator

from pipelines.spec.errors import Problem, refuse
from pipelines.spec.fields import Section
from pipelines.spec.hierarchy_file import MOST_LEVELS, is_file, nodes_of_file
from pipelines.spec.words import show
from transforms.aggregation.hierarchy_key import Hierarchy, Node, hierarchy_of, values_of
from transforms.aggregation.listed_key import as_text
from transforms.release.marginal_tables import ALL

MOST_NODES = 100_000
"""Most inner nodes of a hierarchy; the plan holds all of them."""

NestedValues = Annotated[Any, "nodes"]
"""Values and inner nodes, as lists and mappings."""


class HierarchySection(Section):
    """Inner nodes over listed values, each with its values or further inner nodes below it."""

    tree: NestedValues
    _top: tuple[Node, ...] = PrivateAttr(default=())

    @field_serializer("tree")
    def _written(self, tree: Any) -> list[Any]:
        """Return the nodes as lists, so that their order counts in a digest."""
        return _lists(self._top)

    @model_validator(mode="after")
    def _check(self) -> "HierarchySection":
        problems: list[Problem] = []
        if is_file(self.tree):
            self._top = nodes_of_file(self.tree)
        else:
            self._top = tuple(_nodes(self.tree, ("tree",), problems))
        refuse(problems)
        refuse(self._problems())
        return self

    def _problems(self) -> Iterator[Problem]:
        if not any(node.below for node in self._top):
            yield ("tree",), "has no inner node; write {Bavaria: [Munich, Hof]}, or a list of values"
            return
        found, inner = self.hierarchy(), list(_inner(self._top))
        if len(found.levels) > MOST_LEVELS:
            yield ("tree",), f"{len(found.levels)} levels of inner nodes; at most {MOST_LEVELS}"
        if len(inner) > MOST_NODES:
            yield ("tree",), f"{len(inner):,} inner nodes; at most {MOST_NODES:,}"
        known: set[str] = set()
        for name in map(as_text, (*inner, *self.key())):
            if name == ALL:
                yield ("tree",), f"{ALL} is the name of the root; rename this node or value"
            elif name in known:
                other = "; it is the cell of every value that is not listed" if name == "other" else ""
                yield ("tree",), f"{show(name)} is there twice; each node and value needs its own name{other}"
            known.add(name)

    def key(self) -> tuple[str | int | bool, ...]:
        """Return the values of the key, in the order of the hierarchy."""
        return values_of(self._top)

    def hierarchy(self) -> Hierarchy:
        """Return the levels above the values."""
        return hierarchy_of(self._top, root=ALL)


def _nodes(found: Any, place: tuple[str | int, ...], problems: list[Problem]) -> Iterator[Node]:
    """Yield the nodes of a list or mapping, and add what is wrong with others to `problems`."""
    if isinstance(found, dict):
        for name, below in found.items():
            nodes = tuple(_nodes(below, (*place, str(name)), problems))
            if not nodes and not problems:
                problems.append(((*place, str(name)), "has no values; list them, or write it as a value of a list"))
            yield Node(name, nodes)
    elif isinstance(found, list):
        for at, one in enumerate(found):
            if isinstance(one, dict | list):
                yield from _nodes(one, (*place, at), problems)
            elif one is None or isinstance(one, float):
                problems.append(((*place, at), f"expected text, a whole number, true or false, not {show(one)}"))
            else:
                yield Node(one)
    else:
        message = f"expected a list of values, or inner nodes such as {{Bavaria: [Munich, Hof]}}, not {show(found)}"
        problems.append((place, message))


def _lists(nodes: tuple[Node, ...]) -> list[Any]:
    return [[node.name, _lists(node.below)] if node.below else node.name for node in nodes]


def _inner(nodes: tuple[Node, ...]) -> Iterator[str | int | bool]:
    for node in nodes:
        if node.below:
            yield node.name
            yield from _inner(node.below)
