"""What an entry of the table of formats says: how files of a format are recognised, inspected, split and read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from transforms.common.batches import Batch
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped

Record = dict[str, Any]

Parts = Iterator[Batch | pa.Table | Skipped]
"""Batches, tables of dead letters, and what was skipped."""

Sample = tuple[pa.Schema, pa.Table | None]
"""Columns of a file, and its first rows as texts, by path; no rows where the file itself says its types."""


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups [first, last) of a file; `row` is the number of their first row, from 1."""

    first: int
    last: int
    row: int


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file that one worker reads: all of it without a run."""

    place: Place
    run: RowGroups | None = None


def _whole(place: Place) -> list[Split]:
    return [Split(place)]


def _never(*_: object) -> bool:
    return False


def _as_it_is(source: Source) -> Source:
    return source


def _of_other_files(*_: object) -> Any:
    raise ValueError("files of this format are of another one; `named` says which")


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Of a format whose records hold states and, apart from them, what is to be known of the change.

    Attributes:
        claims: whether a record is of this format.
        columns: names of the columns of the state that a record holds.
        key: the column that names the entry, if a record says it; None where none does.
    """

    claims: Callable[[Record], bool]
    columns: Callable[[Record], list[str]]
    key: Callable[[Record], str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format of changelogs. A worker finds it by its name (transforms.sources.formats.table).

    Attributes:
        name: as specs have it.
        kind: what a file of it is called.
        sample: the columns of a source's file, and its first rows.
        split: the parts of a file that workers may share.
        read: the rows of a split, in batches of at most so many.
        rows: about how many rows a file says that it has; None where files do not say it.
        endings: of file names.
        lines: whether the file at a path holds lines of JSON: without a byte it has no rows, and is no fault.
        cells: whether values are cells of text: there are no structs, and null is what the spec lists.
        is_struct: whether a side's name is that of a struct in a file, where the spec does not say it.
        owner: where the column of the owner is: in the states, beside them (`mutation`), where the file's `schema` has
            it, or where the `spec` says.
        topics: whether records of topics may be of it.
        envelope: None where a row is a record.
        own: keys of a spec that the format says itself, with what may be written there all the same; None if none.
        named: the source with what the format says itself.
        orders: columns of order that are none of the files': texts that the reader makes.
        exact: whether the format's own order leaves nothing tied.
        texts_measured: whether texts of files with a schema may be numbers.
        decimals: a hint for numbers that are written as something else.
        snapshots: whether each file is (part of) a copy of the table.
    """

    name: str
    kind: str = ""
    sample: Callable[[Source, str], Sample] = _of_other_files
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

    @property
    def untyped(self) -> bool:
        """Whether the spec alone says what is a number. Some files of such a format may say it all the same."""
        return self.cells or self.lines("")
