"""A first look into files of Debezium or Datastream: the states that their first events hold, as flat columns.

in    the first lines or records of a file
out   a table: the key under its own name, `before.<column>` and `after.<column>`, and what orders the events
"""

import difflib
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from transforms.avro_blocks import Path, Record, blocks, column
from transforms.errors import InputError, SpecError
from transforms.own_names import POSITION
from transforms.source import Source

Infer = Callable[[list[bytes]], pa.Table]


def sample_events(source: Source, path: str, lines: list[bytes], infer: Infer) -> pa.Table:
    """Of JSON objects, one a line; `infer` makes a table of such lines.

    Raises:
        SpecError: the columns that the spec names for key or order are not there.
        InputError: no event with a state is among the lines.
    """
    events = [_inner(json.loads(line)) for line in lines]
    if source.format == "datastream":
        sides = {"after": [event.get("payload") for event in events]}
    else:
        sides = {side: [event.get(side) for event in events] for side in ("before", "after")}
    own = [name for name in source.order if name not in (POSITION, "sort_keys")]
    orders = {name: [_at(event, tuple(name.split("."))) for event in events] for name in own}
    columns: dict[str, dict[str, pa.Array]] = {}
    for side, found in sides.items():
        states = [state for state in found if isinstance(state, dict)]
        table = infer([json.dumps(state).encode() for state in states]) if states else pa.table({})
        columns[side] = {name: table[name].combine_chunks() for name in table.column_names}
    for name, values in orders.items():
        _refuse_absent(name, values, path)
    told = [
        json.dumps(values).encode()
        for values in (dict(zip(orders, row, strict=True)) for row in zip(*orders.values(), strict=True))
    ]
    ordered = infer(told) if told else pa.table({})
    return _flat(source, path, columns, {name: ordered[name].combine_chunks() for name in ordered.column_names})


def sample_avro(source: Source, path: str, stream: pa.NativeFile) -> pa.Table:
    """Of the first block of an Avro file that has records.

    Raises:
        pa.ArrowInvalid: not an Avro file, or a spoilt one.
        SpecError, InputError: as for lines.
    """
    for records, types in blocks(stream):
        if records:
            states = {
                at[1]: column([_at(record, at) for record in records], type_)
                for at, type_ in types.items()
                if at[0] == "payload" and len(at) == 2
            }
            return _flat(source, path, {"after": states}, {})
    return _flat(source, path, {"after": {}}, {})


def _flat(source: Source, path: str, sides: dict[str, dict[str, pa.Array]], orders: dict[str, pa.Array]) -> pa.Table:
    """All columns beside each other; shorter ones end with nulls, since only types and some values matter."""
    names = list(dict.fromkeys(name for columns in sides.values() for name in columns))
    if not names:
        what = "`before` or `after`" if source.format == "debezium" else "`payload`"
        raise InputError(
            f"{path}: no event at its begin holds a state ({what}), to tell the columns; begin with a file of changes"
        )
    if source.entry not in names:
        near = difflib.get_close_matches(source.entry, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, names[:12]))}"
        raise SpecError(f"changelog.entry: the states of {path} have no column {source.entry!r}; {hint}")
    flat = {f"{side}.{name}": columns.get(name, pa.nulls(0)) for side, columns in sides.items() for name in names}
    keys = [columns[source.entry] for columns in reversed(sides.values()) if source.entry in columns]
    typed = [key for key in keys if not pa.types.is_null(key.type)] or keys
    flat |= {source.entry: typed[0], **orders}
    if source.format == "datastream" and source.owner in names:  # of each event, deletions too
        flat[source.owner] = sides["after"][source.owner]
    flat |= {name: pa.nulls(0, pa.string()) for name in source.order if name not in orders}
    rows = max(len(values) for values in flat.values())
    return pa.table({name: _lengthened(values, rows) for name, values in flat.items()})


def _lengthened(values: pa.Array, rows: int) -> pa.Array:
    return pa.concat_arrays([values, pa.nulls(rows - len(values), values.type)])


def _refuse_absent(name: str, values: list[Any], path: str) -> None:
    if all(value is None for value in values):
        raise SpecError(
            f"changelog.order: the first events of {path} have nothing at {name!r}; leave order out, or name another"
        )


def _inner(event: Record) -> Record:
    """The event itself, without the schema beside it."""
    payload = event.get("payload")
    return payload if "op" not in event and "source_metadata" not in event and isinstance(payload, dict) else event


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
