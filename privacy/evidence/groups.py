"""Exact privacy loss of policy `pegasus` on small histograms, from the decisions of the program itself.

The transcript is all that the policy makes public: the noisy number of each cell in each window, and whether the window
left the cell's open group. The published means determine it, and it determines every other smoothed number. Cells have
separate noise, so their probabilities multiply. In each cell, the answers of one group share a threshold
(privacy.evidence.chances). The least noise with which a window leaves its group is asked of the program, as in
privacy.evidence.decisions.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from privacy.adaptive.base import Rule, Stepped
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.pegasus import LONGEST, deviation
from privacy.adaptive.scales import Scales
from privacy.cells.base import Sketcher
from privacy.evidence.chances import CERTAIN, MOVED, Answer, log_chance_of, log_mass
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import DiscreteLaplace, NoiseDistribution
from privacy.series import Ints
from privacy.strategies.base import Floats

Bools = np.ndarray


@dataclass(slots=True)
class _Chosen:
    """Source of chosen noise: of numbers, thresholds and distances, in this order, each for all cells."""

    noise: tuple[Ints, ...]
    asked: list[tuple[NoiseDistribution | PrivateChoice, int]] = field(default_factory=list)

    def __call__(self, distribution: NoiseDistribution | PrivateChoice, size: int) -> Ints:
        self.asked.append((distribution, size))
        return self.noise[min(len(self.asked), len(self.noise)) - 1][:size]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A window that is published with chosen noise.

    Attributes:
        rule, scales, over: As of `log_chance`.
        carry: Carry of the window before; None before the first.
        length: Number of windows in the open group of each cell before it, int64 [cells]; 0: it begins a group.
        level: Exact level, int64 [cells].
        noisy: Noisy number of each cell, int64 [cells].
        left: Whether it leaves the group of each cell, bool [cells].
    """

    rule: Rule
    scales: Scales
    over: Sketcher
    carry: AdaptiveCarry | None
    length: Ints
    level: Ints
    noisy: Ints
    left: Bools

    @property
    def likely(self) -> Ints:
        """Noise of distances with which it leaves those groups, int64 [cells]."""
        return np.where(self.left, CERTAIN, -CERTAIN)

    @property
    def lengths(self) -> Ints:
        """Number of windows that are published with each number, int64 [cells]."""
        return np.where(self.left, 1, self.length + 1)

    @property
    def after(self) -> Ints:
        """Number of windows in the open group of each cell after it, int64 [cells]."""
        return np.where(self.left | (self.lengths == LONGEST), 0, self.lengths)

    def step(self, distances: Ints, thresholds: Ints | None = None) -> tuple[Stepped, _Chosen]:
        """Publish it; return the result, and what was asked of the noise."""
        none = np.zeros_like(self.level)
        chosen = _Chosen((self.noisy - self.level, none if thresholds is None else thresholds, distances))
        step = self.rule.publication.step
        return step(self.scales, self.over, self.carry, self.level, chosen), chosen

    def leaves(self, distances: Ints) -> Bools:
        """Return whether it leaves the open group of each cell, bool [cells]."""
        found: Bools = _lengths(self.step(distances)[0]) == 1
        return found

    def least(self, near: Ints) -> Ints:
        """Return the least noise with which it leaves the open group of each cell, int64 [cells].

        Args:
            near: A guess, which saves time if it is right, int64 [cells].
        """
        good, bad = np.full_like(near, CERTAIN), np.where(self.length > 0, -CERTAIN, CERTAIN - 1)
        guesses = [near - 1, near]
        while (good - bad > 1).any():
            middle = guesses.pop() if guesses else (good + bad) // 2
            inside, holds = (bad < middle) & (middle < good), self.leaves(middle)
            good, bad = np.where(inside & holds, middle, good), np.where(inside & ~holds, middle, bad)
        return good


@dataclass(slots=True)
class _Guess:
    """Guess of the least noise of the next window, from the levels of each cell's group and earlier windows."""

    levels: Ints
    limit: Ints

    @classmethod
    def of(cls, cells: int) -> "_Guess":
        return cls(np.zeros((0, cells), dtype=np.int64), np.zeros(cells, dtype=np.int64))

    def least(self, window: _Window) -> Ints:
        """Return the least noise of the next window, int64 [cells], found with a guess."""
        self.levels = np.concatenate([self.levels, window.level[None, :]])[-LONGEST:]
        moved = deviation(self.levels[::-1], np.minimum(window.length + 1, len(self.levels)))
        found = window.least(self.limit - moved)
        self.limit = np.where(window.length > 0, found + moved, self.limit)
        return found


