"""How large noise is beside published numbers, as a part of a page; and a plain warning where they are mostly noise."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.pages import html
from pipelines.pages.numbers import Signal, rounded

NAMED = 5
"""Of the numbers that a warning is about; more are counted."""

ROWS = 200
"""Of a table of noise."""


def told(signal: Signal, *, says: str, mend: str) -> dict[str, Any]:
    """As `--json` prints it.

    Args:
        says: what is true of numbers that say next to nothing.
        mend: what would make them say more.
    """
    warning = f"mostly noise: {signal.lost:.0%} of the numbers {says}. {mend}" if signal.noisy else None
    return {"typical": signal.typical, "half": signal.half, "lost": signal.lost, "warning": warning}


def noise_section(
    rows: Sequence[tuple[str, Mapping[str, Any]]], *, intro: str, caption: str, heading: str, judged: str
) -> str:
    """
    Args:
        rows: what numbers are of, and `told` of them.
        judged: what it takes to say next to nothing.
    """
    return html.section(
        "noise",
        "How large the noise is",
        [
            html.paragraph(intro),
            html.table(
                shortened(caption, rows),
                (heading, "typical size", "95 % interval", "says next to nothing"),
                [
                    (
                        name,
                        rounded(one["typical"], one["half"] or 1.0),
                        "not known" if one["half"] is None else f"± {rounded(one['half'], one['half'])}",
                        f"{one['lost']:.0%}",
                    )
                    for name, one in rows[:ROWS]
                ],
            ),
            html.paragraph(judged),
        ],
    )


def shortened(caption: str, rows: Sequence[object]) -> str:
    """Of a table that has the first of these rows alone, if there are many."""
    return caption if len(rows) <= ROWS else f"{caption} (the first {ROWS} of {len(rows):,})"
