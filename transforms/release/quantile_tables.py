"""Published quantiles: rows of `estimates` of their own, made from the noisy counts of ordered cells alone.

    query, kind (`level_quantile` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high, quantile

One row for each number, each combination of listed values and each quantile; the ordered key and `stddev` are null, and
the value where the noisy counts add up to nothing.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from privacy.answers.quantiles import Balances, balances, quantiles, reach_of
from privacy.estimates import CONFIDENCE
from privacy.planning.plan import Released
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.release.in_time import in_time

QUANTILE = "quantile"
"""The column that is added to `estimates` of a release that has any; and the end of the rows' kind."""


def quantile_kind(series: Series) -> str:
    """What the rows of quantiles of a series are called.

    >>> quantile_kind(Series(kind="level"))
    'level_quantile'
    """
    return f"{series.kind}_{QUANTILE}"


def quantile_numbers(
    series: Series, sums: np.ndarray, aggregation: Aggregation, released: Released
) -> list[tuple[float, dict[str, np.ndarray | pa.Array]]]:
    """For each quantile of a query the columns of its rows, [numbers x combinations of listed values].

    Args:
        sums: noisy counts of all cells, [numbers, cells], in grid steps.
    """
    query = aggregation.queries[released.query]
    name, key = query.ordered[0]
    place = [one for one, _ in query.by].index(name)
    counts = np.moveaxis(sums.reshape(len(sums), *(len(one) for _, one in query.by)), 1 + place, -1)
    counts = counts.reshape(len(sums), listed_alone(query).cells, len(key)).astype(np.float64)
    edges = key.edges(0, key.steps + 1)
    low, high = np.concatenate([edges[:1], edges]), np.concatenate([edges, edges[-1:]])
    numbers = in_time(series, aggregation, released)
    found = []
    for share in query.quantiles:
        of = _balances(released, place, len(key), share)
        reach = [reach_of(noise, w.squares, w.largest, of, CONFIDENCE) for noise, w in numbers]
        made = quantiles(counts, share, low=low, high=high, reach=np.array(reach).reshape(len(sums), 1, len(key)))
        rows = made.value.size
        columns: dict[str, np.ndarray | pa.Array] = {
            "value": pa.array(made.value.ravel(), from_pandas=True),  # null for no quantile
            "stddev": pa.nulls(rows, pa.float64()),
            "ci_low": made.ci_low.ravel(),
            "ci_high": made.ci_high.ravel(),
        }
        found.append((share, columns))
    return found


def by_quantile(query: Query) -> Query:
    """The same with its quantiles as cells: a key that lists them as text, and its listed keys."""
    alone = listed_alone(query)
    return replace(alone, by=((QUANTILE, tuple(map(str, query.quantiles))), *alone.by), quantiles=(), ranges=())


def listed_alone(query: Query) -> Query:
    """The same with the cells of its listed keys only."""
    return replace(query, by=tuple((name, key) for name, key in query.by if not isinstance(key, OrderedKey)))


def _balances(released: Released, place: int, cells: int, share: float) -> Balances:
    """Of each combination of listed values alike: their axes have noise of their own for each."""
    if released.over is None or released.over.trivial:
        return balances(cells, share, None)
    found = balances(cells, share, released.over.axes[place])
    others = [axis.variances()[0] for at, axis in enumerate(released.over.axes) if at != place]
    return replace(found, squares=found.squares * float(np.prod(others)))
