"""Largest number of changes of an entry that follows a state machine: the paper's bound k.

The machine is a mapping from each state to the states that may follow it. The word `none` stands
for "the row does not exist":

    states:
      none: [scheduled]                            # what an insertion may create
      scheduled: [delayed, airborne, cancelled]
      delayed: [airborne, cancelled]
      airborne: [landed]
      landed: [none]                               # a deletion
      cancelled: [none]

Every state has a separate line; a state without successors has an empty list. An entry lives once:
after `none` at the end it does not return, and changes after k are dropped like any others.

States that can be visited repeatedly (a cycle) allow no bound, so they are merged into one
composite state: k counts only moves between composite states, and therefore holds only for queries
that do not distinguish merged states. Source: Pan, "Differentially-private Continual Releases
against Dynamic Databases", section 4.3.1, with the condition on queries, which the paper omits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "none"
_DELETED = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The longest life that a state machine allows.

    Attributes:
        k: number of changes: the insertion, each move between composite states, the deletion.
        path: the composite states of one such life in order, `("none",)` at both ends if it ends in
            a deletion.
        merged: the composite states of more than one state, which a query must not distinguish.
    """

    k: int
    path: tuple[tuple[str, ...], ...]
    merged: tuple[tuple[str, ...], ...]


def longest_changes(transitions: Mapping[str, Sequence[str]]) -> Bound:
    """Return the longest path through the condensation of the state machine.

    Args:
        transitions: each state's possible successors, with `none` for the absent row; a state that
            follows itself is not a change.

    Raises:
        ValueError: `none` is missing or has no successor, a successor has no line, or no insertion leads to a state.

    >>> bound = longest_changes(
    ...     {"none": ["ward"], "ward": ["surgery"], "surgery": ["ward", "morgue"], "morgue": []}
    ... )
    >>> bound.k, bound.merged
    (2, (('surgery', 'ward'),))
    >>> bound.path
    (('none',), ('surgery', 'ward'), ('morgue',))
    """
    import networkx as nx  # slow to import, and only needed for `states:`

    graph = _graph(transitions)
    merged = nx.condensation(graph)
    longest = nx.dag_longest_path(merged)
    # Every state follows from an insertion, so the longest path can begin with one.
    return Bound(
        k=len(longest) - 1,
        path=tuple(_names(merged.nodes[node]["members"]) for node in longest),
        merged=tuple(sorted(_names(members) for _, members in merged.nodes("members") if len(members) > 1)),
    )


def _graph(transitions: Mapping[str, Sequence[str]]) -> Any:
    import networkx as nx

    if not transitions.get(NONE):
        raise ValueError("states: no state to begin with; add `none: [...]` with the states an insertion creates")
    graph = nx.DiGraph()
    graph.add_nodes_from(transitions)
    for state, followers in transitions.items():
        for follower in followers:
            if follower not in transitions:
                raise ValueError(
                    f"states: {follower!r} follows {state!r} but has no line; "
                    f"add it, with an empty list if nothing follows"
                )
            if follower != state:
                graph.add_edge(state, _DELETED if follower == NONE else follower)
    reached = nx.descendants(graph, NONE)
    lost = [state for state in transitions if state != NONE and state not in reached]
    if lost:
        raise ValueError(
            f"states: no life reaches {', '.join(map(repr, lost))}; name what comes before, "
            f"or list it under `none` if an insertion creates it"
        )
    return graph


def _names(members: set[object]) -> tuple[str, ...]:
    return tuple(sorted(NONE if member is _DELETED else str(member) for member in members))
