"""Where the states of one side stand in a file, before or after: in a struct, or in columns with a prefix."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from transforms.common.source import Source


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


def sides_of(source: Source, schema: pa.Schema, is_struct: Callable[[str, pa.Schema], bool]) -> tuple[Side, ...]:
    """The sides that the spec names; `is_struct` says which are structs where the spec does not say it."""
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
    """Columns of the files that are of a side without a struct; `roles` are those of no side."""
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
    """Of a struct column; none where it is null in all rows, so that the file knows nothing of them."""
    type_ = schema.types[schema.names.index(side.name)] if side.name in schema.names else pa.null()
    return list(type_) if pa.types.is_struct(type_) else []


def find(schema: pa.Schema, path: str, sides: Sequence[Side]) -> pa.DataType | None:
    """Type of a column by its path; None if it is not there."""
    if path in schema.names:
        return schema.types[schema.names.index(path)]
    for side in sides:
        if side.struct and side.name in schema.names and path.startswith(f"{side.name}."):
            if pa.types.is_null(schema.field(side.name).type):
                return pa.null()
            child = path.removeprefix(f"{side.name}.")
            return next((field.type for field in struct_fields(schema, side) if field.name == child), None)
    return None
