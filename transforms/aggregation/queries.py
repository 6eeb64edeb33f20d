"""What the transforms need to know of a query: how to project a state, and where its sums go."""

from dataclasses import dataclass
from typing import Literal

from privacy.measure import Measure
from privacy.series import Family
from transforms.aggregation.expression import Condition

Scalar = str | int | bool
OTHER = "other"
"""The word in a list of cells that catches every value that is not listed, null among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A linear query over entries' states.

    Attributes:
        name: the query's name in what is published.
        measure: what is added up; `measure.fine` says on which grid.
        column: the state's column that is measured; None for counts.
        invalid: what null and NaN count as: nothing, or one of the bounds.
        where: which states satisfy the query; None for all.
        by: public keys with their listed values; a query has one cell for each combination.
        families: which families of nodes are released.
        consistent: whether released histograms are made non-negative with agreeing sums.
    """

    name: str
    measure: Measure
    column: str | None = None
    invalid: Literal["drop", "min", "max"] = "drop"
    where: Condition | None = None
    by: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()
    families: tuple[Family, ...] = ("net",)
    consistent: bool = False

    @property
    def cells(self) -> int:
        """How many cells the query has; at least one.

        >>> Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b", "other")), ("ok", (True,)))).cells
        3
        """
        cells = 1
        for _, values in self.by:
            cells *= len(values)
        return cells

    @property
    def columns(self) -> frozenset[str]:
        """State columns that the query reads."""
        read = {key for key, _ in self.by} | ({self.column} if self.column is not None else set())
        return frozenset(read | (self.where.columns if self.where is not None else set()))

    def cell_keys(self) -> list[tuple[Scalar, ...]]:
        """The key values of each cell, in cell order (the last key runs fastest)."""
        keys: list[tuple[Scalar, ...]] = [()]
        for _, values in self.by:
            keys = [(*prefix, value) for prefix in keys for value in values]
        return keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The windows of a run: window i = [start + (i - 1) * every, start + i * every), i = 1 .. windows.

    Index 0 stands for everything before `start`: the opening. Times are microseconds since the epoch, UTC.

    Attributes:
        windows: how many have closed, all told.
        released: how many of them earlier runs have released.

    >>> timeline = Timeline(start=100, every=10, windows=6, released=4)
    >>> timeline.closed, timeline.until
    (140, 160)
    """

    start: int
    every: int
    windows: int
    released: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.released <= self.windows:
            raise ValueError(f"released={self.released} must lie between 0 and windows={self.windows}")

    @property
    def until(self) -> int:
        return self.start + self.windows * self.every

    @property
    def closed(self) -> int:
        """Where this run begins: what happened before was due in an earlier one."""
        return self.start + self.released * self.every
