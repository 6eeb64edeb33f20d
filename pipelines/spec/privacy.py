"""The shape of `privacy:` in a spec: the privacy unit, the budget and the contribution bound."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.spec.durations import duration_text
from pipelines.spec.errors import Problem, refuse, refused, wrong
from pipelines.spec.fields import EITHER, SETTINGS, WORD, Duration, FiniteNumber, Section, Text
from pipelines.spec.ordered import Step
from pipelines.spec.words import show
from privacy.accounting.accounting import Budget, budget_problems
from privacy.automaton import Bound, longest_changes
from privacy.checks import DELTA, POSITIVE
from privacy.constraint import COUNTED, AtMost, AtOnce, ByClass, Constraint, Within
from privacy.noise.kinds import NOISE, PURE, Accounting, Mechanism
from privacy.planning.constraint_rules import NO_CHANGES, change_problems, constraint_problems
from privacy.planning.make_plan import BudgetSplit
from privacy.problems import RuleError
from privacy.protection import EVERYTHING, Protection, Span

ALONE = "an entry is one at any time; name the owner under privacy.unit, or remove it"
_WITH_CHANGES = ": {at_most: 4, entries: 1}"
_CONSTRAINTS = "at_most: 4, within: 14d, or by: column with classes:"


class PlainSection(Section):
    """A contribution bound for one class: `at_most` or `within`."""

    at_most: Annotated[int, COUNTED] | None = None
    entries: Annotated[int, COUNTED] | None = None
    within: Duration | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.at_most is None) == (self.within is None):
            refuse([((), "expected one of at_most: 4 and within: 14d")])
        with refused():
            self.constraint()
        refuse(_entries_problems(self.entries, self.at_most))
        return self

    def constraint(self) -> AtMost | Within:
        """Return the constraint that the section describes."""
        return _plain(self.at_most, self.within, self.entries)


class ConstraintSection(Section):
    """A contribution bound: `at_most`, or `within`, or one of these for each class."""

    at_most: Annotated[int, COUNTED] | None = None
    entries: Annotated[int, COUNTED] | None = None
    within: Duration | None = None
    by: Text | None = None
    classes: dict[str, PlainSection] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        classed = self.by is not None or self.classes is not None
        given = sum([self.at_most is not None, self.within is not None, classed])
        if given == 0 and "at_most" in self.model_fields_set:  # as `changelog --suggest` leaves it
            refuse([(("at_most",), "expected a whole number, not nothing")])
        if given > 1 or (given == 0 and self.entries is None):
            refuse([((), f"expected one of {_CONSTRAINTS}")])
        if classed and self.by is None:
            refuse([(("by",), "missing; name the column that holds the class")])
        if classed and self.classes is None:
            refuse([(("classes",), "missing; add classes: {a: {at_most: 4}, b: {within: 14d}}")])
        with refused():
            self.constraint()
        if given == 1:
            refuse(_entries_problems(self.entries, self.at_most))
        return self

    @property
    def at_once(self) -> bool:
        """Whether only the number of a unit's entries at one time is bounded."""
        return self.entries is not None and self.at_most is None

    @property
    def numbers(self) -> list[tuple[str, ...]]:
        """Places of numbers of entries, relative to this section."""
        own = [("entries",)] if self.entries is not None else []
        return own + [("classes", name, "entries") for name, c in (self.classes or {}).items() if c.entries is not None]

    def constraint(self) -> Constraint:
        """Return the constraint that the section describes; classes are in the order of their names."""
        if self.at_once and self.entries is not None:
            return AtOnce(self.entries)
        if self.by is None or self.classes is None:
            return _plain(self.at_most, self.within, self.entries)
        classes = sorted(self.classes.items())
        return ByClass(self.by, tuple((name, part.constraint()) for name, part in classes))


def _entries_problems(entries: int | None, at_most: int | None) -> list[Problem]:
    if entries is None or at_most is not None:
        return []
    return [(("entries",), f"goes with a number of changes{_WITH_CHANGES}")]


