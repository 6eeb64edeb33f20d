"""The columns of a changelog's first file: which there are, and as which kinds they are read."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from transforms.errors import SpecError
from transforms.instants import NO_ZONE, convert_each, to_microseconds
from transforms.kinds import NUMERIC, is_text, kind_of, one_chunk
from transforms.own_names import ENVELOPES
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFile:
    """What is known of the first file.

    Attributes:
        rows: its first rows if the format has no schema (CSV, JSON lines), with times as they stand there.
    """

    source: Source
    path: str
    schema: pa.Schema
    rows: pa.Table | None
    sides: tuple[Side, ...]

    def type_of(self, column: str, key: str) -> pa.DataType:
        """Type of a column that `key` of the spec asks for.

        Raises:
            SpecError: it is not there, or twice.
        """
        type_ = find(self.schema, column, self.sides)
        if type_ is None:
            names = list(self.schema.names)
            for side in self.sides:
                names += [side.path(child.name) for child in self.schema.field(side.name).type] if side.struct else []
            near = difflib.get_close_matches(column, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, names[:12]))}"
            raise SpecError(f"{key}: {self.path} has no column {column!r}; {hint}")
        if self.schema.names.count(column) > 1:
            raise SpecError(f"{key}: {self.path} has column {column!r} twice; rename one")
        return type_

    def key_kind(self, column: str, key: str) -> str:
        """`int64` or `string` for a column that names or orders.

        Raises:
            SpecError: the column is of another type.
        """
        type_ = self.type_of(column, key)
        # What CSV's text looks like is no ground: one unit's row would change how all others are read.
        text = "int64" if key == "changelog.order" else "string"
        kind = dict(self.source.types).get(column, text if self.source.format == "csv" else kind_of(type_))
        if kind not in ("int64", "string"):
            raise SpecError(
                f"{key}: column {column!r} of {self.path} is {type_}; whole numbers or strings are expected"
            )
        return kind

    def state_kind(self, column: str, *, number: bool, key: str) -> str:
        """The kind of a state's column, the same on both sides; `number` if it is measured; `key` asks for it.

        Raises:
            SpecError: a type that states cannot have, or not a number where one is needed.
        """
        declared = dict(self.source.types).get(column)
        types = {path: self._state_type(path, declared, key) for path in (side.path(column) for side in self.sides)}
        kinds = {kind_of(type_) for type_ in types.values() if not pa.types.is_null(type_)}
        measured_text = number and self.rows is not None and all(self._may_measure(path) for path in types)
        if declared is not None:
            kinds = {declared}
        elif self.source.format == "csv" and not number:
            kinds = {"string"}  # see `key_kind`
        elif measured_text or kinds == {"int64", "float64"}:
            kinds = {"float64"}
        shown = " and ".join(f"{path!r} ({type_})" for path, type_ in types.items())
        if len(kinds) > 1 or None in kinds:
            raise SpecError(
                f"changelog.types: {shown} of {self.path} are of no one type that states can have; "
                f"declare one of int64, float64, string, bool, timestamp, or flatten the column{self._decimals}"
            )
        kind = next(iter(kinds), "float64" if number else "string") or "string"
        if number and kind not in NUMERIC:
            raise SpecError(
                f"queries: {shown} of {self.path} is measured but not a number; "
                f"measure a numeric column{self._decimals}"
            )
        return kind

    @property
    def _decimals(self) -> str:
        """A hint for numbers that are written as something else."""
        debezium = self.source.format == "debezium"
        return ", or set the connector's decimal.handling.mode to string or double" if debezium else ""

    def _state_type(self, path: str, declared: str | None, key: str) -> pa.DataType:
        # A JSON line need not hold every member, so that a declared one may be absent from the first.
        optional = declared is not None and self.source.format in ("jsonl", *ENVELOPES)
        if optional and find(self.schema, path, self.sides) is None:
            return pa.null()
        return self.type_of(path, key)

    def _may_measure(self, path: str) -> bool:
        """Whether a column without a schema's type holds a number, or nothing: single bad rows are dead letters."""
        assert self.rows is not None
        type_ = find(self.schema, path, self.sides) or pa.null()
        if not is_text(type_):
            return pa.types.is_null(type_) or kind_of(type_) in NUMERIC
        if path not in self.rows.column_names:
            return False
        texts = one_chunk(self.rows[path].cast(pa.string()))
        return len(convert_each(texts, lambda part: part.cast(pa.float64()))[1]) < len(texts) - texts.null_count

    def check_time(self) -> None:
        """Hold the time column against what times must be.

        Raises:
            SpecError: not a time, or without a zone and none is named.
        """
        time = self.source.time
        if time is None or self.source.format in ENVELOPES:  # told by the format
            return
        type_ = self.type_of(time, "changelog.time")
        where = f"changelog.time: column {time!r} of {self.path}"
        if self.rows is None:
            if not pa.types.is_timestamp(type_):
                raise SpecError(f"{where} is {type_}; write timestamps with a zone, e.g. timestamp[us, tz=UTC]")
            if type_.tz is None and self.source.timezone is None:
                raise SpecError(f"{where} has no time zone; name it as changelog.timezone, or write one into the files")
            return
        times = one_chunk(self.rows[time])
        if pa.types.is_null(times.type):
            return
        if not is_text(times.type):
            raise SpecError(f"{where} is {times.type}; write ISO 8601 times such as 2013-02-08T17:30:00-05:00")
        bad = to_microseconds(times, self.source.timezone)[1]
        reasons = {row: reason for positions, reason in reversed(bad) for row in positions.tolist()}
        if reasons and len(reasons) == len(times) - times.null_count:  # single bad rows are dead letters
            found = list(reasons.values())
            raise SpecError(f"{where}: {NO_ZONE if NO_ZONE in found else found[0]}")
