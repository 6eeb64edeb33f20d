"""Direct levels with a share of the budget for each window, from public weights that are known in advance.

Window t has a share s_t (privacy.strategies.window_budgets) and noise 1 / s_t times as wide as the part's. A unit that
moves its level by r moves it by r s_t in widths of that noise. Norms are counted in these widths:

    apart at w boundaries          L1 = r times the largest sum of s_t over w consecutive windows,
                                   squared L2 = r^2 times the largest sum of s_t^2: each of these levels, once
    everything that a unit does    as above, over all windows

Both are exact: shares are whole multiples of 2^-32, and the noise of a window is rounded upward. The largest sum of
shares is about 1, so that the part's noise is that of a window with the whole budget. Only levels are published, and
the initial level is not.

Guarantee and source: as for privacy.strategies.direct.direct, of which this is the case of unequal widths. The costs of
independent noise add up, in epsilon or rho, for any widths (privacy.noise.distributions).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least, positive
from privacy.counted import counted
from privacy.problems import RuleError
from privacy.series import Ints, Series
from privacy.states import States
from privacy.strategies.base import Carry, Floats, Nodes, SampleNodes, StepResult, within
from privacy.strategies.candidates import Candidate, Needs, StrategyTerms, whole
from privacy.strategies.choice import MOST_WEIGHTS, check_weights
from privacy.strategies.direct.levels import OfLevels
from privacy.strategies.window_budgets import WHOLE, Shares, best_shares, most, squared_error
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedLevels(OfLevels):
    """Strategy of direct levels with weights (privacy.strategies.base.Strategy).

    Attributes:
        windows: the horizon, None if the release has no end.
        worth: weights of the windows 1, 2, ...; the list repeats if there are more windows. Each window of a horizon
            has its own weight, up to `MOST_WEIGHTS` windows.
        shares: share of each window of the list.
    """

    kind: ClassVar[str] = "weighted_levels"
    variant: ClassVar[str] = "weights"
    initial: ClassVar[int] = 0
    windows: int | None
    worth: tuple[float, ...]
    shares: Shares

    def __post_init__(self) -> None:
        at_least("windows", self.windows, 1)
        at_least("shares", min(self.shares.parts, default=0), 1)
        check_weights(self.worth)
        positive("least", self.shares.least)
        if len(self.worth) != len(self.shares.parts) or max(self.shares.parts) > WHOLE:
            raise ValueError(f"shares: expected one for each of {len(self.worth)} weights, up to {WHOLE}")

    @property
    def parameters(self) -> dict[str, Any]:
        error = squared_error(self.worth, self.shares.parts)
        for_ever = self.windows is None or self.windows > len(self.worth)
        return {
            "weights": list(self.worth),
            "above_least": max(error / self.shares.least - 1, 0.0),
            "for_ever": for_ever,
        }

    def stretch(self, nodes: Nodes) -> Floats:
        each = _widths(self.shares.parts)
        found: Floats = each[(nodes.end - 1) % len(each)]
        return found

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: SampleNodes) -> StepResult:
        """Return the nodes and numbers that end with these leaves, and the next carry (`Strategy.step`)."""
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
        """Return the variance of each number in units of the part's noise, float64 [numbers] (`Strategy.variances`)."""
        return self.stretch(self.nodes(windows, since=since)) ** 2

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        """Return the sizes of the non-zero weights of nodes in each number, float64 [nodes] (`Strategy.weights`)."""
        return list(self.stretch(self.nodes(windows, since=since))[:, np.newaxis])

    def so_far(self, leaves: int) -> "WeightedLevels | None":
        return replace(self, windows=within(leaves, self.windows)) if leaves else None

    def most(self, boundaries: int, states: States) -> Fraction:
        """Return the norm of r times the shares of `boundaries` consecutive windows: L1, or squared L2."""
        parts = most(self.shares.parts, boundaries, self.windows, squared=states.squared)
        return Fraction(parts, WHOLE**2 if states.squared else WHOLE) * states.radius


@lru_cache(maxsize=16)
def _widths(parts: tuple[int, ...]) -> Floats:
    return np.array([above(Fraction(WHOLE, part)) for part in parts])


def weighted(asked: Needs, weights: tuple[float, ...]) -> Iterator[Candidate]:
    """Yield direct levels with weights for levels alone, if the protection covers finitely many windows."""
    windows = asked.horizon(1)
    among = windows if asked.boundaries is None else asked.boundaries
    if among is None or any(series.kind != "level" for series in asked.series):
        return
    repeated = windows is None or windows > MOST_WEIGHTS
    if windows is not None and not repeated:  # the first and the last windows are in fewer runs, and may have more
        weights = (weights * -(-windows // len(weights)))[:windows]
    shares = best_shares(weights, among, repeated=repeated, power=asked.power)
    yield whole(asked, WeightedLevels(windows=windows, worth=weights, shares=shares))


def weight_problems(weights: Sequence[float], terms: StrategyTerms) -> Iterator[RuleError]:
    """Yield the rules that weights of windows break."""
    for query in terms.published:
        if not query.levels:
            yield RuleError(f"weights are of levels by themselves; write publish: [level] in query {query.name}")
    if terms.windows is not None and len(weights) > terms.windows:
        yield RuleError(
            f"{counted(len(weights), 'weight')} for {counted(terms.windows, 'window')}; give one for each, or fewer "
            "that are repeated"
        )
    if terms.renewed:
        yield RuleError("weights are of states as they are; remove privacy.constraint.at_most")
    if terms.accounting == "paper":
        yield RuleError("privacy.accounting: paper charges each window separately and ignores weights; remove that")
