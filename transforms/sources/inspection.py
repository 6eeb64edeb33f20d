"""Inspection of a changelog: its files, and the layout by which all of them are read, from the first one."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from transforms.common.errors import ColumnError, InputError, SpecError
from transforms.common.kinds import kind_of
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.sides import Side, sides_of, struct_fields
from transforms.sources.files.listing import Listed, find, matching
from transforms.sources.files.opening import UNREADABLE, why
from transforms.sources.files.snapshot_paths import glob_of, snapshot_files
from transforms.sources.files.topic_segments import is_of_topic
from transforms.sources.first_file import ColumnUse, FirstFile
from transforms.sources.formats.format import FirstRows
from transforms.sources.formats.table import FORMATS


def inspect(
    source: Source, numbers: frozenset[str], others: frozenset[str], times: frozenset[str] = frozenset()
) -> Layout:
    """Match the globs, inspect the first file, and decide how all files are read.

    For Parquet and Avro the file's schema decides, for text only the spec: there the first rows only reveal errors of
    the spec.

    Args:
        source: The changelog.
        numbers: State columns for sums or means, or with ranges of numbers.
        others: State columns for anything else (`where`, `by`, classes, the owner).
        times: State columns with ranges of times.

    Raises:
        SpecError: A glob matches no file, or a column is missing or has an unsuitable type.
        InputError: A file is empty, or the first file cannot be read.
    """
    source = named(source)
    found = find_files(source)
    return _layout(_first_file(source, to_sample(found)), found, _asked(numbers, others, times))


def inspect_rows(
    source: Source,
    schema: pa.Schema,
    numbers: frozenset[str],
    others: frozenset[str],
    times: frozenset[str] = frozenset(),
) -> Layout:
    """Decide how rows of a schema are read: as a Parquet file of that schema.

    Args:
        source: The changelog.
        schema: Schema of the rows.
        numbers: State columns for sums or means, or with ranges of numbers.
        others: State columns for anything else (`where`, `by`, classes, the owner).
        times: State columns with ranges of times.

    Raises:
        SpecError: A column is missing or has an unsuitable type.
    """
    format_ = FORMATS[source.format]
    sides = sides_of(source, schema, format_.is_struct)
    first = FirstFile(source=source, format=format_, path=source.paths[0], schema=schema, rows=None, sides=sides)
    return _layout(first, (), _asked(numbers, others, times))


def _asked(numbers: frozenset[str], others: frozenset[str], times: frozenset[str]) -> dict[str, ColumnUse]:
    return {**dict.fromkeys(others), **dict.fromkeys(times, "time"), **dict.fromkeys(numbers, "number")}


def named(source: Source) -> Source:
    """Return the source with the roles that its format defines; the format of snapshots becomes that of their files."""
    return FORMATS[source.format].named(source)


def rests_on(source: Source) -> tuple[str, ...]:
    """Return the assumptions of a release's claim that follow from the format of its files, as sentences."""
    sentence = FORMATS[named(source).format].rests_on
    return (sentence,) if sentence else ()


def find_files(source: Source, taken: Iterable[Listed] = ()) -> tuple[Listed, ...]:
    """Return the files of a source with all its names; of topics only segments that were not taken.

    Raises:
        As `transforms.sources.files.listing.find` and `snapshot_files`.
    """
    if source.every is not None:
        return snapshot_files(source)
    return find(source.paths, taken=taken, settings=source.kafka, lines=FORMATS[source.format].lines)


def refuse_changed(layout: Layout) -> None:
    """Check after files were read that they are still as they were listed before.

    A file that is written or replaced while it is read may have been read in part. A file that is gone was not.

    Raises:
        InputError: A file has changed.
    """
    source = layout.source
    globs = source.paths if source.every is None else map(glob_of, source.paths)
    there = {file.path: file for file in matching(tuple(path for path in globs if not is_of_topic(path)))}
    for file in (*layout.base, *layout.files):
        if there.get(file.path, file) != file:
            raise InputError(
                f"{file.path}: has changed while it was read, so nothing new was published; write files under another "
                "name, rename them when they are complete, and run again"
            )


def sample(source: Source, path: str | None) -> FirstRows:
    """Return the schema of a file, and its first rows as texts by path; no rows for Parquet and Avro.

    For events they are those of the states. Columns of text are strings, or structs and lists if JSON has objects and
    lists, or null if all rows are null. Without a path there are no columns.

    Raises:
        One of `UNREADABLE`.
    """
    return (pa.schema([]), pa.table({})) if path is None else FORMATS[source.format].sample(source, path)


