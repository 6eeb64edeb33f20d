"""Units that are alone in keys of queries that find keys: what discovery may reveal, from exact levels."""

from dataclasses import dataclass

import numpy as np

from pipelines.audit.stages import Released
from privacy.evidence.sums import reached
from privacy.planning.discovered_part import DiscoveredPart
from privacy.series import Ints, Series
from transforms.aggregation.node_sums import BOUNDED

LEVEL = Series(kind="level")


@dataclass(frozen=True, slots=True)
class Levels:
    """Exact levels of all keys of a query at the ends of windows, of two neighbours.

    Attributes:
        one, two: Sums over the cells of each key, int64 [windows, keys].
    """

    one: Ints
    two: Ints

    @property
    def lonely(self) -> np.ndarray:
        """Pairs of windows and keys in which exactly one neighbour has an entry, bool [windows, keys]."""
        return (self.one > 0) != (self.two > 0)

    def chance(self, part: DiscoveredPart) -> float:
        """Return a lower bound of the sum over lonely pairs of the probability that noise finds the key then.

        Args:
            part: Part of the plan with the levels.
        """
        windows, keys = np.nonzero(self.lonely)
        variance = part.strategy.variances(LEVEL, len(self.one)) * part.cells
        needed = part.threshold - np.maximum(self.one, self.two)[windows, keys]
        pairs = zip(variance[windows].tolist(), needed.tolist(), strict=True)
        return sum(reached(part.noise[0], each, reach) for each, reach in pairs)


def levels(released: Released, query: int) -> Ints:
    """Return the exact levels of the keys of a query that finds keys, int64 [windows, keys]."""
    each = released.stages.job.aggregation.queries[query].each
    found = np.cumsum(released.leaves((BOUNDED, query, "net", 0))[0], axis=0)[1:]
    of_keys: Ints = found.reshape(len(found), -1, each).sum(axis=2)
    return of_keys


def levels_of(one: Released, two: Released) -> dict[int, Levels]:
    """Return the levels of two neighbours for each query that finds keys, by its number."""
    return {query: Levels(levels(one, query), levels(two, query)) for query in one.stages.universe}


def lonely_keys(one: Released, two: Released) -> dict[int, set[str]]:
    """Return the keys that are in a lonely pair, by query."""
    universe = one.stages.universe
    return {
        query: {universe[query][place].as_py() for place in np.flatnonzero(found.lonely.any(axis=0))}
        for query, found in levels_of(one, two).items()
    }
