"""The planner: which strategy releases a query with the least error, computed without data and without sampling.

A query's numbers come from one or several *parts*, each a strategy with its own noise: one part for all net changes
(levels, changes, sliding sums), or, for sliding windows by themselves, one for each series; and one for `entered` and
`left` each. The variance of a published number is the squared sensitivity of its part, over its share of the budget,
times the sum of squares of its weights (privacy.strategies.base). Parts share a query's budget evenly, so that k of
them cost a factor k of variance with Gaussian noise and k^2 with Laplace noise.

`auto` takes the option with the least root mean square error over all numbers that the query publishes. A query's share
is fixed by its weight, so that each query is planned by itself.

Where the spec asks for more of ordered cells than each by itself, strategies over cells (privacy.cells) are multiplied
with those in time, and compared with them: by the mean variance of what is asked of the cells.

Pan's theorems 4.8 and 4.9, which say when sliding windows should be derived from a tree, are the special case of two
candidates: privacy.planning.paper has their conditions, and a test holds them against the choice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from privacy.cells.fitting import strategies
from privacy.cells.product import Product
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.demand import Demand
from privacy.planning.pricing import root_mean_square
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import entry_squared, of_family, of_net
from privacy.planning.statement import unproved
from privacy.series import Family, Series
from privacy.strategies.base import Floats, Strategy
from privacy.strategies.candidates import Asked, Candidate
from privacy.strategies.choice import Name
from privacy.strategies.table import EVENTS, OFFERS

NOMINAL = 1024
"""Over so many windows the error of a release without end is averaged."""

GROWING = 0.01
"""So much of the error is given for a carry that does not grow with the schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A strategy and the series that are published from it.

    Attributes:
        leaf: windows that are merged into one leaf of the strategy.
        series: in windows.
        sensitivity: of all its nodes.
        over: the strategy over cells; None where each has noise of its own.
    """

    family: Family
    leaf: int
    strategy: Strategy
    series: tuple[Series, ...]
    sensitivity: Sensitivity
    over: Product | None = None

    @property
    def over_name(self) -> str:
        """Name of the strategy over cells; empty if each cell has its own noise."""
        return "" if self.over is None else " ".join(axis.name for axis in self.over.axes)

    def variances(self, series: Series, windows: int) -> Floats:
        """[numbers]: sums of squares of weights, see privacy.strategies.base; in the mean over what cells are for."""
        return mean_variances(self.strategy, self.over, series.merged(self.leaf), windows // self.leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to release all numbers of a query.

    Attributes:
        error: root mean square error over the numbers, for a whole budget of one unit: epsilon (Laplace) or
            (sensitivity / sigma)^2 (Gaussian), in normalised units.
    """

    name: str
    parts: tuple[Part, ...]
    error: float

    @property
    def kind(self) -> tuple[str, ...]:
        """What options of one kind have in common: they differ in their numbers alone."""
        return (self.name, *(part.strategy.variant + part.over_name for part in self.parts))

    @property
    def bounded(self) -> bool:
        """Whether what is carried from run to run stays of one size however long the release goes on."""
        return all(part.strategy.bounded for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is planned for: what a query asks, what a unit contributes, and the horizon.

    Attributes:
        adaptive: whether data may react to what is published, so that only strategies will do that are proved for it.
        accounting: how measurements will be composed; `paper` charges every touched node alone.
        over: the strategy over cells that is looked at.
    """

    demand: Demand
    promise: Promise
    mechanism: Mechanism
    adaptive: bool = False
    accounting: Accounting = "naive"
    over: Product | None = None

    @property
    def net(self) -> tuple[Series, ...]:
        return tuple(s for s in self.demand.series if s.family == "net")

    @property
    def initial_level(self) -> bool:
        """Whether the level at the start is released."""
        return any(s.kind == "level" for s in self.demand.series)

    @property
    def nominal(self) -> int:
        return nominal(self.promise.windows, self.demand.series)

    @property
    def changes(self) -> int:
        """How many changes of an entry cost its diameter, about."""
        if self.promise.span is not None:  # only its radius counts
            return 1
        most = max(leaves.appearing for leaves in self.promise.touched)
        return most if self.promise.windows is None else min(most, self.promise.windows + 1)

    def unit(self, leaf: int) -> Contribution:
        """What a unit contributes to net changes in leaves of so many windows."""
        return Contribution.of(self.demand, self.promise, leaf=leaf, over=self.over)


def mean_variances(strategy: Strategy, over: Product | None, series: Series, windows: int) -> Floats:
    """[numbers]: the variance in time, times the mean one over what the cells are for."""
    variances = strategy.variances(series, windows)
    return variances if over is None else variances * over.average()


def nominal(windows: int | None, series: Sequence[Series]) -> int:
    """Over how many windows errors are averaged: all, or, without an end, a number that depends on the spec alone."""
    return max([NOMINAL, *(2 * s.width for s in series)]) if windows is None else windows


def options(question: Question) -> tuple[Option, ...]:
    """The best option of each kind that the choice allows, the least error first.

    One whose carry grows with the schedule comes after one with up to `GROWING` more error whose carry does not.

    Raises:
        ValueError: none is allowed, or a query has no sensitivity.
    """
    events = tuple(_events_part(question, family) for family in _event_families(question))
    if not question.net:
        return (_option("tree" if question.demand.choice.name == "tree" else "disjoint", events, question),)
    found = [
        _option(name, (*_net_parts(asked, candidate), *events), asked)
        for asked in _over_cells(question)
        for name, candidate in _candidates(asked)
    ]
    if not found:
        raise ValueError(f"strategy {question.demand.choice.name} cannot be had here: {_lacking(question)}")
    best: dict[tuple[str, ...], Option] = {}
    for option in sorted(found, key=_cost):
        best.setdefault(option.kind, option)
    return tuple(best.values())


def _over_cells(question: Question) -> Iterator[Question]:
    """The question for each strategy over cells that is worth a look; as it is where none is asked for."""
    demand = question.demand
    if not (demand.over.asks or demand.apart):
        yield question
        return
    power = NOISE[question.mechanism].power
    blocks = question.promise.span is not None
    for over in strategies(
        demand.axes, demand.over, power=power, changes=question.changes, apart=demand.apart, blocks=blocks
    ):
        yield replace(question, over=over)


def _cost(option: Option) -> float:
    """The error, and a little more where what is carried from run to run grows with the schedule."""
    return option.error if option.bounded else (1 + GROWING) * option.error


def certified(option: Option, question: Question) -> Option:
    """The option that is released: with all numbers written out, and closer bounds of sensitivities where possible."""
    parts_ = [_certified(part, question) for part in option.parts]
    return _option(option.name, [replace(part, strategy=part.strategy.settled()) for part in parts_], question)


def _certified(part: Part, question: Question) -> Part:
    if not part.strategy.certifiable or question.demand.cells > 1:
        return part
    sensitivity = of_net(part.strategy, question.unit(part.leaf), closely=True)
    return part if part.sensitivity.l2 <= sensitivity.l2 else replace(part, sensitivity=sensitivity)


def _candidates(question: Question) -> Iterator[tuple[Name, Candidate]]:
    asked = _asked(question)
    for name, offer in OFFERS.items():
        if question.demand.choice.name not in ("auto", name) or not (offer.sparse or _beyond_sparse(question)):
            continue
        for candidate in offer.candidates(asked):
            if not (question.adaptive and any(unproved(question.mechanism, piece.strategy) for piece in candidate)):
                yield name, candidate


def _beyond_sparse(question: Question) -> bool:
    """Whether strategies that are not sparse can be had: where moving many nodes a little costs little."""
    return NOISE[question.mechanism].dense and question.accounting != "paper"


def _lacking(question: Question) -> str:
    assert question.demand.choice.name != "auto"
    offer = OFFERS[question.demand.choice.name]
    if not offer.sparse and not NOISE[question.mechanism].dense:
        return "it needs Gaussian noise, and so a delta"
    if not offer.sparse and question.accounting == "paper":
        return "accounting paper charges every node alone"
    if question.adaptive and next(offer.candidates(_asked(question)), None) is not None:
        return (
            f"{question.demand.choice.refine} uses Gaussian noise in advance, which is not proved for data that "
            "react to what is published (adaptive_data); use refine: bottom_up, Laplace noise, or auto"
        )
    return offer.lacking.format(form=question.demand.choice.form)


def _asked(question: Question) -> Asked:
    def error(candidate: Candidate) -> float:
        return _option("", _net_parts(question, candidate), question).error

    return Asked(
        series=question.net,
        windows=question.promise.windows,
        nominal=question.nominal,
        initial_level=question.initial_level,
        choice=question.demand.choice,
        boundaries=question.promise.boundaries,
        counted=question.promise.counts_changes,
        power=NOISE[question.mechanism].power,
        squared_norm=lambda strategy, leaf: entry_squared(strategy, question.unit(leaf)),
        error=error,
    )


def _option(name: str, parts_: Sequence[Part], question: Question) -> Option:
    error = root_mean_square(parts_, question.nominal, question.mechanism, question.accounting)
    return Option(name=name, parts=tuple(parts_), error=error)


def _net_parts(question: Question, candidate: Candidate) -> tuple[Part, ...]:
    """A candidate with its sensitivities, and what it leaves out window by window."""
    rest = tuple(s for s in question.net if all(s not in piece.series for piece in candidate))
    if rest:
        asked = replace(_asked(question), series=rest)
        candidate = (*candidate, *next(OFFERS["disjoint"].candidates(asked)))
    return tuple(
        Part(
            family="net",
            leaf=piece.leaf,
            strategy=piece.strategy,
            series=piece.series,
            sensitivity=of_net(piece.strategy, question.unit(piece.leaf)),
            over=question.over,
        )
        for piece in candidate
    )


def _event_families(question: Question) -> list[Family]:
    return list(dict.fromkeys(s.family for s in question.demand.series if s.family != "net"))


def _events_part(question: Question, family: Family) -> Part:
    """With the strategy over cells that is the best for these numbers by themselves."""
    strategy = EVENTS(question.demand.choice, question.promise.windows)

    def part(over: Product | None) -> Part:
        return Part(
            family=family,
            leaf=1,
            strategy=strategy,
            series=tuple(s for s in question.demand.series if s.family == family),
            sensitivity=of_family(family, strategy, replace(question, over=over).unit(1)),
            over=over,
        )

    renewed = question.promise.span is not None and question.promise.counts_changes
    if not question.demand.over.asks or renewed:
        return part(None)
    found: list[tuple[float, int, Part]] = []
    for asked in _over_cells(question):
        alone = asked.over is None or asked.over.trivial
        one = part(None if alone else asked.over)
        found.append((_over_all(replace(one, over=asked.over), question), len(found), one))
    return min(found)[-1]


def _over_all(part: Part, question: Question) -> float:
    """The error over what cells are for."""
    return root_mean_square([part], question.nominal, question.mechanism, question.accounting)
