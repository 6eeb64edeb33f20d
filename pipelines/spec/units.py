"""Rules of a spec whose queries count units (`measure: units`)."""

from collections.abc import Iterator

from pipelines.spec.errors import Problem
from pipelines.spec.privacy import PrivacySection
from pipelines.spec.queries import QuerySection
from privacy.constraint import alone
from privacy.planning import unit_rules


def unit_problems(queries: list[QuerySection], privacy: PrivacySection, *, every: int) -> Iterator[Problem]:
    """Find queries of units whose numbers would be sums over cells, or protected up to a distance.

    Args:
        queries: All queries of the spec.
        privacy: The section about privacy.
        every: Length of a window, in microseconds.
    """
    asked = [(place, query) for place, query in enumerate(queries) if query.measure.units]
    if not asked or privacy.unit == "entry" or alone(privacy.enforced(every)):
        return
    for place, query in asked:
        found = unit_rules.unit_problems(
            over=query.over is not None,
            quantiles=bool(query.quantiles),
            ranges=bool(query.ranges),
            near=bool(privacy.distance),
            marginals=bool(query.marginals),
            hierarchy=bool(query.hierarchies),
        )
        yield from ((("queries", place, *problem.path), problem.message) for problem in found)
