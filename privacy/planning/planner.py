"""Planner: the strategy that releases a query with the least error, computed without data and without sampling.

A query's numbers come from one or several *parts*, each a strategy with its own noise: one part for all net changes
(levels, changes, sliding sums), or, with sliding windows as nodes, one for each series; and one for `entered` and
`left` each. The variance of a published number is the squared sensitivity of its part, over its share of the budget,
times the sum of squares of its weights (privacy.strategies.base). Parts share a query's budget evenly, so that k of
them cost a factor k of variance with Gaussian noise and k^2 with Laplace noise.

`auto` takes the option with the least root mean square error over all numbers that the query publishes. A query's share
is fixed by its weight, so each query is planned separately.

If the spec requires more of ordered cells than separate noise, strategies over cells (privacy.cells) are combined with
those in time, and compared with them by the mean variance of the required queries over cells.

Pan's theorems 4.8 and 4.9, which state when sliding windows should be derived from a tree, are the special case of two
candidates: tests/paper.py has their conditions, and a test compares the choice with them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from privacy.cells.offer import CellTerms
from privacy.cells.product import Product
from privacy.cells.table import strategies
from privacy.discovery.threshold import listable, small
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.contribution import Contribution
from privacy.planning.costed import Costed, Option
from privacy.planning.demand import Demand
from privacy.planning.pricing import root_mean_square
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import entry_squared, of_family, of_net
from privacy.planning.statement import unproved
from privacy.planning.strategy_rules import strategy_problems
from privacy.problems import RuleError
from privacy.series import Family, Series
from privacy.strategies.base import Strategy
from privacy.strategies.candidates import LARGEST_STATE, Candidate, Needs
from privacy.strategies.table import EVENTS, OFFERS
from privacy.ties import cheapest, cheapest_first

NOMINAL = 1024
"""Number of windows over which the error of a release without end is averaged."""

GROWING = 0.01
"""Increase of the error that is accepted for a carry that does not grow with the schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningTask:
    """Planning task: requirements of a query, contribution of a unit, and the horizon.

    Attributes:
        reacting: whether data may react to published numbers, so that only strategies proved for this are allowed.
        accounting: how measurements will be composed; `paper` charges every touched node separately.
        over: the strategy over cells under consideration.
    """

    demand: Demand
    promise: Promise
    mechanism: Mechanism
    reacting: bool = False
    accounting: Accounting = "naive"
    over: Product | None = None

    @property
    def net(self) -> tuple[Series, ...]:
        return tuple(s for s in self.demand.series if s.family == "net")

    @property
    def initial_level(self) -> bool:
        """Whether the initial level is released."""
        return any(s.kind == "level" for s in self.demand.series)

    @property
    def nominal(self) -> int:
        return nominal(self.promise.windows, self.demand.series)

    @property
    def changes(self) -> int:
        """Approximate number of changes of an entry that cost its diameter."""
        if self.promise.span is not None:  # only its radius counts
            return 1
        most = max(leaves.appearing for leaves in self.promise.touched)
        return most if self.promise.windows is None else min(most, self.promise.windows + 1)

    @property
    def size(self) -> int:
        """Largest value that a state has in one column, in grid steps."""
        weight = 1 if self.over is None else self.over.heaviest
        return weight * max(component.largest for component in self.demand.measure.components)

    def unit(self, leaf: int) -> Contribution:
        """Return the contribution of a unit to net changes in leaves of `leaf` windows."""
        return Contribution.of(self.demand, self.promise, leaf=leaf, over=self.over)


def nominal(windows: int | None, series: Sequence[Series]) -> int:
    """Return the windows over which errors are averaged: all, or, without an end, a number set by the spec alone."""
    return max([NOMINAL, *(2 * s.width for s in series)]) if windows is None else windows


@lru_cache(maxsize=64)  # a page of a plan compares the same tasks again
def options(task: PlanningTask) -> tuple[Option, ...]:
    """Return the best option of each kind that the choice allows, the least error first.

    An option whose carry grows with the schedule follows an option of up to `GROWING` more error without growth.

    Raises:
        ValueError: no option is allowed, or a query has no sensitivity.
    """
    events = tuple(_events_part(task, family) for family in _event_families(task))
    if not task.net:
        return (_option("tree" if task.demand.choice.name == "tree" else "disjoint", events, task),)
    found = [
        _option(name, (*_net_parts(asked, candidate), *events), asked)
        for asked in _over_cells(task)
        for name, candidate in _candidates(asked)
    ]
    if not found:
        raise _lacking(task).below("queries", task.demand.name, "strategy")
    best: dict[tuple[str, ...], Option] = {}
    for option in cheapest_first(found, _cost):
        best.setdefault(option.kind, option)
    return tuple(best.values())


def _over_cells(task: PlanningTask) -> Iterator[PlanningTask]:
    """Yield the task for each candidate over cells; unchanged if the spec requires none."""
    demand = task.demand
    if not (demand.over.asks or demand.apart):
        yield task
        return
    terms = CellTerms(
        space=demand.axes,
        choice=demand.over,
        power=NOISE[task.mechanism].power,
        changes=task.changes,
        apart=demand.apart,
        blocks=task.promise.span is not None,
    )
    for over in strategies(terms):
        yield replace(task, over=over)


def _cost(option: Option) -> float:
    """Return the error, increased a little if the carry between runs grows with the schedule."""
    return option.error if option.bounded else (1 + GROWING) * option.error


