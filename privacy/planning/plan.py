"""Plan of a release: how each query is released, with how much noise and which guarantee."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.accounting import Budget
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.demand import Demand
from privacy.planning.discovered_part import DiscoveredPart, FoundParts
from privacy.planning.linear_part import LinearPart
from privacy.planning.part import Part
from privacy.planning.promise import Promise
from privacy.series import Family, Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is fixed before data are read; the guarantee is `statement`.

    Attributes:
        promise: what the guarantee is for: it holds for sums that were bounded by the promise's constraint.
        parts: parts in the order of their queries.
        strategies: name of the strategy of each query.
        weights: share of the budget of each query, 1 in sum.
        claim: the guarantee in words, without its conditions.
        conditions: the conditions of the guarantee, a sentence each.
    """

    promise: Promise
    demands: tuple[Demand, ...]
    parts: tuple[Part, ...]
    strategies: tuple[str, ...]
    weights: tuple[float, ...]
    mechanism: Mechanism
    accounting: Accounting
    budget: Budget
    share_unit: str
    claim: str
    conditions: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The guarantee in words, with all its conditions."""
        return " ".join([self.claim, *self.conditions])

    def of_query(self, query: int, family: Family | None = None) -> tuple[Part, ...]:
        """Return the parts of a query, of all families or one."""
        return tuple(part for part in self.parts if part.query == query and family in (None, part.family))

    def linear(self, query: int, family: Family | None = None) -> tuple[LinearPart, ...]:
        """Return the parts of a query that a strategy releases; none if the query is published adaptively.

        Args:
            query: its place.
            family: the leaf sums that the parts use; None: any.
        """
        return tuple(part for part in self.of_query(query, family) if isinstance(part, LinearPart))

    @property
    def adaptive(self) -> tuple[AdaptivePart, ...]:
        """The parts of queries that are published adaptively."""
        return tuple(part for part in self.parts if isinstance(part, AdaptivePart))

    def discovered_of(self, query: int) -> DiscoveredPart | None:
        """Return the part of a query whose keys are found; None if its cells are listed."""
        return next((part for part in self.of_query(query) if isinstance(part, DiscoveredPart)), None)

    def found_parts(self, query: int) -> FoundParts | None:
        """Return all parts of a query whose keys are found; None if its cells are listed."""
        first = self.discovered_of(query)
        return None if first is None else (first, *(part for part in self.linear(query) if part.family != "net"))

    def publishing(self, query: int, series: Series) -> LinearPart:
        """Return the part from which a strategy publishes a series."""
        return next(part for part in self.linear(query) if series in part.series)

    def of_series(self, query: int, series: Series) -> Part:
        """Return the part that publishes a series."""
        return next(part for part in self.of_query(query) if series in part.series)

    def share(self, part: Part) -> float:
        """Return the share of the budget of one part: the parts of a query split its weight evenly."""
        return self.weights[part.query] / len(self.of_query(part.query))


def stddev(plan: Plan, query: int, series: Series, windows: int) -> NDArray[np.float64]:
    """Return the exact standard deviation of each published number, float64 [numbers], in the measure's units.

    Under a strategy over cells it is the root mean square over the cells' queries. Only for counts and sums: the error
    of a ratio depends on the data.

    Args:
        plan: plan of the release.
        query: place of the query.
        series: series of the numbers.
        windows: number of closed windows.
    """
    return plan.publishing(query, series).deviations(plan.demands[query].measure, series, windows)
