"""`output.bigquery`: the tables of BigQuery that the public files are also loaded into."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import AfterValidator

from pipelines.spec.errors import Problem, wrong
from pipelines.spec.queries import QuerySection
from pipelines.spec.sinks import SinkSection
from pipelines.spec.words import show
from transforms.release.published_columns import OF_SOME, estimates_types, nodes_types

_PROJECT = r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"
_TABLE = re.compile(rf"{_PROJECT}\.[A-Za-z0-9_]{{1,1024}}\.[A-Za-z0-9_-]{{1,1024}}")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,299}")
_RESERVED = ("_table_", "_file_", "_partition", "_row_timestamp", "__root__", "_colidentifier")
"""Prefixes that BigQuery does not allow for columns, in lower case, since it ignores case in names."""

OWN = ("release", "epoch")
"""Columns that a table has before the columns of the files."""

_FILES = (*estimates_types(()), *nodes_types(()), *(column.name for column in OF_SOME))


def _table(name: str) -> str:
    """Check that the name of a table is complete, and return it.

    >>> _table("house-data.releases.wards")
    'house-data.releases.wards'
    """
    if _TABLE.fullmatch(name) is None:
        raise wrong(f"expected a table's whole name, project.dataset.table, not {show(name)}")
    return name


TableName = Annotated[str, AfterValidator(_table)]


class BigQuerySection(SinkSection):
    """The table of estimates, and optionally the table of nodes."""

    estimates: TableName
    nodes: TableName | None = None

    def problems(self, queries: Iterable[QuerySection]) -> Iterator[Problem]:
        """Find keys that cannot be columns of the tables: BigQuery accepts fewer names than files do."""
        known: dict[str, str] = dict.fromkeys((*OWN, *_FILES), "a column that the table already has")
        for place, query in enumerate(queries):
            for key in query.by:
                name = key.lower()
                if _COLUMN.fullmatch(key) is None or name.startswith(_RESERVED):
                    why = "not a valid column name in BigQuery, which takes letters, digits and '_'"
                elif name in known and known[name] != key:
                    why = f"as a column in BigQuery the same as {known[name]}"
                else:
                    known[name] = key
                    continue
                yield ("queries", place, "by", key), f"{why}; rename it in the source, or leave output.bigquery out"
