"""`slackwater init`: a spec that `plan` accepts without changes, from answers to a few questions.

The spec has only the answers. From the data, `init` reads the names of the columns of one file and whether its times
have a zone; on a terminal it asks first. No value is shown or written.
"""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from pipelines.changelog.first_spec import EVER
from pipelines.changelog.source import without_zone
from pipelines.common.arguments import refuse_unknown
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.epochs.plans import plan_of
from pipelines.init.answered import spec_of_answers
from pipelines.init.questions import QUESTIONS, Answers
from pipelines.plan.horizon import horizon_of
from pipelines.plan.operation import of_first_file, whole_document
from pipelines.plan.table import HEADING, columns, rows_of
from pipelines.spec.load import load
from transforms.common.errors import InputError, SpecError
from transforms.sources.files.listing import matching


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSpec(Value):
    """A spec that was written.

    Attributes:
        spec: Path of its file.
        plan: Plan of the release, as `slackwater plan --json` shows it.
    """

    spec: str
    plan: dict[str, Any] = field(repr=False)

    def text(self) -> str:
        """Return the text that `slackwater init` prints."""
        lines = [
            f"{self.spec}: written; you can edit it",
            "",
            *columns([HEADING, *rows_of(self.plan)]),
            "",
            *(f"warning: {one}" for one in self.plan["warnings"]),
            f"next: slackwater plan {self.spec}",
        ]
        return "\n".join(lines)


def init(spec: str | Path, **answers: Unpack[Answers]) -> FirstSpec:
    """Write a first spec, which `plan` accepts without changes.

    Args:
        spec: Path of the file to write; nothing is overwritten.
        answers: Answers to the questions of `slackwater init`. `path`, `entry` and `time` are required.

    Raises:
        SpecError: An answer is missing or wrong, or has no effect with the others.
    """
    path, given = checked(spec, answers)
    return written(path, _of_answers(given, path), read=True)


def checked(spec: str | Path, answers: Mapping[str, Any]) -> tuple[Path, dict[str, str]]:
    """Return the path of the spec, and the given answers.

    Raises:
        ArgumentError: Answers are invalid; one problem for each.
        TypeError: The name of an answer is unknown.
    """
    refuse_unknown(answers, Answers)
    path = Path(spec)
    if path.suffix not in (".yaml", ".yml"):
        raise SpecError(f"{path}: the name of a spec ends in .yaml")
    if path.exists():
        raise SpecError(f"{path}: already exists, and nothing is overwritten; name another file")
    given: dict[str, str] = {}
    problems = []
    for name in QUESTIONS:
        value = answers.get(name)
        try:
            given |= {} if value is None else {name: QUESTIONS[name].checked(str(value))}
        except ValueError as error:
            problems.append((name, f": {error}"))
    if problems:
        raise ArgumentError.of_problems(problems)
    if "at_most" in given:
        given.setdefault("span", EVER)
    return path, given


def _of_answers(given: Mapping[str, str], path: Path) -> str:
    """Return the text of the spec, with defaults for missing answers."""
    found = dict(given)
    missing = [name for name, question in QUESTIONS.items() if question.usual is None and name not in found]
    if missing:
        raise ArgumentError.of_problems((name, f": missing; {QUESTIONS[name].asks}") for name in missing)
    naive = is_naive(found["path"], found["time"])
    if naive and "timezone" not in found:
        raise ArgumentError(
            "timezone",
            f"missing; the times in column {found['time']!r} have no zone; name their zone, such as Europe/Paris",
        )
    for name, question in QUESTIONS.items():
        if name not in found and question.matters(found):
            found[name] = question.usual or ""
    refuse_idle(given, found)
    return text_of(found, path, naive=naive)


def is_naive(path: str, time: str) -> bool:
    """Return whether times of the first file have no zone; False if it cannot be read, which `plan` reports."""
    try:
        return bool(matching((path,))) and without_zone(path, time)
    except InputError:
        return False


def refuse_idle(given: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Refuse given answers that have no effect with the others.

    Raises:
        ArgumentError: A given answer has no effect.
    """
    for name in given:
        if not QUESTIONS[name].matters(found):
            where = f"unit {found['unit']} and span {found['span']}"
            raise ArgumentError(name, f"has no effect with {where}; leave it out, or change these")


def text_of(answers: Mapping[str, str], path: Path, *, naive: bool) -> str:
    """Return the text of the spec, if `plan` accepts it: valid answers may not fit together.

    Args:
        answers: Answers to all questions, by their names.
        path: Path of the spec.
        naive: Whether times in the files have no zone.

    Raises:
        SpecError: `plan` does not accept the spec.
    """
    text = spec_of_answers(answers, stem=path.stem, naive=naive)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder, path.name)
        draft.write_text(text, encoding="utf-8")
        try:
            load(draft)
        except SpecError as error:
            told = re.sub(r"^\d+: ", "", str(error).replace(f"{draft}:", ""), flags=re.MULTILINE)
            raise SpecError(f"{told}\nnothing was written") from None
    return text


def written(path: Path, text: str, *, read: bool) -> FirstSpec:
    """Write the spec, and plan it.

    Args:
        path: Path of the new file.
        text: Text of the spec.
        read: Whether the first file of the changelog may be read.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SpecError(f"{path}: cannot be written ({error.strerror}); name another file") from None
    spec = load(path)
    plan = plan_of(spec)
    timeline = horizon_of(spec)
    document = whole_document(spec, plan, timeline.windows)
    document["warnings"] += of_first_file(spec, timeline, plan) if read else []
    return FirstSpec(spec=str(path), plan=document)
