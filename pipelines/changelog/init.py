"""`slackwater init`: a few questions, and a spec that `plan` takes as it is.

What it writes is what was said. Of the data it reads, with leave, the names of the columns of one file, and no value.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

from pipelines.changelog.new_spec import new_spec
from pipelines.changelog.source import LOGS, columns_at, ending_of
from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.spec.durations import parse_duration
from pipelines.spec.load import load
from pipelines.spec.times import parse_time, time_text
from transforms.common.errors import InputError, SpecError
from transforms.sources.files.listing import matching

_LOOK = """\
The names of the columns can be read from the files. They are private, as the files are: they go to this terminal, and
into the spec those that you choose. No value is shown, unless a file has no heading.
Read them? [y/N] """


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked for.

    Attributes:
        usual: what no answer means on a terminal; None: it must be answered.
        neutral: whether it means so without a terminal, too: no choice about privacy does.
        checked: the answer as the spec has it, or ValueError.
        column: whether a column is asked for.
    """

    asks: str
    checked: Callable[[str], str]
    usual: str | None = None
    neutral: bool = False
    column: bool = False


def init(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Ask, and write the spec."""
    refuse_any(flags, "init")
    path = Path(arguments.spec)
    if path.suffix not in (".yaml", ".yml"):
        raise SpecError(f"{path}: the name of a spec ends in .yaml")
    if path.exists():
        raise SpecError(f"{path}: is there already, and nothing is overwritten; name another file")
    given = {name: value for name in QUESTIONS if (value := getattr(arguments, name)) is not None}
    answers = _checked(given)
    if sys.stdin.isatty():
        answers = _asked(answers)
    missing = [name for name, question in QUESTIONS.items() if name not in answers and not question.neutral]
    if missing:
        raise SpecError("\n".join(f"--{name.replace('_', '-')}: missing; {QUESTIONS[name].asks}" for name in missing))
    neutral = {name: question.usual or "" for name, question in QUESTIONS.items() if question.neutral}
    text = new_spec({**neutral, **answers}, stem=path.stem)
    _refuse_wrong(text, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SpecError(f"{path}: cannot be written ({error.strerror}); name another file") from None
    return {"spec": str(path)}, f"{path}: is written, and can be changed; next: slackwater plan {path}"


def _asked(answers: Mapping[str, str]) -> dict[str, str]:
    """With what is asked on the terminal."""
    found, columns = dict(answers), list[str]()
    for name, question in QUESTIONS.items():
        if name not in found:
            found[name] = _ask(question, columns)
        if name == "path" and any(one.column and key not in found for key, one in QUESTIONS.items()):
            columns = _columns(found["path"])
    return found


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
                raise ValueError("there is no usual answer to this")
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
            problems.append(f"--{name.replace('_', '-')}: {error}")
    if problems:
        raise SpecError("\n".join(problems))
    return found


def _refuse_wrong(text: str, path: Path) -> None:
    """As `plan` would: answers that are right by themselves may not go together."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder, path.name)
        draft.write_text(text, encoding="utf-8")
        try:
            load(draft)
        except SpecError as error:
            told = re.sub(r"^\d+: ", "", str(error).replace(f"{draft}:", ""), flags=re.MULTILINE)
            raise SpecError(f"{told}\nnothing was written") from None


def _path(text: str) -> str:
    if "%" in text or text.startswith("kafka:") or ending_of(text) not in LOGS:
        raise ValueError(
            f"expected files that end in {', '.join(LOGS)}, each row a change; for copies of a table, topics, "
            "Debezium and Datastream `slackwater changelog SRC --suggest` makes a spec to start from"
        )
    return text


def _name(text: str) -> str:
    if not text:
        raise ValueError("expected the name of a column")
    return text


def _epsilon(text: str) -> str:
    try:
        epsilon = float(text)
    except ValueError:
        epsilon = 0.0
    if not (isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"expected a number above zero, such as 1.0, not {text[:40]!r}")
    return repr(epsilon)


def _count(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise ValueError(f"expected a whole number of at least 1, not {text[:40]!r}")
    return text


def _moment(text: str) -> str:
    return time_text(parse_time(text))


def _end(text: str) -> str:
    return _moment(text) if text else ""


def _duration(text: str) -> str:
    if parse_duration(text) == 0:
        raise ValueError("expected a duration above zero, such as 1d")
    return text


def _by(text: str) -> str:
    column, _, values = text.partition("=")
    if text and not (column.strip() and all(value.strip() for value in values.split(","))):
        raise ValueError(f"expected COLUMN=VALUE,VALUE, such as ward=medicine,surgery, not {text[:40]!r}")
    return text


QUESTIONS: Mapping[str, Question] = {
    "path": Question(asks="a file of changes, or a glob, such as data/*.csv", checked=_path),
    "entry": Question(asks="the column that holds the key of what comes, changes and goes", checked=_name, column=True),
    "time": Question(asks="the column that holds the time of a change", checked=_name, column=True),
    "unit": Question(
        asks="who is protected: entry, each by itself; or the column that names the person behind it",
        checked=_name,
        usual="entry",
        neutral=True,
        column=True,
    ),
    "epsilon": Question(
        asks="epsilon, the budget of all that is ever published; smaller is safer and further off",
        checked=_epsilon,
        usual="1.0",
    ),
    "at_most": Question(
        asks="how many changes of one are counted, by what is known and not by these data; more are cut off",
        checked=_count,
        usual="4",
    ),
    "start": Question(
        asks="when the first window begins, a date that is no secret",
        checked=_moment,
        usual=f"{datetime.now(UTC).year}-01-01T00:00:00Z",
    ),
    "every": Question(asks="how long a window is", checked=_duration, usual="1d", neutral=True),
    "until": Question(asks="when the last window ends; empty: never", checked=_end, usual="", neutral=True),
    "by": Question(
        asks="count by values of a column, that are no secret, such as ward=medicine,surgery; empty: one count of all",
        checked=_by,
        usual="",
        neutral=True,
    ),
}
"""By the names of their flags, in the order in which they are asked."""
