"""Levels by themselves: every level is a node of its own, and what is published is a node or the difference of two.

A unit moves every level while it is there. So this is for what protects a span of time, which holds few levels
(privacy.planning.sensitivity_in_span), and for few windows: all else adds up changes, and a change moves fewer nodes.

    apart at w boundaries          L1 = w r, squared L2 = w r^2: each of these levels, once
    everything that a unit does    L1 = (n + 1) r, squared L2 = (n + 1) r^2: every level of n windows and the first

A node's noise is sampled when it is published: none in advance. What is carried is the exact level and the noisy levels
where numbers begin that have not ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.series import BEFORE_ALL, Ints, Series
from privacy.states import States
from privacy.strategies.base import Carry, Floats, Moved, Nodes, Sample, Stepped
from privacy.strategies.candidates import Asked, Candidate, Offer, whole
from privacy.strategies.direct_weighted import weighted
from privacy.strategies.touched import Touched


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """A strategy, see privacy.strategies.base.Strategy. `windows` is the horizon, None if there is none.

    >>> year = Direct(windows=365)
    >>> year.variances(Series(kind="level"), 3).tolist(), year.variances(Series(kind="change"), 3).tolist()
    ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    """

    kind: ClassVar[str] = "direct"
    sparse: ClassVar[bool] = True
    certifiable: ClassVar[bool] = False
    windows: int | None

    def __post_init__(self) -> None:
        if self.windows is not None:
            at_least("windows", self.windows, 1)

    @property
    def name(self) -> str:
        return "direct"

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    @property
    def variant(self) -> str:
        return ""

    def node_name(self, series: Sequence[Series]) -> str:
        return ""

    @property
    def in_advance(self) -> bool:
        return False

    def settled(self) -> "Direct":
        return self

    @property
    def bounded(self) -> bool:
        return True

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        end = np.arange(0 if since is None else since + 1, self._within(windows) + 1, dtype=np.int64)
        return Nodes(layer=np.zeros_like(end), begin=np.full_like(end, BEFORE_ALL), end=end)

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: Sample) -> Stepped:
        if carry is None:
            start, since = 0, None
            level, known, at = np.zeros_like(leaves, shape=(1, leaves.shape[1])), leaves[:0], _open(0, ())
        else:
            start = since = carry.windows
            level, known, at = carry.integers["level"], carry.integers["noisy"], _open(start, series)
        stop = start + len(leaves) - int(carry is None)
        own = self.nodes(stop, since=since)
        levels = level + np.cumsum(leaves, axis=0)
        nodes = levels + sample(own)
        at, known = np.concatenate([at, own.end]), np.concatenate([known, nodes])
        numbers = []
        for one in series:
            first = len(one.ends(start))
            number = known[np.searchsorted(at, one.ends(stop)[first:])]
            if one.kind != "level":
                number = number - known[np.searchsorted(at, one.begins(stop)[first:])]
            numbers.append(number.astype(np.float64))
        last = levels[-1:] if len(levels) else level
        integers = {"level": last.copy(), "noisy": known[np.searchsorted(at, _open(stop, series))]}
        return nodes, tuple(numbers), Carry(windows=stop, integers=integers, floats={})

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        return 1 + len(_open(self._within(windows), series))

    def stretch(self, nodes: Nodes) -> None:
        return None

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        return np.full(self._numbers(series, windows, since), 1.0 if series.kind == "level" else 2.0)

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        held = np.broadcast_to(1.0, 1 if series.kind == "level" else 2)
        return [held] * self._numbers(series, windows, since)

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        return ()

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        return self._all * states.radius

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        return [self._all * states.radius] * changes

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        visited = min(cells, leaves.appearing * each) if shared else each
        return Moved(nodes=self._all, coordinates=self._all * visited * len(largest))

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        return self._apart(boundaries) * states.radius

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        nodes = self._apart(boundaries)
        return Moved(nodes=nodes, coordinates=nodes * min(cells, entries * each) * len(largest))

    def so_far(self, leaves: int) -> "Direct | None":
        return replace(self, windows=max(self._within(leaves), 1))  # the first level comes before the first leaf closes

    @property
    def _all(self) -> int:
        if self.windows is None:
            raise ValueError("direct: without an end, whoever stays moves levels without end; protect a span of time")
        return self.windows + 1

    def _apart(self, boundaries: int) -> int:
        return boundaries if self.windows is None else min(boundaries, self.windows + 1)

    def _numbers(self, series: Series, windows: int, since: int) -> int:
        return len(series.ends(self._within(windows))) - len(series.ends(since))

    def _within(self, windows: int) -> int:
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"{windows} windows are more than the horizon of {self.windows}")
        return windows


def _open(windows: int, series: Sequence[Series]) -> Ints:
    """Where numbers begin that have not ended, increasing."""
    found: Ints = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.open_begins(windows) for one in series)]))
    return found


def _candidates(asked: Asked) -> Iterator[Candidate]:
    """Where all that a unit does is protected only if the spec says so, and not without an end."""
    horizon = asked.horizon(asked.leaf)
    if asked.choice.weights is not None:
        yield from weighted(asked, asked.choice.weights)
        return
    if asked.in_span or (asked.choice.name == "direct" and horizon is not None):
        yield whole(asked, Direct(windows=horizon))


DIRECT = Offer(
    sparse=Direct.sparse,
    candidates=_candidates,
    lacking="it needs an end of the schedule, or a span that is protected; weights are of levels alone",
)
