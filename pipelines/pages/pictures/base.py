"""What a page draws of one query besides lines over time, chosen by the kinds of its keys (`table.py`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.pages.numbers import Numbers
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictured:
    """Published numbers with the same cells.

    Attributes:
        query: The query with these cells.
        numbers: Its series.
        plan: Plan of the release.
        of: Kind of numbers, `ranges`, `quantiles` or the name of a marginal; empty for numbers of cells.
        within: Possible range of the numbers, if their intervals are compared with it; None: with zero.
    """

    query: Query
    numbers: Sequence[Numbers]
    plan: Plan
    of: str = ""
    within: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A kind of chart.

    Attributes:
        suits: Whether it is for these numbers.
        document: Returns what its script needs besides the numbers.
        largest: What the text calls the cell with the largest number.
        whole: Whether it needs all cells, in order, rather than all windows; adjacent cells of ordered keys are merged
            if they are too many.
    """

    suits: Callable[[Pictured], bool]
    document: Callable[[Pictured], dict[str, Any]]
    largest: str = "Largest"
    whole: bool = False


def nothing_more(subject: Pictured) -> dict[str, Any]:
    """Return no further data."""
    return {}
