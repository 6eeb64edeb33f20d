"""What the files of a changelog look like: decided once, on the driver, from the first file.

Readers on the workers hold every file against it: a file that differs becomes a dead letter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from transforms.common.errors import ColumnError, InputError, SpecError
from transforms.common.kinds import NUMERIC, kind_of
from transforms.common.source import Source
from transforms.sources import files
from transforms.sources.envelope_names import ENVELOPES, named
from transforms.sources.files import Listed
from transforms.sources.first_file import FirstFile, Side, find, members, sides_of, struct_fields
from transforms.sources.samples import sample
from transforms.sources.snapshot_paths import of_files, snapshot_files
from transforms.sources.topic_segments import is_of_topic


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

    def members(self, side: Side, names: Sequence[str]) -> list[str]:
        """Columns of a side without a struct: its state exists if one of them is not null."""
        return members(side, names, self.sides, tuple(self.roles.values()))

    def rest(self, side: Side, names: Sequence[str]) -> list[str]:
        """Columns of a side without a struct that say whether its state exists, apart from those needed."""
        needed = {side.path(column) for column, _ in self.states}
        return [] if self.snapshots else [name for name in self.members(side, names) if name not in needed]

    def fault(self, schema: pa.Schema) -> str | None:
        """Why a file with this schema cannot be read with the layout; None if it can.

        Types must be of the layout's kinds, but for what writers change where one row more or less has a null: floats
        may stand where whole numbers are expected, and the other way round, and both where texts are.
        """
        declared = {column for column, _ in self.source.types}
        kinds = {"entry": self.entry, "time": "timestamp", "owner": self.owner or "string"}
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
        time = pa.null() if self.source.time is None else schema.field(self.source.time).type
        if pa.types.is_timestamp(time) and time.tz is None and self.source.timezone is None:
            return f"column {self.source.time!r} has no time zone; name it as changelog.timezone"
        return None


_READ_AS = {"int64": NUMERIC, "float64": NUMERIC, "string": ("string", *NUMERIC, "bool")}
"""Kind of the layout to kinds of files that are converted to it, value by value."""


def _may_be_struct(type_: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type_) or pa.types.is_null(type_))


_KINDS = {
    "parquet": "a Parquet file",
    "csv": "a CSV file",
    "jsonl": "JSON lines",
    "debezium": "Debezium's JSON lines",
    "datastream": "Datastream's JSON lines or Avro",
}


def inspect(source: Source, numbers: frozenset[str], others: frozenset[str]) -> Layout:
    """Match the globs, look at the first file and decide how all files are read.

    Of Parquet and Avro its schema decides, of text the spec alone: there the first rows only tell errors of the spec.

    Args:
        numbers: state columns that sums or means are taken of.
        others: state columns that anything else reads (`where`, `by`, classes, the owner).

    Raises:
        SpecError: a glob without files, a column that is not there, or one of a type that cannot serve.
        InputError: an empty file, or a first file that cannot be read.
    """
    source = named(of_files(source))
    found = find_files(source) if source.every is None else snapshot_files(source)
    return _layout(_look(source, telling(found)), found, numbers, others)


def find_files(source: Source, taken: Iterable[Listed] = ()) -> tuple[Listed, ...]:
    """The files of a source that is no snapshots; see `files.find`."""
    lines = source.format in ("jsonl", *ENVELOPES)
    return files.find(source.paths, taken=taken, settings=source.kafka, lines=lines)


def _look(source: Source, first: str | None) -> FirstFile:
    try:
        schema, rows = sample(source, first)
    except files.UNREADABLE as error:
        kind = _KINDS[source.format] + (", not Avro or Protobuf, in a topic" if first and is_of_topic(first) else "")
        usual = f"cannot be read as {kind} ({{}}); it may be truncated or of another format"
        raise InputError(f"{first}: {files.why(error, usual)}") from None
    return FirstFile(source=source, path=first, schema=schema, rows=rows, sides=sides_of(source, schema))


def _layout(look: FirstFile, found: tuple[Listed, ...], numbers: frozenset[str], others: frozenset[str]) -> Layout:
    source = look.source
    look.check_sides()
    if source.time is not None:
        look.check_time()
    owner = source.owner
    of_mutation = owner is not None and look.is_of_mutation(owner)
    states = (numbers | others) - {owner} if of_mutation else numbers | others | ({owner} if owner else set())
    owned = look.key_kind(owner, "privacy.unit") if of_mutation and owner is not None else None
    if owned == "string" and owner in numbers:
        raise SpecError(
            f"queries: {owner!r} of {look.path} names the owner and is measured but not a number; measure another "
            "column, or declare it int64 in changelog.types"
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


def telling(found: Sequence[Listed]) -> str | None:
    """The file that tells the columns: the first that is not empty, of topics the fullest segment; None if all are."""
    chosen = next((f for f in found if f.size and not is_of_topic(f.path)), max(found, key=lambda file: file.size))
    return chosen.path if chosen.size else None


def state_columns(source: Source) -> tuple[frozenset[str], tuple[str, ...]]:
    """All columns that states have, by the first file; and others: of no kind, or on one side only.

    Raises:
        as `inspect`, which says more of what it finds.
    """
    layout = inspect(source, frozenset(), frozenset())
    schema, rows = sample(layout.source, telling(layout.files))
    found = [_columns_of(side, layout, schema) for side in layout.sides]
    declared = {column for column, _ in source.types}
    usable = [{name for name, type_ in one.items() if name in declared or kind_of(type_)} for one in found]
    # Lines need not hold every member.
    columns = frozenset(set.intersection(*usable) if rows is None else set.union(*usable))
    return columns, tuple(sorted(set().union(*found) - columns))


def _columns_of(side: Side, layout: Layout, schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns of a side, by the names that they have in a state."""
    if side.struct:
        return {field.name: field.type for field in struct_fields(schema, side)}
    names = layout.members(side, schema.names)
    return {field.name.removeprefix(side.name): field.type for field in schema if field.name in names}
