"""Toeplitz factorisations: a node a leaf, each a weighted sum of all leaves so far, with noise that decoding filters.

A factorisation sends the leaves x through a filter C of privacy.strategies.factorised_coefficients, publishes y + z
with y = C x and independent z, and levels and their differences from that: A C^-1 (y + z) = A x + A C^-1 z. A unit
that changes a few times moves C x little (privacy.strategies.factorised_energy,
privacy.strategies.factorised_certificate), and A C^-1 z stays small however many windows have closed. Where the initial
level is released it is the first element of the stream. A node is complete when its leaf is: no noise in advance.

Floating point carries nothing: y is an integer, a function of integer leaves in integer arithmetic, and gets integer
noise. Decoding is post-processing. Nodes are in steps of a leaf sum, so y is C x rounded, which costs a little
sensitivity (`Factorised.rounding`) and needs a fine grid, such as the 2^24 steps that Gaussian noise gets.

square_root, leaky, window: coefficients C_j = round(2^20 c_j), y = floor(sum_j C_j x_(t-j) / 2^20 + 1/2). The linear
    part is C / 2^20 exactly, non-increasing since rounding is monotone. For neighbours at x and x + z,
    floor(v + w) - floor(v) - w lies in (-1, 1): the nodes differ by (C / 2^20) z and less than a step each, and do not
    differ where C z is 0 because z is. The carry is as many past leaves as C has coefficients, and as many decoded
    ones: all of them for square_root and leaky, whose coefficients end with the schedule.

arma: c = sum_i u_i / (1 - t_i x), t_i = 1 - a_i / 2^b_i, integers u_i with sum 2^16, and a number of state for each i:

        s_i <- s_i - floor(a_i s_i / 2^b_i) + 2^8 x,    y = floor(sum_i u_i s_i / 2^24 + 1/2).

    Between neighbours s_i differs by the linear response to z, plus d_i with d_i <- t_i d_i + e, |e| < 1, so that
    |d_i| < 1 / (1 - t_i); e = 0 for t_i = 1 and t_i = 0. So the nodes differ by C z and at most
    1 + sum_i u_i / (2^24 (1 - t_i)) steps each, the sum over 0 < t_i < 1.

What is published is A x + A C^-1 z but for the roundings, at most as many steps times the sum of |A C^-1|. 64 bits hold
it all while no level exceeds 2^50 steps.

Proofs at length and sources: docs/proofs/strategies.md#rounding and #filters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.series import BEFORE_ALL, Ints, Series
from privacy.states import States
from privacy.strategies import factorised_apart
from privacy.strategies import factorised_coefficients as coefficients
from privacy.strategies.base import Carry, Floats, Moved, Nodes, Sample, Stepped
from privacy.strategies.choice import FORMS, Form
from privacy.strategies.factorised_filters import of_filter
from privacy.strategies.factorised_step import (
    BITS,
    GUARD,
    WEIGHT,
    Pole,
    back_by_coefficients,
    back_by_decays,
    boundaries,
    forward_by_leaves,
    forward_by_states,
    refuse_large,
)
from privacy.strategies.touched import Touched, at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Factorised:
    """A strategy (privacy.strategies.base); noise must be Gaussian, since the L1 sensitivity is large.

    Attributes:
        form: which filter.
        windows: the horizon; None, without end, for the window filter alone, since the others' nodes never forget.
        initial_level: whether the initial level is released.
        leak: 1 - lam of the leaky and the window filter, 0 for the other two.
        poles: of arma; the first is (0, 0, u), the level, the last (1, 0, u), the leaf alone.
        integers: 2^20 c, rounded, of a strategy that is settled; None: as form and leak give them here.

    >>> year = Factorised(form="leaky", windows=365, initial_level=True, leak=0.01)
    >>> year.leaves(30), len(year.coefficients)
    (31, 366)
    >>> year.variances(Series(kind="level"), 365).max().round(3)
    np.float64(2.137)
    """

    kind: ClassVar[str] = "factorised"
    sparse: ClassVar[bool] = False
    certifiable: ClassVar[bool] = True
    form: Form
    windows: int | None
    initial_level: bool
    leak: float = 0.0
    poles: tuple[Pole, ...] = ()
    integers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form={self.form!r} is not one of {', '.join(FORMS)}")
        if self.windows is not None:
            at_least("windows", self.windows, 1)
        elif self.form != "window":
            raise ValueError(f"a {self.form} factorisation needs an end of the release; window has none")
        if self.form in ("leaky", "window"):
            if not 0 < self.leak <= 1:
                raise ValueError(f"leak={self.leak} must be above 0 and at most 1")
        elif self.leak != 0:
            raise ValueError(f"leak={self.leak}: a {self.form} factorisation has none")
        if self.form == "arma":
            _check(self.poles)
        elif self.poles:
            raise ValueError(f"a {self.form} factorisation has no poles")
        if self.integers is not None:
            if self.form == "arma":
                raise ValueError("an arma factorisation has no coefficients of its own")
            if not self.integers or any(b > a for a, b in pairwise((2**BITS, *self.integers, 1))):
                raise ValueError("coefficients: from 2^20 at most down to 1 at least, and never rising")

    @property
    def name(self) -> str:
        return "factorised"

    @property
    def parameters(self) -> dict[str, Any]:
        if self.form == "arma":
            return {"form": self.form, "poles": [list(pole) for pole in self.poles]}
        return {"form": self.form} if self.form == "square_root" else {"form": self.form, "leak": self.leak}

    @property
    def variant(self) -> str:
        return self.form

    def node_name(self, series: Sequence[Series]) -> str:
        return ""

    def settled(self) -> "Factorised":
        return self if self.form == "arma" else replace(self, integers=tuple(_integers(self).tolist()))

    @property
    def coefficients(self) -> Floats:
        """Of the linear part of C, exactly: one for each leaf of the horizon, or, without end, all but zeros.

        After trailing zeros are cut there may be fewer.
        """
        if self.form == "arma":
            assert self.windows is not None
            return coefficients.exponentials(self.windows + int(self.initial_level), *_exponentials(self.poles))
        found: Floats = _integers(self) / 2**BITS
        return found

    def rounding(self, changes: int, steps: int) -> float:
        """How far rounding can move the nodes of one cell between neighbours, in L2, beyond the linear part.

        The sensitivity of C x in a cell plus this is that of the nodes. Over several cells or components, each moved
        by the same unit, take the root of the sum of squares.

        Args:
            changes: in how many leaves the unit can move the cell.
            steps: in one normalised unit, the largest of the component.

        >>> Factorised(form="square_root", windows=100, initial_level=False).rounding(3, 2**24) == 10 / 2**24
        True
        """
        if self.form != "arma":
            touched = changes * len(_integers(self))
            return math.sqrt(touched if self.windows is None else min(touched, self.leaves(self.windows))) / steps
        assert self.windows is not None
        slow = math.fsum(u * 2.0 ** (b - WEIGHT - GUARD) / a for a, b, u in self.poles if 0 < a < 2**b)
        return math.sqrt(self.leaves(self.windows)) * (1 + slow) / steps

    @property
    def in_advance(self) -> bool:
        return False

    @property
    def bounded(self) -> bool:
        return self.form in ("arma", "window")

    def leaves(self, windows: int) -> int:
        """How many leaves there are when so many windows have closed, the initial level among them if it is one."""
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"windows={windows} lie beyond the horizon of {self.windows}")
        return windows + int(self.initial_level)

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        first = 1 - int(self.initial_level) if since is None else since + 1
        ends = np.arange(first, self.leaves(windows) + 1 - int(self.initial_level), dtype=np.int64)
        return Nodes(layer=np.zeros_like(ends), begin=np.where(ends == 0, BEFORE_ALL, ends - 1), end=ends)

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: Sample) -> Stepped:
        """
        Raises:
            OverflowError: a leaf, or a level of arma, that 64 bits have no room for.
        """
        since, stop = None if carry is None else carry.windows, len(leaves) - 1
        if carry is None:
            leaves = leaves if self.initial_level else leaves[1:]
            carry = self._nothing(leaves.shape[1])
        else:
            stop = carry.windows + len(leaves)
        refuse_large(leaves)
        if self.form == "arma":
            nodes, states = forward_by_states(self.poles, carry.integers["states"], leaves)
            integers = {"states": states}
        else:
            nodes, history = forward_by_leaves(_integers(self), carry.integers["leaves"], leaves)
            integers = {"leaves": history}
        nodes = nodes + sample(self.nodes(stop, since=since))
        noisy, before = nodes.astype(np.float64), carry.floats["levels"]
        if self.form == "arma":
            levels, decays = back_by_decays(*_decays(self.poles), carry.floats["decays"], noisy)
            floats = {"decays": decays}
        else:
            levels, decoded = back_by_coefficients(self.coefficients, before[-1], carry.floats["decoded"], noisy)
            floats = {"decoded": decoded}
        if since is None and self.initial_level:  # the level at the start is the first one, not 0
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
        floats["levels"] = level(boundaries(stop, series))
        return nodes, tuple(numbers), Carry(windows=stop, integers=integers, floats=floats)

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        levels = len(boundaries(windows, series))
        if self.form == "arma":
            return len(self.poles) + len(self.poles) - 1 + levels
        return 2 * min(self.leaves(windows), len(_integers(self)) - 1) + levels

    def _nothing(self, cells: int) -> Carry:
        """Before the first leaf."""
        levels = np.zeros((1, cells))
        if self.form == "arma":
            states = np.zeros((len(self.poles), cells), dtype=np.int64)
            floats = {"decays": np.zeros((len(self.poles) - 1, cells)), "levels": levels}
            return Carry(windows=0, integers={"states": states}, floats=floats)
        leaves = np.zeros((0, cells), dtype=np.int64)
        return Carry(windows=0, integers={"leaves": leaves}, floats={"decoded": np.zeros((0, cells)), "levels": levels})

    def stretch(self, nodes: Nodes) -> None:
        return None

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        latest = self._latest(series, windows, since)
        found: Floats = np.cumsum(self._newest_first(series, windows) ** 2)[latest - 1]
        return found

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        newest_first = np.abs(self._newest_first(series, windows))
        return [newest_first[:latest] for latest in self._latest(series, windows, since)]

    def _latest(self, series: Series, windows: int, since: int) -> Ints:
        """How many leaves there are by each number's end."""
        return series.ends(windows)[len(series.ends(since)) :] + int(self.initial_level)

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        return ()

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        return Fraction(self._bounds(states, leaves, closely)[-1])

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        bounds = [Fraction(bound) for bound in self._bounds(states, at_most(changes), closely)[1:]]
        return bounds + bounds[-1:] * (changes - len(bounds))

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        """Any change moves all later nodes, in every cell that the unit was in; an endless filter forgets."""
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
        bound = factorised_apart.of_filter(
            self.coefficients,
            leaves=self._leaves,
            initial_level=self.initial_level,
            boundaries=boundaries,
            radius=states.radius,
            on_a_line=bool(states.hulls),
        )
        return Fraction(bound)

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
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
        return replace(self, windows=max(leaves, 1))  # an initial level comes before the first leaf closes

    @property
    def _leaves(self) -> int | None:
        """All of the horizon, the initial level among them where it is released."""
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
        """The weight of the noise of each leaf in a number, from the leaf at its end back."""
        if self.leaves(windows) == 0:
            return np.zeros(0)
        level = _response(self, self.leaves(windows))
        if series.kind == "level":
            return level
        before = np.pad(level, (series.width, 0))[: len(level)]
        return level - before