def certified(option: Option, task: PlanningTask) -> Option:
    """Return the option to release: with all numbers written out, and closer bounds of sensitivities if possible."""
    parts_ = [_certified(part, task) for part in option.parts]
    return _option(option.name, [replace(part, strategy=part.strategy.settled()) for part in parts_], task)


def _certified(part: Costed, task: PlanningTask) -> Costed:
    if not part.strategy.certifiable or task.demand.cells > 1:
        return part
    sensitivity = of_net(part.strategy, task.unit(part.leaf), closely=True)
    return part if part.sensitivity.l2 <= sensitivity.l2 else replace(part, sensitivity=sensitivity)


def _candidates(task: PlanningTask) -> Iterator[tuple[str, Candidate]]:
    asked = _asked(task)
    for name, offer in OFFERS.items():
        if task.demand.choice.name not in ("auto", name) or not (offer.sparse or _beyond_sparse(task)):
            continue
        if task.demand.discover and not offer.finds_keys:
            continue
        for candidate in offer.candidates(asked):
            strategies_ = [piece.strategy for piece in candidate]
            if task.reacting and any(unproved(task.mechanism, one) for one in strategies_):
                continue
            if not task.demand.discover or all(_finds_keys(one, task) for one in strategies_):
                yield name, candidate


def _finds_keys(strategy: Strategy, task: PlanningTask) -> bool:
    """Return whether keys can be found by a strategy; the state of a key is small unless the spec names a form."""
    subgaussian = NOISE[task.mechanism].distribution.stable
    fits = small(strategy) or task.demand.choice.form is not None
    return fits and listable(strategy, subgaussian=subgaussian, reacting=task.reacting)


def _beyond_sparse(task: PlanningTask) -> bool:
    """Return whether strategies that are not sparse are available: if moving many nodes a little costs little."""
    return NOISE[task.mechanism].dense and task.accounting != "paper"


def _lacking(task: PlanningTask) -> RuleError:
    """Return the reason why a choice has no candidates."""
    choice = task.demand.choice
    for problem in strategy_problems(task.demand, task.promise, task.mechanism, task.accounting):
        return problem
    if task.reacting and next(OFFERS[choice.name].candidates(_asked(task)), None) is not None:
        return RuleError(
            f"{choice.refine} uses Gaussian noise in advance, which is not proved for data that "
            "react to what is published (adaptive_data); use refine: bottom_up, Laplace noise, or auto"
        )
    if not OFFERS[choice.name].sparse and min(asked.size for asked in _over_cells(task)) > LARGEST_STATE:
        return RuleError(
            f"{choice.name} has no room for 16 million entries with these bounds and cells; use narrower bounds, "
            "another strategy over cells, or tree"
        )
    return RuleError(f"no {choice.name} of this shape fits into the schedule; leave out some of its settings")


def _asked(task: PlanningTask) -> Needs:
    def error(candidate: Candidate) -> float:
        return _option("", _net_parts(task, candidate), task).error

    choice = task.demand.choice
    if task.demand.discover and (task.reacting or not NOISE[task.mechanism].distribution.stable):
        choice = replace(choice, refine="none")  # others are not `listable`
    return Needs(
        series=task.net,
        windows=task.promise.windows,
        nominal=task.nominal,
        initial_level=task.initial_level,
        choice=choice,
        boundaries=task.promise.boundaries,
        counted=task.promise.counts_changes,
        power=NOISE[task.mechanism].power,
        size=task.size,
        squared_norm=lambda strategy, leaf: entry_squared(strategy, task.unit(leaf)),
        error=error,
    )


def _option(name: str, parts_: Sequence[Costed], task: PlanningTask) -> Option:
    error = root_mean_square(parts_, task.nominal, task.mechanism, task.accounting)
    return Option(name=name, parts=tuple(parts_), error=error)


def _net_parts(task: PlanningTask, candidate: Candidate) -> tuple[Costed, ...]:
    """Return a candidate with its sensitivities, and the series that it omits, window by window."""
    rest = tuple(s for s in task.net if all(s not in piece.series for piece in candidate))
    if rest:
        asked = replace(_asked(task), series=rest)
        candidate = (*candidate, *next(OFFERS["disjoint"].candidates(asked)))
    return tuple(
        Costed(
            family="net",
            leaf=piece.leaf,
            strategy=piece.strategy,
            series=piece.series,
            sensitivity=of_net(piece.strategy, task.unit(piece.leaf)),
            over=task.over,
        )
        for piece in candidate
    )


def _event_families(task: PlanningTask) -> list[Family]:
    return list(dict.fromkeys(s.family for s in task.demand.series if s.family != "net"))


def _events_part(task: PlanningTask, family: Family) -> Costed:
    """Return the part of a family, with the best strategy over cells for these numbers."""
    strategy = EVENTS(task.demand.choice, task.promise.windows)

    def part(over: Product | None) -> Costed:
        return Costed(
            family=family,
            leaf=1,
            strategy=strategy,
            series=tuple(s for s in task.demand.series if s.family == family),
            sensitivity=of_family(family, strategy, replace(task, over=over).unit(1)),
            over=over,
        )

    renewed = task.promise.span is not None and task.promise.counts_changes
    if not task.demand.over.asks or renewed:
        return part(None)
    found: list[tuple[float, Costed]] = []
    for asked in _over_cells(task):
        alone = asked.over is None or asked.over.trivial
        one = part(None if alone else asked.over)
        found.append((_over_all(replace(one, over=asked.over), task), one))
    return cheapest(found, lambda priced: priced[0])[1]


def _over_all(part: Costed, task: PlanningTask) -> float:
    """Return the error over the queries that cells are for."""
    return root_mean_square([part], task.nominal, task.mechanism, task.accounting)
