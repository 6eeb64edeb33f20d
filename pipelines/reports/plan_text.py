"""`slackwater plan` for people: one row for each number that is published, in the terms of the spec."""

from collections.abc import Sequence
from typing import Any

from pipelines.reports.plan_report import series_text
from privacy.counted import counted
from privacy.upward import shown


def plan_text(document: dict[str, Any]) -> str:
    """What the release costs, how far off its numbers will be, and what is doubtful about the spec."""
    budget = document["loss"]
    lines = [
        f"{document['release']}: epsilon {shown(budget['epsilon'])}, delta {shown(budget['delta'])}",
        document["claim"],
        "",
        *columns([HEADING, *rows_of(document)]),
        "",
        *(f"warning: {one}" for one in document["warnings"]),
        *([""] if document["warnings"] else []),
        f"Off by, over {document['over']}: with 95 % probability no further from the number after contribution",
        "bounding. All strategies, sensitivities and shares of the budget: --explain.",
        "It rests on this:",
        *(f"  {condition}" for condition in document["conditions"]),
    ]
    return "\n".join(lines)


HEADING = ("query", "number", "cells", "off by, 95 %", "the last", "of expected", "strategy")


def rows_of(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each series of each query."""
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
                    f"{number.get('cells', query['cells']):,}",
                    off_by(number),
                    "" if last is None else f"± {last:.4g}",
                    "" if share is None else f"{share:.0%}",
                    strategy_text(chosen),
                )
            )
    return rows


def off_by(number: dict[str, Any]) -> str:
    """How far off one series is.

    >>> off_by({"kind": "level", "entries": 480, "within": 16.0})
    '± 16 from 480 entries on'
    """
    if number.get("entries") is not None:
        return f"± {number['within']:.4g} from {counted(number['entries'], 'entry')} on"
    return "depends on the data" if number.get("half_width") is None else f"± {number['half_width']:.4g}"


def strategy_text(candidate: dict[str, Any]) -> str:
    settings = [str(v) for v in candidate["parameters"].values() if type(v) in (int, str)]
    return f"{candidate['strategy']} ({', '.join(settings)})" if settings else str(candidate["strategy"])


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as it must be; one that is empty but for its heading is left out."""
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    widths = [max(len(row[place]) for row in rows) for place in kept]
    return [
        "  ".join(row[place].ljust(width) for place, width in zip(kept, widths, strict=True)).rstrip() for row in rows
    ]
