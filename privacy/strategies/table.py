"""Table of strategies: by their kind for documents, by their name in a spec for the planner."""

from collections.abc import Callable, Iterator

from privacy.problems import RuleError
from privacy.strategies.base import Strategy
from privacy.strategies.candidates import Offer, StrategyTerms
from privacy.strategies.choice import Choice
from privacy.strategies.direct.direct import DIRECT, Direct
from privacy.strategies.direct.weighted import WeightedLevels
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.fitting import FACTORISED
from privacy.strategies.sliding import SLIDING, Sliding
from privacy.strategies.tree.candidates import DISJOINT, TREE, for_events
from privacy.strategies.tree.tree import Tree

STRATEGIES: dict[str, type[Strategy]] = {
    kind.kind: kind for kind in (Tree, Sliding, Factorised, Direct, WeightedLevels)
}

OFFERS: dict[str, Offer] = {
    "disjoint": DISJOINT,
    "sliding": SLIDING,
    "tree": TREE,
    "factorised": FACTORISED,
    "direct": DIRECT,
}
"""Strategies in the order in which they are tried; the first of candidates with equal errors is chosen."""


def problems(choice: Choice, terms: StrategyTerms) -> Iterator[RuleError]:
    """Yield the rules that a choice breaks, with paths relative to the strategy."""
    if choice.name in OFFERS:
        yield from OFFERS[choice.name].problems(choice, terms)
    elif choice.name != "auto":
        yield RuleError(f"{choice.name} is not one of auto, {', '.join(OFFERS)}")


EVENTS: Callable[[Choice, int | None], Strategy] = for_events
"""Strategy for entered and left counts, from the choice of the spec and the number of windows."""
