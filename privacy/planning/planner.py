"""The planner: which strategy releases a query with the least error, computed without data and without sampling.

A query's numbers come from one or several *parts*, each a strategy with its own draws: one part for all net changes
(levels, changes, sliding sums), or, for direct sliding windows, one for each series; and one for `entered` and `left`
each. The variance of a published number is the squared sensitivity of its part, over its share of the budget, times the
sum of squares of its weights (privacy.strategies.base). Parts share a query's budget evenly, so that k of them cost a
factor k of variance with Gaussian noise and k^2 with Laplace noise.

`auto` takes the option with the least root mean square error over all numbers that the query publishes. A query's share
is fixed by its weight, so that each query is planned by itself.

Pan's theorems 4.8 and 4.9, which tell when sliding windows should be derived from a tree, are the special case of two
candidates: privacy.planning.paper has their conditions, and a test holds them against the choice.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from privacy.accounting.composition import Mechanism
from privacy.constraint import Constraint, parts
from privacy.measure import Measure
from privacy.planning.sensitivity import Contribution, Sensitivity, of_events, of_net
from privacy.planning.statement import unproved
from privacy.series import Family, Series
from privacy.states import in_l2_squared
from privacy.strategies.direct import Direct
from privacy.strategies.factorised import Factorised, Form
from privacy.strategies.factorised_energy import Floats
from privacy.strategies.factorised_filters import of_filter
from privacy.strategies.factorised_fitting import fit
from privacy.strategies.tree import Refine, Tree

NOMINAL = 1024
"""Over so many windows the error of a release without end is averaged."""

Name = Literal["auto", "disjoint", "sliding", "tree", "factorised"]
FORMS: tuple[Form, ...] = ("square_root", "leaky", "arma", "window")
REFINES: tuple[Refine, ...] = ("none", "subtraction", "bottom_up", "least_squares")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the spec says of the strategy; None is left to the planner."""

    name: Name = "auto"
    branching: int | None = None
    height: int | None = None
    refine: Refine | None = None
    form: Form | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A strategy and the series that are published from it.

    Attributes:
        leaf: windows that are merged into one leaf of the strategy.
        series: in windows.
        sensitivity: of all its nodes.
    """

    family: Family
    leaf: int
    strategy: Tree | Direct | Factorised
    series: tuple[Series, ...]
    sensitivity: Sensitivity

    def variances(self, series: Series, windows: int) -> Floats:
        """[numbers]: sums of squares of weights, see privacy.strategies.base."""
        return self.strategy.variances(series.merged(self.leaf), windows // self.leaf)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is planned for: a query's series, what a unit contributes, and the horizon.

    Attributes:
        windows: how many, or None if the release has no end.
        adaptive: whether data may react to what is published, so that only strategies will do that are proved for it.
        paper: whether every touched node is charged alone; filters then have no bound.
    """

    measure: Measure
    cells: int
    series: tuple[Series, ...]
    constraint: Constraint
    window: int
    windows: int | None
    owner: bool
    mechanism: Mechanism
    adaptive: bool = False
    paper: bool = False

    @property
    def net(self) -> tuple[Series, ...]:
        return tuple(s for s in self.series if s.family == "net")

    @property
    def opening(self) -> bool:
        """Whether the level at start is told."""
        return any(s.kind == "level" for s in self.series)

    @property
    def nominal(self) -> int:
        return nominal(self.windows, self.series)

    def unit(self, leaf: int) -> Contribution:
        """What a unit contributes to leaves of so many windows."""
        return Contribution(
            components=self.measure.components,
            cells=self.cells,
            constraint=self.constraint,
            window=self.window * leaf,
            owner=self.owner,
        )


def nominal(windows: int | None, series: Sequence[Series]) -> int:
    """Over how many windows errors are averaged: all, or, without an end, a number that depends on the spec alone."""
    return max([NOMINAL, *(2 * s.width for s in series)]) if windows is None else windows


def options(question: Question, choice: Choice) -> list[Option]:
    """The best option of each kind that the choice allows, the least error first.

    Raises:
        ValueError: none is allowed, or a query has no sensitivity.
    """
    events = tuple(_events_part(question, choice, family) for family in _event_families(question))
    if not question.net:
        return [_option("tree" if choice.name == "tree" else "disjoint", events, question)]
    found = [_option(name, (*net, *events), question) for name, net in _net_parts(question, choice)]
    if not found:
        raise ValueError(f"strategy {choice.name} cannot be had here: {_why_not(question, choice)}")
    best: dict[str, Option] = {}
    for option in sorted(found, key=lambda o: o.error):
        best.setdefault(_kind(option), option)
    return list(best.values())


