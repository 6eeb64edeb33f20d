"""The rules of a spec that hold between its queries and its other sections.

Each function gives the problems that it finds, with their places from the top of the spec.
"""

from collections.abc import Iterator

from pipelines.spec.document import Place
from pipelines.spec.durations import duration_text
from pipelines.spec.errors import Problem
from pipelines.spec.ordered import OrderedSection
from pipelines.spec.privacy import PrivacySection
from pipelines.spec.queries import QuerySection, SlidingSection
from pipelines.spec.strategies import ENDLESS_FORMS, AdaptiveSection, DirectSection, Strategy, StrategySection
from privacy.adaptive.grouping import MOST_CELLS
from privacy.counted import counted
from privacy.noise.kinds import NOISE
from privacy.planning.adaptive_part import spread_of
from privacy.protection import Span
from privacy.strategies.choice import Form
from transforms.aggregation.expression import Condition
from transforms.release.published_columns import GROUPED, SAMPLED, SPREAD_OVER
from transforms.release.quantile_tables import QUANTILE

MOST_WINDOWS = 10_000_000

MOST_CONSISTENT = 2**24
"""Numbers of one query that are made consistent at once: its cells by its windows and the start."""

MOST_OVER_CELLS = 2**20
"""The same under a strategy over cells, which takes some ten microseconds a number."""


def sliding_problems(queries: list[QuerySection], *, every: int, windows: int | None) -> Iterator[Problem]:
    """Sliding windows are made of whole windows, and at least one of them fits into the release."""
    for place, query in enumerate(queries):
        for position, number in enumerate(query.publish):
            if not isinstance(number, SlidingSection):
                continue
            above = ("queries", place, "publish", position)
            if windows is not None and number.sliding > windows * every:
                message = f"longer than the release; use at most {duration_text(windows * every)}"
                yield (*above, "sliding"), message
            else:
                yield from _not_whole((*above, "sliding"), number.sliding, every)
            if number.every is not None:
                yield from _not_whole((*above, "every"), number.every, every)


def _not_whole(place: Place, span: int, every: int) -> Iterator[Problem]:
    count, rest = divmod(span, every)
    if rest:
        fits = " or ".join(duration_text(fit * every) for fit in (count, count + 1) if fit)
        yield place, f"windows of {duration_text(every)} do not add up to it; use {fits}"
    elif count > MOST_WINDOWS:
        yield place, f"{count:,} windows; use at most {duration_text(MOST_WINDOWS * every)}"


def strategy_problems(
    strategy: Strategy,
    queries: list[QuerySection],
    *,
    privacy: PrivacySection,
    windows: int | None,
    every: int,
    slack: int = 0,
) -> Iterator[Problem]:
    """A strategy must have numbers to serve, and noise and an end that it can be had with."""
    given: list[tuple[Place, Strategy, list[QuerySection]]] = [
        (("strategy",), strategy, [query for query in queries if query.strategy is None])
    ]
    for place, query in enumerate(queries):
        if query.strategy is not None:
            given.append((("queries", place, "strategy"), query.strategy, [query]))
        if _split(query) and adaptive_of(query, strategy) is None:
            message = "a kdtree looks at the data: for samples of strategy: {adaptive: ...} alone; use quadtree or tree"
            yield ("queries", place, "cells", "strategy"), message
    for above, one, served in given:
        if not served:
            continue
        if one == "sliding" and not any(query.slides for query in served):
            yield above, "no sliding numbers are published; add {sliding: 7d} to publish, or use auto"
        if isinstance(one, StrategySection) and one.adaptive is not None:
            span = privacy.protection.boundaries(every, slack) if isinstance(privacy.protection, Span) else None
            problems = _not_adaptive(one.adaptive, served, privacy, windows=windows, every=every, span=span)
            yield from ((above, message) for message in problems)
        weighted = one.direct if isinstance(one, StrategySection) else None
        if (one == "direct" or weighted) and windows is None and privacy.protects == "everything":
            yield above, "levels without an end; add schedule.until or privacy.protects: {span: 14d}, or use auto"
        if weighted is not None:
            yield from ((above, message) for message in _not_weighted(weighted, served, privacy, windows))
        form = one.factorised if isinstance(one, StrategySection) else None
        if one == "factorised" or form is not None:
            yield from ((above, message) for message in _not_factorised(form, privacy, windows))


