"""Table of strategies over cells: by their kind for documents, by their name in a spec for the planner."""

from collections.abc import Iterator
from dataclasses import replace

from privacy.cells.base import Along, Sketcher
from privacy.cells.choice import CellChoice
from privacy.cells.each import Each
from privacy.cells.fitting import AUTO, EACH, OPTIMISED, PREFIX, TREE
from privacy.cells.kdtree.kdtree import KdTree, KdTreeOffer
from privacy.cells.layers import Layers
from privacy.cells.marginals import Marginals
from privacy.cells.mixed import Mixed
from privacy.cells.nested import Nested
from privacy.cells.offer import CellOffer, CellTerms, CellUse
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.quadtree import Quadtree, QuadtreeOffer
from privacy.cells.residuals import Residuals
from privacy.problems import RuleError

ALONG: dict[str, type[Along]] = {
    kind.kind: kind for kind in (Layers, Prefixes, Mixed, Quadtree, Marginals, Residuals, Nested)
}

SKETCHERS: dict[str, type[Sketcher]] = {kind.kind: kind for kind in (Each, Product, KdTree)}

OFFERS: dict[str, CellOffer] = {
    "auto": AUTO,
    "each": EACH,
    "prefix": PREFIX,
    "tree": TREE,
    "optimised": OPTIMISED,
    "quadtree": QuadtreeOffer(),
    "kdtree": KdTreeOffer(),
}


def strategies(terms: CellTerms) -> tuple[Product, ...]:
    """Return strategies over the cells of a query, the cheapest first; axes without an order need no choice.

    >>> from privacy.cells.fitting import cost
    >>> from privacy.cells.space import Axis
    >>> axes = (Axis(cells=64, ordered=True),)
    >>> best, *others = strategies(CellTerms(space=axes, choice=CellChoice(workload="ranges"), power=2, changes=4))
    >>> best.axes[0].name, cost(others[-1], power=2, changes=4) > 4 * cost(best, power=2, changes=4)
    ('optimised', True)
    """
    return OFFERS[terms.choice.name].strategies(terms)


def sketcher(terms: CellTerms, cells: int) -> Sketcher:
    """Return the sketcher for samples of a query: the cheapest for the purpose of its cells if the spec names none.

    >>> from privacy.cells.space import Axis
    >>> axes = (Axis(cells=256, ordered=True),)
    >>> terms = CellTerms(space=axes, choice=CellChoice(workload="ranges"), power=1, changes=1, blocks=True)
    >>> over = sketcher(terms, 256)
    >>> alone, together = (258 / 3) ** 0.5, over.typical_deviation() * over.column(power=1)
    >>> round(alone, 1), round(together, 1)
    (9.3, 6.3)
    """
    found = OFFERS[terms.choice.name].sketcher(terms) if terms.choice.asks else None
    return Each(cells=cells) if found is None else found


def sketcher_class(name: str) -> type[Sketcher]:
    """Return the class that defines the columns and words that samples add to tables and texts."""
    return OFFERS[name].sketched


def problems(choice: CellChoice, use: CellUse) -> Iterator[RuleError]:
    """Yield the rules that a choice breaks, with paths relative to the query."""
    if choice.name not in OFFERS:
        yield RuleError(f"{choice.name} is not one of {', '.join(OFFERS)}", "cells", "strategy")
        return
    for name in ("branching", "height", "splits"):
        if getattr(choice, name) is not None and name not in OFFERS[choice.name].settings:
            own = next(one for one, offer in OFFERS.items() if name in offer.settings)
            yield RuleError(f"of a {own}; add strategy: {own}, or remove it", "cells", name)
    if use.adaptive and choice.marginals:
        yield RuleError("marginals are not published adaptively; remove them, or use another strategy", "publish")
    if use.adaptive and use.nested:
        message = "numbers of a hierarchy are not published adaptively; list the cells, or use another strategy"
        yield RuleError(message, "by")
    plain = replace(
        choice, marginals=(), shares=(), workload="cells" if choice.workload == "levels" else choice.workload
    )
    if plain.asks and not use.ordered:
        message = "for keys whose cells have an order; give one under by: as {from: 0, to: 100, step: 5}"
        yield RuleError(message, "cells")
    yield from OFFERS[choice.name].problems(choice, use)
