"""Section of a page that compares noise with published numbers, and the warning for numbers that are mostly noise."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.pages import html
from pipelines.pages.numbers import Signal, percent, rounded

NAMED = 5
"""Most numbers that a warning names; it counts the others."""

ROWS = 200
"""Most rows of a table of noise."""


def told(signal: Signal, *, says: str, advice: str) -> dict[str, Any]:
    """Return a signal as `--json` prints it, with a warning if the numbers are mostly noise.

    Args:
        signal: The size of the noise compared with the numbers.
        says: Predicate of the uninformative numbers, such as "cannot be distinguished from zero".
        advice: How to make the numbers more informative.
    """
    warning = f"mostly noise: {percent(signal.lost)} of the numbers {says}. {advice}" if signal.noisy else None
    return {"typical": signal.typical, "half": signal.half, "lost": signal.lost, "warning": warning}


def noise_section(
    rows: Sequence[tuple[str, Mapping[str, Any]]], *, intro: str, caption: str, heading: str, judged: str
) -> html.PageSection:
    """Return the section of a page about the size of the noise.

    Args:
        rows: For each series its name, and the result of `told`.
        intro: First paragraph.
        caption: Caption of the table.
        heading: Heading of the column of names.
        judged: Definition of numbers that are mostly noise.
    """
    return html.section(
        "noise",
        "How large the noise is",
        [
            html.paragraph(intro),
            html.table(
                shortened(caption, rows),
                (heading, "number", "half of its 95 % interval", "mostly noise"),
                [
                    (
                        name,
                        rounded(one["typical"], one["half"] or 1.0),
                        "not known" if one["half"] is None else f"± {rounded(one['half'], one['half'])}",
                        percent(one["lost"]),
                    )
                    for name, one in rows[:ROWS]
                ],
            ),
            html.paragraph(judged),
        ],
    )


def shortened(caption: str, rows: Sequence[object]) -> str:
    """Return the caption of a table, which says so if the table shows only the first of many rows."""
    return caption if len(rows) <= ROWS else f"{caption} (the first {ROWS} of {len(rows):,})"
