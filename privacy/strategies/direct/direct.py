"""Direct levels: every level is a node, and each published number is a node or the difference of two nodes.

A unit moves every level while it is present. So this strategy suits a protected span of time, which contains few levels
(privacy.planning.sensitivity_in_span), and releases of few windows. All other strategies add up changes, and a change
moves fewer nodes.

    apart at w boundaries          L1 = w r, squared L2 = w r^2: each of these levels, once
    everything that a unit does    L1 = (n + 1) r, squared L2 = (n + 1) r^2: every level of n windows and the first

A node's noise is sampled when the node is published, never in advance. The carry holds the exact level, and the noisy
levels at which open numbers begin.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.problems import RuleError
from privacy.series import Ints, Series
from privacy.states import States
from privacy.strategies.base import Carry, Floats, Nodes, SampleNodes, StepResult, within
from privacy.strategies.candidates import Candidate, Needs, Offer, StrategyTerms, whole
from privacy.strategies.choice import Choice
from privacy.strategies.direct.levels import OfLevels
from privacy.strategies.direct.weighted import weight_problems, weighted


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct(OfLevels):
    """Strategy of direct levels (privacy.strategies.base.Strategy); `windows` is the horizon, None without an end.

    >>> year = Direct(windows=365)
    >>> year.variances(Series(kind="level"), 3).tolist(), year.variances(Series(kind="change"), 3).tolist()
    ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    """

    kind: ClassVar[str] = "direct"
    parameters: ClassVar[dict[str, Any]] = {}
    variant: ClassVar[str] = ""
    initial: ClassVar[int] = 1
    summed_levels: ClassVar[bool] = True
    windows: int | None

    def __post_init__(self) -> None:
        at_least("windows", self.windows, 1)

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: SampleNodes) -> StepResult:
        """Return the nodes and numbers that end with these leaves, and the next carry (`Strategy.step`)."""
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
        return 1 + len(_open(within(windows, self.windows), series))

    def stretch(self, nodes: Nodes) -> None:
        return None

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        """Return the variance of each number in units of one node's, float64 [numbers] (`Strategy.variances`)."""
        return np.full(self._numbers(series, windows, since), 1.0 if series.kind == "level" else 2.0)

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        """Return the sizes of the non-zero weights of nodes in each number, float64 [nodes] (`Strategy.weights`)."""
        held = np.broadcast_to(1.0, 1 if series.kind == "level" else 2)
        return [held] * self._numbers(series, windows, since)

    def most(self, boundaries: int, states: States) -> Fraction:
        return self.apart(boundaries) * states.radius

    def so_far(self, leaves: int) -> "Direct | None":
        return replace(
            self, windows=max(within(leaves, self.windows), 1)
        )  # the first level comes before the first leaf closes

    def _numbers(self, series: Series, windows: int, since: int) -> int:
        return len(series.ends(within(windows, self.windows))) - len(series.ends(since))


def _open(windows: int, series: Sequence[Series]) -> Ints:
    """Return the boundaries at which open numbers begin, increasing."""
    found: Ints = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.open_begins(windows) for one in series)]))
    return found


def _candidates(asked: Needs) -> Iterator[Candidate]:
    """Yield direct levels for a span; if everything that a unit does is protected, only on request and with an end."""
    horizon = asked.horizon(asked.leaf)
    if asked.choice.weights is not None:
        yield from weighted(asked, asked.choice.weights)
        return
    if asked.in_span or (asked.choice.name == "direct" and horizon is not None):
        yield whole(asked, Direct(windows=horizon))


def _problems(choice: Choice, terms: StrategyTerms) -> Iterator[RuleError]:
    if terms.windows is None and terms.everything:
        yield RuleError("levels without an end; add schedule.until or privacy.protects: {span: 14d}, or use auto")
    if choice.weights is not None:
        yield from weight_problems(choice.weights, terms)


DIRECT = Offer(sparse=Direct.sparse, candidates=_candidates, problems=_problems, finds_keys=True)
