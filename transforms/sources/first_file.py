"""Columns of a changelog's first file: their names, and the kinds as which they are read.

The schema of Parquet and Avro is public, so messages may show its names and types. CSV and JSON have no schema: there
only the spec decides how values are read, and the first rows only reveal errors of the spec. A text that looks like a
name can be part of a person's row, such as the first line of a CSV file without a header. Messages about CSV and JSON
therefore show names from the spec, and numbers and positions of columns, but no text of the file.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from privacy.counted import counted
from transforms.common.errors import SpecError
from transforms.common.instants import NO_ZONE, to_microseconds
from transforms.common.kinds import NUMERIC, kind_of, to_kind
from transforms.common.source import Source
from transforms.sources.columns.sides import Side, find, members, struct_fields
from transforms.sources.formats.format import Format

ColumnUse = Literal["number", "time"] | None
"""Kind that a query needs a column to have; None: any kind."""

_USUAL: dict[ColumnUse, str] = {"number": "float64", "time": "timestamp", None: "string"}
_SEPARATORS = re.compile(r"[;\t|]")
_CALLED = {";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
_COMMAS = "write the file with commas between columns (docs/how-to/changelogs.md, Files of spreadsheets)"
_SERVING = {"number": NUMERIC, "time": ("timestamp",)}


def refuse_separators(path: str, names: Sequence[str]) -> None:
    """Refuse a file with one column whose name looks like the names of several.

    Raises:
        SpecError: It is such a file; the message does not show the name, which can be a person's row.
    """
    found = _SEPARATORS.search(names[0]) if len(names) == 1 else None
    if found is not None:
        raise SpecError(f"{path}: it has one column, with {_CALLED[found[0]]} in its name; {_COMMAS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFile:
    """Known facts about the first file.

    Attributes:
        source: The changelog.
        format: Format of the file.
        path: Path of the file; None if all files are empty.
        schema: Its columns; if the format has no types: strings, structs and lists, by the first rows.
        rows: First rows as texts, by path, if the format has no schema (CSV, JSON lines).
        sides: Locations of the states.
    """

    source: Source
    format: Format
    path: str | None
    schema: pa.Schema
    rows: pa.Table | None
    sides: tuple[Side, ...]

    def type_of(self, column: str, key: str) -> pa.DataType:
        """Return the type of a column that `key` of the spec names; null for a column of lines without values.

        Raises:
            SpecError: The column is missing, or exists twice.
        """
        names = self.schema.names
        type_ = self.schema.types[names.index(column)] if column in names else None
        return self._there(type_, column, key, names)

    def is_of_mutation(self, owner: str) -> bool:
        """Return whether the owner's column is one of the mutation, and not of its states.

        Raises:
            SpecError: The first lines have it in the other place.
        """
        source = self.source
        if self.format.owner == "schema":
            return owner in self.schema.names
        if self.format.owner != "spec":
            return self.format.owner == "mutation"
        of_mutation = dict(source.forms).get("owner", "states" if source.after else "mutation") == "mutation"
        in_states = any(find(self.schema, side.path(owner), self.sides) is not None for side in self.sides)
        if not of_mutation and owner in self.schema.names and not in_states:
            raise SpecError(
                f"privacy.unit: {self.path} has {owner!r} outside the states and not in them; write changelog.owner: "
                "mutation"
            )
        return of_mutation

    def key_kind(self, column: str, key: str) -> str:
        """Return `int64` or `string` for a column that names or orders.

        Raises:
            SpecError: The column is of another type.
        """
        if column in self.format.orders:
            return "string"
        type_ = self.type_of(column, key)
        declared = dict(self.source.types).get(column)
        if self.rows is not None and declared is None:
            declared = "int64" if key == "changelog.order" else "string"
            if self._never(column, declared):
                raise SpecError(
                    f"{key}: column {column!r} of {self.path} holds no whole number; if it is text, write "
                    f"changelog.types: {{{column}: string}}"
                )
        # Writers turn integers into floats if one is null.
        kind = declared or {"float64": "int64"}.get(kind_of(type_) or "", kind_of(type_))
        if kind not in ("int64", "string") or _is_nested(type_):
            raise SpecError(
                f"{key}: column {column!r} of {self.path} is {self._told(type_)}; whole numbers or strings are expected"
            )
        return kind

    def check_marks(self, column: str) -> None:
        """Refuse a column that cannot mark deletions.

        Raises:
            SpecError: It is missing, or holds objects, lists or times.
        """
        type_ = self.type_of(column, "changelog.deleted")
        if _is_nested(type_) or kind_of(type_) not in ("string", "bool", "int64", None):
            raise SpecError(
                f"changelog.deleted: column {column!r} of {self.path} is {self._told(type_)}; text, whole numbers or "
                'truth values are expected; leave out rows with a time of deletion by where: "column is null"'
            )

    def state_kind(self, column: str, *, asked: ColumnUse, key: str) -> str:
        """Return the kind of a state's column, which is the same on both sides.

        Args:
            column: Name of the column.
            asked: Kind that queries need it to have.
            key: Key of the spec that names it.

        Raises:
            SpecError: Its type cannot be that of a state, or a number or time is needed and it is neither.
        """
        number, usual = asked == "number", _USUAL[asked]
        declared = dict(self.source.types).get(column)
        types = self._state_types(column, key, declared=declared is not None)
        kinds = {kind_of(type_) for type_ in types.values() if not pa.types.is_null(type_)}
        if declared is not None:
            kinds = {declared}
        elif self.rows is not None:
            # The form of texts must not decide: one unit's row would change how all others are read.
            kinds = {usual}
        elif kinds == {"int64", "float64"} or (number and kinds == {"string"} and self.format.texts_measured):
            kinds = {"float64"}
        if key == "privacy.unit" and kinds == {"float64"} and not number and declared is None:
            kinds = {"int64"}  # as other keys
        shown = " and ".join(f"{path!r} ({self._told(type_)})" for path, type_ in types.items())
        if len(kinds) > 1 or None in kinds or any(_is_nested(type_) for type_ in types.values()):
            raise SpecError(
                f"changelog.types: {shown} of {self.path} are of no one type that states can have; "
                f"declare one of int64, float64, string, bool, timestamp, or flatten the column{self.format.decimals}"
            )
        kind = next(iter(kinds), usual) or "string"
        if asked is None or (kind in _SERVING[asked] and not all(self._never(path, kind) for path in types)):
            return kind
        if number:
            raise SpecError(
                f"queries: {shown} of {self.path} is measured or has ranges but is not a number; take a numeric "
                f"column, or declare it in changelog.types{self.format.decimals}"
            )
        raise SpecError(
            f"queries: {shown} of {self.path} has ranges of times but is not a time; give it ranges of numbers, or "
            "declare it timestamp in changelog.types"
        )

    def _there(self, type_: pa.DataType | None, column: str, key: str, names: list[str]) -> pa.DataType:
        if type_ is None and names:
            hint = self._hint(column, names)
            if len(names) == 1 and column in _SEPARATORS.split(names[0]):
                hint += f"; {_COMMAS}"
            raise SpecError(f"{key}: {self.path} has no column {column!r}; {hint}")
        if self.schema.names.count(column) > 1:
            raise SpecError(f"{key}: {self.path} has column {column!r} twice; rename one")
        return type_ or pa.null()

    def _hint(self, column: str, names: list[str]) -> str:
        """Return suggestions for a missing column, without names of CSV and JSON (see the module's docstring)."""
        written = [name.lower() for name in names]
        near = [names[written.index(name)] for name in difflib.get_close_matches(column.lower(), written, 1)]
        if self.rows is None:
            return f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, names[:12]))}"
        if near and self.format.cells:
            return f"the name of column {names.index(near[0]) + 1} is similar; compare the spelling"
        if near:
            return "a similar name is there; compare the spelling"
        check = "check the name, and that the file begins with a heading" if self.format.cells else "check the name"
        return f"it has {counted(len(names), 'column')}; {check}"

    def _told(self, type_: pa.DataType) -> str:
        """Return a type as messages show it: an object of JSON without the names of its members."""
        if self.rows is None or not _is_nested(type_):
            return str(type_)
        return "an object" if pa.types.is_struct(type_) else "a list"

    def _names(self) -> list[str]:
        structs = [(side, field) for side in self.sides if side.struct for field in struct_fields(self.schema, side)]
        return [*self.schema.names, *(side.path(field.name) for side, field in structs)]

    def _state_types(self, column: str, key: str, *, declared: bool) -> dict[str, pa.DataType]:
        """Return path to type. The sides of lines need not have every member, and lines need no declared one."""
        found = {side.path(column): find(self.schema, side.path(column), self.sides) for side in self.sides}
        if self.rows is not None and not self.format.cells:
            there = {path: type_ for path, type_ in found.items() if type_ is not None}
            roles = (self.source.entry, self.source.time, self.source.until, *self.source.order)
            states = any(
                struct_fields(self.schema, side) if side.struct else members(side, self.schema.names, self.sides, roles)
                for side in self.sides
            )
            if there or declared or not states:
                return there or dict.fromkeys(found, pa.null())
            found = dict([found.popitem()])  # most lines have the state after
        names = self._names()
        return {path: self._there(type_, path, key, names) for path, type_ in found.items()}

    def _never(self, path: str, kind: str) -> bool:
        """Return whether the path holds texts of which none can be read as the kind."""
        if self.rows is None or path not in self.rows.column_names:
            return False
        texts = self.rows[path].combine_chunks()
        known = len(texts) - texts.null_count
        return known > 0 and sum(len(rows) for rows, _ in to_kind(texts, kind)[1]) == known

    def check_sides(self) -> None:
        """Check the objects and prefixes of lines in the spec against the first lines.

        Raises:
            SpecError: Nothing has that form, but something has the other one.
        """
        rows = self.rows is not None and not self.format.cells and self.format.envelope is None
        if not rows or not self.schema.names:
            return
        for side in (side for side in self.sides if side.name):
            type_ = self.schema.field(side.name).type if side.name in self.schema.names else None
            longer = [name for name in self.schema.names if name.startswith(side.name) and name != side.name]
            where = f"changelog.{side.side}: {self.path}"
            if side.struct and type_ is None and longer:
                raise SpecError(
                    f"{where} has no member {side.name!r}, but some that begin with it; write {side.side}: "
                    f"{{prefix: {side.name}}}"
                )
            if side.struct and type_ is not None and not (pa.types.is_struct(type_) or pa.types.is_null(type_)):
                raise SpecError(f"{where} has no object at {side.name!r}; name the member that holds the state")
            if not side.struct and type_ is not None and pa.types.is_struct(type_) and not longer:
                raise SpecError(f"{where} has an object at {side.name!r}; write {side.side}: {{struct: {side.name}}}")

    def check_time(self) -> None:
        """Check the types of the columns of times.

        Raises:
            SpecError: One is not a time, or it has no zone and the spec names none.
        """
        source = self.source
        if source.time is None or self.format.envelope is not None:  # the format has its own time
            return
        self._check_time(source.time, "time" if source.until is None else "from")
        if source.until is not None:
            self._check_time(source.until, "to")

    def _check_time(self, time: str, key: str) -> None:
        type_ = self.type_of(time, f"changelog.{key}")
        where = f"changelog.{key}: column {time!r} of {self.path}"
        if pa.types.is_null(type_):
            return
        if self.rows is None:
            if not pa.types.is_timestamp(type_):
                raise SpecError(f"{where} is {type_}; write timestamps with a zone, e.g. timestamp[us, tz=UTC]")
            if type_.tz is None and self.source.timezone is None:
                raise SpecError(f"{where} has no time zone; name it as changelog.timezone, or write one into the files")
            return
        if _is_nested(type_):
            raise SpecError(f"{where} is {self._told(type_)}; write ISO 8601 times such as 2013-02-08T17:30:00-05:00")
        times = self.rows[time].combine_chunks()
        bad = to_microseconds(times, self.source.timezone)[1]
        reasons = {row: reason for positions, reason in reversed(bad) for row in positions.tolist()}
        if reasons and len(reasons) == len(times) - times.null_count:  # single bad rows are dead letters
            found = list(reasons.values())
            raise SpecError(f"{where}: {NO_ZONE if NO_ZONE in found else found[0]}")


def _is_nested(type_: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type_) or pa.types.is_list(type_))
