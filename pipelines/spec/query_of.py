"""Convert the section of a query to the query that is computed."""

from collections.abc import Mapping
from decimal import Decimal

from pipelines.spec.numbers import PlainKind, SlidingSection
from pipelines.spec.queries import QuerySection, key_of
from pipelines.spec.rules import adaptive_of
from pipelines.spec.strategies import GivenStrategy, choice_of
from privacy.series import Series
from privacy.strategies.choice import Choice
from transforms.aggregation.expression import Condition
from transforms.aggregation.queries import Query


def query_of(
    section: QuerySection, *, every: int, strategy: GivenStrategy, distance: Mapping[str, Decimal | int]
) -> Query:
    """Return the query of a section, with the default grid of values.

    Keys are in the order of `QuerySection.keys`, each with its cells in the order of the spec.

    Args:
        section: The section of the query.
        every: Length of a window, in microseconds.
        strategy: Strategy of queries that name none.
        distance: Distance up to which places are indistinguishable, by column.
    """
    return Query(
        name=section.name,
        measure=section.measure.measure(),
        column=section.measure.column,
        invalid=section.measure.invalid,
        where=None if section.where is None else Condition.parse(section.where),
        by=tuple((key, key_of(section.by[key])) for key in section.keys),
        publish=tuple(_series(number, every) for number in section.kinds),
        quantiles=section.quantiles,
        ranges=section.ranges,
        marginals=section.marginals,
        hierarchies=section.hierarchies,
        weight=section.weight,
        expected=section.expected,
        consistent=section.consistent,
        strategy=_choice(section, strategy if section.strategy is None else section.strategy),
        over=section.over_cells(),
        apart=_apart(section, distance),
        adaptive=None if (adaptive := adaptive_of(section, strategy)) is None else adaptive.choice(every),
    )


def _apart(section: QuerySection, distance: Mapping[str, Decimal | int]) -> tuple[int, ...]:
    """Return the most cells between two units that are near each other, along each key."""
    if not distance:
        return ()
    near = {name: key.near(distance[name]) or 0 for name, key in section.ordered.items() if name in distance}
    return tuple(near.get(name, 0) for name in section.keys)


def _series(number: PlainKind | SlidingSection, every: int) -> Series:
    if isinstance(number, str):
        return Series(kind=number)
    step = every if number.every is None else number.every
    return Series(kind="sliding", width=number.sliding // every, every=step // every)


def _choice(section: QuerySection, strategy: GivenStrategy) -> Choice:
    choice = choice_of(strategy)
    return Choice(name="disjoint") if choice.name == "sliding" and not section.slides else choice
