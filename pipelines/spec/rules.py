"""The rules of a spec that hold between its queries and its other sections.

Each function yields the problems that it finds, with their places from the top of the spec.
"""

from collections.abc import Iterable, Iterator

from pipelines.spec.document import SpecPlace
from pipelines.spec.durations import duration_text
from pipelines.spec.errors import Problem
from pipelines.spec.numbers import SlidingSection
from pipelines.spec.privacy import PrivacySection
from pipelines.spec.queries import QuerySection
from pipelines.spec.strategies import AdaptiveSection, GivenStrategy, adaptive_in, choice_of
from privacy.adaptive.base import Period
from privacy.adaptive.table import POLICIES
from privacy.cells.offer import CellUse
from privacy.cells.table import problems as over_problems
from privacy.planning.adaptive_rules import AdaptiveQuery, Setting, adaptive_columns, adaptive_problems, not_consistent
from privacy.planning.query_rules import near_changes
from privacy.planning.query_rules import near_problems as near_numbers
from privacy.planning.query_rules import sliding_problems as longer_problems
from privacy.planning.query_rules import split_problems as share_problems
from privacy.problems import RuleError
from privacy.strategies.candidates import QueryNumbers, StrategyTerms
from privacy.strategies.table import problems as problems_of_strategies
from transforms.aggregation.expression import Condition
from transforms.release.published_columns import OF_QUANTILES, name_problems
from transforms.release.query_rules import Read, near_problems, size_problems
from transforms.release.query_rules import kind_problems as of_kinds

MOST_WINDOWS = 10_000_000


