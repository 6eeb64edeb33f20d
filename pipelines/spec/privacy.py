"""The shape of `privacy:` in a spec: who is protected, how well, and what each may contribute."""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.spec.durations import duration_text
from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import EITHER, SETTINGS, WORD, Duration, Number, Section, Text
from pipelines.spec.ordered import Step
from pipelines.spec.words import show
from privacy.automaton import Bound, longest_changes
from privacy.constraint import AtMost, AtOnce, ByClass, Constraint, Within
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.make_plan import Split
from privacy.protection import EVERYTHING, Protection, Span

_CONSTRAINTS = "at_most: 4, within: 14d, or by: column with classes:"


class PlainSection(Section):
    """`at_most` or `within`."""

    at_most: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    entries: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    within: Duration | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.at_most is None) == (self.within is None):
            refuse([((), "expected one of at_most: 4 and within: 14d")])
        refuse(_entries_problems(self.entries, self.at_most))
        return self

    def constraint(self) -> AtMost | Within:
        """The constraint that it stands for."""
        return _plain(self.at_most, self.within, self.entries)


class ConstraintSection(Section):
    """`at_most`, or `within`, or a choice of these by class."""

    at_most: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    entries: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    within: Duration | None = None
    by: Text | None = None
    classes: Annotated[dict[str, PlainSection], Field(min_length=1)] | None = None

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
        if given == 1:
            refuse(_entries_problems(self.entries, self.at_most))
        return self

    @property
    def at_once(self) -> bool:
        """Whether only what a unit is at one time is bounded."""
        return self.entries is not None and self.at_most is None

    @property
    def spans(self) -> list[tuple[str, ...]]:
        """Where a time span stands, from here."""
        return self._places("within")

    @property
    def numbers(self) -> list[tuple[str, ...]]:
        """Where a number of entries stands, from here."""
        return self._places("entries")

    def _places(self, key: str) -> list[tuple[str, ...]]:
        own = [(key,)] if getattr(self, key) is not None else []
        classes = (self.classes or {}).items()
        return own + [("classes", name, key) for name, c in classes if getattr(c, key) is not None]

    def constraint(self) -> Constraint:
        """The constraint that it stands for; classes in the order of their names."""
        if self.at_once and self.entries is not None:
            return AtOnce(self.entries)
        if self.by is None or self.classes is None:
            return _plain(self.at_most, self.within, self.entries)
        classes = sorted(self.classes.items())
        return ByClass(self.by, tuple((name, part.constraint()) for name, part in classes))


