"""`slackwater init`: a few questions, and a spec that `plan` takes as it is.

It writes the answers alone. Of the data it reads the names of the columns of one file and whether its times name a
zone, on a terminal only if it may. No value is shown or written.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipelines.changelog.new_spec import new_spec
from pipelines.changelog.questions import EVER, QUESTIONS, Question
from pipelines.changelog.source import columns_at, without_zone
from pipelines.epochs.flags import refuse_any
from pipelines.epochs.job import timeline_of
from pipelines.epochs.plans import plan_of
from pipelines.epochs.results import Result
from pipelines.reports.plan_command import of_first_file, whole_document
from pipelines.reports.plan_text import HEADING, columns, rows_of
from pipelines.spec.load import load
from pipelines.spec.times import now
from transforms.common.errors import InputError, SpecError
from transforms.sources.files.listing import matching

_LOOK = """\
The names of the columns can be read from the files. They are private, as the files are: they go to this terminal, and
into the spec those that you choose. No value is shown, unless a file has no heading.
Read them? [y/N] """


def init(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Ask, and write the spec."""
    refuse_any(flags, "init")
    path = Path(arguments.spec)
    if path.suffix not in (".yaml", ".yml"):
        raise SpecError(f"{path}: the name of a spec ends in .yaml")
    if path.exists():
        raise SpecError(f"{path}: is there already, and nothing is overwritten; name another file")
    given = _checked({name: value for name in QUESTIONS if (value := getattr(arguments, name)) is not None})
    if "at_most" in given:
        given.setdefault("span", EVER)
    answers = _Answers(given)
    text = _typed(answers, path) if sys.stdin.isatty() else _of_flags(answers, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SpecError(f"{path}: cannot be written ({error.strerror}); name another file") from None
    return _planned(path, read=answers.read)


@dataclass(slots=True)
class _Answers:
    """To `QUESTIONS`, by their names.

    Attributes:
        given: by flags.
        read: whether the first file may be read.
        columns: of that file; empty if they are unknown.
        naive: whether its times name no zone.
    """

    given: dict[str, str]
    read: bool = False
    columns: list[str] = field(default_factory=list)
    naive: bool = False

    def look(self, path: str, time: str) -> None:
        """Find out whether times name a zone."""
        try:
            self.naive = self.read and bool(matching((path,))) and without_zone(path, time)
        except InputError:
            self.naive = False  # `plan` says what is wrong with the file

    def refuse_idle(self, found: Mapping[str, str]) -> None:
        """
        Raises:
            SpecError: a flag without a meaning given the other answers.
        """
        for name in self.given:
            if not QUESTIONS[name].matters(found):
                where = f"unit {found['unit']} and span {found['span']}"
                raise SpecError(f"{_flag(name)}: means nothing with {where}; leave it out, or change these")


def _of_flags(answers: _Answers, path: Path) -> str:
    """The spec's text without a terminal: what no flag says is as usual."""
    found, answers.read = dict(answers.given), True
    missing = [name for name, question in QUESTIONS.items() if question.usual is None and name not in found]
    if missing:
        raise SpecError("\n".join(f"{_flag(name)}: missing; {QUESTIONS[name].asks}" for name in missing))
    answers.look(found["path"], found["time"])
    if answers.naive and "timezone" not in found:
        raise SpecError(
            f"--timezone: missing; the times in column {found['time']!r} name no zone; say which is theirs, such as "
            "Europe/Paris"
        )
    for name, question in QUESTIONS.items():
        if name not in found and question.matters(found):
            found[name] = question.usual or ""
    answers.refuse_idle(found)
    return _refuse_wrong(new_spec(found, stem=path.stem, naive=answers.naive), path)


def _typed(answers: _Answers, path: Path) -> str:
    """The spec's text from a terminal: asked again, with the answers as usual ones, until they fit together."""
    before: dict[str, str] = {}
    while True:
        found: dict[str, str] = {}
        for name, question in QUESTIONS.items():
            if name in answers.given:
                found[name] = answers.given[name]
            elif question.matters(found):
                usual = None if name == "timezone" and answers.naive else question.usual
                found[name] = _ask(replace(question, usual=before.get(name, usual)), answers.columns)
            if name == "path" and not before:
                open_ = [key for key, one in QUESTIONS.items() if one.column and key not in answers.given]
                answers.columns = _columns(found["path"]) if open_ else []
                answers.read = bool(answers.columns) or not open_
            if name == "time":
                answers.look(found["path"], found["time"])
                if answers.naive and "timezone" not in answers.given:
                    print(f"  the times in column {found['time']!r} name no time zone", file=sys.stderr)
        answers.refuse_idle(found)
        try:
            return _refuse_wrong(new_spec(found, stem=path.stem, naive=answers.naive), path)
        except SpecError as error:
            if not found.keys() - answers.given.keys():
                raise
            print(f"{error}; the questions follow again, with your answers", file=sys.stderr)
            before = found


def _planned(path: Path, *, read: bool) -> Result:
    """The margins of error of the new spec, as `plan` states them.

    Args:
        read: whether the first file may be read.
    """
    spec = load(path)
    plan = plan_of(spec)
    timeline = timeline_of(spec, now() if spec.schedule.until is None else spec.schedule.until)
    document = whole_document(spec, plan, timeline.windows)
    document["warnings"] += of_first_file(spec, timeline, plan) if read else []
    lines = [
        f"{path}: is written, and can be changed",
        "",
        *columns([HEADING, *rows_of(document)]),
        "",
        *(f"warning: {one}" for one in document["warnings"]),
        f"next: slackwater plan {path}",
    ]
    return {"spec": str(path), "plan": document}, "\n".join(lines)


def _columns(path: str) -> list[str]:
    """The names of the columns, if they may be read; an answer to `entry` or `unit` may be one of them."""
    try:
        if not matching((path,)):
            print("  there is no such file yet", file=sys.stderr)
            return []
        return columns_at(path) if _line(_LOOK).lower() in ("y", "yes") else []
    except (InputError, SpecError) as error:
        print(f"  {error}", file=sys.stderr)
        return []


def _ask(question: Question, columns: list[str]) -> str:
    """Until the answer can be used."""
    known = f" ({', '.join(columns)})" if question.column and columns else ""
    usual = f" [{question.usual}]" if question.usual else ""
    while True:
        answer = _line(f"{question.asks}{known}{usual}: ") or question.usual
        try:
            if answer is None:
                raise ValueError("an answer is required")
            if question.column and columns and answer not in (*columns, question.usual):
                raise ValueError(f"there is no column {answer!r}")
            return question.checked(answer)
        except ValueError as error:
            print(f"  {error}", file=sys.stderr)


def _line(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise SpecError("the answers ended; nothing was written")
    return line.strip()


def _checked(given: Mapping[str, str]) -> dict[str, str]:
    """
    Raises:
        SpecError: a line for each flag that cannot be used.
    """
    found, problems = {}, []
    for name, value in given.items():
        try:
            found[name] = QUESTIONS[name].checked(value)
        except ValueError as error:
            problems.append(f"{_flag(name)}: {error}")
    if problems:
        raise SpecError("\n".join(problems))
    return found


def _refuse_wrong(text: str, path: Path) -> str:
    """The text, if `plan` takes it: answers that are right by themselves may not go together."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder, path.name)
        draft.write_text(text, encoding="utf-8")
        try:
            load(draft)
        except SpecError as error:
            told = re.sub(r"^\d+: ", "", str(error).replace(f"{draft}:", ""), flags=re.MULTILINE)
            raise SpecError(f"{told}\nnothing was written") from None
    return text


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
