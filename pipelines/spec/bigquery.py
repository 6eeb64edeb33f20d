"""`output.bigquery`: the tables of BigQuery that the public files are also loaded into."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import Section
from pipelines.spec.queries import QuerySection
from pipelines.spec.words import show
from transforms.release.published_columns import GROUPED, SAMPLED, SPREAD_OVER, estimates_types, nodes_types
from transforms.release.quantile_tables import QUANTILE

_PROJECT = r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"
_TABLE = re.compile(rf"{_PROJECT}\.[A-Za-z0-9_]{{1,1024}}\.[A-Za-z0-9_-]{{1,1024}}")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,299}")
_RESERVED = ("_table_", "_file_", "_partition", "_row_timestamp", "__root__", "_colidentifier")
"""How no column may begin, in small letters, as BigQuery compares names."""

OWN = ("release", "epoch")
"""Columns that a table has before those of the files."""

_FILES = (*estimates_types(()), *nodes_types(()), SAMPLED, GROUPED, SPREAD_OVER, QUANTILE)


def _table(name: str) -> str:
    """
    >>> _table("house-data.releases.wards")
    'house-data.releases.wards'
    """
    if _TABLE.fullmatch(name) is None:
        raise wrong(f"expected a table's whole name, project.dataset.table, not {show(name)}")
    return name


TableName = Annotated[str, AfterValidator(_table)]


class BigQuerySection(Section):
    """A table for each side that is loaded."""

    estimates: TableName
    nodes: TableName | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.nodes == self.estimates:
            refuse([(("nodes",), "the table of estimates; nodes have other columns, so name another one")])
        return self


def bigquery_problems(queries: Iterable[QuerySection]) -> Iterator[Problem]:
    """Keys are columns of the tables too, and BigQuery takes fewer names than files do."""
    known: dict[str, str] = dict.fromkeys((*OWN, *_FILES), "one of the table's own")
    for place, query in enumerate(queries):
        for key in query.by:
            name = key.lower()
            if _COLUMN.fullmatch(key) is None or name.startswith(_RESERVED):
                why = "no name of a column in BigQuery, which takes letters, digits and '_'"
            elif name in known and known[name] != key:
                why = f"as a column in BigQuery the same as {known[name]}"
            else:
                known[name] = key
                continue
            yield ("queries", place, "by", key), f"{why}; rename it in the source, or leave output.bigquery out"
