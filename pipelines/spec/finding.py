"""The rules of a spec whose queries find keys (`by: {town: {discover: true}}`)."""

from collections.abc import Iterator

from pipelines.spec.errors import Problem
from pipelines.spec.privacy import PrivacySection
from pipelines.spec.queries import QuerySection
from pipelines.spec.rules import adaptive_of
from pipelines.spec.strategies import GivenStrategy, choice_of
from privacy.discovery.rules import Finding, FindingTerms, query_problems, release_problems


def finding_problems(
    queries: list[QuerySection], strategy: GivenStrategy, privacy: PrivacySection, *, entry: str, windows: int | None
) -> Iterator[Problem]:
    """Find queries whose keys cannot be found.

    Args:
        queries: All queries of the spec.
        strategy: Strategy of queries that name none.
        privacy: The section about privacy.
        entry: Column that identifies an entry.
        windows: Number of windows of the release; None without an end.
    """
    asked = [(place, query) for place, query in enumerate(queries) if query.discovers]
    identifiers = {entry: "an entry"} | ({privacy.unit: "the privacy unit"} if privacy.unit != "entry" else {})
    for place, query in asked:
        for name in query.by:
            if name in identifiers:
                message = f"identifies {identifiers[name]}, so only one unit has each key, and none is found"
                yield ("queries", place, "by", name), f"{message}; use another column, or list all keys"
        choice = choice_of(strategy if query.strategy is None else query.strategy)
        finding = Finding(
            cells=query.cells,
            negative=query.measure.sum is not None and (query.measure.min or 0) < 0,
            levels="level" in query.publish,
            strategy=None if adaptive_of(query, strategy) is not None else choice.name,
            weighted=choice.weights is not None,
            over=False,
            consistent=query.consistent,
        )
        for problem in query_problems(finding):
            own = problem.path != ("strategy",) or query.strategy is not None
            yield (*(("queries", place) if own else ()), *problem.path), problem.message
    if asked:
        terms = FindingTerms(
            delta=privacy.delta > 0,
            windows=windows,
            everything=privacy.protection.span is None,
            near=bool(privacy.distance),
            renewed=privacy.renewed is not None,
        )
        yield from ((problem.path, problem.message) for problem in release_problems(terms))
