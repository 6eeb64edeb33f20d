"""`slackwater init` on a terminal: questions, asked again until the answers fit together."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from pipelines.changelog.source import columns_at
from pipelines.init.operation import FirstSpec, checked, is_naive, refuse_idle, text_of, written
from pipelines.init.questions import QUESTIONS, Answers, Question
from transforms.common.errors import InputError, SpecError
from transforms.sources.files.listing import matching

_LOOK = """\
The names of the columns can be read from the files. They are as private as the files. They are shown on this terminal,
and the spec has those that you choose. No value is shown, unless a file has no heading.
Read them? [y/N] """


def ask(spec: str | Path, **answers: Unpack[Answers]) -> FirstSpec:
    """Write a first spec from the given answers, and ask the person at the terminal for the others.

    Args:
        spec: Path of the file to write; nothing is overwritten.
        answers: Given answers, which are not asked for.

    Raises:
        SpecError: A given answer is wrong, or the input ended.
    """
    path, given = checked(spec, answers)
    before: dict[str, str] = {}
    look: tuple[list[str], bool] | None = None
    while True:
        found, naive, look = _asked(given, before, look)
        refuse_idle(given, found)
        try:
            text = text_of(found, path, naive=naive)
        except SpecError as error:
            if not found.keys() - given.keys():
                raise
            print(f"{error}; the questions follow again, with your answers", file=sys.stderr)
            before = found
        else:
            return written(path, text, read=look[1])


def _asked(
    given: Mapping[str, str], before: Mapping[str, str], look: tuple[list[str], bool] | None
) -> tuple[dict[str, str], bool, tuple[list[str], bool]]:
    """Return all answers, whether times have no zone, and the names of columns with whether the file may be read.

    Args:
        given: Answers that are not asked for.
        before: Answers of an earlier round, which are the defaults now.
        look: Last item of the result of the earlier round; None in the first round.
    """
    found: dict[str, str] = {}
    naive = False
    for name, question in QUESTIONS.items():
        if name in given:
            found[name] = given[name]
        elif question.matters(found):
            usual = None if name == "timezone" and naive else question.usual
            names = look[0] if look is not None else []
            found[name] = _answer(replace(question, usual=before.get(name, usual)), names)
        if look is None:  # `path` is the first question
            needed = [key for key, one in QUESTIONS.items() if one.column and key not in given]
            names = _columns(found["path"]) if needed else []
            look = names, bool(names) or not needed
        if name == "time":
            naive = look[1] and is_naive(found["path"], found["time"])
            if naive and "timezone" not in given:
                print(f"  the times in column {found['time']!r} name no time zone", file=sys.stderr)
    assert look is not None
    return found, naive, look


def _columns(path: str) -> list[str]:
    """Return the names of the columns if they may be read; empty otherwise."""
    try:
        if not matching((path,)):
            print("  there is no such file yet", file=sys.stderr)
            return []
        return columns_at(path) if _line(_LOOK).lower() in ("y", "yes") else []
    except (InputError, SpecError) as error:
        print(f"  {error}", file=sys.stderr)
        return []


def _answer(question: Question, columns: list[str]) -> str:
    """Ask a question until the answer is valid."""
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
