"""`slackwater show`: the estimates of all epochs, or from all sanitised records, as one table, printed or written.

It reads the public side of a release and nothing else, so it costs no privacy.
"""

import argparse
from typing import Any

import pyarrow as pa

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.reports.published import Published, asked, naming, published
from pipelines.sanitised.published import records_at
from pipelines.spec.paths import within
from privacy.counted import counted
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.common.shown_tables import Clock, refuse_ending, rows_of, text_of, write_shown
from transforms.release.quantile_tables import QUANTILE, quantile_kind
from transforms.release.range_tables import by_range, range_kind


def show(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "show")
    if arguments.output is not None:
        refuse_ending(arguments.output)
    records = records_at(arguments.spec)
    if records is not None:
        _refuse_inside(records.folder, arguments.output)
        about = {"release": records.release, "records": records.count}
        with naming(records.folder):
            table = records.estimates(arguments.query)
        return told(
            table, f"from {counted(records.count, 'sanitised record')}", about, arguments, local=lambda moment: moment
        )
    release = published(arguments.spec)
    _refuse_inside(release.folder, arguments.output)
    about = {"release": release.spec.release, "until": release.until}
    with naming(release.folder):
        table = numbers(release, arguments.query)
    return told(table, f"up to {release.until}", about, arguments, local=release.local)


def told(table: pa.Table, which: str, about: dict[str, Any], arguments: argparse.Namespace, *, local: Clock) -> Result:
    """Numbers printed, or in a file.

    Args:
        which: numbers they are.
        about: members of the document besides.
    """
    output: str | None = arguments.output
    document = {**about, "rows": table.num_rows, "file": output}
    if output is not None:
        write_shown(table, output, local=local)
        return document, f"{about['release']}: {counted(table.num_rows, 'number')} {which} in {output}"
    if arguments.json:  # the numbers themselves; the text would be made for nothing
        return {**document, "estimates": rows_of(table)}, ""
    return document, text_of(table, local=local)


def _refuse_inside(folder: str, output: str | None) -> None:
    if output is not None and within(output, folder):
        raise SpecError(f"-o {output}: lies in the public folder, which holds what is published and nothing else")


def numbers(release: Published, queries: list[str] | None) -> pa.Table:
    """The estimates of all epochs, query after query; None: of all queries."""
    tables = [
        table
        for query in asked(release.spec, queries)
        for table in (
            *(table for _, table in release.numbers(query)),
            *(_of_ranges(series, table, query) for series, table in release.ranges(query)),
            *(_of_quantiles(series, table) for series, table in release.quantiles(query)),
        )
    ]
    return pa.concat_tables(tables, promote_options="default")


def _of_quantiles(series: Series, table: pa.Table) -> pa.Table:
    """As they are published: with a kind of their own, and numbers."""
    place = table.column_names.index(QUANTILE)
    table = table.set_column(place, QUANTILE, table.column(place).cast(pa.float64()))
    return table.set_column(1, "kind", pa.repeat(quantile_kind(series), table.num_rows))


def _of_ranges(series: Series, table: pa.Table, query: Query) -> pa.Table:
    """As they are published: with a kind of their own, and no column for two keys."""
    table = table.set_column(1, "kind", pa.repeat(range_kind(series), table.num_rows))
    (both, _), *_ = by_range(query).by
    return table if len(query.ordered) == 1 else table.drop_columns([both])
