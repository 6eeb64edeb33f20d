"""Location of one side's states in a file, before or after: a struct, or columns with a prefix."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from transforms.common.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Location of one side's state.

    Attributes:
        side: `before` or `after`.
        name: Name of the struct column, or prefix of the columns (empty: no prefix).
        struct: Whether it is a struct column.
    """

    side: str
    name: str
    struct: bool

    def path(self, column: str) -> str:
        """Return the name of a state's column in the files, with a dot inside a struct."""
        return f"{self.name}.{column}" if self.struct else f"{self.name}{column}"


def sides_of(source: Source, schema: pa.Schema, is_struct: Callable[[str, pa.Schema], bool]) -> tuple[Side, ...]:
    """Return the sides that the spec names.

    Args:
        source: The changelog.
        schema: Schema of the first file.
        is_struct: Function that decides whether a name is that of a struct if the spec does not state it.
    """
    forms, names = dict(source.forms), {"before": source.before, "after": source.after}
    sides = []
    for side in ("before", "after"):
        name = names[side]
        if side == "after" or name is not None:
            name = name or ""
            struct = forms[side] == "struct" if side in forms else is_struct(name, schema)
            sides.append(Side(side=side, name=name, struct=struct))
    return tuple(sides)


def members(side: Side, names: Sequence[str], sides: Sequence[Side], roles: Collection[str | None]) -> list[str]:
    """Return the columns of the files that belong to a side without a struct.

    Args:
        side: The side.
        names: Columns of the files.
        sides: All sides.
        roles: Columns that belong to no side.
    """
    others = [other for other in sides if other is not side and other.name]
    prefixes, structs = (tuple(o.name for o in others if o.struct is struct) for struct in (False, True))
    return [
        name
        for name in names
        if name.startswith(side.name)
        and name not in roles
        and name not in structs
        and (side.name or not name.startswith(prefixes))
    ]


def struct_fields(schema: pa.Schema, side: Side) -> list[pa.Field]:
    """Return the fields of a struct column; empty if it is null in all rows, since the file has no names then."""
    type_ = schema.types[schema.names.index(side.name)] if side.name in schema.names else pa.null()
    return list(type_) if pa.types.is_struct(type_) else []


def find(schema: pa.Schema, path: str, sides: Sequence[Side]) -> pa.DataType | None:
    """Return the type of a column; None if it does not exist.

    Args:
        schema: Schema of the file.
        path: Path of the column.
        sides: All sides.
    """
    if path in schema.names:
        return schema.types[schema.names.index(path)]
    for side in sides:
        if side.struct and side.name in schema.names and path.startswith(f"{side.name}."):
            if pa.types.is_null(schema.field(side.name).type):
                return pa.null()
            child = path.removeprefix(f"{side.name}.")
            return next((field.type for field in struct_fields(schema, side) if field.name == child), None)
    return None