def _check(poles: tuple[Pole, ...]) -> None:
    if len(poles) < 2 or poles[0][:2] != (0, 0) or poles[-1][:2] != (1, 0):
        raise ValueError("poles: at least two, the first (0, 0, weight), the last (1, 0, weight)")
    if any(not (0 < a < 2**8 and 0 <= b <= 40) for a, b, _ in poles[1:]):
        raise ValueError("poles: (a, b, weight) with 0 < a < 2^8 and 0 <= b <= 40")
    gaps = [a / 2.0**b for a, b, _ in poles]
    if any(after <= gap for gap, after in pairwise(gaps)):
        raise ValueError("poles: a / 2^b must rise from 0 to 1")
    if any(u < 1 for _, _, u in poles) or sum(u for _, _, u in poles) != 2**WEIGHT:
        raise ValueError("poles: weights are positive with sum 2^16")


def _exponentials(poles: tuple[Pole, ...]) -> tuple[Floats, Floats]:
    """Weights u_i and gaps 1 - t_i."""
    return (
        np.array([u / 2.0**WEIGHT for _, _, u in poles]),
        np.array([a / 2.0**b for a, b, _ in poles]),
    )


@lru_cache(maxsize=16)
def _decays(poles: tuple[Pole, ...]) -> tuple[Floats, Floats]:
    """Weights and gaps of what undoes the exponentials."""
    return coefficients.decays(*_exponentials(poles))


