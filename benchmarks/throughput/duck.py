"""The bounded aggregation in DuckDB, without privacy, as a baseline.

    python -m benchmarks.throughput.duck 'FOLDER/*.parquet' RESULT.parquet

Of the forms tried (a window, min(..., 4) of structs, narrower types) the window is the fastest.
"""

import sys

import duckdb

BOUNDED_SUMS = """
copy (
    with kept as (
        select
            epoch_us(time) // 86_400_000_000 as day,
            before_ward, before_x, after_ward, after_x
        from read_parquet({files})
        qualify row_number() over (partition by entry order by time, seq) <= 4
    ),
    change as (
        select day, after_ward as ward, after_x as x from kept where after_ward is not null
        union all
        select day, before_ward, -before_x from kept where before_ward is not null
    )
    select day, ward, sum(x)::bigint as change from change group by all
) to {result} (format parquet)
"""


def quoted(text: str) -> str:
    """Return a string literal of SQL: the target of a copy cannot be a parameter."""
    return "'" + text.replace("'", "''") + "'"


def main(files: str, result: str) -> None:
    duckdb.connect().execute(BOUNDED_SUMS.format(files=quoted(files), result=quoted(result)))


if __name__ == "__main__":
    main(*sys.argv[1:])