def sliding_problems(queries: list[QuerySection], *, every: int, windows: int | None) -> Iterator[Problem]:
    """Find sliding windows that are not a whole number of windows, or longer than the release.

    Args:
        queries: All queries of the spec.
        every: Length of a window, in microseconds.
        windows: Number of windows of the release; None without an end.
    """
    for place, query in enumerate(queries):
        sliding = query.published(SlidingSection)
        widths = {position: -(-number.sliding // every) for position, number in sliding.items()}
        longer = list(longer_problems(widths, windows, lambda count: duration_text(count * every)))
        yield from _below(longer, "queries", place)
        for position, number in sliding.items():
            path = ("publish", position, "sliding")
            if path not in [problem.path for problem in longer]:
                yield from _not_whole(("queries", place, *path), number.sliding, every)
            if number.every is not None:
                yield from _not_whole(("queries", place, "publish", position, "every"), number.every, every)


def _below(found: Iterable[RuleError], *above: str | int) -> Iterator[Problem]:
    """Yield problems of the library as problems of the spec, with `above` prepended to their places."""
    return (((*above, *problem.path), problem.message) for problem in found)


def _not_whole(place: SpecPlace, span: int, every: int) -> Iterator[Problem]:
    count, rest = divmod(span, every)
    if rest:
        fits = " or ".join(duration_text(fit * every) for fit in (count, count + 1) if fit)
        yield place, f"windows of {duration_text(every)} do not add up to it; use {fits}"
    elif count > MOST_WINDOWS:
        yield place, f"{count:,} windows; use at most {duration_text(MOST_WINDOWS * every)}"


def strategy_problems(
    strategy: GivenStrategy,
    queries: list[QuerySection],
    *,
    privacy: PrivacySection,
    windows: int | None,
    every: int,
    slack: int = 0,
) -> Iterator[Problem]:
    """Find strategies that do not fit the numbers they serve, the noise, or the length of the release.

    Args:
        strategy: Strategy of queries that name none.
        queries: All queries of the spec.
        privacy: The section about privacy.
        windows: Number of windows of the release; None without an end.
        every: Length of a window, in microseconds.
        slack: Any m consecutive windows are at least m * every - slack long, in microseconds.
    """
    numbered = list(enumerate(queries))
    given: list[tuple[SpecPlace, GivenStrategy, list[tuple[int, QuerySection]]]] = [
        (("strategy",), strategy, [(place, query) for place, query in numbered if query.strategy is None])
    ]
    for place, query in numbered:
        if query.strategy is not None:
            given.append((("queries", place, "strategy"), query.strategy, [(place, query)]))
    for above, one, placed in given:
        served = [query for _, query in placed]
        if not served:
            continue
        if (adaptive := adaptive_in(one)) is not None:
            protected = privacy.protection.span
            span = None if protected is None else protected.boundaries(every, slack)
            yield from _not_adaptive(
                adaptive, above, placed, setting=_setting(privacy, windows=windows, span=span), every=every
            )
        terms = StrategyTerms(
            published=tuple(
                QueryNumbers(name=query.name, levels=query.kinds == ["level"], slides=query.slides) for query in served
            ),
            windows=windows,
            everything=privacy.protection.span is None,
            renewed=privacy.renewed is not None,
            mechanism=privacy.settled_mechanism,
            delta=privacy.delta > 0,
            accounting=privacy.accounting,
        )
        yield from ((above, problem.message) for problem in problems_of_strategies(choice_of(one), terms))


def cell_problems(queries: list[QuerySection], strategy: GivenStrategy, privacy: PrivacySection) -> Iterator[Problem]:
    """Find strategies over cells that do not fit their query.

    Args:
        queries: All queries of the spec.
        strategy: Strategy of queries that name none.
        privacy: The section about privacy.
    """
    for place, query in enumerate(queries):
        use = CellUse(
            ordered=len(query.ordered),
            nested=bool(query.hierarchies),
            adaptive=adaptive_of(query, strategy) is not None,
            apart=bool(privacy.distance),
        )
        try:
            found = list(over_problems(query.over_cells(), use))
        except RuleError as error:
            found = [error]
        yield from _below(found, "queries", place)


def distance_problems(queries: list[QuerySection], privacy: PrivacySection) -> Iterator[Problem]:
    """Find problems of `protects.distance`, which protects a unit's place alone.

    Everything else that a query uses of a unit must be equal for units that are near each other.
    """
    above = ("privacy", "protects", "distance")
    known = {name for query in queries for name in query.ordered}
    for name in privacy.distance:
        if name not in known:
            yield (*above, name), "no query has ranges of it; give one under by: as {from: 0, to: 100, step: 1}"
        if name == privacy.unit:
            yield (*above, name), "names the owner, who cannot be near another one"
    if not privacy.distance:
        return
    yield from _below(near_changes(counted=privacy.renewed is not None))
    for place, query in enumerate(queries):
        ordered = query.ordered
        read = Read(
            where=frozenset[str]() if query.where is None else Condition.parse(query.where).columns,
            measured=query.measure.column,
            listed=query.by.keys() - ordered.keys(),
            ranges=ordered,
        )
        yield from _below(near_problems(read, [*privacy.distance]), "queries", place)
        for name, far in privacy.distance.items():
            if name in ordered and ordered[name].near(far) is None:
                yield (*above, name), f"query {query.name} has ranges of another kind for it"
        moves = not {"entered", "left"}.isdisjoint(query.published(str).values())
        yield from _below(near_numbers(moves=moves), "queries", place)


def column_problems(queries: list[QuerySection], strategy: GivenStrategy) -> Iterator[Problem]:
    """Find keys with the name of a published column. Some columns exist only for quantiles or adaptive queries."""
    some = [OF_QUANTILES] if any(query.quantiles for query in queries) else []
    for query in queries:
        if (section := adaptive_of(query, strategy)) is not None:
            some += adaptive_columns(POLICIES[section.policy], "auto" if query.over is None else query.over.strategy)
    for place, query in enumerate(queries):
        yield from _below(name_problems(query.by, some), "queries", place)


def kind_problems(queries: list[QuerySection]) -> Iterator[Problem]:
    """Find columns whose ranges are of numbers in one place and of times in another."""
    ordered = [{name: key.key() for name, key in query.ordered.items()} for query in queries]
    numbers = {query.measure.column for query in queries if query.measure.column is not None}
    numbers |= {name for keys in ordered for name, key in keys.items() if not key.moments}
    for place, keys in enumerate(ordered):
        yield from _below(of_kinds(keys, numbers), "queries", place)


def adaptive_of(query: QuerySection, strategy: GivenStrategy) -> AdaptiveSection | None:
    """Return how a query is published adaptively; None if all of its windows are published."""
    own = strategy if query.strategy is None else query.strategy
    return adaptive_in(own)


def bounds_nothing(queries: list[QuerySection], strategy: GivenStrategy, privacy: PrivacySection) -> bool:
    """Return whether no bound on changes is needed, because a bound on a unit's entries at a time is enough.

    Args:
        queries: All queries of the spec.
        strategy: Strategy of queries that name none.
        privacy: The section about privacy.
    """
    return privacy.protects != "everything" or all(adaptive_of(query, strategy) is not None for query in queries)


def _setting(privacy: PrivacySection, *, windows: int | None, span: int | None) -> Setting:
    endless = span is None and windows is None
    return Setting(
        period=None if endless else Period(span=span) if span is not None else Period(windows=windows),
        near=bool(privacy.distance),
        renewed=privacy.renewed is not None,
        mechanism=privacy.settled_mechanism,
        accounting=privacy.accounting,
        weighted=privacy.split == "weights",
    )


def _not_adaptive(
    section: AdaptiveSection,
    above: SpecPlace,
    served: list[tuple[int, QuerySection]],
    *,
    setting: Setting,
    every: int,
) -> Iterator[Problem]:
    """Find problems of adaptive publication and of its durations.

    Args:
        section: The section about the policy.
        above: Place of the section.
        served: Queries that are published by the policy, with their places.
        setting: The settings of the rest of the spec.
        every: Length of a window, in microseconds.
    """
    uneven = section.interval is not None and (section.interval == 0 or section.interval % every)
    if uneven and setting.period is not None:
        yield above, f"interval: whole windows of {duration_text(every)}, such as {duration_text(7 * every)}"
    for place, query in served:
        asked = AdaptiveQuery(
            name=query.name,
            cells=query.cells,
            over=query.over is not None,
            levels=query.publish == ["level"],
            ratio=query.measure.ratio,
        )
        for problem in adaptive_problems(section.choice(every), asked, setting):
            head, *below = problem.path or ("",)
            if head != "strategy":
                yield ("queries", place, *problem.path), problem.message
            elif not (uneven and below):
                yield (*above, *below), problem.message
        if query.consistent:
            yield from ((above, problem.message) for problem in not_consistent(query.name))


def split_problems(queries: list[QuerySection], *, split: str) -> Iterator[Problem]:
    """Find queries whose `expected` or weight does not fit the split of the budget."""
    for place, query in enumerate(queries):
        weighted = "weight" in query.model_fields_set
        found = share_problems(
            ratio=query.measure.ratio,
            expected=query.expected,
            weight=query.weight,
            weighted=weighted,
            relative=split == "relative_error",
        )
        yield from _below(found, "queries", place)


def consistency_problems(queries: list[QuerySection], *, windows: int | None) -> Iterator[Problem]:
    """Find queries with too many consistent numbers."""
    for place, query in enumerate(queries):
        if query.consistent and not query.discovers:
            over = query.over is not None or bool(query.marginals or query.hierarchies)
            yield from _below(size_problems(query.cells, windows, over=over), "queries", place)
