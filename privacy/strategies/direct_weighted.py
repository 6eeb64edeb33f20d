"""Levels by themselves, each with a share of the budget of its own: what a window is worth is public, and known before.

Window t has a share s_t (privacy.strategies.window_budgets) and noise 1 / s_t times as wide as the part's. A unit that
moves its level by r moves it by r s_t of that noise's widths, and this is what norms count here:

    apart at w boundaries          L1 = r times the most that w windows in a row have of s_t, squared L2 = r^2 times
                                   that of s_t^2: each of these levels, once
    everything that a unit does    the same of all windows

Both are exact: shares are whole parts of 2^32, and the noise of a window is rounded upward. The most of shares is about
1, so that the part's noise is that of a window with all of the budget. Nothing but levels is published, and so no level
at the start.

Guarantee and source: as of privacy.strategies.direct, of which this is the case of unequal widths; what independent
noise costs adds up, epsilon or rho, whatever its widths (privacy.noise.distributions).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least, positive
from privacy.series import BEFORE_ALL, Ints, Series
from privacy.states import States
from privacy.strategies.base import Carry, Floats, Moved, Nodes, Sample, Stepped
from privacy.strategies.candidates import Asked, Candidate, whole
from privacy.strategies.choice import MOST_WEIGHTS, check_weights
from privacy.strategies.touched import Touched
from privacy.strategies.window_budgets import WHOLE, Shares, best_shares, most, squared_error
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedLevels:
    """A strategy, see privacy.strategies.base.Strategy.

    Attributes:
        windows: the horizon, None if there is none.
        worth: the weights of the windows 1, 2, ...; where there are more windows, from the first one again. All windows
            of a horizon have their own, unless they are very many.
        shares: of each window of the list.
    """

    kind: ClassVar[str] = "weighted_levels"
    sparse: ClassVar[bool] = True
    certifiable: ClassVar[bool] = False
    windows: int | None
    worth: tuple[float, ...]
    shares: Shares

    def __post_init__(self) -> None:
        if self.windows is not None:
            at_least("windows", self.windows, 1)
        at_least("shares", min(self.shares.parts, default=0), 1)
        check_weights(self.worth)
        positive("least", self.shares.least)
        if len(self.worth) != len(self.shares.parts) or max(self.shares.parts) > WHOLE:
            raise ValueError(f"shares: expected one for each of {len(self.worth)} weights, up to {WHOLE}")

    @property
    def name(self) -> str:
        return "direct"

    @property
    def parameters(self) -> dict[str, Any]:
        error = squared_error(self.worth, self.shares.parts)
        for_ever = self.windows is None or self.windows > len(self.worth)
        return {
            "weights": list(self.worth),
            "above_least": max(error / self.shares.least - 1, 0.0),
            "for_ever": for_ever,
        }

    @property
    def variant(self) -> str:
        return "weights"

    def node_name(self, series: Sequence[Series]) -> str:
        return ""

    @property
    def in_advance(self) -> bool:
        return False

    def settled(self) -> "WeightedLevels":
        return self

    @property
    def bounded(self) -> bool:
        return True

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        end = np.arange((since or 0) + 1, self._within(windows) + 1, dtype=np.int64)
        return Nodes(layer=np.zeros_like(end), begin=np.full_like(end, BEFORE_ALL), end=end)

    def stretch(self, nodes: Nodes) -> Floats:
        each = _widths(self.shares.parts)
        found: Floats = each[(nodes.end - 1) % len(each)]
        return found

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: Sample) -> Stepped:
        if carry is None:
            start, level, rows = 0, leaves[:1], leaves[1:]
        else:
            start, level, rows = carry.windows, carry.integers["level"], leaves
        stop = start + len(rows)
        levels = level + np.cumsum(rows, axis=0)
        nodes = levels + sample(self.nodes(stop, since=start))
        last = levels[-1:] if len(levels) else level
        carry = Carry(windows=stop, integers={"level": last.copy()}, floats={})
        return nodes, tuple(nodes.astype(np.float64) for _ in series), carry

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        return 1

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        return self.stretch(self.nodes(windows, since=since)) ** 2

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        return list(self.stretch(self.nodes(windows, since=since))[:, np.newaxis])

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        return ()

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        return self._most(self._all, states)

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        return [self._most(self._all, states)] * changes

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        visited = min(cells, leaves.appearing * each) if shared else each
        return Moved(nodes=self._all, coordinates=self._all * visited * len(largest))

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        return self._most(boundaries, states)

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        nodes = boundaries if self.windows is None else min(boundaries, self.windows)
        return Moved(nodes=nodes, coordinates=nodes * min(cells, entries * each) * len(largest))

    def so_far(self, leaves: int) -> "WeightedLevels | None":
        return replace(self, windows=self._within(leaves)) if leaves else None

    def _most(self, boundaries: int, states: States) -> Fraction:
        """The norm of r times the shares of so many windows in a row: L1, or squared L2."""
        parts = most(self.shares.parts, boundaries, self.windows, squared=states.squared)
        return Fraction(parts, WHOLE**2 if states.squared else WHOLE) * states.radius

    @property
    def _all(self) -> int:
        if self.windows is None:
            raise ValueError("direct: without an end, whoever stays moves levels without end; protect a span of time")
        return self.windows

    def _within(self, windows: int) -> int:
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"{windows} windows are more than the horizon of {self.windows}")
        return windows


@lru_cache(maxsize=16)
def _widths(parts: tuple[int, ...]) -> Floats:
    return np.array([above(Fraction(WHOLE, part)) for part in parts])


def weighted(asked: Asked, weights: tuple[float, ...]) -> Iterator[Candidate]:
    """For levels alone, under a protection that is of some windows: a span's, or all of a release with an end."""
    windows = asked.horizon(1)
    among = windows if asked.boundaries is None else asked.boundaries
    if among is None or any(series.kind != "level" for series in asked.series):
        return
    repeated = windows is None or windows > MOST_WEIGHTS
    if windows is not None and not repeated:  # the first and the last windows are in fewer runs, and may have more
        weights = (weights * -(-windows // len(weights)))[:windows]
    shares = best_shares(weights, among, repeated=repeated, power=asked.power)
    yield whole(asked, WeightedLevels(windows=windows, worth=weights, shares=shares))
