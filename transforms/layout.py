"""What the files of a changelog look like: decided once, on the driver, from the first file.

Readers on the workers hold every file against it: a file that differs becomes a dead letter.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms import files
from transforms.errors import InputError, SpecError
from transforms.instants import NO_ZONE, to_microseconds
from transforms.kinds import NUMERIC, is_text, kind_of
from transforms.samples import sample
from transforms.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Where one side's state stands.

    Attributes:
        side: `before` or `after`.
        name: the struct column, or the prefix of the columns (empty: they have none).
        struct: whether it is a struct column.
    """

    side: str
    name: str
    struct: bool

    def path(self, column: str) -> str:
        """How a state's column is called in the files; with a dot inside a struct."""
        return f"{self.name}.{column}" if self.struct else f"{self.name}{column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All that a worker must know to read the files.

    Attributes:
        files: (path, size in bytes), sorted by path.
        entry: kind of the key, `int64` or `string`.
        order: kind of each order column, `int64` or `string`.
        owner: kind of the owner's column if it belongs to the mutation, not to its states; else None.
        sides: `before`, if the files hold it, and `after`.
        states: (column, kind) of the state columns that are needed, sorted by name.
    """

    source: Source
    files: tuple[tuple[str, int], ...]
    entry: str
    order: tuple[str, ...]
    owner: str | None
    sides: tuple[Side, ...]
    states: tuple[tuple[str, str], ...]

    @property
    def roles(self) -> dict[str, str]:
        """Normalised name to the file's column of what is not state, time among it."""
        source = self.source
        orders = {f"order.{place}": column for place, column in enumerate(source.order)}
        owner = {"owner": source.owner} if self.owner is not None and source.owner is not None else {}
        return {"entry": source.entry, "time": source.time, **orders, **owner}

    def rest(self, side: Side, names: Sequence[str]) -> list[str]:
        """Columns of a side without a struct that say whether its state exists, apart from those needed."""
        needed = {side.path(column) for column, _ in self.states}
        other = [s.name for s in self.sides if s is not side]
        roles = set(self.roles.values())
        return [
            name
            for name in names
            if name.startswith(side.name)
            and name not in needed | roles
            and (side.name or not any(_belongs(name, prefix) for prefix in other))
        ]

    def fault(self, schema: pa.Schema) -> str | None:
        """Why a file with this schema cannot be read with the layout; None if it can.

        Types must be of the layout's kinds; whole numbers may stand where floats are expected.
        """
        declared = {column for column, _ in self.source.types}
        kinds = {"entry": self.entry, "time": "timestamp", "owner": self.owner or "string"}
        kinds |= {f"order.{place}": kind for place, kind in enumerate(self.order)}
        expected = [(path, kinds[role], path in declared) for role, path in self.roles.items()]
        for side in self.sides:
            expected += [(side.path(column), kind, column in declared) for column, kind in self.states]
        for path, kind, converted in expected:
            type_ = find(schema, path, self.sides)
            if type_ is None:
                return f"the file has no column {path!r}"
            if schema.names.count(path) > 1:
                return f"the file has column {path!r} twice"
            same = kind_of(type_) == kind or (kind == "float64" and kind_of(type_) == "int64")
            if not (same or converted or pa.types.is_null(type_)):
                return f"column {path!r} is {type_}, but the first file has {kind} there"
        time = schema.field(self.source.time).type
        if pa.types.is_timestamp(time) and time.tz is None and self.source.timezone is None:
            return f"column {self.source.time!r} has no time zone; name it as changelog.timezone"
        return None


def inspect(source: Source, numbers: frozenset[str], others: frozenset[str]) -> Layout:
    """Match the globs, look at the first file and decide how all files are read.

    Args:
        numbers: state columns that sums or means are taken of.
        others: state columns that anything else reads (`where`, `by`, classes, the owner).

    Raises:
        SpecError: a glob without files, a column that is not there, or one of a type that cannot serve.
        InputError: an empty file, or a first file that cannot be read.
    """
    found = files.find(source.paths)
    first = found[0][0]
    try:
        schema, times = sample(source, first)
    except files.UNREADABLE as error:
        kind = {"parquet": "a Parquet file", "csv": "a CSV file", "jsonl": "JSON lines"}[source.format]
        raise InputError(
            f"{first}: cannot be read as {kind} ({type(error).__name__}); it may be truncated or of another format"
        ) from None
    sides = _sides(source, schema)
    look = _Look(source, first, schema, sides)
    _check_time(look, times)
    states = (numbers | others) - ({source.owner} if _is_role(look, source.owner) else set())
    if source.owner is not None and not _is_role(look, source.owner):
        states |= {source.owner}
    return Layout(
        source=source,
        files=found,
        entry=_key(look, source.entry, "entry"),
        order=tuple(_key(look, column, "order") for column in source.order),
        owner=_key(look, source.owner, "owner") if source.owner and _is_role(look, source.owner) else None,
        sides=sides,
        states=tuple((column, _state(look, column, column in numbers)) for column in sorted(states)),
    )


