"""Total privacy budget of releases about the same people: the budgets of all releases add up.

Sums are exact, of the decimal numbers in the specs: in floating point 0.1 + 0.7 is less than 0.8.

If a release protects a span of time (privacy.protection), the sum is for the shortest span of all: each longer span
contains such a span. A release that protects everything that a unit does then costs (2 epsilon, (1 + e^epsilon) delta):
in two steps, the unit leaves the changelog, and it returns without its activity in that span. For everything that a
unit ever does there is no sum.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

from privacy.planning.statement import extent
from privacy.protection import EVERYTHING, Protection, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A release and its budget, as another one remembers it.

    Attributes:
        id: identifies the release even if its folders are moved; empty if it has none yet.
        unit: privacy unit.
        public, private: its folders; local ones from the root.
        span: protected span of time, in microseconds; None: everything that a unit ever does.
        near: distances by column, if only the place of a unit is protected.
    """

    id: str = ""
    release: str
    unit: str
    public: str
    private: str
    epsilon: float
    delta: float
    span: int | None = None
    near: dict[str, str] = field(default_factory=dict)

    @property
    def protects(self) -> Protection:
        return EVERYTHING if self.span is None else Span(self.span, tuple(sorted(self.near.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Known releases about the same people.

    Attributes:
        own: The release in question, whether or not it has begun.
        others: Other releases that have begun, or whose private folders cannot be read.
        there: Releases whose private folders can be read; includes the own release if it has a folder.
        unseen: Private folders that cannot be read.
        unread: Specs and notes in the folder of the spec, and data, that cannot be read: releases may be missing.
        before: Releases of the same data that the same spec has begun, by the paths of their notes.
    """

    own: Record
    others: tuple[Record, ...]
    there: tuple[Record, ...]
    unseen: tuple[str, ...]
    unread: tuple[str, ...] = ()
    before: dict[str, Record] = field(default_factory=dict)

    def _counted(self, begun: bool) -> tuple[list[Record], list[Record]]:
        """Return the releases in the sum, and those that protect other distances, for which no sum holds."""
        every = [*self.others, *([self.own] if begun else [])]
        near = next((record.near for record in (self.own, *every) if record.near), {})
        return [r for r in every if r.near in ({}, near)], [r for r in every if r.near not in ({}, near)]

    def document(self, *, begun: bool) -> dict[str, Any]:
        """Return the total budget of all releases, as JSON.

        Args:
            begun: Whether the own release counts.
        """
        counted, apart = self._counted(begun)
        protects = _common(counted)
        return {
            "epsilon": float(_sum(_epsilon(record, protects) for record in counted)),
            "delta": float(_sum(_delta(record, protects) for record in counted)),
            "protects": extent(protects),
            "at_least": bool(self.unseen or self.unread or apart),
            "releases": [
                {
                    "release": r.release,
                    "unit": r.unit,
                    "epsilon": r.epsilon,
                    "delta": r.delta,
                    "protects": extent(r.protects),
                }
                for r in (*counted, *apart)
            ],
            "unseen": list(self.unseen),
            "unread": list(self.unread),
        }

    def text(self, *, begun: bool = True) -> str:
        """Return the same sums as text."""
        within, apart = self._counted(begun)
        unknown = [*self._unknown()]
        if not within or not self.others:
            return "\n".join([*_not_in_the_sum(apart), *unknown])
        counted = [(f"{r.release} (this one)" if r is self.own else r.release, r) for r in within]
        width = max(len(name) for name, _ in counted)
        units = len({record.unit for _, record in counted}) > 1
        protects = _common([record for _, record in counted])
        epsilon = _decimal(_sum(_epsilon(record, protects) for _, record in counted))
        delta = _decimal(_sum(_delta(record, protects) for _, record in counted))
        claimed = "" if protects == EVERYTHING else f" for {extent(protects)}"
        lines = [f"Releases about the same people that are known here, {len(counted)}, whose budgets add up:"]
        for name, record in counted:
            budget = f"epsilon {_decimal(_exact(record.epsilon))}, delta {_decimal(_exact(record.delta))}"
            each = f", for each {record.unit}" if units else ""
            of = f", for {extent(record.protects)}" if claimed else ""
            lines.append(f"  {name:<{width}}  {budget}{each}{of}")
        lines.append(f"  {'in sum':<{width}}  epsilon {epsilon}, delta {delta}")
        lines.extend(_not_in_the_sum(apart))
        if unknown:
            lines += [
                f"Together they are at least ({epsilon}, {delta}){claimed}, and there may be more of them.",
                *unknown,
            ]
        else:
            lines.append(
                f"Together they are ({epsilon}, {delta})-differentially private{claimed}, and no more is promised to "
                "anyone who is in all of them."
            )
        if claimed:
            lines.append(
                "A difference that lasts longer costs this sum for each such period. A release for all mutations of "
                "a unit counts twice in the sum: activity of a unit in that period is compared with other mutations, "
                "and not with no mutations."
            )
        return "\n".join(lines)

    def _unknown(self) -> Iterator[str]:
        """Yield why there may be further releases, and what to do about it."""
        if self.unseen:
            yield (
                f"Private folders of other releases are gone or cannot be read: {', '.join(self.unseen)}. Name them in "
                "their specs as they are now, or give this account the right to read them."
            )
        if self.unread:
            yield (
                f"Cannot be read, and may concern another release about the same people: {', '.join(self.unread)}. "
                "Correct invalid specs, or move files that are not needed to another folder."
            )


def _not_in_the_sum(apart: list[Record]) -> list[str]:
    names = ", ".join(record.release for record in apart)
    return [f"Not in the sum, which does not hold for the distances that they protect: {names}."] if apart else []


def _common(records: Iterable[Record]) -> Protection:
    """Return the protection of the sum: the shortest protected span, if there is one, and the distances if any."""
    records = tuple(records)
    spans = [record.span for record in records if record.span is not None]
    near = next((record.near for record in records if record.near), {})
    return Span(min(spans), tuple(sorted(near.items()))) if spans else EVERYTHING


def _epsilon(record: Record, protects: Protection) -> Fraction:
    """Return the epsilon that a release adds to the sum."""
    return _exact(record.epsilon) * (2 if _twice(record, protects) else 1)


def _delta(record: Record, protects: Protection) -> Fraction:
    """Return the delta that a release adds to the sum, at most 1; rounded up to four digits if it is computed."""
    if record.delta == 0 or not _twice(record, protects):
        return _exact(record.delta)
    with localcontext() as context:
        grown = Decimal(repr(min(record.epsilon, 2000.0))).exp().next_plus() + 1  # e^2000 times any delta is above 1
        context.prec, context.rounding = 4, ROUND_UP
        return min(Fraction(grown * Decimal(repr(record.delta))), Fraction(1))


def _twice(record: Record, protects: Protection) -> bool:
    if protects.span is None:
        return False
    return record.span is None or (bool(protects.span.near) and not record.near)


def _exact(number: float) -> Fraction:
    """Return a float as the decimal number that is printed for it."""
    return Fraction(repr(number))


def _sum(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


def _decimal(exact: Fraction) -> str:
    """Return all digits of a fraction that is a sum of such decimal numbers."""
    with localcontext() as context:
        context.prec = 800  # from 1e308 down to 1e-324 and seventeen digits more
        number = (Decimal(exact.numerator) / Decimal(exact.denominator)).normalize()
        if number == number.to_integral_value() and number < 10**17:
            return str(int(number))
        return f"{number:g}"
