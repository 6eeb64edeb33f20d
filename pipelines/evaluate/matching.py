"""Shares of the changelog that queries match and that the contribution bound cuts off. NOT FOR RELEASE."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.spec.series import series_text
from transforms.aggregation.listed_key import OTHER
from transforms.aggregation.matched import Matched, all_matched
from transforms.aggregation.node_sums import MATCHED, NodeKey
from transforms.aggregation.queries import Query
from transforms.release.published_columns import key_types

NEARLY_NOTHING = 0.01
MUCH_CUT = 0.05
MUCH_OUTSIDE = 0.5
MOSTLY_OTHER = 0.9
MOSTLY_NOISE = 0.5


def matching(queries: Sequence[Query], sums: Mapping[NodeKey, Sequence[bytes]]) -> list[dict[str, Any]]:
    """Return for each query the counts of matched rows and units.

    Returns:
        The counts of `transforms.aggregation.matched` by their names; the shares `share_of_rows` and `share_of_units`
        that match, `share_outside` of rows with times outside the schedule, and `share_of_changes_cut` and
        `share_of_units_cut` of the matching ones, each None if there is nothing to count; and
        `cells: {key: [{value, rows, share}]}`, with shares of the matching rows.
    """
    return [
        _of_query(query, all_matched(sums.get((MATCHED, number, "net", 0), ()), 1 if query.discovers else query.cells))
        for number, query in enumerate(queries)
    ]


def _of_query(query: Query, matched: Matched) -> dict[str, Any]:
    counts = matched.counts
    return {
        **counts,
        "share_of_rows": _share(counts["rows_matched"], counts["rows"] - counts["rows_after"]),
        "share_of_units": _share(counts["units_matched"], counts["units"]),
        "share_outside": _share(counts["rows_before"] + counts["rows_after"], counts["rows"]),
        "share_of_changes_cut": _share(counts["changes_cut"], counts["changes"]),
        "share_of_units_cut": _share(counts["units_cut"], counts["units_matched"]),
        "cells": _by_key(query, matched),
    }


def _by_key(query: Query, matched: Matched) -> dict[str, list[dict[str, Any]]]:
    """Return the matching rows by each value of each key; none if keys are found."""
    if query.discovers:
        return {}
    grid = matched.cells.reshape([len(values) for _, values in query.by])
    kinds, total = key_types([query]), int(matched.cells.sum())
    found = {}
    for place, (name, key) in enumerate(query.known):
        rows = grid.sum(axis=tuple(other for other in range(grid.ndim) if other != place))
        labels = key.published(0, len(key), kinds[name]).cast(pa.string()).to_pylist()
        found[name] = [
            {"value": label, "rows": count, "share": _share(count, total)}
            for label, count in zip(labels, np.asarray(rows).tolist(), strict=True)
        ]
    return found


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def warnings(queries: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a warning for each reason why the numbers of a query are useless or misleading.

    Args:
        queries: Queries as in `Evaluated.queries`, with `name`, `matched` and `numbers`.
    """
    for query in queries:
        where, matched = f"query {query['name']}", query["matched"]
        if matched["rows"] == 0:
            yield f"{where}: the changelog has no mutations; see changelog.path"
            continue
        if matched["units_matched"] == 0:
            yield (
                f"{where}: nothing matches: no entry is ever in the query. Check `where` and the values of `by`: is "
                "text written as in the data, and are types as in changelog.types?"
            )
            continue
        if matched["share_of_units"] < NEARLY_NOTHING:
            share = f"{matched['share_of_units']:.2%}"
            yield f"{where}: almost nothing matches: {share} of the units; see `where` and `by`"
        for key, values in matched["cells"].items():
            other = next((one["share"] for one in values if one["value"] == OTHER), None)
            if len(values) > 1 and other is not None and other > MOSTLY_OTHER:
                yield (
                    f"{where}: {OTHER} has {other:.0%} of the rows of {key}: the listed values match almost nothing; "
                    "are they written as in the data?"
                )
            empty = [one["value"] for one in values if one["rows"] == 0 and one["value"] != OTHER]
            if empty:
                more = f" and {len(empty) - 3} more" if len(empty) > 3 else ""
                yield f"{where}: nothing is ever in {key} = {', '.join(empty[:3])}{more}, which is noise alone"
        yield from _outside(where, matched, {number["kind"] for number in query["numbers"]})
        if "found" in query and not any(size["share"] for size in query["found"]):
            yield f"{where}: no key is found: all are too small; see the threshold that `plan` states"
        for number in query["numbers"]:
            yield from _of_number(f"{where}, {series_text(number)}", number, matched["share_of_units_cut"] or 0.0)


def _outside(where: str, matched: dict[str, Any], kinds: Set[str]) -> Iterator[str]:
    """Yield why most rows are in no window. Rows before the start are no reason if levels are published: they count."""
    rows, before, after = (matched[name] for name in ("rows", "rows_before", "rows_after"))
    if before + after == rows:
        yield f"{where}: no row has a time in a closed window; see schedule.start, schedule.until and --until"
    elif before > MUCH_OUTSIDE * rows and "level" not in kinds:
        yield f"{where}: {before / rows:.0%} of the rows have times before schedule.start, so they are in no number"
    elif after > MUCH_OUTSIDE * rows:
        yield (
            f"{where}: {after / rows:.0%} of the rows have times after the last closed window; see schedule.until and "
            "--until"
        )


def _of_number(where: str, number: dict[str, Any], cut: float) -> Iterator[str]:
    truth, off, last = number["truth"], number["bounding_rmse"], number["bias_last"]
    relative = number["relative_error"]
    last = "" if last is None else f" and {last:+.4g} in the last window"  # in which there may be no true ratio
    if truth is not None and off is not None and off > MUCH_CUT * truth:
        why = (
            f"the contribution bound cuts off changes of {cut:.0%} of the units"
            if cut
            else "changes that are undone within a window, late, held back or beyond `entries` do not count"
        )
        yield f"{where}: biased: {why}; before noise, the mean error is {number['bias']:+.4g}{last}"
    if relative is not None and relative > MOSTLY_NOISE:
        yield f"{where}: mostly noise: the error is {relative:.0%} of the size of the truth"


def matching_text(queries: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of text about matched rows and units."""
    lines = [
        "",
        f"{'query':<16} {'rows':>11} {'matched':>9} {'outside':>9} {'units':>11} {'matched':>9} {'units cut':>10} "
        f"{'changes cut':>12}",
    ]
    for query in queries:
        matched = query["matched"]
        lines.append(
            f"{query['name']:<16} {matched['rows']:>11,} {_percent(matched['share_of_rows']):>9} "
            f"{_percent(matched['share_outside']):>9} {matched['units']:>11,} {_percent(matched['share_of_units']):>9} "
            f"{_percent(matched['share_of_units_cut']):>10} {_percent(matched['share_of_changes_cut']):>12}"
        )
        for key, values in matched["cells"].items():
            largest = sorted(values, key=lambda one: (one["value"] == OTHER, -one["rows"]))
            some = [one for one in largest if one["value"] != OTHER][:8] + [
                one for one in largest if one["value"] == OTHER
            ]
            left = len(values) - len(some)
            told = ", ".join(f"{one['value']} {_percent(one['share'])}" for one in some)
            lines.append(f"  {key}: {told}" + (f", and {left} smaller ones" if left else ""))
    lines.append("")
    lines.append(
        "rows: mutations; matched: share after which the entry is in the query; outside: share with times outside the "
        "closed windows. units: privacy units; matched: share ever in the query; cut: shares of these units, and of "
        "their changes, that the contribution bound cuts off."
    )
    return lines


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
