"""Layout of a changelog's files, decided once, on the driver, from the first file.

Readers on the workers compare every file with it: a file that differs becomes a dead letter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from transforms.common.intervals import UNTIL
from transforms.common.kinds import NUMERIC, kind_of
from transforms.common.source import Source
from transforms.sources.columns.sides import Side, find, members
from transforms.sources.files.listing import Listed

DELETED = "deleted"
"""Role of the column that marks deletions; it is in no normalised table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Facts that a worker needs to read the files.

    Attributes:
        source: The changelog.
        files: Files to read, sorted by path.
        entry: Kind of the key, `int64` or `string`.
        order: Kind of each order column, `int64` or `string`.
        owner: Kind of the owner's column if it belongs to the mutation, not to its states; else None.
        sides: `before`, if the files hold it, and `after`.
        states: (column, kind) of the needed state columns, sorted by name.
        earlier: Number of files that earlier runs have read; the numbers of this run's files follow.
        base: For snapshots, the files of the last one that earlier runs read: the next is compared with it.
    """

    source: Source
    files: tuple[Listed, ...]
    entry: str
    order: tuple[str, ...]
    owner: str | None
    sides: tuple[Side, ...]
    states: tuple[tuple[str, str], ...]
    earlier: int = 0
    base: tuple[Listed, ...] = ()

    @property
    def snapshots(self) -> bool:
        """Whether each file is (part of) a whole table, in which every row is a state."""
        return self.source.every is not None

    @property
    def rows_are_states(self) -> bool:
        """Whether every row is a state, so that no row is a deletion because its columns are null."""
        return self.snapshots or self.source.until is not None or self.source.expires is not None

    @property
    def roles(self) -> dict[str, str]:
        """Normalised name to the file's column, for columns outside the states (also times and deletions)."""
        source = self.source
        orders = {f"order.{place}": column for place, column in enumerate(source.order)}
        owner = {"owner": source.owner} if self.owner is not None and source.owner is not None else {}
        others = {"time": source.time, UNTIL: source.until, DELETED: source.deleted and source.deleted[0]}
        return {"entry": source.entry, **{role: name for role, name in others.items() if name}, **orders, **owner}

    def members(self, side: Side, names: Sequence[str]) -> list[str]:
        """Return the columns of a side without a struct: its state exists if one of them is not null."""
        return members(side, names, self.sides, tuple(self.roles.values()))

    def rest(self, side: Side, names: Sequence[str]) -> list[str]:
        """Return the columns of a side without a struct that show whether its state exists, except the needed ones."""
        needed = {side.path(column) for column, _ in self.states}
        return [] if self.rows_are_states else [name for name in self.members(side, names) if name not in needed]

    def fault(self, schema: pa.Schema) -> str | None:
        """Return why a file with this schema cannot be read with the layout; None if it can.

        Types must be those of the layout's kinds, except for changes that writers make when a row has a null: floats
        are allowed for integers and the reverse, and both for texts.
        """
        declared = {column for column, _ in self.source.types}
        kinds = {"entry": self.entry, "time": "timestamp", UNTIL: "timestamp", DELETED: "string"}
        kinds |= {"owner": self.owner or "string"}
        kinds |= {f"order.{place}": kind for place, kind in enumerate(self.order)}
        expected = [(path, kinds[role], path in declared) for role, path in self.roles.items()]
        for side in self.sides:
            expected += [(side.path(column), kind, column in declared) for column, kind in self.states]
        for side in self.sides:
            if side.struct and not any(f.name == side.name and _may_be_struct(f.type) for f in schema):
                return f"the file has no struct column {side.name!r}"
        for path, kind, converted in expected:
            type_ = find(schema, path, self.sides)
            if type_ is None:
                return f"the file has no column {path!r}"
            if schema.names.count(path) > 1:
                return f"the file has column {path!r} twice"
            if not (kind_of(type_) in _READ_AS.get(kind, (kind,)) or converted or pa.types.is_null(type_)):
                return f"column {path!r} is {type_}, but the first file has {kind} there"
        for name in filter(None, (self.source.time, self.source.until)):
            time = schema.field(name).type
            if pa.types.is_timestamp(time) and time.tz is None and self.source.timezone is None:
                return f"column {name!r} has no time zone; name it as changelog.timezone"
        return None


_READ_AS = {"int64": NUMERIC, "float64": NUMERIC, "string": ("string", *NUMERIC, "bool")}
"""Kind of the layout to kinds of files that are converted to it, value by value."""


def _may_be_struct(type_: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type_) or pa.types.is_null(type_))
