"""Entry of the table of formats: how files of a format are recognised, inspected, split and read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from transforms.common.batches import Batch
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped

JsonRecord = dict[str, Any]

Parts = Iterator[Batch | pa.Table | Skipped]
"""Batches, tables of dead letters, and skipped rows."""

FirstRows = tuple[pa.Schema, pa.Table | None]
"""Columns of a file, and its first rows as texts by path; no rows if the file itself states its types."""


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups [first, last) of a file; `row` is the number of their first row, from 1."""

    first: int
    last: int
    row: int


@dataclass(frozen=True, slots=True)
class Split:
    """Part of a file that one worker reads; the whole file if it has no run of row groups."""

    place: Place
    run: RowGroups | None = None


def _whole(place: Place) -> list[Split]:
    return [Split(place)]


def _never(*_: object) -> bool:
    return False


def _as_it_is(source: Source) -> Source:
    return source


def _of_other_files(*_: object) -> Any:
    raise ValueError("files of this format have another format, which `named` returns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Properties of a format whose records hold states and, separately, metadata of the change.

    Attributes:
        claims: Function that returns whether a record has this format.
        columns: Function that returns the columns of the state in a record.
        key: Function that returns the column of the entry's key if a record names it; None if records never do.
    """

    claims: Callable[[JsonRecord], bool]
    columns: Callable[[JsonRecord], list[str]]
    key: Callable[[JsonRecord], str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format of changelogs. A worker finds it by its name (transforms.sources.formats.table).

    Attributes:
        name: Name in specs.
        kind: Name of such a file in messages.
        sample: Returns the columns of a source's file, and its first rows.
        split: Returns the parts of a file that workers can share.
        read: Returns the rows of a split, in batches of a maximum size.
        rows: Returns the approximate number of rows that a file states; None if files do not state it.
        endings: Endings of file names.
        lines: Whether the file at a path holds JSON lines: an empty one has no rows and is valid.
        cells: Whether values are cells of text: there are no structs, and the spec lists the texts that are null.
        is_struct: Whether a side's name is that of a struct in a file, if the spec does not state it.
        owner: Location of the owner's column: in the states, outside them (`mutation`), where the file's `schema` has
            it, or where the `spec` puts it.
        topics: Whether records of topics can have this format.
        envelope: Properties of the envelope; None if a row is a record.
        own: Keys of a spec that the format defines, with the values that are allowed nevertheless; None: no value.
        named: Returns the source with the roles that the format defines.
        orders: Columns of order that the reader makes as texts, since the files do not have them.
        exact: Whether the format's own order leaves no ties.
        texts_measured: Whether texts of files with a schema can be numbers.
        decimals: Hint for numbers that are written in another form.
        snapshots: Whether each file is (part of) a copy of the table.
        rests_on: Assumption of a release's claim if it reads such files, as a sentence; else empty.
    """

    name: str
    kind: str = ""
    sample: Callable[[Source, str], FirstRows] = _of_other_files
    split: Callable[[Place], list[Split]] = _whole
    read: Callable[[Layout, Split, int], Parts] = _of_other_files
    rows: Callable[[str], int] | None = None
    endings: tuple[str, ...] = ()
    lines: Callable[[str], bool] = _never
    cells: bool = False
    is_struct: Callable[[str, pa.Schema], bool] = _never
    owner: Literal["states", "mutation", "schema", "spec"] = "schema"
    topics: bool = False
    envelope: Envelope | None = None
    own: Mapping[str, tuple[str, ...]] | None = None
    named: Callable[[Source], Source] = _as_it_is
    orders: tuple[str, ...] = ()
    exact: bool = False
    texts_measured: bool = False
    decimals: str = ""
    snapshots: bool = False
    rests_on: str = ""

    @property
    def untyped(self) -> bool:
        """Whether only the spec decides what is a number. Some files of such a format can have types nevertheless."""
        return self.cells or self.lines("")
