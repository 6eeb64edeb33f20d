"""Add to an error about a column of the files the lines of the spec that name the column.

wards.yaml:14: queries[0].where of 'beds': data/stays.csv has no column 'surgery'; ...
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from pipelines.spec.document import SpecPlace, document_of
from pipelines.spec.errors import name_of
from pipelines.spec.load import Spec
from transforms.common.errors import ColumnError, SpecError

Found = TypeVar("Found")
_KEY = re.compile(r"(?:(changelog|privacy)\.(\w+)|queries|where): ")


def with_spec_lines(inspected: Callable[[], Found], spec: Spec, *, query: int | None = None) -> Found:
    """Return the result of `inspected`; its errors about columns name the lines of the spec.

    Args:
        inspected: Reads the columns of the files.
        spec: The spec that names the columns.
        query: Number of the query whose `where` is inspected; None: all queries.

    Raises:
        SpecError: The error of `inspected`, with file, line and key; one line for each place that names the column.
    """
    try:
        return inspected()
    except SpecError as error:
        places: list[SpecPlace] = [] if query is None else [("queries", query, "where")]
        if isinstance(error, ColumnError):
            places = list(_asking(error.column, spec))
        key = _KEY.match(str(error))
        if not places and key and key[1]:
            places = [(key[1], key[2])]
        if not places:
            raise
        document = document_of(str(spec.path), spec.text)
        lines = [
            f"{spec.path}:{document.line(place)}: {_named(place, spec)}: {_text(error, place)}" for place in places
        ]
        raise SpecError("\n".join(lines)) from None


def _asking(column: str, spec: Spec) -> Iterator[SpecPlace]:
    """Yield the places of the spec that name a column of the states."""
    if column == spec.privacy.owner:
        yield "privacy", "unit"
    constraint = spec.privacy.constraint
    if constraint.column == column:
        yield "privacy", "constraint", "by"
    for number, query in enumerate(spec.queries):
        if query.column == column:
            yield "queries", number, "measure"
        if query.where is not None and column in query.where.columns:
            yield "queries", number, "where"
        if column in dict(query.by):
            yield "queries", number, "by", column


def _named(place: SpecPlace, spec: Spec) -> str:
    of = f" of {spec.queries[place[1]].name!r}" if isinstance(place[1], int) else ""
    return f"{name_of(place)}{of}"


def _text(error: SpecError, place: SpecPlace) -> str:
    """Return the message without its key, since the place names it, unless the key is part of the advice."""
    key = _KEY.match(str(error))
    message = str(error)[key.end() :] if key and key[2] != "types" else str(error)
    if place[-1] != "where" or not isinstance(error, ColumnError) or "has no column" not in message:
        return message
    return (
        f"{message}{' ' if message.endswith('?') else '; '}if it is a text, put it in single quotes: '{error.column}'"
    )