def _kind(option: Option) -> str:
    """Options of one kind differ in their numbers alone."""
    words = (str(v) for part in option.parts for v in part.strategy.parameters.values() if isinstance(v, str))
    return " ".join([option.name, *words])


def _net_parts(question: Question, choice: Choice) -> Iterator[tuple[str, tuple[Part, ...]]]:
    if choice.name in ("auto", "disjoint"):
        yield "disjoint", (_net_part(question, question.net, _disjoint(question)),)
    if choice.name in ("auto", "sliding") and any(s.kind == "sliding" for s in question.net):
        yield "sliding", tuple(_direct_parts(question))
    if choice.name in ("auto", "tree"):
        for tree in _trees(question, choice):
            yield "tree", (_net_part(question, question.net, tree),)
    if choice.name in ("auto", "factorised") and question.mechanism == "gaussian" and not question.paper:
        for factorised in _factorised(question, choice):
            yield "factorised", (_net_part(question, question.net, factorised),)


def _why_not(question: Question, choice: Choice) -> str:
    if choice.name == "sliding":
        return "no sliding numbers are published"
    if choice.name == "factorised" and question.mechanism != "gaussian":
        return "it needs Gaussian noise, and so a delta"
    if choice.name == "factorised":
        return f"the form {choice.form} needs an end of the schedule"
    if question.adaptive and choice.refine in ("subtraction", "least_squares"):
        return (
            f"{choice.refine} draws Gaussian noise in advance, which is not proved for data that react to what is "
            "published (adaptive_data); use refine: bottom_up, Laplace noise, or auto"
        )
    return "no tree of this branching and height fits into the schedule"


def _option(name: str, parts_: Sequence[Part], question: Question) -> Option:
    squares, numbers = 0.0, 0
    for part in parts_:
        length = _charged(part.sensitivity, question)
        for series in part.series:
            variances = part.variances(series, question.nominal)
            squares += length * length * float(variances.sum())
            numbers += len(variances)
    split = len(parts_) if question.mechanism == "gaussian" else len(parts_) ** 2
    error = math.sqrt(split * squares / numbers) if numbers else math.inf
    return Option(name=name, parts=tuple(parts_), error=error)


def _charged(sensitivity: Sensitivity, question: Question) -> float:
    """Standard deviation of one node's noise at a loss of one unit, without the share."""
    if question.mechanism == "gaussian":
        return sensitivity.nodes * sensitivity.node_l2 if question.paper else sensitivity.l2
    return math.sqrt(2) * (sensitivity.nodes * sensitivity.node_l1 if question.paper else sensitivity.l1)


def _leaf(question: Question, series: Sequence[Series]) -> int:
    """Windows in one leaf: all that sliding windows ever need, if nothing else is published."""
    if any(s.kind != "sliding" for s in series):
        return 1
    return math.gcd(*(length for s in series for length in (s.width, s.every)))


def _horizon(question: Question, leaf: int) -> int | None:
    return None if question.windows is None else question.windows // leaf


def _net_part(question: Question, series: Sequence[Series], strategy: Tree | Direct | Factorised) -> Part:
    leaf = _leaf(question, series)
    unit = question.unit(leaf)
    sensitivity = of_net(strategy, unit)
    return Part(family="net", leaf=leaf, strategy=strategy, series=tuple(series), sensitivity=sensitivity)


def certified(option: Option, question: Question) -> Option:
    """The option with closer bounds of its sensitivities, where they can be computed: for filters on a short line."""
    return _option(option.name, [_certified(part, question) for part in option.parts], question)


def _certified(part: Part, question: Question) -> Part:
    if not isinstance(part.strategy, Factorised) or question.cells > 1:
        return part
    sensitivity = of_net(part.strategy, question.unit(part.leaf), closely=True)
    return part if part.sensitivity.l2 <= sensitivity.l2 else replace(part, sensitivity=sensitivity)


def _event_families(question: Question) -> list[Family]:
    return list(dict.fromkeys(s.family for s in question.series if s.family != "net"))


