"""What the files of a changelog look like: decided once, on the driver, from the first file.

Readers on the workers hold every file against it: a file that differs becomes a dead letter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from transforms import files
from transforms.dated_files import of_files, snapshot_files
from transforms.errors import ColumnError, InputError, SpecError
from transforms.files import Listed
from transforms.first_file import FirstFile, Side, find
from transforms.kinds import kind_of
from transforms.own_names import named
from transforms.samples import sample
from transforms.segments import is_of_topic
from transforms.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All that a worker must know to read the files.

    Attributes:
        files: those to read, sorted by path.
        entry: kind of the key, `int64` or `string`.
        order: kind of each order column, `int64` or `string`.
        owner: kind of the owner's column if it belongs to the mutation, not to its states; else None.
        sides: `before`, if the files hold it, and `after`.
        states: (column, kind) of the state columns that are needed, sorted by name.
        earlier: how many files earlier runs have read; this run's are numbered from there.
        base: of snapshots, the files of the last one that earlier runs read: the next is compared with it.
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
        """Whether each file is (part of) a whole table, of which every row is a state."""
        return self.source.every is not None

    @property
    def roles(self) -> dict[str, str]:
        """Normalised name to the file's column of what is not state, time among it if it is a column."""
        source = self.source
        orders = {f"order.{place}": column for place, column in enumerate(source.order)}
        owner = {"owner": source.owner} if self.owner is not None and source.owner is not None else {}
        time = {} if source.time is None else {"time": source.time}
        return {"entry": source.entry, **time, **orders, **owner}

    def rest(self, side: Side, names: Sequence[str]) -> list[str]:
        """Columns of a side without a struct that say whether its state exists, apart from those needed."""
        if self.snapshots:
            return []
        told = {side.path(column) for column, _ in self.states} | set(self.roles.values())
        return [name for name in self.members(side, names) if name not in told]

    def members(self, side: Side, names: Sequence[str]) -> list[str]:
        """All columns of a side without a struct."""
        other = tuple(s.name for s in self.sides if s is not side and s.name)
        return [name for name in names if name.startswith(side.name) and (side.name or not name.startswith(other))]

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
        time = pa.null() if self.source.time is None else schema.field(self.source.time).type
        if pa.types.is_timestamp(time) and time.tz is None and self.source.timezone is None:
            return f"column {self.source.time!r} has no time zone; name it as changelog.timezone"
        return None


_KINDS = {
    "parquet": "a Parquet file",
    "csv": "a CSV file",
    "jsonl": "JSON lines",
    "debezium": "Debezium's JSON lines",
    "datastream": "Datastream's JSON lines or Avro",
}


def inspect(source: Source, numbers: frozenset[str], others: frozenset[str]) -> Layout:
    """Match the globs, look at the first file and decide how all files are read.

    Args:
        numbers: state columns that sums or means are taken of.
        others: state columns that anything else reads (`where`, `by`, classes, the owner).

    Raises:
        SpecError: a glob without files, a column that is not there, or one of a type that cannot serve.
        InputError: an empty file, or a first file that cannot be read.
    """
    source = named(of_files(source))
    found = files.find(source.paths, settings=source.kafka) if source.every is None else snapshot_files(source)
    first = telling(found)
    try:
        schema, rows = sample(source, first)
    except files.UNREADABLE as error:
        kind = _KINDS[source.format] + (", not Avro or Protobuf, in a topic" if is_of_topic(first) else "")
        usual = f"cannot be read as {kind} ({{}}); it may be truncated or of another format"
        raise InputError(f"{first}: {files.why(error, usual)}") from None
    look = FirstFile(source=source, path=first, schema=schema, rows=rows, sides=_sides(source, schema))
    if source.time is not None:
        look.check_time()
    owner = source.owner
    of_mutation = owner is not None and owner in schema.names
    states = (numbers | others) - {owner} if of_mutation else numbers | others | ({owner} if owner else set())
    owned = look.key_kind(owner, "privacy.unit") if of_mutation and owner is not None else None
    if owned == "string" and owner in numbers:
        raise SpecError(
            f"queries: {owner!r} of {first} names the owner and is measured but not a number; measure another column, "
            "or declare it int64 in changelog.types"
        )
    return Layout(
        source=source,
        files=found,
        entry=look.key_kind(source.entry, "changelog.entry"),
        order=tuple(look.key_kind(column, "changelog.order") for column in source.order),
        owner=owned,
        sides=look.sides,
        states=tuple((column, _kind(look, column, number=column in numbers)) for column in sorted(states)),
    )


def _kind(look: FirstFile, column: str, *, number: bool) -> str:
    key = "privacy.unit" if column == look.source.owner else "queries"
    try:
        return look.state_kind(column, number=number, key=key)
    except SpecError as error:
        raise ColumnError(str(error), column) from None


def telling(found: Sequence[Listed]) -> str:
    """The file that tells the columns: the first; of topics the fullest segment, as partitions may be next to empty.

    Raises:
        InputError: all topics are empty.
    """
    chosen = next((file for file in found if not is_of_topic(file.path)), max(found, key=lambda file: file.size))
    if chosen.size == 0:
        raise InputError(
            f"{chosen.path}: the topic holds no records yet, which would tell its columns; run again later"
        )
    return chosen.path


def state_columns(source: Source) -> tuple[frozenset[str], tuple[str, ...]]:
    """All columns that states have, by the first file; and others: of no kind, or on one side only.

    Raises:
        as `inspect`, which says more of what it finds.
    """
    layout = inspect(source, frozenset(), frozenset())
    schema, _ = sample(layout.source, telling(layout.files))
    found = [_columns_of(side, layout, schema) for side in layout.sides]
    declared = {column for column, _ in source.types}
    usable = [{name for name, type_ in one.items() if name in declared or kind_of(type_)} for one in found]
    columns = frozenset(set.intersection(*usable))
    return columns, tuple(sorted(set().union(*found) - columns))


def _columns_of(side: Side, layout: Layout, schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns of a side, by the names that they have in a state."""
    if side.struct:
        return {field.name: field.type for field in schema.field(side.name).type}
    taken = {one.name for one in layout.sides if one.struct} | set(layout.roles.values())
    prefixes = tuple(one.name for one in layout.sides if one is not side and one.name)
    return {
        field.name.removeprefix(side.name): field.type
        for field in schema
        if field.name.startswith(side.name)
        and field.name not in taken
        and (side.name or not field.name.startswith(prefixes))
    }


def _sides(source: Source, schema: pa.Schema) -> tuple[Side, ...]:
    sides = []
    for side, name in (("before", source.before), ("after", source.after)):
        if side == "after" or name is not None:
            struct = name in schema.names and pa.types.is_struct(schema.field(name).type)
            sides.append(Side(side=side, name=name or "", struct=struct))
    return tuple(sides)
