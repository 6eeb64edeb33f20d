"""The table of strategies: for documents by their kind, for the planner by their name in a spec."""

from collections.abc import Callable

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
