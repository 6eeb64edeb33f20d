"""Rules for the published numbers of queries, for releases made in Python and for specs.

Paths start at a query of the spec.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from privacy.checks import POSITIVE
from privacy.counted import counted
from privacy.planning.plan import Plan
from privacy.problems import RuleError
from transforms.aggregation.listed_key import Scalar
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import ALL, marginals_of

MOST_CONSISTENT = 2**24
"""Most numbers of one query that are made consistent at once: its cells times its windows and the start."""

MOST_OVER_CELLS = 2**20
"""Same limit with a strategy over cells, which takes about ten microseconds for each number."""

MOST_OF_QUANTILES = 10_000
"""Most cells along the key of quantiles; the time for quantiles grows with its square."""

MOST_TABLES = 1_000
"""Most marginals of one query, counted with all levels of its hierarchies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Columns that a query reads.

    Attributes:
        where: Columns of its condition.
        measured: Measured column; None for counts.
        listed: Keys with listed cells.
        ranges: Keys whose cells are ranges.
    """

    where: Collection[str]
    measured: str | None
    listed: Collection[str]
    ranges: Collection[str]


def near_problems(read: Read, near: Sequence[str]) -> Iterator[RuleError]:
    """Yield what a query reads of places besides their ranges, if units are protected that are near each other.

    Everything else that a query uses of a unit must be equal for units that are near each other.

    Args:
        read: Columns that the query reads.
        near: Columns in which units are near; empty: the presence of a unit is protected.
    """
    if near and not any(name in read.ranges for name in near):
        yield RuleError(f"has no range of {', '.join(near)}, so nothing of it would be protected; remove it")
    for name in near:
        if name in read.where:
            yield RuleError(f"reads {name}: units that are near each other would be in the query or not", "where")
        if name == read.measured:
            yield RuleError(f"reads {name}, which differs between units that are near each other", "measure")
        if name in read.listed:
            message = "is protected up to a distance; give ranges as {from: 0, to: 100, step: 1}"
            yield RuleError(message, "by", name)


def consistency_problems(*, ratio: bool, low: float | None, kinds: Collection[str]) -> Iterator[RuleError]:
    """Yield why numbers cannot be made consistent.

    Args:
        ratio: Whether they are means, second moments or variances.
        low: Lower clamping bound of a sum; None for counts.
        kinds: Kinds of published numbers.
    """
    if ratio:
        yield RuleError("for counts and sums only; remove it", "consistent")
    elif low is not None and low < 0:
        yield RuleError("a sum of values below 0 may be negative; use min: 0, or remove it", "consistent")
    if not {"level", "entered", "left"}.intersection(kinds):
        message = "changes may be negative; publish level, entered or left, or remove it"
        yield RuleError(message, "consistent")


def size_problems(cells: int, windows: int | None, *, over: bool) -> Iterator[RuleError]:
    """Yield why numbers cannot be made consistent at once; all of them are in memory, so the release must have an end.

    Args:
        cells: Number of cells of the query.
        windows: Number of windows; None if the release has no end.
        over: Whether the query has a strategy over cells.
    """
    if windows is None:
        return
    most = (MOST_OVER_CELLS if over else MOST_CONSISTENT) // (windows + 1)
    if cells > most:
        found = f"{counted(cells, 'cell')} in {counted(windows, 'window')}"
        message = f"{found}; at most {counted(most, 'cell')}, list fewer or remove this"
        yield RuleError(message, "consistent")


def quantile_problems(ordered: Sequence[OrderedKey], *, valued: bool, consistent: bool) -> Iterator[RuleError]:
    """Yield why quantiles cannot be published.

    Args:
        ordered: Keys whose cells are ranges.
        valued: Whether the query measures a column.
        consistent: Whether its numbers are made consistent.
    """
    if len(ordered) != 1 or ordered[0].moments:
        message = "quantiles are along one key with ranges of numbers, as {from: 0, to: 100, step: 5}"
        yield RuleError(message, "publish")
    elif len(ordered[0]) > MOST_OF_QUANTILES:
        yield RuleError(f"quantiles are along {MOST_OF_QUANTILES:,} cells at most; take larger steps", "publish")
    if valued:
        yield RuleError("quantiles are of counts; write measure: count", "publish")
    if consistent:
        yield RuleError("quantiles are made from counts as they are; remove them, or consistent", "publish")


def range_problems(ordered: Collection[str], *, consistent: bool) -> Iterator[RuleError]:
    """Yield why sums of ranges cannot be published."""
    if not ordered:
        message = "ranges are of keys whose cells have an order, as {from: 0, to: 100, step: 5} under by"
        yield RuleError(message)
    elif consistent:
        yield RuleError("ranges are sums of cells as they are; remove them, or consistent")


def kind_problems(ordered: Mapping[str, OrderedKey], numbers: Collection[str]) -> Iterator[RuleError]:
    """Yield the keys of a query with ranges of times in a column that holds numbers elsewhere.

    Args:
        ordered: Keys whose cells are ranges.
        numbers: Columns that any query measures, or of which it has ranges of numbers.
    """
    for name, key in ordered.items():
        if key.moments and name in numbers:
            yield RuleError("ranges of times, but the column holds numbers elsewhere; use one kind", "by", name)


def marginal_problems(
    marginals: Sequence[Sequence[str]], keys: Collection[str], weighted: Mapping[int, float] = MappingProxyType({})
) -> Iterator[RuleError]:
    """Yield why marginals cannot be published; paths begin with the place of a marginal in the list.

    Args:
        marginals: Keys that each marginal keeps.
        keys: Keys of the query.
        weighted: Weights of marginals, by their places; one of all keys gives the weight of the cells.
    """
    for place, weight in weighted.items():
        yield from (problem.below(place) for problem in POSITIVE.problems("weight", weight))
    if not keys:
        yield RuleError("marginals are sums over keys, and the query has none; add by, or remove them")
    elif len(weighted) == len(marginals) and all(set(one) >= {*keys} for one in marginals):
        yield RuleError("states the weight of the cells and no marginal; list one, such as [] for the total")
    known: list[set[str]] = []
    for place, marginal in enumerate(marginals):
        for at, name in enumerate(marginal):
            if name not in keys:
                yield RuleError(f"not a key; the query has {', '.join(keys)}", place, at)
            elif name in marginal[:at]:
                yield RuleError("listed twice; list it once", place, at)
        if set(marginal) >= {*keys} and place not in weighted:
            yield RuleError("keeps all keys: these are the cells, which are published anyway; remove it", place)
        elif set(marginal) in known:
            yield RuleError(f"the same keys as [{known.index(set(marginal))}]; list them once", place)
        known.append(set(marginal))


def all_problems(listed: Mapping[str, Sequence[Scalar]], marginals: Sequence[Collection[str]]) -> Iterator[RuleError]:
    """Yield the listed values that have the text of sums over their key.

    Args:
        listed: Values of each key with listed cells.
        marginals: Keys that each marginal keeps.
    """
    for name, values in listed.items():
        if ALL in values and any(name not in marginal for marginal in marginals):
            message = f"a marginal has the text {ALL} for the sum over {name}; rename this value in the source"
            yield RuleError(message, "by", name, list(values).index(ALL))


def table_problems(tables: int) -> Iterator[RuleError]:
    """Yield why the marginals and levels of a query are too many tables."""
    if tables > MOST_TABLES:
        message = f"{tables:,} marginals with the levels of trees; at most {MOST_TABLES:,}, leave out some"
        yield RuleError(message, "publish")


def discovery_problems(keys: Sequence[str], *, sums: bool, hierarchy: bool) -> Iterator[RuleError]:
    """Yield why keys of a query cannot be found next to its other keys.

    Args:
        keys: Keys that are found.
        sums: Whether quantiles, ranges or marginals are published.
        hierarchy: Whether a key has a hierarchy.
    """
    for name in keys[1:]:
        yield RuleError("a second key that is found; list the values of this one", "by", name)
    if sums:
        message = "sums over cells need listed cells; remove quantiles, ranges and marginals, or list the found key"
        yield RuleError(message, "publish")
    if hierarchy:
        yield RuleError("a tree does not go together with a key that is found; list its values", "by")


def problems(query: Query, plan: Plan) -> Iterator[RuleError]:
    """Yield the rules that a query of a plan breaks."""
    measure, span = query.measure, plan.promise.protects.span
    if query.discovers:
        sums = bool(query.quantiles or query.ranges or query.marginals)
        keys = [name for name, _ in query.by if name not in dict(query.known)]
        yield from discovery_problems(keys, sums=sums, hierarchy=bool(query.hierarchies))
    ordered = dict(query.ordered)
    read = Read(
        where=() if query.where is None else query.where.columns,
        measured=query.column,
        listed=[name for name, _ in query.listed],
        ranges=ordered,
    )
    yield from near_problems(read, () if span is None else [name for name, _ in span.near])
    if query.consistent:
        kinds = [series.kind for series in query.publish]
        low = measure.low if measure.valued else None
        yield from consistency_problems(ratio=len(measure.components) > 1, low=low, kinds=kinds)
        yield from size_problems(query.cells, plan.promise.windows, over=query.over.asks)
    if query.quantiles:
        yield from quantile_problems([*ordered.values()], valued=measure.valued, consistent=query.consistent)
    if query.ranges:
        yield from range_problems(ordered, consistent=query.consistent)
    if query.marginals:
        yield from marginal_problems(query.marginals, [name for name, _ in query.by])
        yield from all_problems(dict(query.listed), query.marginals)
    yield from table_problems(len(marginals_of(query)))