def _events_part(question: Question, choice: Choice, family: Family) -> Part:
    """Numbers of single windows: a layer of leaves is best, and the tree of the spec is taken if it names one."""
    assert family != "net"
    tree = Tree(branching=2, height=1, refine="none", windows=question.windows, opening=False)
    if choice.name == "tree" and choice.branching is not None and choice.height is not None:
        tree = replace(tree, branching=choice.branching, height=choice.height)
    return Part(
        family=family,
        leaf=1,
        strategy=tree,
        series=tuple(s for s in question.series if s.family == family),
        sensitivity=of_events(family, tree, question.unit(1)),
    )


def _disjoint(question: Question) -> Tree:
    leaf = _leaf(question, question.net)
    return Tree(branching=2, height=1, refine="none", windows=_horizon(question, leaf), opening=question.opening)


def _direct_parts(question: Question) -> Iterator[Part]:
    """Every sliding series by itself, and the rest of the net changes window by window."""
    for series in question.net:
        if series.kind == "sliding":
            leaf = _leaf(question, [series])
            direct = Direct(width=series.width // leaf, every=series.every // leaf, windows=_horizon(question, leaf))
            yield _net_part(question, [series], direct)
    rest = [s for s in question.net if s.kind != "sliding"]
    if rest:
        tree = Tree(branching=2, height=1, refine="none", windows=question.windows, opening=question.opening)
        yield _net_part(question, rest, tree)


def _trees(question: Question, choice: Choice) -> Iterator[Tree]:
    """Trees that the choice allows and that are worth a look."""
    leaf = _leaf(question, question.net)
    leaves = question.nominal // leaf
    shapes = [
        Tree(branching=c, height=h, refine="none", windows=_horizon(question, leaf), opening=question.opening)
        for c in ([choice.branching] if choice.branching is not None else _branchings(leaves))
        for h in ([choice.height] if choice.height is not None else _heights(c, leaves))
        if c ** (h - 1) <= leaves or question.windows is None
    ]
    if choice.height is None and choice.branching is None:
        shapes = _promising(question, shapes)
    for refine in REFINES if choice.refine is None else (choice.refine,):
        refined = (replace(shape, refine=refine) for shape in shapes)
        yield from (tree for tree in refined if not (question.adaptive and unproved(question.mechanism, tree)))


PROMISING = 6
"""Shapes of trees whose refinements are computed."""


def _promising(question: Question, shapes: Sequence[Tree]) -> list[Tree]:
    """The shapes with the least error, by the plain cover and by subtraction: refining is dear to compute."""
    kept: dict[Tree, None] = {}
    for refine in ("none", "subtraction"):
        errors = {
            shape: _option("tree", [_net_part(question, question.net, replace(shape, refine=refine))], question).error
            for shape in shapes
        }
        kept.update(dict.fromkeys(sorted(shapes, key=errors.__getitem__)[:PROMISING]))
    return list(kept)


def _branchings(leaves: int) -> list[int]:
    """2, 3, 4, ... and then every tenth part more, up to all leaves."""
    values, c = [], 2
    while c <= min(leaves, 1024):
        values.append(c)
        c = max(c + 1, int(c * 1.1))
    return values


def _heights(branching: int, leaves: int) -> list[int]:
    heights: list[int] = []
    size = branching
    while size <= leaves:
        heights.append(len(heights) + 2)
        size *= branching
    return heights


def _factorised(question: Question, choice: Choice) -> Iterator[Factorised]:
    leaf = _leaf(question, question.net)
    windows = _horizon(question, leaf)
    unit = question.unit(leaf)
    energy = partial(
        _energy,
        leaves=None if windows is None else windows + int(question.opening),
        opening=question.opening,
        unit=unit,
    )
    for form in FORMS if choice.form is None else (choice.form,):
        if windows is not None or form == "window":
            yield fit(
                form,
                windows=windows,
                opening=question.opening,
                series=[s.merged(leaf) for s in question.net],
                energy=energy,
            )


def _energy(coefficients: Floats, *, leaves: int | None, opening: bool, unit: Contribution) -> float:
    """Squared sensitivity of a filter; for owners that of one entry, which is near enough to choose by."""
    states = in_l2_squared(unit.components, unit.cells)
    return max(
        of_filter(coefficients, leaves=leaves, opening=opening, part=part, window=unit.window, states=states)[-1]
        for part in parts(unit.constraint)
    )
