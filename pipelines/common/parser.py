"""A parser of arguments whose errors have one line, in the form of all other errors; and the types of arguments."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn, TypeVar

from pipelines.spec.durations import parse_duration, parse_length
from pipelines.spec.times import MICROSECOND, parse_time
from pipelines.spec.words import not_one_of
from transforms.common.errors import SpecError

T = TypeVar("T")

_OF_ALL = ("command", "parser", "json")


class Parser(argparse.ArgumentParser):
    """Parser of the program and of its commands."""

    def error(self, message: str) -> NoReturn:
        """Print one line without the usage block, and exit with code 2."""
        print(f"slackwater: {_reworded(message, self.prog)}", file=sys.stderr)
        self.exit(2)


def _reworded(message: str, program: str) -> str:
    """Return a message of argparse in the form of other errors.

    >>> _reworded("the following arguments are required: SPEC, -o", "slackwater smooth")
    'SPEC, -o: missing; see `slackwater smooth --help`'
    >>> _reworded("argument --seed: expected one argument", "slackwater simulate")
    '--seed: expected one argument; see `slackwater simulate --help`'
    """
    message, see = message.removeprefix("argument "), f"; see `{program} --help`"
    if missing := re.fullmatch("the following arguments are required: (.*)", message):
        return f"{missing[1]}: missing{see}"
    if choice := re.fullmatch(r"(.*?): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
        return f"{choice[1]}: {not_one_of(choice[2], choice[3].replace(chr(39), '').split(', '))}"
    return message + (see if message.endswith("argument") else "")


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its commands."""
    for inner in leaves_of(parser):
        yield from inner._actions


def leaves_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of commands without subcommands."""
    inner = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield parser
    for choices in inner:
        for one in choices.values():
            yield from leaves_of(one)


def named(given: argparse.Namespace, *apart: str) -> dict[str, Any]:
    """Return the arguments that the function of a command has under the same names.

    Args:
        given: The parsed arguments.
        apart: Names of arguments that the function does not have.
    """
    return {name: value for name, value in vars(given).items() if name not in (*_OF_ALL, *apart)}


def refuse_any(flags: Sequence[str], command: str) -> None:
    """Refuse Beam's flags for a command that runs no pipeline.

    Raises:
        SpecError: There are flags.
    """
    if flags:
        raise SpecError(
            f"{flags[0]}: {command} runs no pipeline, so it takes no pipeline options, and it has no such flag; "
            f"see `slackwater {command} --help`"
        )


def _typed(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser of one text whose errors argparse shows unchanged."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def _duration(text: str) -> timedelta:
    duration = parse_duration(text)
    if duration == 0:
        raise ValueError("expected a duration above zero, such as 10s")
    return duration * MICROSECOND


def _count(text: str, *, least: int) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII) or int(text) < least:
        raise ValueError(f"expected a whole number of at least {least}, not {text[:40]!r}")
    return int(text)


def _number(text: str, *, fits: Callable[[float], bool], expected: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not fits(number):
        raise ValueError(f"expected {expected}, not {text!r}")
    return number


def _column_type(text: str) -> tuple[str, str]:
    column, _, kind = text.rpartition("=")
    if not column:
        raise ValueError(f"expected COLUMN=TYPE, such as age=int64, not {text!r}")
    return column, kind


def values_of_column(text: str) -> tuple[str, list[str]]:
    """Return the column and the values of COLUMN=A,B.

    Raises:
        ValueError: The text is of another form.
    """
    column, _, values = text.partition("=")
    found = [value.strip() for value in values.split(",")]
    if not (column.strip() and all(found)):
        raise ValueError(f"expected COLUMN=VALUE,VALUE, such as op=D,delete, not {text[:40]!r}")
    return column.strip(), found


moment = _typed(parse_time)
"""A time in ISO 8601 with a zone."""

duration = _typed(_duration)
"""A duration above zero, such as 1d."""

length = _typed(lambda text: parse_length(text) * MICROSECOND)
"""A duration, or a number of months, such as 1mo."""

count = _typed(partial(_count, least=1))
"""A whole number of at least 1."""

seed = _typed(partial(_count, least=0))
"""A whole number of at least 0."""

positive = _typed(partial(_number, fits=lambda number: 0 < number < 1e12, expected="a number above 0"))
"""A number above 0."""

share = _typed(partial(_number, fits=lambda number: 0 <= number < 1, expected="a share of at least 0 and below 1"))
"""A number of at least 0 and below 1."""

column_type = _typed(_column_type)
"""A column and its type, such as age=int64."""

column_values = _typed(values_of_column)
"""A column and values in it, such as op=D,delete."""