def _lengths(found: Stepped) -> Ints:
    return found.public[len(found.public) // 2 :]


def _numbers(found: Stepped) -> Floats:
    numbers: Floats = np.ascontiguousarray(found.public[: len(found.public) // 2]).view(np.float64)
    return numbers


def log_chance(rule: Rule, scales: Scales, over: Sketcher, levels: Ints, left: Bools, noisy: Ints) -> float:
    """Return the logarithm of the probability that levels get these noisy numbers and groups.

    Args:
        rule: The rule `pegasus`.
        scales: Scales of its noise.
        over: Each cell by itself.
        levels: Exact levels, int64 [windows, cells].
        left: Whether the window leaves the open group of each cell, bool [windows, cells].
        noisy: Noisy numbers, int64 [windows, cells].

    Returns:
        Not a number if it is too small for the sum over a threshold's noise.
    """
    carry, length, guess = None, np.zeros(levels.shape[1], dtype=np.int64), _Guess.of(levels.shape[1])
    answers: list[list[Answer]] = [[] for _ in length]
    for level, leaves, told in zip(levels, left, noisy, strict=True):
        window = _Window(
            rule=rule, scales=scales, over=over, carry=carry, length=length, level=level, noisy=told, left=leaves
        )
        found, _ = window.step(window.likely)
        if leaves[length == 0].any() or not np.array_equal(_lengths(found), window.lengths):
            return -math.inf
        chances, least = log_mass(told - level, scales.sample(1).scale), guess.least(window)
        for cell, of_cell in enumerate(answers):
            of_cell.append(
                Answer(
                    fresh=length[cell] == 0,
                    least=int(least[cell]) if length[cell] else None,
                    above=bool(leaves[cell]),
                    numbers=float(chances[cell]),
                    last=window.after[cell] == 0,
                )
            )
        carry, length = found.carry, window.after
    return sum(log_chance_of(of_cell, scales) for of_cell in answers)


def wrong_groups(
    rule: Rule, scales: Scales, over: Sketcher, levels: tuple[Ints, Ints], left: Bools, noisy: Ints
) -> Iterator[str]:
    """Yield what is wrong with single decisions between two neighbours that are published alike.

    Each number, threshold and distance must have separate noise of the stated scale. A window that begins a group has
    no decision. Any other one must depend on the noise of its own distance, and move exactly with the noise of the
    threshold that its group began with. The deviations must not move by more than twice the movement of the group.

    Args:
        rule, scales, over, left, noisy: As of `log_chance`.
        levels: Exact levels of both neighbours, each int64 [windows, cells].
    """
    cells = levels[0].shape[1]
    wanted = [scales.sample(1), DiscreteLaplace(scales.threshold or 0), DiscreteLaplace(scales.test or 0)]
    carries: list[AdaptiveCarry | None] = [None, None, None]
    length, moved = (np.zeros(cells, dtype=np.int64) for _ in range(2))
    for one, two, leaves, told in zip(*levels, left, noisy, strict=True):
        window, other, shifted = (
            _Window(
                rule=rule, scales=scales, over=over, carry=carry, length=length, level=level, noisy=told, left=leaves
            )
            for carry, level in zip(carries, (one, two, one), strict=True)
        )
        found, chosen = window.step(window.likely)
        if chosen.asked != [(law, cells) for law in wanted]:
            yield "the noise of numbers, thresholds and distances is not that of the plan, or not separate"
        moved = np.where(length == 0, 0, moved) + np.abs(one - two)
        yield from _wrong(window, other, shifted, 2 * moved)
        if not np.array_equal(_numbers(found)[window.lengths == 1], told[window.lengths == 1]):
            yield "a number that is not smoothed is not its noisy number"
        thresholds = np.where(length == 0, MOVED, 2 * MOVED)  # the first one alone may count
        carries = [
            found.carry,
            other.step(window.likely)[0].carry,
            shifted.step(window.likely, thresholds)[0].carry,
        ]
        length = window.after


def _wrong(window: _Window, other: _Window, shifted: _Window, moved: Ints) -> Iterator[str]:
    """Yield what is wrong with the decisions of a window.

    Args:
        window: The window.
        other: It, of the neighbour.
        shifted: It, with other noise of the thresholds.
        moved: Largest number by which each decision may move between neighbours, int64 [cells].
    """
    begins, certain = window.length == 0, np.full_like(moved, CERTAIN)
    leaves, joins = window.leaves(certain), ~window.leaves(-certain)
    if (leaves & joins)[begins].any():
        yield "a window that begins a group has a decision"
    if begins.all():
        return
    if not (leaves & joins)[~begins].all():
        yield "a decision does not depend on its own noise"
        return
    least = window.least(np.zeros_like(moved))
    apart = np.abs(other.least(least) - least)
    if (far := (apart > moved) & ~begins).any():
        yield f"a decision moves by {apart[far][0]} between neighbours, and the plan allows {moved[far][0]}"
    if (shifted.least(least + MOVED) != least + MOVED)[~begins].any():
        yield "a decision does not move with the noise of its threshold alone"
