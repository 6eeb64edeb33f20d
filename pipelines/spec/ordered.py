"""The shape of an ordered key in a spec: `{from: 0, to: 100, step: 5}`, of numbers or of times."""

import math
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from pipelines.spec.durations import duration_text, parse_duration
from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import Section
from pipelines.spec.times import microseconds, moment_text, parse_time
from pipelines.spec.words import show
from transforms.aggregation.ordered_key import MOST_DIGITS, MOST_UNITS, OrderedKey

MOST_ORDERED = 2
"""Most ordered keys of a query."""


def _edge(value: Any) -> Decimal | datetime:
    if not isinstance(value, str):
        return _number(value)
    try:
        return parse_time(value)
    except ValueError as error:
        raise wrong(f"expected a number or a time: {error}" if "such as" in str(error) else str(error)) from None


def _step(value: Any) -> Decimal | int:
    """Read a number, or a duration in microseconds."""
    if not isinstance(value, str):
        return _number(value)
    try:
        return parse_duration(value)
    except ValueError as error:
        raise wrong(str(error)) from None


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(f"expected a number, or a time such as 2013-01-01T00:00:00Z, not {show(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong("expected a finite number")
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if _digits(number) > MOST_DIGITS or abs(number) >= MOST_UNITS:
        raise wrong(f"a number below 10^15, of at most {MOST_DIGITS} digits after the point")
    return number


def _digits(number: Decimal) -> int:
    """Return the number of digits after the decimal point."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _units_of(edge: Decimal | datetime, digits: int) -> Fraction:
    return Fraction(microseconds(edge)) if isinstance(edge, datetime) else Fraction(edge) * 10**digits


def _plain(value: Decimal | datetime | int) -> str | int:
    """Return the value for a digest, so that equal numbers have the same text."""
    if isinstance(value, datetime):
        return microseconds(value)
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


Edge = Annotated[Decimal | datetime, PlainValidator(_edge), PlainSerializer(_plain)]
Step = Annotated[Decimal | int, PlainValidator(_step), PlainSerializer(_plain)]


class OrderedSection(Section):
    """Cells of one size between two edges; values below and above them have one additional cell each."""

    from_: Edge = Field(alias="from")
    to: Edge
    step: Step

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._problems())
        return self

    def _problems(self) -> list[Problem]:
        times = isinstance(self.from_, datetime)
        if isinstance(self.to, datetime) != times:
            return [(("to",), "from and to must both be numbers, or both be times")]
        if isinstance(self.step, int) != times:
            return [(("step",), "expected a duration such as 1d" if times else "expected a number, as from and to are")]
        start, stop, step, digits = self._units()
        if step <= 0:
            return [(("step",), f"expected a {'duration' if times else 'number'} above zero")]
        if stop <= start:
            return [(("to",), f"must be above from, {self._text(start, digits)}")]
        steps, rest = divmod(stop - start, step)
        if rest:
            fits = " or ".join(self._text(start + count * step, digits) for count in (steps, steps + 1) if count)
            size = duration_text(step) if times else self._text(step, digits)
            return [(("to",), f"steps of {size} from {self._text(start, digits)} do not end there; use {fits}")]
        try:
            self.key()
        except ValueError:
            message = f"the edges have too many digits; all edges together may have {MOST_DIGITS}"
            return [(("step",), message)]
        return []

    def key(self) -> OrderedKey:
        """Return the key with its cells."""
        start, stop, step, digits = self._units()
        return OrderedKey(
            start=start,
            step=step,
            steps=(stop - start) // step,
            digits=digits,
            moments=isinstance(self.from_, datetime),
        )

    def _units(self) -> tuple[int, int, int, int]:
        """Return from, to and step in whole units, and the decimal digits of a unit; for times in microseconds."""
        given = (self.from_, self.to, self.step)
        digits = max(_digits(value) for value in given if isinstance(value, Decimal)) if self._numbers else 0
        start, stop, step = (
            microseconds(value)
            if isinstance(value, datetime)
            else value
            if isinstance(value, int)
            else int(value.scaleb(digits))
            for value in given
        )
        return start, stop, step, digits

    def near(self, distance: Decimal | int) -> int | None:
        """Return the most cells that two values at a distance are apart; None if the distance is of another kind."""
        if isinstance(distance, Decimal) != self._numbers:
            return None
        _, _, step, digits = self._units()
        units = distance if isinstance(distance, int) else distance.scaleb(digits)
        return math.ceil(Fraction(units) / step)

    def between(self, low: Decimal | datetime | None, high: Decimal | datetime | None) -> tuple[int, int]:
        """Return the first cell between two edges and one past the last; `not_between` must have found no problem."""
        start, _, step, digits = self._units()
        first, last = (0 if edge is None else int(_units_of(edge, digits) - start) // step for edge in (low, high))
        return 0 if low is None else first + 1, len(self.key()) if high is None else last + 1

    def not_between(self, low: Decimal | datetime | None, high: Decimal | datetime | None) -> Problem | None:
        """Return why two values are not edges of a range of cells; None if they are."""
        start, stop, step, digits = self._units()
        for name, edge in (("from", low), ("to", high)):
            if edge is None:
                continue
            if isinstance(edge, Decimal) != self._numbers:
                return (name,), f"expected a {'number' if self._numbers else 'time'}, as the cells have"
            exact = _units_of(edge, digits)
            below = (exact - start) // step
            nearest = [min(max(start + count * step, start), stop) for count in (below, below + 1)]
            if exact not in nearest:
                fits = " or ".join(self._text(unit, digits) for unit in dict.fromkeys(nearest))
                return (name,), f"not an edge of the cells; use {fits}"
        if low is not None and high is not None and high <= low:  # type: ignore[operator]  # both of one kind
            return ("to",), "must be above from"
        return None

    @property
    def _numbers(self) -> bool:
        return isinstance(self.from_, Decimal)

    def _text(self, units: int, digits: int) -> str:
        return f"{Decimal(units).scaleb(-digits):f}" if self._numbers else moment_text(units)
