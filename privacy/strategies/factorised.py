"""Toeplitz factorisations: a node a leaf, each a weighted sum of all leaves so far, with noise that decoding filters.

A factorisation sends the leaves x through a filter C of privacy.strategies.factorised_coefficients, tells y + z with y
= C x and independent z, and publishes levels and their differences from that: A C^-1 (y + z) = A x + A C^-1 z. A unit
that changes a few times moves C x little (privacy.strategies.factorised_energy,
privacy.strategies.factorised_certificate), and A C^-1 z stays small however many windows have closed. Where the opening
is released it is the first element of the stream. A node is complete when its leaf is: no draws in advance.

Floating point carries nothing: y is an integer, a function of integer leaves in integer arithmetic, and gets integer
noise. Decoding is post-processing. Nodes are in steps of a leaf sum, so y is C x rounded, which costs a little
sensitivity (`Factorised.rounding`) and needs a fine grid, such as the 2^24 steps that Gaussian noise gets.

square_root, leaky, window: coefficients C_j = round(2^20 c_j), y = floor(sum_j C_j x_(t-j) / 2^20 + 1/2). The linear
    part is C / 2^20 exactly, non-increasing since rounding is monotone. For neighbours at x and x + z,
    floor(v + w) - floor(v) - w lies in (-1, 1): the nodes differ by (C / 2^20) z and less than a step each, and do not
    differ where C z is 0 because z is. The state is as many past leaves as C has coefficients.

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
from privacy.exact import Json, Members
from privacy.series import BEFORE_ALL, Ints, Series
from privacy.states import States
from privacy.strategies import factorised_coefficients as coefficients
from privacy.strategies.base import Floats, Moved, Nodes
from privacy.strategies.choice import FORMS, Form
from privacy.strategies.factorised_filters import of_filter
from privacy.strategies.touched import Touched, at_most

Pole = tuple[int, int, int]
"""(a, b, u): the exponential u / 2^16 * t^j with t = 1 - a / 2^b."""

BITS = 20
"""Of a coefficient after the point."""

WEIGHT = 16
"""Bits of an exponential's weight after the point."""

GUARD = 8
"""Bits of an exponential's state below one step."""

LARGEST_LEVEL = 2**50
"""Steps, for levels of either sign."""

