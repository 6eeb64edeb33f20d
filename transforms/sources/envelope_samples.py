"""A first look into files of Debezium or Datastream: the states that their first events hold, as flat columns.

in    the first records of a file, or the types of their members
out   the key under its own name, `before.<column>` and `after.<column>`, and what orders the events
"""

import difflib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from transforms.common.errors import SpecError
from transforms.common.source import Source
from transforms.sources.avro_blocks import Path, Record
from transforms.sources.envelope_names import OWN_ORDERS


def states_in(source: Source, path: str, records: list[Record]) -> list[Record]:
    """A flat row for each event with a state; none if there is no such event.

    Raises:
        SpecError: the columns that the spec names for key or order are not there.
    """
    rows, names = [], set[str]()
    for event in map(_inner, records):
        sides = {"after": "payload"} if source.format == "datastream" else {"before": "before", "after": "after"}
        states = {side: event[name] for side, name in sides.items() if isinstance(event.get(name), dict)}
        if states:
            row: Record = {f"{side}.{name}": value for side, state in states.items() for name, value in state.items()}
            row |= {name: state[name] for state in states.values() for name in _keys(source) if name in state}
            row |= {name: _at(event, tuple(name.split("."))) for name in source.order if name not in OWN_ORDERS}
            rows.append(row)
            names.update(*states.values())
    if rows:
        _refuse_absent(source, path, names)
    for name in source.order:
        if rows and name not in OWN_ORDERS and all(row[name] is None for row in rows):
            raise SpecError(
                f"changelog.order: the first events of {path} have nothing at {name!r}; leave order out or name another"
            )
    return rows


def columns_of(source: Source, path: str, types: dict[Path, pa.DataType]) -> pa.Schema:
    """Of Avro, by its schema.

    Raises:
        SpecError: the key is not there.
    """
    states = {at[1]: type_ for at, type_ in types.items() if at[0] == "payload" and len(at) == 2}
    _refuse_absent(source, path, states)
    keys = {name: states[name] for name in _keys(source) if name in states}
    return pa.schema([*((f"after.{name}", type_) for name, type_ in states.items()), *keys.items()])


def _keys(source: Source) -> list[str]:
    """Columns of states that belong to the event: of Datastream's the owner, too, in deletions as well."""
    owner = [source.owner] if source.format == "datastream" and source.owner is not None else []
    return [source.entry, *owner]


def _refuse_absent(source: Source, path: str, names: Iterable[str]) -> None:
    known = sorted(names)
    if source.entry not in known:
        near = difflib.get_close_matches(source.entry, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, known[:12]))}"
        raise SpecError(f"changelog.entry: the states of {path} have no column {source.entry!r}; {hint}")


def _inner(event: Record) -> Record:
    """The event itself, without the schema beside it."""
    payload = event.get("payload")
    return payload if "op" not in event and "source_metadata" not in event and isinstance(payload, dict) else event


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