@lru_cache(maxsize=16)
def _integers(factorised: Factorised) -> Ints:
    """2^20 c, rounded, without trailing zeros."""
    if factorised.integers is not None:  # of the first of so many windows, if a shorter release is asked about
        count = None if factorised.windows is None else factorised.leaves(factorised.windows)
        return np.array(factorised.integers[:count])
    if factorised.windows is not None:
        count = factorised.windows + int(factorised.initial_level)
    else:
        # c_j <= (1 - leak)^j <= exp(-j leak), which from here on rounds to 0.
        count = 1 + math.ceil((BITS + 1) * math.log(2) / factorised.leak)
    if factorised.form == "leaky":
        real = coefficients.leaky(count, factorised.leak)
    else:
        real = coefficients.window(count, factorised.leak)
    return np.trim_zeros(np.rint(real * 2**BITS).astype(np.int64), "b")


@lru_cache(maxsize=16)
def _response(factorised: Factorised, leaves: int) -> Floats:
    """Weights of the nodes in a level, newest first."""
    if factorised.form == "arma":
        return coefficients.exponentials(leaves, *_decays(factorised.poles))
    rounds = 1 << (leaves - 1).bit_length()  # Newton's, whole ones, so that they round alike in any run
    real = factorised.coefficients[:rounds]
    return coefficients.response(np.pad(real, (0, rounds - len(real))))[:leaves]
