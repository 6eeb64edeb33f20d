"""The table of strategies: for documents by their kind, for the planner by their name in a spec."""

from collections.abc import Callable

from privacy.exact import Json, Members
from privacy.strategies.base import Strategy
from privacy.strategies.candidates import Offer
from privacy.strategies.choice import Choice, Name
from privacy.strategies.direct import DIRECT, Direct
from privacy.strategies.direct_weighted import WeightedLevels
from privacy.strategies.factorised import Factorised
from privacy.strategies.factorised_fitting import FACTORISED
from privacy.strategies.sliding import SLIDING, Sliding
from privacy.strategies.tree import Tree
from privacy.strategies.tree_candidates import DISJOINT, TREE, for_events

STRATEGIES: dict[str, type[Strategy]] = {
    kind.kind: kind for kind in (Tree, Sliding, Factorised, Direct, WeightedLevels)
}

OFFERS: dict[Name, Offer] = {
    "disjoint": DISJOINT,
    "sliding": SLIDING,
    "tree": TREE,
    "factorised": FACTORISED,
    "direct": DIRECT,
}
"""In this order they are tried; of candidates with equal errors the first is taken."""

EVENTS: Callable[[Choice, int | None], Strategy] = for_events
"""The strategy for what entered and left, by what the spec says and the number of windows."""


def strategy_to_json(strategy: Strategy, *, exactly: bool) -> Json:
    """A strategy as a document; `exactly`: see privacy.strategies.base.

    >>> strategy_to_json(Sliding(width=7, every=1, windows=None), exactly=True)
    {'kind': 'sliding', 'width': 7, 'every': 1, 'windows': None}
    """
    return {"kind": strategy.kind, **strategy.to_json(exactly=exactly)}


def strategy_from_json(members: Members) -> Strategy:
    """The strategy of a document.

    Raises:
        ValueError: a member is missing, unknown or wrong, or they make no strategy.
    """
    kind = STRATEGIES[members.word("kind", tuple(STRATEGIES))]
    with members.naming():
        strategy = kind.from_json(members)
    members.end()
    return strategy