def _first_file(source: Source, first: str | None) -> FirstFile:
    format_ = FORMATS[source.format]
    try:
        schema, rows = sample(source, first)
    except UNREADABLE as error:
        kind = format_.kind + (", not Avro or Protobuf, in a topic" if first and is_of_topic(first) else "")
        usual = f"cannot be read as {kind} ({{}}); it may be truncated or of another format"
        if format_.cells and isinstance(error, UnicodeDecodeError):
            usual = "its heading is not text in UTF-8; save the file as UTF-8"
        raise InputError(f"{first}: {why(error, usual)}") from None
    sides = sides_of(source, schema, format_.is_struct)
    return FirstFile(source=source, format=format_, path=first, schema=schema, rows=rows, sides=sides)


def _layout(first: FirstFile, found: tuple[Listed, ...], asked: Mapping[str, ColumnUse]) -> Layout:
    source = first.source
    first.check_sides()
    if source.time is not None:
        first.check_time()
    if source.deleted is not None:
        first.check_marks(source.deleted[0])
    owner = source.owner
    of_mutation = owner is not None and first.is_of_mutation(owner)
    states = asked.keys() - {owner} if of_mutation else asked.keys() | ({owner} if owner else set())
    owned = first.key_kind(owner, "privacy.unit") if of_mutation and owner is not None else None
    if owned == "string" and owner is not None and asked.get(owner) == "number":
        raise SpecError(
            f"queries: {owner!r} of {first.path} names the owner and is measured but not a number; measure another "
            "column, or declare it int64 in changelog.types"
        )
    return Layout(
        source=source,
        files=found,
        entry=first.key_kind(source.entry, "changelog.entry"),
        order=("int64",) if source.until else tuple(first.key_kind(one, "changelog.order") for one in source.order),
        owner=owned,
        sides=first.sides,
        states=tuple((column, _kind(first, column, asked.get(column))) for column in sorted(states)),
    )


def _kind(first: FirstFile, column: str, asked: ColumnUse) -> str:
    key = "privacy.unit" if column == first.source.owner else "queries"
    try:
        return first.state_kind(column, asked=asked, key=key)
    except SpecError as error:
        raise ColumnError(str(error), column) from None


def to_sample(found: Sequence[Listed]) -> str | None:
    """Return the file to sample: the first non-empty one, or the fullest segment of topics; None if all are empty."""
    chosen = next((f for f in found if f.size and not is_of_topic(f.path)), max(found, key=lambda file: file.size))
    return chosen.path if chosen.size else None


MARKS = {
    *("op", "_op", "__op", "operation", "change_type", "_change_type", "row_kind", "rowkind"),
    *("deleted", "_deleted", "__deleted", "is_deleted", "_is_deleted", "_fivetran_deleted"),
}
"""Usual names, in lower case, of columns that mark deletions."""


def unread_marks(layout: Layout) -> tuple[str, ...]:
    """Return the columns of the first file that seem to mark deletions, but are neither named nor read.

    Raises:
        One of `UNREADABLE`.
    """
    source = layout.source
    if source.deleted is not None or source.before is not None or layout.rows_are_states:
        return ()
    if FORMATS[source.format].envelope is not None:
        return ()
    names = sample(source, to_sample(layout.files))[0].names
    read = {*layout.roles.values(), *(side.path(column) for side in layout.sides for column, _ in layout.states)}
    return tuple(name for name in names if name.lower() in MARKS and name not in read)


def state_columns(source: Source) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return all columns of states by the first file, and unsuitable ones: of no kind, or on one side only.

    Raises:
        As `inspect`, whose messages have more detail.
    """
    layout = inspect(source, frozenset(), frozenset())
    schema, rows = sample(layout.source, to_sample(layout.files))
    found = [_columns_of(side, layout, schema) for side in layout.sides]
    declared = {column for column, _ in source.types}
    usable = [{name for name, type_ in one.items() if name in declared or kind_of(type_)} for one in found]
    # Lines need not have every member.
    columns = frozenset(set.intersection(*usable) if rows is None else set.union(*usable))
    return columns, tuple(sorted(set().union(*found) - columns))


def measurable(layout: Layout) -> frozenset[str]:
    """Return the state columns of a format without types of which at least one of the first texts is a number."""
    first = _first_file(layout.source, to_sample(layout.files))
    found = set()
    for column, _ in layout.states:
        with suppress(SpecError):
            first.state_kind(column, asked="number", key="queries")
            found.add(column)
    return frozenset(found)


def _columns_of(side: Side, layout: Layout, schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the columns of a side by their names in a state."""
    if side.struct:
        return {field.name: field.type for field in struct_fields(schema, side)}
    names = layout.members(side, schema.names)
    return {field.name.removeprefix(side.name): field.type for field in schema if field.name in names}
