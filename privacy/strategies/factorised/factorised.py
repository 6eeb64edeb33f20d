"""Toeplitz factorisations: a node for each leaf, a weighted sum of all leaves so far, with noise that decoding filters.

A factorisation sends the leaves x through a filter C of privacy.strategies.factorised.coefficients, publishes y + z
with y = C x and independent z, and levels and their differences from that: A C^-1 (y + z) = A x + A C^-1 z. A unit
that changes a few times moves C x little (privacy.strategies.factorised.energy,
privacy.strategies.factorised.certificate), and A C^-1 z stays small however many windows have closed. Where the initial
level is released it is the first element of the stream. A node is complete when its leaf is: no noise is sampled ahead.

No guarantee depends on floating point: y is an integer, a function of integer leaves in integer arithmetic, and
gets integer noise. Decoding is post-processing. Nodes are in steps of a leaf sum, so y is C x rounded, which costs a
little sensitivity (`Factorised.rounding`) and needs a fine grid, such as the 2^24 steps that Gaussian noise gets.

The kernels privacy.strategies.factorised.coefficient_kernel and privacy.strategies.factorised.exponential_kernel state
the cost of rounding.

Published numbers are A x + A C^-1 z, except for rounding: at most as many steps times the sum of |A C^-1|. All values
fit in 64 bits while no level exceeds 2^61 steps, or 2^53 with all guard bits.

Proofs at length and sources: docs/proofs/strategies.md#rounding and #filters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.series import BEFORE_ALL, Ints, Series
from privacy.states import States
from privacy.strategies.base import Carry, Floats, Moved, Nodes, SampleNodes, StepResult
from privacy.strategies.factorised import apart as in_span
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.exponential_kernel import Exponentials
from privacy.strategies.factorised.filters import of_filter
from privacy.strategies.factorised.step import boundaries, refuse_large
from privacy.touched import Touched, at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Factorised:
    """A strategy (privacy.strategies.base); noise must be Gaussian, since the L1 sensitivity is large.

    Attributes:
        kernel: the filter.
        windows: the horizon; None, without an end, only for an endless kernel.
        initial_level: whether the initial level is released.

    >>> year = Factorised(kernel=Coefficients(leak=0.01), windows=365, initial_level=True)
    >>> year.leaves(30), len(year.coefficients)
    (31, 366)
    >>> year.variances(Series(kind="level"), 365).max().round(3)
    np.float64(2.137)
    """

    kind: ClassVar[str] = "factorised"
    name: ClassVar[str] = "factorised"
    in_advance: ClassVar[bool] = False
    disjoint_layers: ClassVar[tuple[int, ...]] = ()
    sparse: ClassVar[bool] = False
    of_levels: ClassVar[bool] = False
    summed_levels: ClassVar[bool] = False
    certifiable: ClassVar[bool] = True
    kernel: Coefficients | Exponentials
    windows: int | None
    initial_level: bool

    def __post_init__(self) -> None:
        if self.windows is not None:
            at_least("windows", self.windows, 1)
        elif not self.kernel.endless:
            raise ValueError(f"a {self.kernel.form} factorisation needs an end of the release; window has none")

    @property
    def parameters(self) -> dict[str, Any]:
        return self.kernel.parameters

    @property
    def variant(self) -> str:
        return self.kernel.form

    def node_name(self, series: Sequence[Series]) -> str:
        return ""

    def settled(self) -> "Factorised":
        return replace(self, kernel=self.kernel.settled(self._leaves))

    @property
    def coefficients(self) -> Floats:
        """Coefficients of the linear part of C, exactly, float64 [n].

        There is one for each leaf of the horizon; without an end, or if trailing zeros were cut, fewer.
        """
        return self.kernel.coefficients(self._leaves)

    def rounding(self, changes: int, steps: int) -> float:
        """Return how far rounding can move the nodes of one cell between neighbours, in L2, beyond the linear part.

        The sensitivity of the nodes is that of C x in a cell plus this. Over several cells or components that the same
        unit moves, take the root of the sum of squares.

        Args:
            changes: number of leaves in which the unit can move the cell.
            steps: grid steps in one normalised unit, the largest of the components.

        >>> Factorised(kernel=Coefficients(), windows=100, initial_level=False).rounding(3, 2**24) == 10 / 2**24
        True
        """
        return self.kernel.rounding(changes, self._leaves) / steps

    @property
    def bounded(self) -> bool:
        return self.kernel.bounded

    def leaves(self, windows: int) -> int:
        """Return the number of leaves when `windows` windows have closed, including the initial level if it is one."""
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"windows={windows} lie beyond the horizon of {self.windows}")
        return windows + int(self.initial_level)

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        first = 1 - int(self.initial_level) if since is None else since + 1
        ends = np.arange(first, self.leaves(windows) + 1 - int(self.initial_level), dtype=np.int64)
        return Nodes(layer=np.zeros_like(ends), begin=np.where(ends == 0, BEFORE_ALL, ends - 1), end=ends)

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: SampleNodes) -> StepResult:
        """Return the nodes and numbers that end with these leaves, and the next carry (`Strategy.step`).

        Args:
            carry: carry of the previous step; None in the first step, where row 0 of `leaves` is the initial level.
            leaves: int64 [rows, cells], in steps of a leaf sum.
            series: the published series, equal in all steps.
            sample: returns fresh noise for nodes, int64 [nodes, cells].

        Raises:
            OverflowError: a leaf, or a level of arma, exceeds the range of 64 bits.
        """
        since, stop = None if carry is None else carry.windows, len(leaves) - 1
        if carry is None:
            leaves = leaves if self.initial_level else leaves[1:]
            integers, floats = self.kernel.start(leaves.shape[1])
            before = np.zeros((1, leaves.shape[1]))
        else:
            stop = carry.windows + len(leaves)
            integers, floats, before = carry.integers, carry.floats, carry.floats["levels"]
        refuse_large(leaves)
        nodes, integers = self.kernel.forward(integers, leaves, self._leaves)
        nodes = nodes + sample(self.nodes(stop, since=since))
        levels, floats = self.kernel.back(floats, before[-1], nodes.astype(np.float64), self._leaves)
        if since is None and self.initial_level:  # the first level is the initial level, not 0
            before, levels = levels[:1], levels[1:]
        at, start = boundaries(since or 0, series), since or 0
        known, levels = np.append(at, np.arange(start + 1, stop + 1)), np.concatenate([before, levels])

        def level(places: Ints) -> Floats:
            return levels[np.searchsorted(known, places)]

        numbers = []
        for one in series:
            earlier = len(one.ends(start))
            ends = level(one.ends(stop)[earlier:])
            numbers.append(ends if one.kind == "level" else ends - level(one.begins(stop)[earlier:]))
        floats = {**floats, "levels": level(boundaries(stop, series))}
        return nodes, tuple(numbers), Carry(windows=stop, integers=integers, floats=floats)

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        return self.kernel.remembered(self.leaves(windows), self._leaves) + len(boundaries(windows, series))

    def stretch(self, nodes: Nodes) -> None:
        return None

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        """Return the variance of each number in units of one node's, float64 [numbers] (`Strategy.variances`)."""
        latest = self._latest(series, windows, since)
        found: Floats = np.cumsum(self._newest_first(series, windows) ** 2)[latest - 1]
        return found

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        """Return the sizes of the non-zero weights of nodes in each number, float64 [nodes] (`Strategy.weights`)."""
        newest_first = np.abs(self._newest_first(series, windows))
        return [newest_first[:latest] for latest in self._latest(series, windows, since)]

    def _latest(self, series: Series, windows: int, since: int) -> Ints:
        """Return the number of leaves by each number's end."""
        return series.ends(windows)[len(series.ends(since)) :] + int(self.initial_level)

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        """Return a bound for the nodes that one entry moves (`Strategy.norm`)."""
        return Fraction(self._bounds(states, leaves, closely)[-1])

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        """Return `norm` for entries of 1, 2, ..., `changes` changes at any leaves."""
        bounds = [Fraction(bound) for bound in self._bounds(states, at_most(changes), closely)[1:]]
        return bounds + bounds[-1:] * (changes - len(bounds))

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        """Return the bounds of a unit's effect on nodes that norms do not state (`Strategy.moved`).

        Any change moves all later nodes, in every cell that the unit was in; nodes of an endless filter forget.
        """
        changes = leaves.appearing
        if not shared:
            changes = leaves.nodes(1, math.inf if self._leaves is None else self._leaves).appearing
            changes += int(self.initial_level and leaves.in_a_row)
        visited = min(cells, (changes + 1) * each)
        if self._leaves is None:
            coordinates = changes * min(cells, 2 * each) * len(largest) * len(self.coefficients)
        else:
            coordinates = self._leaves * visited * len(largest)
        rounding = math.sqrt(visited * math.fsum(self.rounding(changes, steps) ** 2 for steps in largest))
        return Moved(nodes=1, coordinates=coordinates, rounding=rounding)

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        bound = in_span.of_filter(
            self.coefficients,
            leaves=self._leaves,
            initial_level=self.initial_level,
            boundaries=boundaries,
            radius=states.radius,
            on_a_line=bool(states.hulls),
        )
        return Fraction(bound)

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        """Return the bounds of the effect of a unit that differs at boundaries (`Strategy.moved_apart`)."""
        touched = Touched(boundaries + 1, boundaries + 1, in_a_row=True)
        visited = min(cells, entries * boundaries * each)
        if self._leaves is None:
            each = min(cells, 2 * entries * each)
            coordinates = (boundaries + 1) * each * len(largest) * len(self.coefficients)
        else:
            coordinates = self._leaves * visited * len(largest)
        rounding = math.sqrt(visited * math.fsum(self.rounding(touched.appearing, steps) ** 2 for steps in largest))
        return Moved(nodes=1, coordinates=coordinates, rounding=rounding)

    def so_far(self, leaves: int) -> "Factorised | None":
        """C is lower-triangular and Toeplitz: its first rows are those of a shorter one with the same coefficients."""
        if leaves == 0 and not self.initial_level:
            return None
        return replace(self, windows=max(leaves, 1))  # the initial level comes before the first leaf

    @property
    def _leaves(self) -> int | None:
        """Number of leaves of the horizon, including the initial level if it is released."""
        return None if self.windows is None else self.leaves(self.windows)

    def _bounds(self, states: States, leaves: Touched, closely: bool) -> list[float]:
        return of_filter(
            self.coefficients,
            leaves=self._leaves,
            initial_level=self.initial_level,
            touched=leaves,
            states=states,
            closely=closely,
        )

    def _newest_first(self, series: Series, windows: int) -> Floats:
        """Return the weight of the noise of each leaf in a number, backwards from the leaf at its end."""
        if self.leaves(windows) == 0:
            return np.zeros(0)
        level = self.kernel.response(self.leaves(windows), self._leaves)
        if series.kind == "level":
            return level
        before = np.pad(level, (series.width, 0))[: len(level)]
        return level - before