def _of_constraint(found: Iterable[RuleError], advice: str = "") -> list[Problem]:
    return [(("constraint", *problem.path), problem.message + advice) for problem in found]


def _plain(at_most: int | None, within: int | None, entries: int | None) -> AtMost | Within:
    if at_most is not None:
        return AtMost(at_most, entries)
    if within is not None:
        return Within(within)
    raise ValueError(f"a constraint is one of {_CONSTRAINTS}")


def _machine(states: dict[str, list[str]]) -> dict[str, list[str]]:
    try:
        longest_changes(states)
    except ValueError as error:
        raise wrong(str(error).removeprefix("states: ")) from None
    return states


class ProtectsSection(Section):
    """A span of time in which everything that a unit does is protected, or only its place, up to a distance.

    A distance without a span applies to the whole release, which must have an end; `SpecModel` then sets the span.
    """

    span: Duration | None = None
    distance: Annotated[dict[Text, Step], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.span is not None:
            with refused():
                Span(self.span)
        if self.span is None and self.distance is None:
            refuse([(("span",), "missing; add span: 14d, or protect everything")])
        refuse(
            (("distance", name), "expected more than zero") for name, far in (self.distance or {}).items() if far <= 0
        )
        return self

    def protection(self) -> Span:
        """Return the protection that the section describes; columns are in the order of their names."""
        assert self.span is not None
        return Span(self.span, tuple((name, distance_text(far)) for name, far in sorted((self.distance or {}).items())))


def distance_text(far: Decimal | int) -> str:
    """Return the text of a distance: a number, or a duration given in microseconds."""
    return duration_text(far) if isinstance(far, int) else f"{far.normalize():f}"


def _protects(value: Any) -> Any:
    if not (isinstance(value, dict) or value == "everything"):
        raise wrong(f"expected everything or {{span: 14d}}, not {show(value)}")
    return value


Protects = Annotated[
    Annotated[Literal["everything"], WORD] | Annotated[ProtectsSection, SETTINGS],
    EITHER,
    BeforeValidator(_protects),
]


class PrivacySection(Section):
    """Privacy unit, protection, budget, contribution bound and noise."""

    unit: Text = "entry"
    protects: Protects = "everything"
    epsilon: Annotated[FiniteNumber, POSITIVE]
    delta: Annotated[FiniteNumber, DELTA] = 0.0
    constraint: ConstraintSection | None = None
    mechanism: Literal["auto", Mechanism] = "auto"
    accounting: Accounting | None = None
    split: BudgetSplit = "weights"
    adaptive_data: bool = False
    states: Annotated[dict[str, list[str]], Field(min_length=1), AfterValidator(_machine)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        with refused():
            Budget(epsilon=self.epsilon, delta=self.delta)
        found = budget_problems(self.mechanism, self.accounting, delta=self.delta)
        refuse([*((problem.path, problem.message) for problem in found), *self._constraint_problems()])
        return self

    @property
    def settled_mechanism(self) -> Literal["auto", Mechanism]:
        """Kind of noise; `auto`, which the planner decides, only if there is a delta to spend on Gaussian noise."""
        return PURE if self.mechanism == "auto" and self.delta == 0 else self.mechanism

    @property
    def composition(self) -> Accounting | None:
        """How the queries' privacy parameters are composed; None if neither the spec nor the mechanism decides it."""
        if self.accounting is not None:
            return self.accounting
        return NOISE[PURE].accounting if self.settled_mechanism == PURE else None

    def bound(self) -> Bound | None:
        """Return the bound that the state machine implies for an entry; None without a state machine."""
        return longest_changes(dict(sorted(self.states.items()))) if self.states else None

    @property
    def partly(self) -> ProtectsSection | None:
        """The section that limits the protection of a unit; None if everything is protected."""
        return None if isinstance(self.protects, str) else self.protects

    @property
    def protection(self) -> Protection:
        """The protection that the section describes."""
        return EVERYTHING if self.partly is None else self.partly.protection()

    @property
    def distance(self) -> dict[str, Decimal | int]:
        """Distance up to which places are indistinguishable, by column; empty: the unit's presence is protected."""
        return {} if self.partly is None else self.partly.distance or {}

    @property
    def renewed(self) -> int | None:
        """Number of changes of a unit that count in each block of one span; None if the spec does not give it."""
        return None if self.constraint is None or self.protects == "everything" else self.constraint.at_most

    def enforced(self, every: int, slack: int = 0) -> Constraint:
        """Return the constraint of the spec, or else that of the state machine, or else one entry at a time.

        Args:
            every: Length of a window, in microseconds.
            slack: Any m consecutive windows are at least m * every - slack long, in microseconds.
        """
        if (span := self.protection.span) is not None and self.renewed is not None:
            entries = 1 if self.constraint is None else self.constraint.entries or 1
            return AtOnce(entries, changes=self.renewed, block=span.boundaries(every, slack) * every)
        if self.constraint is not None:
            return self.constraint.constraint()
        bound = self.bound() if self.partly is None else None
        return AtOnce() if bound is None else AtMost(bound.k)

    def unbounded(self) -> list[Problem]:
        """Find why a unit's changes are not bounded; only adaptively published levels need no such bound."""
        if self.constraint is not None:
            return _of_constraint(change_problems(self.constraint.constraint()), _WITH_CHANGES)
        if self.states is None:
            message = f"missing; add constraint: with {_CONSTRAINTS}; or add states:, or protects: {{span: 14d}}"
            return [(("constraint",), message)]
        return []

    def _constraint_problems(self) -> list[Problem]:
        owned = self.unit != "entry"
        if self.partly is not None:
            return self._span_problems(owned=owned)
        if self.constraint is None and self.states is not None and owned:
            message = "missing; states bound one entry, not an owner of many: add constraint:"
            return [(("constraint",), f"{message} {{at_most: 4}}")]
        if self.constraint is None and owned:
            return [(("constraint",), f"missing; add constraint: with {_CONSTRAINTS}")]
        if self.constraint is None:
            return []
        if not owned:
            return [(("constraint", *place), ALONE) for place in self.constraint.numbers]
        return _of_constraint(constraint_problems(self.constraint.constraint(), owner=owned, span=False))

    def _span_problems(self, *, owned: bool) -> list[Problem]:
        """Find problems of the bound under a span: on a unit's entries at a time, and on its changes in each block."""
        problems: list[Problem] = []
        if self.states is not None:
            problems.append((("states",), f"{NO_CHANGES}; remove it"))
        if self.constraint is not None and self.constraint.at_most is not None:
            try:
                AtOnce(changes=self.constraint.at_most, block=1)
            except RuleError as problem:
                problems += _of_constraint([problem])
            if owned and self.constraint.entries is None:
                message = "missing; say how many of an owner's entries count at once, add entries: 3"
                problems.append((("constraint", "entries"), message))
            if not owned and self.constraint.entries is not None:
                problems.append((("constraint", "entries"), ALONE))
        elif self.constraint is not None and not self.constraint.at_once:
            use = "use constraint: {entries: 3}, how many of an owner's entries count at once"
            use = f"{use}, with at_most: 2 for changes" if owned else "remove it, or use {at_most: 2}"
            use = f"; {use}, in each block of one span"
            problems += _of_constraint(constraint_problems(self.constraint.constraint(), owner=owned, span=True), use)
        elif self.constraint is not None and not owned:
            problems.append((("constraint", "entries"), ALONE))
        elif self.constraint is None and owned:
            message = "missing; say how many of an owner's entries count at once, add constraint: {entries: 3}"
            problems.append((("constraint",), message))
        return problems
