"""Rules of strategies for a plan made in Python; specs use the table of strategies, for all queries at once."""

from collections.abc import Iterator

from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.demand import Demand
from privacy.planning.promise import Promise
from privacy.problems import RuleError
from privacy.strategies.candidates import QueryNumbers, StrategyTerms
from privacy.strategies.table import problems


def strategy_problems(
    demand: Demand, promise: Promise, mechanism: Mechanism, accounting: Accounting
) -> Iterator[RuleError]:
    """Yield the rules that the choice of a query breaks, with paths relative to the strategy.

    Args:
        demand: requirements of the query, with its choice.
        promise: promise of the release.
        mechanism: kind of noise under consideration.
        accounting: how parts are composed.
    """
    published = QueryNumbers(
        name=demand.name,
        levels=all(series.kind == "level" for series in demand.series),
        slides=any(series.kind == "sliding" for series in demand.series),
    )
    terms = StrategyTerms(
        published=(published,),
        windows=promise.windows,
        everything=promise.span is None,
        renewed=promise.span is not None and promise.counts_changes,
        mechanism=mechanism,
        delta=not NOISE[mechanism].pure,
        accounting=accounting,
    )
    return problems(demand.choice, terms)
