"""Published quantiles: separate rows of `estimates`, made only from the noisy counts of ordered cells.

    query, kind (`level_quantile` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high, quantile

There is one row for each number, combination of listed values and quantile, also for those of marginals and of inner
nodes of hierarchies. The ordered key and `stddev` are null; the value is null if the noisy counts have no positive sum.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from privacy.answers.quantiles import Balances, balances, quantiles, reach_of
from privacy.estimates import CONFIDENCE
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.release.in_time import in_time
from transforms.release.marginal_tables import Marginal, by_marginal, noise_of_rows, over_rows

QUANTILE = "quantile"
"""Additional column of `estimates` in a release with quantiles, and ending of the rows' kind."""


def quantile_kind(series: Series) -> str:
    """Return the kind of the rows of quantiles of a series.

    >>> quantile_kind(Series(kind="level"))
    'level_quantile'
    """
    return f"{series.kind}_{QUANTILE}"


def quantile_numbers(
    series: Series, sums: np.ndarray, aggregation: Aggregation, released: LinearPart, marginal: Marginal
) -> list[tuple[float, dict[str, np.ndarray | pa.Array]]]:
    """Return for each quantile of a query the columns of its rows, [numbers x rows of a table over the listed keys].

    Args:
        series: The series.
        sums: Noisy counts of all cells, int64 [numbers, cells], in grid steps.
        aggregation: The aggregation.
        released: Part of the plan.
        marginal: The table over the listed keys.
    """
    query = aggregation.queries[released.query]
    rows_of, (name, key) = by_marginal(query, marginal), query.ordered[0]
    place = [one for one, _ in query.by].index(name)
    counts = over_rows(sums, query, marginal.levels).reshape(len(sums), *(len(one) for _, one in rows_of.by))
    combinations = listed_alone(rows_of).cells
    counts = np.moveaxis(counts, 1 + place, -1).reshape(len(sums), combinations, len(key)).astype(np.float64)
    edges = key.edges(0, key.steps + 1)
    low, high = np.concatenate([edges[:1], edges]), np.concatenate([edges, edges[-1:]])
    numbers = in_time(series, aggregation, released)
    found = []
    for share in query.quantiles:
        of = _balances(query, released, marginal, place, share)
        reach = [[reach_of(noise, w.squares, w.largest, one, CONFIDENCE) for one in of] for noise, w in numbers]
        made = quantiles(counts, share, low=low, high=high, reach=np.array(reach).reshape(len(sums), len(of), len(key)))
        rows = made.value.size
        columns: dict[str, np.ndarray | pa.Array] = {
            "value": pa.array(made.value.ravel(), from_pandas=True),  # null without a quantile
            "stddev": pa.nulls(rows, pa.float64()),
            "ci_low": made.ci_low.ravel(),
            "ci_high": made.ci_high.ravel(),
        }
        found.append((share, columns))
    return found


def by_quantile(query: Query) -> Query:
    """Return the query with its quantiles as cells: a key that lists them as text, and its listed keys."""
    alone = listed_alone(query)
    return replace(alone, by=((QUANTILE, tuple(map(str, query.quantiles))), *alone.by), quantiles=(), ranges=())


def listed_alone(query: Query) -> Query:
    """Return the query with the cells of its listed keys only."""
    return replace(query, by=query.listed)


def _balances(query: Query, released: LinearPart, marginal: Marginal, place: int, share: float) -> list[Balances]:
    """Return the balances of each row of a table over the listed keys, or of one if all rows have alike noise."""
    over, (name, key) = released.over, query.by[place]
    along = None if over is None or over.trivial else over.of_axis(place)
    found, others = balances(len(key), share, along), noise_of_rows(query, over, [marginal.levels], without=name)
    return [
        replace(found, squares=found.squares * squares, largest=found.largest * largest)
        for squares, largest in zip(others.squares.tolist(), others.largest.tolist(), strict=True)
    ]
