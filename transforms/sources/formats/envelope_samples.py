"""Samples of files of events with envelopes: the states in the first events, as flat columns.

in    the first records of a file, or the types of their members
out   the key under its own name, `before.<column>` and `after.<column>`, and the columns that order the events
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from privacy.counted import counted
from transforms.common.errors import SpecError
from transforms.common.source import Source
from transforms.sources.formats.envelopes import FieldPath
from transforms.sources.formats.format import JsonRecord


def states_in(
    source: Source,
    path: str,
    records: list[JsonRecord],
    *,
    sides: Mapping[str, str],
    keys: Sequence[str],
    made: Sequence[str],
) -> list[JsonRecord]:
    """Return a flat row for each event with a state; empty if there is no such event.

    Args:
        source: The changelog.
        path: Path of the file, for messages.
        records: First records of the file.
        sides: Side to the name of its state in an event.
        keys: Columns of states that belong to the event.
        made: Columns of order that the reader makes, since the events do not have them.

    Raises:
        SpecError: The columns that the spec names for key or order do not exist.
    """
    rows, names = [], set[str]()
    for event in map(inner, records):
        states = {side: event[name] for side, name in sides.items() if isinstance(event.get(name), dict)}
        if states:
            row: JsonRecord = {
                f"{side}.{name}": value for side, state in states.items() for name, value in state.items()
            }
            row |= {name: state[name] for state in states.values() for name in keys if name in state}
            row |= {name: _at(event, tuple(name.split("."))) for name in source.order if name not in made}
            rows.append(row)
            names.update(*states.values())
    if rows and source.entry not in names:
        # The names of members in lines can be values, so they are not shown.
        near = difflib.get_close_matches(source.entry, sorted(names), 1)
        hint = "a similar name is there; compare the spelling" if near else f"they have {counted(len(names), 'column')}"
        raise SpecError(f"{_absent(source, path)}; {hint}")
    for name in source.order:
        if rows and name not in made and all(row[name] is None for row in rows):
            raise SpecError(
                f"changelog.order: the first events of {path} have nothing at {name!r}; leave order out or name another"
            )
    return rows


def avro_columns(
    source: Source, path: str, types: dict[FieldPath, pa.DataType], *, state: str, keys: Sequence[str]
) -> pa.Schema:
    """Return the columns of the object `state` by the schema of an Avro file, and `keys` as in `states_in`.

    Args:
        source: The changelog.
        path: Path of the file, for messages.
        types: Types of the members of its records.
        state: Name of the object with the state.
        keys: Columns of states that belong to the event.

    Raises:
        SpecError: The key does not exist.
    """
    states = {at[1]: type_ for at, type_ in types.items() if at[0] == state and len(at) == 2}
    if source.entry not in states:
        known = sorted(states)
        near = difflib.get_close_matches(source.entry, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, known[:12]))}"
        raise SpecError(f"{_absent(source, path)}; {hint}")
    own = {name: states[name] for name in keys if name in states}
    return pa.schema([*((f"after.{name}", type_) for name, type_ in states.items()), *own.items()])


def columns_in(record: JsonRecord, *, names: Sequence[str]) -> list[str]:
    """Return the columns of the first state that an event holds under one of these names."""
    states = (inner(record).get(name) for name in names)
    return list(next((state for state in states if isinstance(state, dict)), {}))


def inner(event: JsonRecord) -> JsonRecord:
    """Return the event itself, without a schema around it."""
    payload = event.get("payload")
    return payload if "op" not in event and "source_metadata" not in event and isinstance(payload, dict) else event


def _absent(source: Source, path: str) -> str:
    return f"changelog.entry: the states of {path} have no column {source.entry!r}"


def _at(value: Any, path: FieldPath) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
