"""Dated copies of a table: the path's ending gives the format of the files, its directives the date."""

import re
from dataclasses import replace

from transforms.common.errors import SpecError
from transforms.common.source import Source
from transforms.sources.files.snapshot_paths import date_problem
from transforms.sources.formats.csv import CSV
from transforms.sources.formats.format import Format
from transforms.sources.formats.parquet import PARQUET

COPIED = {PARQUET.name: r"\.parquet$", CSV.name: r"\.csv(?:\.(?:gz|bz2|zst))?$"}
"""Formats of copies, and the endings of their paths."""


def file_format(path: str) -> str | None:
    """Return the format of the files at a path; None if copies cannot have it."""
    return next((name for name, end in COPIED.items() if re.search(end, path)), None)


def path_problem(path: str, first: str) -> str | None:
    """Return what is wrong with a path of snapshots, of several that begin with `first`; None if it is valid.

    >>> path_problem("data/%Y-%m-%d.json", "data/%Y-%m-%d.json")
    'the end of the path says the format of the files: .parquet, .csv, .csv.gz, .csv.bz2 or .csv.zst'
    """
    problem = date_problem(path)
    if problem is not None:
        return problem
    if file_format(path) is None:
        return "the end of the path says the format of the files: .parquet, .csv, .csv.gz, .csv.bz2 or .csv.zst"
    if file_format(path) != file_format(first):
        return f"all snapshots must be of one format, and {first!r} comes first"
    return None


def _named(source: Source) -> Source:
    """Return the source with the format of the files themselves.

    Raises:
        SpecError: A path has no date or format, or another format than the first.
    """
    for path in source.paths:
        problem = path_problem(path, source.paths[0])
        if problem is not None:
            raise SpecError(f"changelog.path: {path!r}: {problem}")
    found = file_format(source.paths[0])
    assert found is not None
    return replace(source, format=found)


SNAPSHOTS = Format(
    name="snapshots",
    own={"time": (), "before": (), "after": (), "order": ()},
    named=_named,
    snapshots=True,
)
