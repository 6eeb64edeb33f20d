"""All strategies by their kind, for documents: what a plan holds of one, and back."""

from privacy.exact import Json, Members
from privacy.strategies.direct import Direct
from privacy.strategies.factorised import Factorised
from privacy.strategies.tree import Tree

STRATEGIES: dict[str, type[Tree | Direct | Factorised]] = {kind.kind: kind for kind in (Tree, Direct, Factorised)}


def strategy_to_json(strategy: Tree | Direct | Factorised, *, exactly: bool) -> Json:
    """A strategy as a document; `exactly`: see privacy.strategies.base.

    >>> strategy_to_json(Direct(width=7, every=1, windows=None), exactly=True)
    {'kind': 'sliding', 'width': 7, 'every': 1, 'windows': None}
    """
    return {"kind": strategy.kind, **strategy.to_json(exactly=exactly)}


def strategy_from_json(told: Members) -> Tree | Direct | Factorised:
    """The strategy of a document.

    Raises:
        ValueError: a member is missing, unknown or wrong, or they make no strategy.
    """
    kind = STRATEGIES[told.word("kind", tuple(STRATEGIES))]
    with told.naming():
        strategy = kind.from_json(told)
    told.end()
    return strategy
