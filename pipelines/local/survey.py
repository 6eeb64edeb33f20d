"""A survey with its final design, which all devices and their collector use. All of it is public.

It is one JSON file, written once, before the first device reports. Devices and collector keep using it, even if a later
version of the program would plan another design.
"""

from dataclasses import dataclass, field, replace

from pipelines.common.errors import ArgumentError
from pipelines.spec.times import moment_text
from privacy.codec import APART, Codec
from privacy.json_values import Json, digest_of, indented, parsed
from privacy.local.candidates import LocalSeries
from privacy.local.design import Design
from privacy.local.document import design_from_json, design_to_json
from transforms.common.drafts import drafted
from transforms.common.errors import SpecError
from transforms.common.sinks import is_there, read_bytes, write_bytes
from transforms.common.windows import Windows

_CODEC = Codec()


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One survey.

    Attributes:
        names: Names of the answers.
        people: Number of devices, which is public.
        publish: Kinds of numbers to publish.
        start, every: Start of the first window and length of a window, in microseconds.
        about: The curator's texts by their keys.
    """

    release: str
    names: tuple[str, ...]
    people: int
    publish: tuple[LocalSeries, ...]
    start: int
    every: int
    design: Design = field(metadata=APART)
    about: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if len(self.names) != self.design.answers:
            raise ValueError("names: their number differs from the answers of the design")
        for name in ("people", "every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected an integer of at least 1")
        if not self.publish or len({*self.publish}) < len(self.publish):
            raise ValueError("publish: expected some of level, change, each once")

    def closed(self, until: int) -> int:
        """Return the number of windows that are over."""
        return max(0, min(self.design.windows, (until - self.start) // self.every))

    def until(self, windows: int) -> str:
        """Return the end of the last of this many windows."""
        return moment_text(self.start + windows * self.every)

    @property
    def bounds(self) -> Windows:
        """Bounds of the windows."""
        return Windows(start=self.start, every=self.every)

    def local(self, moment: int) -> int:
        """Return the local time at a moment: windows of surveys are named in UTC."""
        return moment

    @property
    def asked(self) -> str:
        """SHA-256 of the question, in hexadecimal, without the design and `about`. The design has it, so reports name
        the survey."""
        return digest_of(_CODEC.write(replace(self, about=())))

    def to_json(self) -> Json:
        """Return the JSON object of the survey's file."""
        return {**_CODEC.write(self), "design": design_to_json(self.design)}


def frozen(survey: Survey) -> Survey:
    """Return the survey with a design that names it."""
    return replace(survey, design=replace(survey.design, survey=survey.asked))


def write_survey(survey: Survey, path: str) -> None:
    """Write a new file; a file with the same content is left alone.

    Raises:
        SpecError: The file holds another survey, which devices may be using.
    """
    content = indented(survey.to_json()) + b"\n"
    with drafted(path) as draft:
        if not is_there(path):
            folder, _, name = draft.rpartition("/")
            write_bytes((name, content), folder)
        elif read_bytes(path) != content:
            another = "holds another design, which devices may be using; give this one another name"
            raise ArgumentError("output", another, path)


def read_survey(path: str) -> Survey:
    """Return the survey that `write_survey` was given.

    Raises:
        SpecError: There is no such file, or it is not a survey.
    """
    try:
        content = read_bytes(path)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read ({type(error).__name__}); give the file of `local plan -o`") from None
    try:
        members = _CODEC.read(dict[str, object], parsed(content))
        design = design_from_json(members.pop("design", None), "design")
        survey: Survey = _CODEC.read(Survey, members, design=design)
        if design.survey != survey.asked:
            raise ValueError("design.survey: has other answers, people or windows than the file")
        survey.until(design.windows)
    except (ArithmeticError, ValueError) as error:
        raise SpecError(f"{path}: {error}; give the file that `local plan -o` has written") from None
    return survey
