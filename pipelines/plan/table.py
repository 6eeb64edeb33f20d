"""Text of `slackwater plan`: one row for each published number, in the terms of the spec."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from pipelines.spec.series import series_text
from privacy.counted import counted
from privacy.upward import shown


def plan_text(document: dict[str, Any], advice: str = "") -> str:
    """Return the cost of the release, the margins of error of its numbers, and warnings about the spec.

    Args:
        document: Document of the plan.
        advice: A line about changes for smaller errors.
    """
    budget = document["loss"]
    lines = [
        f"{document['release']}: epsilon {shown(budget['epsilon'])}, delta {shown(budget['delta'])}",
        *wrap(f"{document['claim']} {document['conditions'][0]}", 120),
        "",
        *columns([HEADING, *rows_of(document)]),
        "",
        *found_text(document),
        *(f"warning: {one}" for one in document["warnings"]),
        *([""] if document["warnings"] or found_text(document) else []),
        f"95 % margin: margin of error over {document['over']}, relative to the number after contribution bounding.",
        *filter(None, [advice]),
        "All conditions of the claim, strategies, sensitivities and shares of the budget: --explain.",
    ]
    return "\n".join(lines)


HEADING = ("query", "number", "cells", "95 % margin", "last number", "of expected", "other measure", "strategy")


def rows_of(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each series of each query, with the columns of `HEADING`."""
    rows: list[tuple[str, ...]] = []
    for query in document["queries"]:
        chosen = next(one for one in query["candidates"] if one["chosen"])
        for number in query["accuracy"]:
            share = number.get("of_expected")
            last = number.get("half_width_last")
            rows.append(
                (
                    query["name"],
                    series_text(number),
                    cells_text(number.get("cells", query["cells"])),
                    off_by(number),
                    "" if last is None else f"± {last:.4g}",
                    "" if share is None else f"{share:.0%}",
                    "" if "instead" not in number else f"{number['instead']['measure']}: {off_by(number['instead'])}",
                    strategy_text(chosen),
                )
            )
    return rows


def cells_text(cells: int | None) -> str:
    """Return the number of cells, as text."""
    return "found" if cells is None else f"{cells:,}"


def found_text(document: dict[str, Any]) -> list[str]:
    """Return a sentence for each query whose keys are found."""
    return [
        f"{query['name']}: a key is listed from the first window on in which its noisy "
        f"{_level_text(found)} reaches {found['threshold']:,.4g}. In any one window, a key with "
        f"{found['entries_50']:,} entries{' of the largest value' if found['sum'] else ''} is found with a probability "
        f"of 50 %, and one with {found['entries_95']:,} of 95 %. Discovery takes {shown(found['delta'], 2)} of delta."
        for query in document["queries"]
        if (found := query["found"]) is not None
    ]


def _level_text(found: dict[str, Any]) -> str:
    """Return the number by which a key is found."""
    cells = "" if found["cells"] == 1 else f" over {counted(found['cells'], 'cell')}"
    return f"{'sum' if found['sum'] else 'count'}{cells}"


def off_by(number: dict[str, Any]) -> str:
    """Return the 95 % margin of error of one series, as text.

    >>> off_by({"kind": "level", "entries": 480, "within": 16.0})
    '± 16 with 480 entries or more'
    """
    if number.get("entries") is not None:
        return f"± {number['within']:.4g} with {counted(number['entries'], 'entry')} or more"
    return "depends on the data" if number.get("half_width") is None else f"± {number['half_width']:.4g}"


def strategy_text(candidate: dict[str, Any]) -> str:
    settings = [str(v) for v in candidate["parameters"].values() if type(v) in (int, str)]
    return f"{candidate['strategy']} ({', '.join(settings)})" if settings else str(candidate["strategy"])


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; a column that is empty except for its heading is left out."""
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    widths = [max(len(row[place]) for row in rows) for place in kept]
    return [
        "  ".join(row[place].ljust(width) for place, width in zip(kept, widths, strict=True)).rstrip() for row in rows
    ]