ROWS, COLUMNS = 512, 8192
"""Of one block of the matrix C; sums of 2^13 products of 20-bit numbers are exact in float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factorised:
    """A strategy (privacy.strategies.base); noise must be Gaussian, since the L1 sensitivity is large.

    Attributes:
        form: which filter.
        windows: the horizon; None, without end, for the window filter alone, since the others' nodes never forget.
        opening: whether the opening is released.
        leak: 1 - lam of the leaky and the window filter, 0 for the other two.
        poles: of arma; the first is (0, 0, u), the level, the last (1, 0, u), the leaf alone.
        integers: 2^20 c, rounded, where a plan that is kept holds others than form and leak give here; else None.

    >>> year = Factorised(form="leaky", windows=365, opening=True, leak=0.01)
    >>> year.draws(30), len(year.coefficients)
    (31, 366)
    >>> year.variances(Series(kind="level"), 365).max().round(3)
    np.float64(2.137)
    """

    kind: ClassVar[str] = "factorised"
    sparse: ClassVar[bool] = False
    certifiable: ClassVar[bool] = True
    form: Form
    windows: int | None
    opening: bool
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

    def to_json(self, *, exactly: bool) -> Json:
        told: Json = {"form": self.form, "windows": self.windows, "opening": self.opening}
        if self.form == "arma":
            return {**told, "poles": [list(pole) for pole in self.poles]}
        leak = {} if self.form == "square_root" else {"leak": self.leak.hex()}
        return {**told, **leak, "coefficients": _integers(self).tolist() if exactly else None}

    @staticmethod
    def from_json(told: Members) -> "Factorised":
        form, windows, opening = told.word("form", FORMS), told.optional_count("windows"), told.flag("opening")
        if form == "arma":
            return Factorised(form=form, windows=windows, opening=opening, poles=told.triples("poles"))
        leak = 0.0 if form == "square_root" else told.number("leak")
        found = Factorised(form=form, windows=windows, opening=opening, leak=leak)
        if told.is_none("coefficients"):
            return found
        kept = told.counts("coefficients")
        return found if kept == tuple(_integers(found).tolist()) else replace(found, integers=kept)

    @property
    def coefficients(self) -> Floats:
        """Of the linear part of C, exactly: one for each leaf of the horizon, or, without end, all but zeros.

        After trailing zeros are cut there may be fewer.
        """
        if self.form == "arma":
            assert self.windows is not None
            return coefficients.exponentials(self.windows + int(self.opening), *_exponentials(self.poles))
        found: Floats = _integers(self) / 2**BITS
        return found

    def rounding(self, changes: int, steps: int) -> float:
        """How far rounding can move the nodes of one cell between neighbours, in L2, beyond the linear part.

        The sensitivity of C x in a cell plus this is that of the nodes. Over several cells or components, each moved
        by the same unit, take the root of the sum of squares.

        Args:
            changes: in how many leaves the unit can move the cell.
            steps: in one normalised unit, the largest of the component.

        >>> Factorised(form="square_root", windows=100, opening=False).rounding(3, 2**24) == 10 / 2**24
        True
        """
        if self.form != "arma":
            touched = changes * len(_integers(self))
            return math.sqrt(touched if self.windows is None else min(touched, self.draws(self.windows))) / steps
        assert self.windows is not None
        slow = math.fsum(u * 2.0 ** (b - WEIGHT - GUARD) / a for a, b, u in self.poles if 0 < a < 2**b)
        return math.sqrt(self.draws(self.windows)) * (1 + slow) / steps

    @property
    def in_advance(self) -> bool:
        return False

    def draws(self, windows: int) -> int:
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"windows={windows} lie beyond the horizon of {self.windows}")
        return windows + int(self.opening)

    def nodes(self, windows: int) -> Nodes:
        ends = np.arange(1 - int(self.opening), windows + 1, dtype=np.int64)
        begins = np.where(ends == 0, BEFORE_ALL, ends - 1)
        return Nodes(layer=np.zeros(self.draws(windows), dtype=np.int64), begin=begins, end=ends)

    def advance(self, carry: Ints | None, leaves: Ints) -> tuple[Ints, Ints]:
        """Nodes of these leaves; the carry is [state, cells].

        Raises:
            OverflowError: a leaf, or a level of arma, that 64 bits have no room for.
        """
        if carry is None:
            leaves = leaves if self.opening else leaves[1:]
            carry = np.zeros((len(self.poles), leaves.shape[1]), dtype=np.int64)
        if leaves.size and max(-int(leaves.min()), int(leaves.max())) > 2 * LARGEST_LEVEL:
            raise OverflowError("a change exceeds 2^51 steps; use a coarser grid")
        if self.form == "arma":
            return _advance_states(self.poles, carry, leaves)
        return _advance_history(_integers(self), carry, leaves)

    def publish(self, series: Series, leaves: Ints, noise: Ints) -> Floats:
        windows = len(leaves) - 1
        nodes, _ = self.advance(None, leaves)
        told = (nodes + noise[: self.draws(windows)]).astype(np.float64)
        level = self._levels(told) if len(told) else told
        if not self.opening:
            level = np.pad(level, ((1, 0), (0, 0)))
        numbers: Floats = level[series.ends(windows)]
        return numbers if series.kind == "level" else numbers - level[series.begins(windows)]

    def _levels(self, told: Floats) -> Floats:
        """Levels from nodes, oldest first. Sequential filters: later rows never change a bit of earlier ones."""
        from scipy.signal import lfilter  # slow to import

        if self.form == "arma":
            level = np.zeros_like(told)
            for weight, gap in zip(*coefficients.decays(*_exponentials(self.poles)), strict=True):
                level += weight * lfilter([1.0], [1.0, gap - 1], told, axis=0)
            return level
        leaves: Floats = lfilter([1.0], self.coefficients[: len(told)], told, axis=0)
        return np.cumsum(leaves, axis=0)

    def variances(self, series: Series, windows: int) -> Floats:
        latest = series.ends(windows) + int(self.opening)
        found: Floats = np.cumsum(self._newest_first(series, windows) ** 2)[latest - 1]
        return found

    def weights(self, series: Series, windows: int) -> list[Floats]:
        newest_first = np.abs(self._newest_first(series, windows))
        return [newest_first[:latest] for latest in series.ends(windows) + int(self.opening)]

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        return ()

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        return Fraction(self._bounds(states, leaves, closely)[-1])

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        bounds = [Fraction(bound) for bound in self._bounds(states, at_most(changes), closely)[1:]]
        return bounds + bounds[-1:] * (changes - len(bounds))

    def moved(self, leaves: Touched, *, cells: int, largest: Sequence[int], shared: bool) -> Moved:
        """Any change moves all later nodes, in every cell that the unit was in; an endless filter forgets."""
        changes = leaves.appearing
        if not shared:
            changes = leaves.nodes(1, math.inf if self._leaves is None else self._leaves).appearing
            changes += int(self.opening and leaves.in_a_row)
        visited = min(cells, changes + 1)
        if self._leaves is None:
            coordinates = changes * min(cells, 2) * len(largest) * len(self.coefficients)
        else:
            coordinates = self._leaves * visited * len(largest)
        rounding = math.sqrt(visited * math.fsum(self.rounding(changes, steps) ** 2 for steps in largest))
        return Moved(nodes=1, coordinates=coordinates, rounding=rounding)

    def so_far(self, leaves: int) -> "Factorised | None":
        """C is lower-triangular and Toeplitz: its first rows are those of a shorter one with the same coefficients."""
        if leaves == 0 and not self.opening:
            return None
        return replace(self, windows=max(leaves, 1))  # an initial level comes before the first leaf closes

    @property
    def _leaves(self) -> int | None:
        """All of the horizon, the opening among them where it is released."""
        return None if self.windows is None else self.draws(self.windows)

    def _bounds(self, states: States, leaves: Touched, closely: bool) -> list[float]:
        return of_filter(
            self.coefficients, leaves=self._leaves, opening=self.opening, touched=leaves, states=states, closely=closely
        )

    def _newest_first(self, series: Series, windows: int) -> Floats:
        """The weight of the noise of each leaf in a number, from the leaf at its end back."""
        if self.draws(windows) == 0:
            return np.zeros(0)
        level = _response(self, self.draws(windows))
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
def _integers(factorised: Factorised) -> Ints:
    """2^20 c, rounded, without trailing zeros."""
    if factorised.integers is not None:  # of the first of so many windows, if a shorter release is asked about
        count = None if factorised.windows is None else factorised.draws(factorised.windows)
        return np.array(factorised.integers[:count])
    if factorised.windows is not None:
        count = factorised.windows + int(factorised.opening)
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
        return coefficients.exponentials(leaves, *coefficients.decays(*_exponentials(factorised.poles)))
    real = factorised.coefficients[:leaves]
    return coefficients.response(np.pad(real, (0, leaves - len(real))))


def _advance_states(poles: tuple[Pole, ...], states: Ints, leaves: Ints) -> tuple[Ints, Ints]:
    a, b, u = np.array(poles, dtype=np.int64).T[:, :, None]
    levels = (states[0] >> GUARD) + np.cumsum(leaves, axis=0)
    if levels.size and max(-int(levels.min()), int(levels.max())) > LARGEST_LEVEL:
        raise OverflowError("a level exceeds 2^50 steps; use a coarser grid")
    nodes = np.empty_like(leaves)
    below, digits = (np.int64(1) << b) - 1, WEIGHT + GUARD
    for row, leaf in enumerate(leaves):
        # floor(a s / 2^b) and floor(u s / 2^24) in two parts, since a s and u s would not fit.
        states = states - a * (states >> b) - (a * (states & below) >> b) + (leaf << GUARD)
        rest = (u * (states & (2**digits - 1))).sum(axis=0)
        nodes[row] = (u * (states >> digits)).sum(axis=0) + (rest + 2 ** (digits - 1) >> digits)
    return nodes, states


def _advance_history(integers: Ints, history: Ints, leaves: Ints) -> tuple[Ints, Ints]:
    stream = np.concatenate((history, leaves))
    past, cells = len(history), leaves.shape[1]
    # x = 2^40 x_2 + 2^20 x_1 + x_0 and the same of C x, exactly; only the last part has digits after the point.
    mask = 2**BITS - 1
    limbs = np.concatenate((stream >> 2 * BITS, stream >> BITS & mask, stream & mask), axis=1).astype(np.float64)
    nodes = np.empty_like(leaves)
    for top in range(past, len(stream), ROWS):
        rows = np.arange(top, min(top + ROWS, len(stream)))
        sums = np.zeros((len(rows), 3 * cells), dtype=np.int64)
        for first in range(0, rows[-1] + 1, COLUMNS):
            columns = np.arange(first, min(first + COLUMNS, rows[-1] + 1))
            lags = rows[:, None] - columns
            matrix = np.where((lags >= 0) & (lags < len(integers)), integers[lags % len(integers)], 0)
            sums += (matrix.astype(np.float64) @ limbs[columns]).astype(np.int64)
        high, middle, low = np.split(sums, 3, axis=1)
        nodes[rows - past] = (high << BITS) + middle + (low + 2 ** (BITS - 1) >> BITS)
    return nodes, stream[max(0, len(stream) - len(integers) + 1) :]
