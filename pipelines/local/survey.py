"""A survey as it is frozen: the design that all devices report by, and what their collector has to know; all public.

It is one JSON file, written once, before the first device reports. Devices and collector go on with it whatever a later
version of the program would plan.
"""

import hashlib
import json
from dataclasses import dataclass, replace

from pipelines.spec.times import moment_text
from privacy.exact import Json, Members, parsed
from privacy.local.design import Design
from privacy.local.document import design_from_json, design_to_json
from privacy.local.plan import Series
from transforms.common.drafts import drafted
from transforms.common.errors import SpecError
from transforms.common.sinks import is_there, read_bytes, write_bytes

_SERIES: tuple[Series, ...] = ("level", "change")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One.

    Attributes:
        names: of the answers.
        people: how many devices there are, public.
        publish: which series.
        start, every: of the windows, in microseconds.
    """

    release: str
    names: tuple[str, ...]
    people: int
    publish: tuple[Series, ...]
    start: int
    every: int
    design: Design

    def __post_init__(self) -> None:
        if len(self.names) != self.design.answers:
            raise ValueError("answers: not as many as the design has")

    def closed(self, until: int) -> int:
        """How many windows are over."""
        return max(0, min(self.design.windows, (until - self.start) // self.every))

    def until(self, windows: int) -> str:
        """The end of the last of so many windows."""
        return moment_text(self.start + windows * self.every)

    @property
    def asked(self) -> str:
        """SHA-256 of all but the design, in hexadecimal. The design has it, so that reports name the survey, too."""
        text = json.dumps(self._asked(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> Json:
        return {**self._asked(), "design": design_to_json(self.design)}

    def _asked(self) -> Json:
        return {
            "release": self.release,
            "answers": list(self.names),
            "people": self.people,
            "publish": list(self.publish),
            "start": self.start,
            "every": self.every,
            "until": self.until(self.design.windows),
        }


def frozen(survey: Survey) -> Survey:
    """The survey with a design that names it."""
    return replace(survey, design=replace(survey.design, survey=survey.asked))


def write_survey(survey: Survey, path: str) -> None:
    """A new file; one that is there and says the same is left alone.

    Raises:
        SpecError: another survey stands there, which devices may be using.
    """
    content = (json.dumps(survey.to_json(), indent=1) + "\n").encode()
    with drafted(path) as draft:
        if not is_there(path):
            folder, _, name = draft.rpartition("/")
            write_bytes((name, content), folder)
        elif read_bytes(path) != content:
            raise SpecError(
                f"-o {path}: holds another design, by which devices may be reporting; give this one another name"
            )


def read_survey(path: str) -> Survey:
    """What `write_survey` was given.

    Raises:
        SpecError: no such file, or not such a file.
    """
    try:
        content = read_bytes(path)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read ({type(error).__name__}); give the file of `local plan -o`") from None
    try:
        members = Members(parsed(content))
        survey = Survey(
            release=members.text("release"),
            names=members.texts("answers"),
            people=members.positive_count("people"),
            publish=_publish(members),
            start=members.count("start"),
            every=members.positive_count("every"),
            design=design_from_json(members.of("design")),
        )
        if members.text("until") != survey.until(survey.design.windows):
            raise members.wrong("until", "the end of the last window")
        if survey.design.survey != survey.asked:
            raise ValueError("design.survey: is of other answers, people or windows than the file has")
        members.end()
    except (ArithmeticError, ValueError) as error:
        raise SpecError(f"{path}: {error}; give the file that `local plan -o` has written") from None
    return survey


def _publish(members: Members) -> tuple[Series, ...]:
    given = members.texts("publish")
    known = tuple(word for word in _SERIES if word in given)
    if not given or len(known) != len(given):
        raise members.wrong("publish", f"some of {', '.join(_SERIES)}, each once")
    return known