def distance_problems(queries: list[QuerySection], strategy: Strategy, privacy: PrivacySection) -> Iterator[Problem]:
    """Where only places are protected, what queries see of a unit beside them must be the same for near ones."""
    above = ("privacy", "protects", "distance")
    known = {name for query in queries for name, cells in query.by.items() if isinstance(cells, OrderedSection)}
    for name in privacy.distance:
        if name not in known:
            yield (*above, name), "no query has ranges of it; give one under by: as {from: 0, to: 100, step: 1}"
        if name == privacy.unit:
            yield (*above, name), "names the owner, who cannot be near another one"
    if privacy.distance and privacy.constraint is not None and privacy.constraint.at_most is not None:
        message = "units that are near each other may use up their changes at different times; remove at_most"
        yield ("privacy", "constraint", "at_most"), message
    for place, query in enumerate(queries) if privacy.distance else ():
        where = frozenset[str]() if query.where is None else Condition.parse(query.where).columns
        ordered = {name: cells for name, cells in query.by.items() if isinstance(cells, OrderedSection)}
        own = ("queries", place)
        if not ordered.keys() & privacy.distance.keys():
            yield own, f"has no range of {', '.join(privacy.distance)}, so nothing of it would be protected; remove it"
        for name, far in privacy.distance.items():
            if name in where:
                yield (*own, "where"), f"reads {name}: units that are near each other would be in the query or not"
            if name == query.measure.column:
                yield (*own, "measure"), f"reads {name}, which differs between units that are near each other"
            if name in query.by and name not in ordered:
                yield (*own, "by", name), "is to be near; give ranges as {from: 0, to: 100, step: 1}"
            if name in ordered and ordered[name].near(far) is None:
                yield (*above, name), f"query {query.name} has ranges of another kind of it"
        if {"entered", "left"}.intersection(number for number in query.publish if isinstance(number, str)):
            yield (
                (*own, "publish"),
                "entered and left tell where a unit was before, near or not; use level or change",
            )
        if adaptive_of(query, strategy) is not None:
            yield own, "adaptive publication protects whether a unit is there; use another strategy"
        if query.over is not None and query.over.strategy == "quadtree":
            yield (*own, "cells", "strategy"), "a quadtree is not for a distance; use tree, prefix or auto"


def column_problems(queries: list[QuerySection], strategy: Strategy) -> Iterator[Problem]:
    """All queries of a release share the published columns, and one of them stands there for adaptive ones alone."""
    taken = {
        GROUPED: "pegasus" if any(_grouped(query, strategy) for query in queries) else None,
        SPREAD_OVER: "kdtrees" if any(_split(query) for query in queries) else None,
        SAMPLED: "adaptive queries" if any(adaptive_of(query, strategy) is not None for query in queries) else None,
        QUANTILE: "quantiles" if any(query.quantiles for query in queries) else None,
    }
    for place, query in enumerate(queries):
        for key in query.by:
            what = taken.get(key.lower())
            if what is not None:
                message = f"the published files have a column {key.lower()}, for {what}; rename it in the source"
                yield ("queries", place, "by", key), message


def kind_problems(queries: list[QuerySection]) -> Iterator[Problem]:
    """A column is read as one kind: its ranges are all of numbers, or all of times."""
    measured = {query.measure.column for query in queries}
    keys = [
        (place, name, key.key().moments)
        for place, query in enumerate(queries)
        for name, key in query.by.items()
        if isinstance(key, OrderedSection)
    ]
    numbers = measured | {name for _, name, moments in keys if not moments}
    for place, name, moments in keys:
        if moments and name in numbers:
            yield ("queries", place, "by", name), "ranges of times of what is elsewhere a number; use one kind"


def adaptive_of(query: QuerySection, strategy: Strategy) -> AdaptiveSection | None:
    """What decides when a query is published anew; None if all windows are."""
    own = strategy if query.strategy is None else query.strategy
    return own.adaptive if isinstance(own, StrategySection) else None


def _grouped(query: QuerySection, strategy: Strategy) -> bool:
    """Whether its cells are smoothed over groups of windows."""
    section = adaptive_of(query, strategy)
    return section is not None and section.policy == "pegasus"


def _split(query: QuerySection) -> bool:
    """Whether the data decide where regions of its cells are split."""
    return query.over is not None and query.over.strategy == "kdtree"


def bounds_nothing(queries: list[QuerySection], strategy: Strategy, privacy: PrivacySection) -> bool:
    """Whether no bound of changes is needed: what a unit is at one time is bounded by itself."""
    return privacy.protects != "everything" or all(adaptive_of(query, strategy) is not None for query in queries)


