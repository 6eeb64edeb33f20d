"""Exact distribution of everything that a device sends: the client itself, run on all possible draws at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, product
from math import prod

import numpy as np

from privacy.local.chance import WHOLE, Flags, Ints
from privacy.local.client import Reports, enrol, report
from privacy.local.design import Design


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Draws of a device: integers below limits, and outcomes of one kind of odds (`parts`; limit 0)."""

    limits: tuple[int, ...]
    parts: int

    @property
    def columns(self) -> list[Ints]:
        """Return every combination of draws, a row for each."""
        return [column.ravel() for column in np.indices([limit or 2 for limit in self.limits])]


@dataclass(slots=True)
class Recorded:
    """Draws zeros, and records the requests; the first draws are public, those of layer and turn."""

    public: list[int]
    limits: list[int] = field(default_factory=list)
    parts: set[int] = field(default_factory=set)

    def below(self, limit: int, size: int) -> Ints:
        if self.public:
            return np.full(size, self.public.pop(0))
        if size:
            self.limits.append(limit)
        return np.zeros(size, dtype=np.int64)

    def likely(self, parts: int, size: int) -> Flags:
        if size:
            self.limits.append(0)
            self.parts.add(parts)
        return np.zeros(size, dtype=np.bool_)


@dataclass(slots=True)
class Played:
    """Draws given values."""

    public: list[int]
    columns: Iterator[Ints]

    def below(self, limit: int, size: int) -> Ints:
        if self.public:
            return np.full(size, self.public.pop(0))
        return next(self.columns) if size else np.zeros(0, dtype=np.int64)

    def likely(self, parts: int, size: int) -> Flags:
        return next(self.columns) == 0 if size else np.zeros(0, dtype=np.bool_)


def public(design: Design, layer: int) -> list[int]:
    """Return the draws that lead to a layer, and to the last turn."""
    return [[0, *accumulate(each.share for each in design.layers)][layer], design.windows - 1]


def draws_of(design: Design, layer: int) -> Draws:
    """Return the requests of a device of a layer, which must not depend on its answers."""
    found = []
    for answer in range(-1, design.answers):
        chance = Recorded(public=public(design, layer))
        people = enrol(design, 1, most_epsilon=design.epsilon, most_delta=design.delta, chance=chance)
        for window in range(design.windows):
            _, people = report(design, people, window, np.array([answer if window % 2 else -1]), chance)
        found.append((chance.limits, chance.parts))
    assert all(each == found[0] for each in found)
    limits, parts = found[0]
    assert len(parts) == 1
    return Draws(limits=tuple(limits), parts=parts.pop())


def played(design: Design, layer: int, draws: Draws, answers: Sequence[int]) -> list[Reports]:
    """Return the reports of each window, a row for each combination of draws."""
    branches = prod(limit or 2 for limit in draws.limits)
    chance = Played(public=public(design, layer), columns=iter(draws.columns))
    people, sent = enrol(design, branches, most_epsilon=design.epsilon, most_delta=design.delta, chance=chance), []
    for window, answer in enumerate(answers):
        reports, people = report(design, people, window, np.full(branches, answer), chance)
        sent.append(reports)
    assert next(chance.columns, None) is None
    return sent


def outcomes(draws: Draws) -> tuple[Ints, list[Fraction]]:
    """Return for each combination how many of its coins fell on the likely side, which gives its probability."""
    odds = Fraction(draws.parts, WHOLE)
    coins = [column == 0 for column, limit in zip(draws.columns, draws.limits, strict=True) if limit == 0]
    uniform = Fraction(1, prod(limit for limit in draws.limits if limit))
    weights = [uniform * odds**count * (1 - odds) ** (len(coins) - count) for count in range(len(coins) + 1)]
    return np.sum(coins, axis=0, dtype=np.int64), weights


def distribution(design: Design, layer: int, draws: Draws, answers: Sequence[int]) -> dict[int, Fraction]:
    """Return the probability of each row of reports; with the window for a person who reports once."""
    branches = prod(limit or 2 for limit in draws.limits)
    codes = np.zeros(branches, dtype=np.int64)
    for reports in played(design, layer, draws, answers):
        code = np.zeros(branches, dtype=np.int64)
        code[reports.person] = 1 + 2 * reports.symbol.astype(np.int64) + (reports.sign > 0)
        codes = codes * 64 + code
    heads, weights = outcomes(draws)
    found: dict[int, Fraction] = {}
    kinds, counts = np.unique(codes * len(weights) + heads, return_counts=True)
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        code, head = divmod(kind, len(weights))
        found[code] = found.get(code, Fraction(0)) + count * weights[head]
    return found


def all_answers(design: Design) -> list[tuple[int, ...]]:
    """Yield every changelog of a person, with any changes: the device bounds them."""
    return list(product(range(-1, design.answers), repeat=design.windows))
