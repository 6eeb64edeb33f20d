"""The questions of `slackwater init` with their defaults, and the checks of the answers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import isfinite
from typing import TypedDict

from pydantic_core import PydanticCustomError

from pipelines.changelog.first_spec import ENTRY, EVER
from pipelines.changelog.recognise import LOGS, ending_of
from pipelines.common.parser import values_of_column
from pipelines.spec.durations import parse_length
from pipelines.spec.fields import timezone_named
from pipelines.spec.times import parse_moment_or_date, time_text


class Answers(TypedDict, total=False):
    """Answers to `QUESTIONS`, by their names; None: no answer."""

    path: str | None
    entry: str | None
    time: str | None
    to: str | None
    deleted: str | None
    timezone: str | None
    unit: str | None
    span: str | None
    entries: int | str | None
    at_most: int | str | None
    epsilon: float | str | None
    start: str | None
    every: str | None
    until: str | None
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and how its answer is checked.

    Attributes:
        usual: Default, on a terminal and without; None: an answer is required.
        checked: Returns the answer as the spec has it, or raises ValueError.
        column: Whether the answer is the name of a column.
        matters: Returns whether the question is asked, given the answers before it.
    """

    asks: str
    checked: Callable[[str], str]
    usual: str | None = None
    column: bool = False
    matters: Callable[[Mapping[str, str]], bool] = lambda _: True


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


def _zone(text: str) -> str:
    try:
        return timezone_named(text)
    except PydanticCustomError as error:
        raise ValueError(error.context["problems"][0][1] if error.context else "") from None


def _moment(text: str) -> str:
    found = parse_moment_or_date(text)
    return time_text(found) if isinstance(found, datetime) else found.isoformat()


def _end(text: str) -> str:
    return _moment(text) if text else ""


def _span(text: str) -> str:
    return text if text == EVER else _duration(text)


def _duration(text: str) -> str:
    if parse_length(text) == 0:
        raise ValueError("expected a duration above zero, such as 1d")
    return text


def _values(text: str) -> str:
    if text:
        values_of_column(text)
    return text


def _first_monday() -> str:
    """Return the first Monday of this year."""
    new_year = date(datetime.now(UTC).year, 1, 1)
    return (new_year + timedelta(days=-new_year.weekday() % 7)).isoformat()


QUESTIONS: Mapping[str, Question] = {
    "path": Question(asks="a file of changes, or a glob, such as data/*.csv", checked=_path),
    "entry": Question(asks="the column that holds the key of what comes, changes and goes", checked=_name, column=True),
    "time": Question(
        asks="the column that holds the time of a change; or, if each row is a stay, its start",
        checked=_name,
        column=True,
    ),
    "to": Question(
        asks="if each row is a stay, the column that holds its end; empty: each row is a change",
        checked=str,
        usual="",
        column=True,
    ),
    "deleted": Question(
        asks="if a column marks deletions, the column and its values, such as op=D; empty: no column does",
        checked=_values,
        usual="",
        matters=lambda known: not known["to"],
    ),
    "timezone": Question(
        asks="the time zone of dates below, and of times in the files without a zone, such as Europe/Paris",
        checked=_zone,
        usual="UTC",
    ),
    "unit": Question(
        asks="who is protected: entry, each by itself; or the column that names the person behind it",
        checked=_name,
        usual=ENTRY,
        column=True,
    ),
    "span": Question(
        asks="the time in which everything that each of these does is protected, such as 14d; ever: everything that "
        "they ever do, with more noise",
        checked=_span,
        usual="14d",
    ),
    "entries": Question(
        asks="how many entries of one unit count at the same time; do not take it from these data",
        checked=_count,
        usual="1",
        matters=lambda known: known["unit"] != ENTRY and known["span"] != EVER,
    ),
    "at_most": Question(
        asks="how many changes of one unit count; do not take it from these data; more are cut off",
        checked=_count,
        usual="4",
        matters=lambda known: known["span"] == EVER,
    ),
    "epsilon": Question(
        asks="epsilon, the budget of everything ever published; smaller is safer and has larger errors",
        checked=_epsilon,
        usual="1.0",
    ),
    "start": Question(
        asks="when the first window begins, a public date",
        checked=_moment,
        usual=_first_monday(),
    ),
    "every": Question(asks="how long a window is; longer ones have smaller errors", checked=_duration, usual="1w"),
    "until": Question(asks="when the last window ends; empty: never", checked=_end, usual=""),
    "by": Question(
        asks="count by public values of a column, such as ward=medicine,surgery; empty: one count of all",
        checked=_values,
        usual="",
    ),
}
"""By the names of their flags, in the order in which they are asked."""
