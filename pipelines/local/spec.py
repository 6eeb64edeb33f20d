"""The spec of a survey with local reports: its questions, its people, and its largest cost for each of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from pipelines.spec.about import PageFacts
from pipelines.spec.document import read_document
from pipelines.spec.errors import Problem, describe, refuse, refused
from pipelines.spec.fields import Duration, FiniteNumber, ReleaseName, Section, Text, as_list
from pipelines.spec.kinds import refuse_another
from pipelines.spec.schedule import ScheduleSection
from pipelines.spec.times import now
from pipelines.spec.words import not_one_of
from privacy.constraint import MOST_COUNTED
from privacy.local.bound import LocalBound
from privacy.local.candidates import LocalSeries, Method
from privacy.local.design import check_parameters
from privacy.local.mutation_space import MutationSpace, declared
from transforms.common.errors import SpecError

NONE = "none"
"""State of a person without an answer, in `transitions`."""

MOST_PEOPLE = 2**31


class BoundSection(Section):
    """A contribution bound: `at_most` or `within`."""

    at_most: int | None = None
    within: Duration | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        with refused():
            LocalBound(at_most=self.at_most, within=self.within and 0)
        return self


class LocalSection(Section):
    """The answers that devices report, and their privacy parameters."""

    answers: Annotated[list[Text], Field(min_length=1)]
    people: Annotated[int, Field(ge=2, le=MOST_PEOPLE)]
    epsilon: FiniteNumber
    delta: FiniteNumber = 0.0
    constraint: BoundSection
    transitions: dict[Text, Annotated[list[Text], BeforeValidator(as_list), Field(min_length=1)]] | None = None
    publish: Annotated[list[LocalSeries], BeforeValidator(as_list), Field(min_length=1)] = Field(default=["level"])
    method: Literal["auto", "mutations", "signs", "once"] = "auto"

    @model_validator(mode="after")
    def _check(self) -> Self:
        with refused():
            check_parameters(self.epsilon, self.delta)
            MutationSpace(answers=len(self.answers))
        problems: list[Problem] = [
            (("answers", place), f"{name!r} is the name of another answer already")
            for place, name in enumerate(self.answers)
            if name in self.answers[:place]
        ]
        if NONE in self.answers:
            problems.append((("answers",), f"{NONE!r} means people without an answer; use another name"))
        for before, afters in (self.transitions or {}).items():
            known = [*self.answers, NONE]
            if before not in known:
                problems.append((("transitions", before), not_one_of(before, known)))
            for place, after in enumerate(afters):
                if after not in known:
                    problems.append((("transitions", before, place), not_one_of(after, known)))
                elif after == before:
                    problems.append((("transitions", before, place), "is no change; remove it"))
        if self.transitions is not None and NONE not in self.transitions:
            problems.append((("transitions",), f"nobody could ever come; add {NONE}: with the first answers"))
        refuse(problems)
        return self


class LocalModel(Section):
    """A whole spec of a survey."""

    release: ReleaseName
    local: LocalSection
    schedule: ScheduleSection
    about: PageFacts | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.schedule.timezone is not None:
            refuse([(("schedule", "timezone"), "devices report in windows of one length; remove it, and give times")])
        if self.schedule.until is None:
            refuse([(("schedule", "until"), "missing; devices must know how often they report; add until:")])
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSpec:
    """One survey.

    Attributes:
        start, every: Start of the first window and length of a window, in microseconds.
        method: Name of the method; None: the method with the least error.
        about: Texts of the section `about` by their keys.
    """

    release: str
    names: tuple[str, ...]
    people: int
    epsilon: float
    delta: float
    bound: LocalBound
    space: MutationSpace
    publish: tuple[LocalSeries, ...]
    method: Method | None
    start: int
    every: int
    windows: int
    about: tuple[tuple[str, str], ...] = ()


def load_local(path: str | Path) -> LocalSpec:
    """Read a spec and check it.

    Raises:
        SpecError: The spec is wrong; one line for each problem, with file, line and key.
    """
    document = read_document(Path(path))
    refuse_another(document, "devices")
    try:
        model = LocalModel.model_validate(document.content)
    except ValidationError as error:
        raise SpecError(describe(error, document, LocalModel)) from None
    local, every = model.local, model.schedule.every
    within = local.constraint.within
    return LocalSpec(
        release=model.release,
        names=tuple(local.answers),
        people=local.people,
        epsilon=local.epsilon,
        delta=local.delta,
        bound=LocalBound(at_most=local.constraint.at_most, within=_windows(within, every)),
        space=_space(local.answers, local.transitions),
        publish=tuple(dict.fromkeys(local.publish)),
        method=None if local.method == "auto" else local.method,
        start=model.schedule.bounds(now()).start,
        every=every,
        windows=model.schedule.windows or 0,
        about=() if model.about is None else model.about.texts,
    )


def _windows(within: int | None, every: int) -> int | None:
    """Return a time span in windows, rounded up and at most the largest number of windows of a schedule."""
    return None if within is None else min(-(-within // every), MOST_COUNTED)


def _space(answers: list[str], transitions: dict[str, Any] | None) -> MutationSpace:
    if transitions is None:
        return MutationSpace(answers=len(answers))
    place = {name: number for number, name in enumerate([*answers, NONE])}
    return declared(len(answers), [(place[a], place[b]) for a, afters in transitions.items() for b in afters])