def find(schema: pa.Schema, path: str, sides: Sequence[Side]) -> pa.DataType | None:
    """Type of a column by its path; None if it is not there."""
    if path in schema.names:
        return schema.types[schema.names.index(path)]
    for side in sides:
        if side.struct and side.name in schema.names and path.startswith(f"{side.name}."):
            struct, child = schema.field(side.name).type, path.removeprefix(f"{side.name}.")
            if pa.types.is_struct(struct) and struct.get_field_index(child) >= 0:
                return struct.field(child).type
    return None


@dataclass(frozen=True, slots=True)
class _Look:
    source: Source
    file: str
    schema: pa.Schema
    sides: tuple[Side, ...]

    def names(self) -> list[str]:
        """Every path that a column could be named by."""
        names = list(self.schema.names)
        for side in self.sides:
            if side.struct:
                names += [side.path(child.name) for child in self.schema.field(side.name).type]
        return names

    def type_of(self, path: str, key: str) -> pa.DataType:
        type_ = find(self.schema, path, self.sides)
        if type_ is None:
            names = self.names()
            near = difflib.get_close_matches(path, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, names[:12]))}"
            raise SpecError(f"{key}: {self.file} has no column {path!r}; {hint}")
        if self.schema.names.count(path) > 1:
            raise SpecError(f"{key}: {self.file} has column {path!r} twice; rename one")
        return type_


def _belongs(name: str, prefix: str) -> bool:
    return bool(prefix) and name.startswith(prefix)


def _sides(source: Source, schema: pa.Schema) -> tuple[Side, ...]:
    sides = []
    for side, name in (("before", source.before), ("after", source.after)):
        if side == "before" and name is None:
            continue
        struct = name in schema.names and pa.types.is_struct(schema.field(name).type)
        sides.append(Side(side=side, name=name or "", struct=struct))
    return tuple(sides)


def _is_role(look: _Look, owner: str | None) -> bool:
    return owner is not None and owner in look.schema.names


def _key(look: _Look, column: str, role: str) -> str:
    type_ = look.type_of(column, f"changelog.{role}" if role != "owner" else "privacy.unit")
    kind = dict(look.source.types).get(column, kind_of(type_))
    if pa.types.is_null(type_):
        kind = "string"
    if kind not in ("int64", "string"):
        raise SpecError(
            f"changelog.{role}: column {column!r} of {look.file} is {type_}; whole numbers or strings are expected"
        )
    return kind


def _state(look: _Look, column: str, number: bool) -> str:
    declared = dict(look.source.types).get(column)
    types = {side.path(column): _state_type(look, side.path(column), declared) for side in look.sides}
    kinds = {declared or kind_of(type_) for type_ in types.values() if not pa.types.is_null(type_)} or {"string"}
    shown = " and ".join(f"{path!r} ({type_})" for path, type_ in types.items())
    if number and look.source.format != "parquet" and declared is None and (kinds <= {*NUMERIC} or not _known(types)):
        return "float64"
    if kinds == {"int64", "float64"}:
        kinds = {"float64"}
    kind = kinds.pop()
    if kinds or kind is None:
        raise SpecError(
            f"changelog.types: {shown} of {look.file} are of no one type that states can have; "
            f"declare one, or write the column as number, string, bool or timestamp"
        )
    if number and kind not in NUMERIC:
        raise SpecError(f"queries: {shown} of {look.file} is measured but not a number; measure a numeric column")
    return kind


def _state_type(look: _Look, path: str, declared: str | None) -> pa.DataType:
    # A JSON line need not hold every column, so that a declared one may be absent from the sample.
    if declared is not None and look.source.format == "jsonl" and find(look.schema, path, look.sides) is None:
        return pa.null()
    return look.type_of(path, "queries")


def _known(types: dict[str, pa.DataType]) -> bool:
    return not all(pa.types.is_null(type_) for type_ in types.values())


def _check_time(look: _Look, times: pa.Array | None) -> None:
    source = look.source
    type_ = look.type_of(source.time, "changelog.time")
    where = f"changelog.time: column {source.time!r} of {look.file}"
    if times is None:
        if not pa.types.is_timestamp(type_):
            raise SpecError(f"{where} is {type_}; write timestamps with a zone, e.g. timestamp[us, tz=UTC]")
        if type_.tz is None and source.timezone is None:
            raise SpecError(f"{where} has no time zone; name it as changelog.timezone, or write timestamps with one")
        return
    if not is_text(times.type):
        raise SpecError(f"{where} is {times.type}; write ISO 8601 times such as 2013-02-08T17:30:00-05:00")
    _, bad = to_microseconds(times, source.timezone)
    reasons = {int(row): reason for rows, reason in reversed(bad) for row in np.asarray(rows)}
    if len(reasons) and len(reasons) == len(times) - times.null_count:
        reason = NO_ZONE if NO_ZONE in reasons.values() else next(iter(reasons.values()))
        raise SpecError(f"{where}: {reason}")
