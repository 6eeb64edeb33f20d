"""Direct sliding windows (SWCR): every sliding window is a node of its own, and a published number is one node.

Sliding windows overlap, so a change lies in up to ceil(width / every) nodes: against a tree on the windows this pays
off where few overlap.
Source: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", section 4.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.exact import Json, Members
from privacy.series import Ints, Series, totals
from privacy.strategies.base import Floats, Nodes


@dataclass(frozen=True, slots=True)
class Carry:
    """How many windows have closed, and the leaves of the last of them, at most width - 1: [rows, cells]."""

    windows: int
    last: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """A strategy, see privacy.strategies.base.Strategy; `width` and `every` in windows, as in privacy.series.Series.

    It publishes that series alone. `windows` is the horizon, None if there is none.

    >>> weekly = Direct(width=7, every=7, windows=None)
    >>> weekly.draws(30)
    4
    """

    kind: ClassVar[str] = "sliding"
    width: int
    every: int
    windows: int | None

    def __post_init__(self) -> None:
        at_least("width", self.width, 1)
        at_least("every", self.every, 1)
        if self.windows is not None:
            at_least("windows", self.windows, self.width)

    @property
    def name(self) -> str:
        return "sliding"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"width": self.width, "every": self.every}

    @property
    def in_advance(self) -> bool:
        return False

    def to_json(self, *, exactly: bool) -> Json:
        return {"width": self.width, "every": self.every, "windows": self.windows}

    @staticmethod
    def from_json(told: Members) -> "Direct":
        return Direct(width=told.count("width"), every=told.count("every"), windows=told.optional_count("windows"))

    def draws(self, windows: int) -> int:
        return len(self._ends(windows))

    def nodes(self, windows: int) -> Nodes:
        ends = self._ends(windows)
        return Nodes(layer=np.zeros_like(ends), begin=ends - self.width, end=ends)

    def advance(self, carry: Carry | None, leaves: Ints) -> tuple[Ints, Carry]:
        if carry is None:  # row 0 is the opening, which no sliding window holds
            carry, leaves = Carry(0, leaves[:0]), leaves[1:]
        windows = carry.windows + len(leaves)
        rows = np.concatenate([carry.last, leaves])
        since = np.concatenate([np.zeros_like(rows, shape=(1, rows.shape[1])), np.cumsum(rows, axis=0)])
        ends = self._ends(windows)
        ends = ends[ends > carry.windows] - (carry.windows - len(carry.last))
        return since[ends] - since[ends - self.width], Carry(windows, rows[max(0, len(rows) - self.width + 1) :].copy())

    def publish(self, series: Series, leaves: Ints, noise: Ints) -> Floats:
        self._own(series)
        exact = totals(series, leaves)
        if len(noise) != len(exact):
            raise ValueError(f"{len(noise)} rows of noise for {len(exact)} draws")
        told: Floats = (exact + noise).astype(np.float64)
        return told

    def variances(self, series: Series, windows: int) -> Floats:
        self._own(series)
        return np.ones(self.draws(windows))

    def weights(self, series: Series, windows: int) -> list[Floats]:
        self._own(series)
        return [np.broadcast_to(1.0, 1)] * self.draws(windows)

    def _own(self, series: Series) -> None:
        if (series.kind, series.width, series.every) != ("sliding", self.width, self.every):
            raise ValueError(f"sliding windows of {self.width} every {self.every} hold no other numbers than their own")

    def _ends(self, windows: int) -> Ints:
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"{windows} windows are more than the horizon of {self.windows}")
        return Series(kind="sliding", width=self.width, every=self.every).ends(windows)
