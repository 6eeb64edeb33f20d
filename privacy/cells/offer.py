"""Interface of a name under `cells:` in a spec: how strategies are fitted, and which rules a choice must follow."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from privacy.cells.base import Sketcher
from privacy.cells.choice import CellChoice
from privacy.cells.product import Product
from privacy.cells.space import Space
from privacy.problems import RuleError


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTerms:
    """Terms for which strategies over the cells of a query are fitted.

    Attributes:
        space: axes of the query.
        choice: settings of the spec.
        power: 1 if L1 norms are charged, 2 for L2.
        changes: approximate number of changes of an entry.
        apart: number of near cells along each axis, if only the place of a unit is protected; otherwise empty.
        blocks: whether rows must fall into blocks (privacy.cells.product).
    """

    space: Space
    choice: CellChoice
    power: int
    changes: int
    apart: tuple[int, ...] = ()
    blocks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellUse:
    """The use that a query makes of a strategy over its cells.

    Attributes:
        ordered: number of keys whose cells have an order.
        nested: whether a key has a hierarchy.
        adaptive: whether the data decide when numbers are published.
        apart: whether only the place of a unit is protected.
    """

    ordered: int
    nested: bool = False
    adaptive: bool = False
    apart: bool = False


class CellOffer(Protocol):
    """One strategy name under `cells:`."""

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings of a choice that this name supports."""
        ...

    sketched: ClassVar[type[Sketcher]]
    """Class of the sketchers of samples."""

    def strategies(self, terms: CellTerms) -> tuple[Product, ...]:
        """Return candidates, the cheapest first."""
        ...

    def sketcher(self, terms: CellTerms) -> Sketcher | None:
        """Return the sketcher of samples; None if each cell has its own noise."""
        ...

    def problems(self, choice: CellChoice, use: CellUse) -> Iterator[RuleError]:
        """Yield the rules that a choice of this name breaks, with paths relative to the query."""
        ...


def lightest(products: tuple[Product, ...]) -> Product | None:
    """Return the first strategy as a sketcher; a sample is a separate release, so only the norm of a column counts."""
    return None if products[0].trivial else products[0]
