"""What a report states about a release: the values behind its page and its JSON document."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Cell = Mapping[str, str]
"""Value of each key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedNumber:
    """One published number, or the sum of all cells of a query.

    Attributes:
        cell: Its cell; None: all cells together.
        value: The number; None if it is unknown.
        low, high: Ends of the 95 % interval; None if it is unknown.
        repeated: Whether it repeats the number of an earlier window.
        name: Its kind and its cell, in words.
        text: All of this in words.
    """

    cell: Cell | None
    value: float | None
    low: float | None
    high: float | None
    repeated: bool
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedDifference:
    """Difference of two numbers of one series: of two windows, or of two cells.

    Attributes:
        cell: Cell of the first number; None: all cells together.
        minus_cell: Cell of the second number.
        window, minus_window: Names of the windows of both numbers.
        window_end, minus_window_end: Ends of these windows, UTC, in ISO 8601.
        value: The first number minus the second.
        low, high: Ends of the interval of the difference; None if it is unknown.
        probability: Probability with which the interval holds the difference without noise: 0.95 from the covariance of
            both numbers, or 0.9 from their separate intervals.
        real: `higher`, `lower`, `unclear` or `unknown`.
        difference: The difference of the two numbers as the page shows them, which are rounded, as text.
        name, minus_name: Both numbers in words.
        text: All of this in words.
    """

    cell: Cell | None
    minus_cell: Cell | None
    window: str
    minus_window: str
    window_end: str
    minus_window_end: str
    value: float
    low: float | None
    high: float | None
    probability: float
    real: str
    difference: str
    name: str
    minus_name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSeries:
    """The numbers of one kind.

    Attributes:
        kind: Name of the kind, with the width and step of sliding windows.
        meaning: What the numbers are.
        window: Name of the last window; empty without numbers.
        window_start, window_end: Its start and end, UTC, in ISO 8601; empty without numbers.
        latest: Numbers of the last window: the sum of all cells if its error is known, then the largest cells.
        cells: Number of cells.
        differences: Differences of the last window and earlier ones, and of cells in the last window.
        standing_out: A sentence for each number that stands out.
        judged: Whether enough numbers of all cells together are known to say which stand out.
        noise: The size of the noise compared with the numbers: `typical`, `half`, `lost` and `warning`; None without
            numbers.
    """

    kind: str
    meaning: str
    window: str
    window_start: str
    window_end: str
    latest: tuple[StatedNumber, ...]
    cells: int
    differences: tuple[StatedDifference, ...]
    standing_out: tuple[str, ...]
    judged: bool
    noise: Mapping[str, Any] | None

    @property
    def noisy(self) -> bool:
        """Whether the page marks the numbers as mostly noise."""
        return self.noise is not None and bool(self.noise["warning"])


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedQuery:
    """Numbers of one query with the same cells.

    Attributes:
        query: Name of the query.
        of: Kind of numbers: `ranges`, `quantiles` or the name of a marginal; empty for numbers of cells.
        label: Heading on the page.
        measured: What is measured, in sentences.
        coverage: What the intervals cover, and what they do not.
    """

    query: str
    of: str
    label: str
    measured: tuple[str, ...]
    coverage: str
    series: tuple[StatedSeries, ...]

    @property
    def name(self) -> str:
        """Name of the query, with the kind of numbers."""
        return f"{self.query}, {self.of}" if self.of else self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts that a report states about a release.

    Attributes:
        release: Name of the release.
        title: Title of the page.
        description, source, contact: Texts of the curator; empty without them.
        start, until: Start of the first and end of the last published window, UTC, in ISO 8601.
        windows: Number of published windows.
        window: Length of a window, in words.
        numbers: Number of published numbers.
        repeated: How many of them repeat those of the window before.
        epsilon, delta: Of the whole release.
        covers: What epsilon is for, in words.
        protects: Who is protected, and what the numbers hide, in words.
        queries: What is stated about each query.
        disclosure: Facts for approval, by their headings.
        found: Found keys by query and window of discovery, as the manifest lists them.
    """

    release: str
    title: str
    description: str
    source: str
    contact: str
    start: str
    until: str
    windows: int
    window: str
    numbers: int
    repeated: int
    epsilon: float
    delta: float
    covers: str
    protects: str
    queries: tuple[StatedQuery, ...]
    disclosure: Mapping[str, str]
    found: tuple[Mapping[str, Any], ...] = ()

    @property
    def series(self) -> list[tuple[StatedQuery, StatedSeries]]:
        """All series, each with its query."""
        return [(query, series) for query in self.queries for series in query.series]

    def to_json(self) -> dict[str, Any]:
        """Return the facts as a JSON document."""
        return asdict(self)