def _not_adaptive(
    section: AdaptiveSection,
    served: list[QuerySection],
    privacy: PrivacySection,
    *,
    windows: int | None,
    every: int,
    span: int | None,
) -> Iterator[str]:
    for query in served:
        if query.publish != ["level"]:
            yield f"adaptive publishes levels alone; write publish: [level] in query {query.name}"
        if query.measure.column is not None and query.measure.sum is None:
            yield f"adaptive is for counts and sums; give query {query.name} another strategy"
        if section.policy == "pegasus" and (query.over is not None or query.cells > MOST_CELLS):
            yield f"pegasus smooths each cell by itself, {MOST_CELLS:,} at most; take fewer in query {query.name}"
        if query.consistent:
            yield f"adaptive does not go with consistent; remove it from query {query.name}"
    mechanisms = NOISE if privacy.settled_mechanism == "auto" else [privacy.settled_mechanism]
    known = [accounting for mechanism in mechanisms for accounting in NOISE[mechanism].adaptively]
    if privacy.accounting is not None and privacy.accounting not in known:
        yield f"adaptive is not for privacy.accounting {privacy.accounting}; use {' or '.join(known)}, or leave it out"
    if section.policy == "pegasus" and privacy.settled_mechanism == "gaussian":
        yield "pegasus has Laplace noise; use privacy.mechanism: laplace or auto"
    if privacy.renewed is not None:
        yield "adaptive is for states as they are; remove privacy.constraint.at_most"
    if privacy.split != "weights":
        yield "the error of adaptive depends on the data; use split: weights"
    if span is None and windows is None:
        yield "adaptive needs a last window; add schedule.until, or privacy.protects: {span: 14d}"
        return
    if section.interval is not None and (section.interval == 0 or section.interval % every):
        yield f"interval: whole windows of {duration_text(every)}, such as {duration_text(7 * every)}"
        return
    try:
        choice, whole = section.choice(every), windows if span is None else None
        choice.settled(windows=whole, span=span, cells=1, grid=1.0)
        if choice.weights:
            spread_of(choice, windows=whole, span=span, noise="laplace")
    except ValueError as error:
        yield str(error)


def _not_weighted(
    section: DirectSection, served: list[QuerySection], privacy: PrivacySection, windows: int | None
) -> Iterator[str]:
    for query in served:
        if query.publish != ["level"]:
            yield f"weights are of levels by themselves; write publish: [level] in query {query.name}"
    if windows is not None and len(section.weights) > windows:
        yield (
            f"{counted(len(section.weights), 'weight')} for {counted(windows, 'window')}; give one for each, or fewer "
            "that are repeated"
        )
    if privacy.renewed is not None:
        yield "weights are of states as they are; remove privacy.constraint.at_most"
    if privacy.accounting == "paper":
        yield "privacy.accounting: paper charges every window alone, whatever its weight; remove that"


def _not_factorised(form: Form | None, privacy: PrivacySection, windows: int | None) -> Iterator[str]:
    if privacy.settled_mechanism == "laplace":
        needed = "privacy.mechanism: gaussian" if privacy.delta > 0 else "privacy.delta: 1.0e-9"
        yield f"factorised needs Gaussian noise; give {needed}, or use strategy: tree"
    elif privacy.accounting == "paper":
        yield "factorised has no bound with privacy.accounting: paper; remove that, or use strategy: tree"
    if form is not None and form not in ENDLESS_FORMS and windows is None:
        yield f"{form} needs a last window; add schedule.until, or use {{factorised: window}} or tree"


def split_problems(queries: list[QuerySection], *, split: str) -> Iterator[Problem]:
    """Where budgets follow errors, every query has the typical size of its numbers, and none a weight."""
    for place, query in enumerate(queries):
        above = ("queries", place)
        if split == "weights":
            if query.expected is not None and query.measure.column is not None and query.measure.sum is None:
                yield (
                    (*above, "expected"),
                    "is for counts and sums, since the error of a ratio depends on the data; remove it",
                )
            continue
        if query.measure.column is not None and query.measure.sum is None:
            message = "its error depends on the data; privacy.split: relative_error is for counts and sums"
            yield (*above, "measure"), message
        if query.expected is None:
            message = "missing; privacy.split: relative_error needs a typical size of the numbers, add expected: 100"
            yield (*above, "expected"), message
        if "weight" in query.model_fields_set:
            message = "the shares follow from expected with privacy.split: relative_error; remove one of the two"
            yield (*above, "weight"), message


def consistency_problems(queries: list[QuerySection], *, windows: int | None) -> Iterator[Problem]:
    """All numbers of a query are made consistent in memory; without an end their number is not known."""
    if windows is None:
        return
    for place, query in enumerate(queries):
        most = (MOST_CONSISTENT if query.over is None else MOST_OVER_CELLS) // (windows + 1)
        if query.consistent and query.cells > most:
            found = f"{counted(query.cells, 'cell')} in {counted(windows, 'window')}"
            message = f"{found}; at most {counted(most, 'cell')}, list fewer or remove this"
            yield ("queries", place, "consistent"), message