def _entries_problems(entries: int | None, at_most: int | None) -> list[Problem]:
    if entries is None or at_most is not None:
        return []
    return [(("entries",), "goes with a number of changes: {at_most: 4, entries: 1}")]


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
    """A span of time: whatever a unit does in it is protected, or only where it is, up to a distance.

    Without a span a distance is for all of a release that has an end, which `SpecModel` puts there.
    """

    span: Duration | None = None
    distance: Annotated[dict[Text, Step], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.span == 0:
            refuse([(("span",), "expected a duration above zero, such as 14d")])
        if self.span is None and self.distance is None:
            refuse([(("span",), "missing; add span: 14d, or protect everything")])
        refuse(
            (("distance", name), "expected more than zero") for name, far in (self.distance or {}).items() if far <= 0
        )
        return self

    def protection(self) -> Span:
        """What it stands for; columns in the order of their names."""
        assert self.span is not None
        return Span(self.span, tuple((name, distance_text(far)) for name, far in sorted((self.distance or {}).items())))


def distance_text(far: Decimal | int) -> str:
    """As people write it: a number, or a duration of microseconds."""
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
    """Unit, what of it is protected, budget, constraint and noise."""

    unit: Text = "entry"
    protects: Protects = "everything"
    epsilon: Annotated[Number, Field(gt=0)]
    delta: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    constraint: ConstraintSection | None = None
    mechanism: Literal["auto", Mechanism] = "auto"
    accounting: Accounting | None = None
    split: Split = "weights"
    adaptive_data: bool = False
    states: Annotated[dict[str, list[str]], Field(min_length=1), AfterValidator(_machine)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse([*self._budget_problems(), *self._constraint_problems()])
        return self

    @property
    def settled_mechanism(self) -> Literal["auto", Mechanism]:
        """The noise: `auto`, which the planner settles, only where there is a delta to spend on Gaussian noise."""
        return "laplace" if self.mechanism == "auto" and self.delta == 0 else self.mechanism

    @property
    def composition(self) -> Accounting | None:
        """How the queries' privacy parameters are composed; None if neither the spec nor the mechanism settles it."""
        if self.accounting is not None:
            return self.accounting
        return "naive" if self.settled_mechanism == "laplace" else None

    def bound(self) -> Bound | None:
        """What the state machine allows an entry, if one is given."""
        return longest_changes(dict(sorted(self.states.items()))) if self.states else None

    @property
    def protection(self) -> Protection:
        """What of a unit is protected."""
        return self.protects.protection() if isinstance(self.protects, ProtectsSection) else EVERYTHING

    @property
    def distance(self) -> dict[str, Decimal | int]:
        """How far from each other places are that cannot be told apart, by column; empty: presence is protected."""
        return (self.protects.distance or {}) if isinstance(self.protects, ProtectsSection) else {}

    @property
    def renewed(self) -> int | None:
        """How many changes of a unit count in each block of one span; None where that is not said."""
        return None if self.constraint is None or self.protects == "everything" else self.constraint.at_most

    def enforced(self, every: int, slack: int = 0) -> Constraint:
        """The constraint of the spec, or else the one that the state machine gives, or else one entry at once.

        Args:
            every: length of a window.
            slack: m windows in a row are at least m * every - slack long.
        """
        if isinstance(self.protection, Span) and self.renewed is not None:
            entries = 1 if self.constraint is None else self.constraint.entries or 1
            return AtOnce(entries, changes=self.renewed, block=self.protection.boundaries(every, slack) * every)
        if self.constraint is not None:
            return self.constraint.constraint()
        bound = None if isinstance(self.protects, ProtectsSection) else self.bound()
        return AtOnce() if bound is None else AtMost(bound.k)

    def unbounded(self) -> list[Problem]:
        """Nothing bounds what a unit changes, which only levels that are published adaptively do without."""
        if self.constraint is not None and self.constraint.at_once:
            return [(("constraint", "entries"), "goes with a number of changes: {at_most: 4, entries: 1}")]
        if self.constraint is None and self.states is None:
            message = f"missing; add constraint: with {_CONSTRAINTS}; or add states:, or protects: {{span: 14d}}"
            return [(("constraint",), message)]
        return []

    def _budget_problems(self) -> list[Problem]:
        if self.delta > 0:
            return []
        if self.mechanism == "gaussian":
            return [(("delta",), "missing; Gaussian noise needs one, add delta: 1.0e-9")]
        if self.accounting not in (None, "naive", "paper"):
            message = f"missing; accounting {self.accounting} needs one, add delta: 1.0e-9"
            return [(("delta",), f"{message} or use accounting: naive")]
        return []

    def _constraint_problems(self) -> list[Problem]:
        owned = self.unit != "entry"
        if isinstance(self.protects, ProtectsSection):
            return self._span_problems(owned=owned)
        if self.constraint is None and self.states is not None and owned:
            message = "missing; states bound one entry, not an owner of many: add constraint:"
            return [(("constraint",), f"{message} {{at_most: 4}}")]
        if self.constraint is None and owned:
            return [(("constraint",), f"missing; add constraint: with {_CONSTRAINTS}")]
        if self.constraint is None:
            return []
        if not owned:
            message = "an entry is one at any time; name the owner under privacy.unit, or remove it"
            return [(("constraint", *place), message) for place in self.constraint.numbers]
        message = "an owner's entries are not bounded by a time span; use at_most"
        return [(("constraint", *place), message) for place in self.constraint.spans]

    def _span_problems(self, *, owned: bool) -> list[Problem]:
        """In a span of time what a unit is at once is bounded, and also its changes, block by block."""
        problems: list[Problem] = []
        if self.states is not None:
            problems.append((("states",), "bounds changes, which protects: {span: ...} needs no bound of; remove it"))
        if self.constraint is not None and self.constraint.at_most is not None:
            if self.constraint.at_most == 1:
                message = "one state in a span is a window of that length; use schedule.every, or at_most: 2"
                problems.append((("constraint", "at_most"), message))
            if owned and self.constraint.entries is None:
                message = "missing; say how many of an owner's entries count at once, add entries: 3"
                problems.append((("constraint", "entries"), message))
            if not owned and self.constraint.entries is not None:
                message = "an entry is one at any time; name the owner under privacy.unit, or remove it"
                problems.append((("constraint", "entries"), message))
        elif self.constraint is not None and not self.constraint.at_once:
            message = "bounds changes, which protects: {span: ...} needs no bound of; "
            use = "use constraint: {entries: 3}, how many of an owner's entries count at once"
            use = f"{use}, with at_most: 2 for changes" if owned else "remove it, or use {at_most: 2}"
            use += ", in each block of one span"
            problems.append((("constraint",), message + use))
        elif self.constraint is not None and not owned:
            message = "an entry is one at any time; name the owner under privacy.unit, or remove it"
            problems.append((("constraint", "entries"), message))
        elif self.constraint is None and owned:
            message = "missing; say how many of an owner's entries count at once, add constraint: {entries: 3}"
            problems.append((("constraint",), message))
        return problems
