"""`slackwater show`: the estimates of all epochs, or from all sanitised records, as one table, printed or written.

It reads only the public side of a release, so it costs no privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.common.arguments import SpecLike, path_of, refuse_ending, refuse_inside
from pipelines.common.value import Value
from pipelines.published.labels import labels_of
from pipelines.published.others import of_other_kind
from pipelines.published.release import Published, asked, naming, published
from pipelines.spec.times import people_time
from privacy.counted import counted
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.shown_tables import Clock, html_of, rows_of, text_of, write_shown
from transforms.release.marginal_tables import by_marginal, marginal_kind, marginals_of, over_listed
from transforms.release.published_columns import key_types
from transforms.release.quantile_tables import QUANTILE, quantile_kind
from transforms.release.range_tables import by_range, range_kind

PRINTED = 2_000
"""Most rows that are printed; of more, the first and the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Value):
    """Published estimates.

    Attributes:
        release: Name of the release.
        table: Columns `query`, `kind`, `window_start`, `window_end` (UTC), each key, `value`, `stddev`, `ci_low`,
            `ci_high`; of sanitised records those of `transforms.sanitised.estimated_tables`.
        file: Path of the file that was written; None: no file.
        until: End of the last published window; None for sanitised records.
        records: Number of sanitised records; None for a release of sums.
        local: Clock of the schedule's zone.
        people: The table with labels in place of names, for text; None: no labels.
    """

    release: str
    table: pa.Table = field(repr=False)
    file: str | None = None
    until: str | None = None
    records: int | None = None
    local: Clock = field(repr=False)
    people: pa.Table | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater show --json`."""
        about = {"until": self.until} if self.records is None else {"records": self.records}
        document = {"release": self.release, **about, "rows": self.table.num_rows, "file": self.file}
        return document if self.file is not None else {**document, "estimates": rows_of(self.table)}

    def text(self) -> str:
        """Return the text that `slackwater show` prints: of many rows, the first and the last ones."""
        rows, table = self.table.num_rows, self.table if self.people is None else self.people
        if self.file is None and rows > PRINTED:
            ends = [table.slice(0, PRINTED // 2), table.slice(rows - PRINTED // 2)]
            return (
                f"{text_of(pa.concat_tables(ends), local=self.local)}\n\nThe first {PRINTED // 2:,} and the last "
                f"{PRINTED // 2:,} of {rows:,} rows. All of them: -o FILE.parquet, .csv or .jsonl; fewer: --query NAME."
            )
        if self.file is None:
            return text_of(table, local=self.local)
        sanitised = self.records is not None
        which = (
            f"from {counted(self.records or 0, 'sanitised record')}"
            if sanitised
            else f"up to {people_time(self.until or '')}"
        )
        return f"{self.release}: {counted(self.table.num_rows, 'number')} {which} in {self.file}"

    def _repr_html_(self) -> str:
        return html_of(self.table if self.people is None else self.people, local=self.local)


def show(spec: SpecLike, *, output: str | Path | None = None, query: Sequence[str] | None = None) -> Shown:
    """Read all published estimates as one table, from the public side alone. Costs no privacy.

    Args:
        spec: The path of a spec, what `load` returns, or the path of a public folder; of a release or of sanitised
            records.
        output: Write the table to this file, which ends in .parquet, .csv, .jsonl, .md or .txt.
        query: Names of queries, or of attributes of sanitised records. None: all.

    Raises:
        SpecError: There is no such query, or the file cannot be there.
        RefusedError: Nothing is published there, or a file is not what the manifest says.

    Example:
        `show("releases/wards/public").table.to_pandas()`.
    """
    path, file = path_of(spec), None if output is None else str(output)
    refuse_ending("output", file)
    if other := of_other_kind("show", path):
        shown: Shown = other(path, output=file, query=query)
        return shown
    release = published(path)
    refuse_inside("output", file, release.folder)
    with naming(release.folder):
        table = numbers(release, query)
        people = labels_of(release, path).table(table, [*key_types(release.spec.queries)])
    if file is not None:
        write_shown(table, file, local=release.local, people=people)
    return Shown(
        release=release.spec.release,
        table=table,
        file=file,
        until=release.until,
        local=release.local,
        people=people,
    )


def numbers(release: Published, queries: Sequence[str] | None) -> pa.Table:
    """The estimates of all epochs, query after query; None: of all queries."""
    tables = [
        table
        for query in asked(release.spec, queries)
        for table in (
            *(table for _, table in release.numbers(query)),
            *(
                _of_ranges(series, table, query)
                for marginal in over_listed(query)
                for series, table in release.ranges(by_marginal(query, marginal))
            ),
            *(
                table.set_column(1, "kind", pa.repeat(marginal_kind(series), table.num_rows))
                for marginal in marginals_of(query)
                for series, table in release.marginals(query, marginal)
            ),
            *(
                _of_quantiles(series, table)
                for marginal in over_listed(query)
                for series, table in release.quantiles(by_marginal(query, marginal))
            ),
            *(rest for rest in [release.rest(query)] if rest is not None),
        )
    ]
    return pa.concat_tables(tables, promote_options="default")


def _of_quantiles(series: Series, table: pa.Table) -> pa.Table:
    """Return the rows as they are published: with a separate kind, and numbers."""
    place = table.column_names.index(QUANTILE)
    table = table.set_column(place, QUANTILE, table.column(place).cast(pa.float64()))
    return table.set_column(1, "kind", pa.repeat(quantile_kind(series), table.num_rows))


def _of_ranges(series: Series, table: pa.Table, query: Query) -> pa.Table:
    """Return the rows as they are published: with a separate kind, and no column for two keys."""
    table = table.set_column(1, "kind", pa.repeat(range_kind(series), table.num_rows))
    (both, _), *_ = by_range(query).by
    return table if len(query.ordered) == 1 else table.drop_columns([both])
