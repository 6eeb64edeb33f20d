"""Keys whose cells have an order: steps of one size between two edges, and the values outside on either side.

    cell 0              `below`: less than the first edge
    cell i, 1 .. steps  [edge i - 1, edge i), as pandas.cut writes it with right=False
    cell steps + 1      `above`: the last edge and more

Edges are decimals, or moments. A decimal is compared as the nearest float64, as files and parsers represent it: if the
step is 0.1, the text 0.3 lies in [0.3, 0.4). Null and NaN lie in no cell, infinities outside. Columns are computed by
formulas, without an object for each cell.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.kinds import one_chunk, unmasked, valid

BELOW, ABOVE = "below", "above"

MOST_UNITS = 10**15
"""Limit of edges, in units: smaller numbers are exact in a float64, and the guessed cell is at most one cell off."""

MOST_DIGITS = 15
"""Most digits of a decimal after its point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedKey:
    """Cells of one ordered key.

    Attributes:
        start, step: First edge and distance of two adjacent edges, in units.
        steps: Number of cells between the first edge and the last.
        digits: A unit is 10 ** -digits.
        moments: Whether units are microseconds since the epoch, UTC; digits is 0 then.

    >>> ages = OrderedKey(start=0, step=5, steps=20)
    >>> len(ages), ages.labels(0, 3).to_pylist(), ages.labels(21, 22).to_pylist()
    (22, ['below', '[0, 5)', '[5, 10)'], ['above'])
    """

    start: int
    step: int
    steps: int
    digits: int = 0
    moments: bool = False

    def __post_init__(self) -> None:
        if self.step < 1 or self.steps < 1:
            raise ValueError(f"step={self.step} and steps={self.steps} must be at least 1")
        most = 2**62 if self.moments else MOST_UNITS
        if max(abs(self.start), abs(self.start + self.steps * self.step)) >= most:
            raise ValueError(f"edges must lie within {most} units of zero")
        if not 0 <= self.digits <= (0 if self.moments else MOST_DIGITS):
            raise ValueError(f"digits={self.digits} must lie between 0 and {MOST_DIGITS}, and be 0 for moments")

    def __len__(self) -> int:
        """Number of cells, including `below` and `above`."""
        return self.steps + 2

    def codes(self, column: pa.ChunkedArray | pa.Array) -> np.ndarray:
        """Return the cell of each number or timestamp, int32 [n]; -1 for null and NaN.

        >>> OrderedKey(start=0, step=1, steps=9, digits=1).codes(pa.array([-0.1, 0.3, 0.7, 0.9, None])).tolist()
        [0, 4, 8, 10, -1]
        """
        values = one_chunk(column)
        inside = _whole_steps(values, self) if self.moments else _decimal_steps(values, self)
        return np.where(valid(values), inside + 1, -1).astype(np.int32)

    def edges(self, first: int, last: int) -> np.ndarray:
        """Return edges `first` to `last - 1`: the nearest float64 of each, or int64 microseconds.

        >>> OrderedKey(start=0, step=1, steps=10, digits=1).edges(2, 5).tolist()
        [0.2, 0.3, 0.4]
        """
        numbers = np.arange(first, last, dtype=np.int64)
        return self.start + numbers * self.step if self.moments else _edge(self, numbers)

    def labels(self, first: int, last: int) -> pa.Array:
        """Return the names of cells `first` to `last - 1`."""
        low, high = max(first, 1), min(last, self.steps + 1)
        parts = [pa.array([BELOW])] if first == 0 else []
        if low < high:
            texts = _texts(self, low - 1, high)
            between = pc.binary_join_element_wise(texts[:-1], texts[1:], ", ")
            parts.append(pc.binary_join_element_wise("[", between, ")", ""))
        parts += [pa.array([ABOVE])] if last == len(self) else []
        return pa.concat_arrays([pa.array([], pa.string()), *parts])

    def published(self, first: int, last: int, kind: pa.DataType) -> pa.Array:
        """Return the names of cells `first` to `last - 1` as published: texts (`ListedKey.published`)."""
        return self.labels(first, last)

    def range_label(self, first: int, last: int) -> str:
        """Return the name of the range of cells `first` to `last - 1`.

        >>> ages = OrderedKey(start=0, step=5, steps=20)
        >>> ages.range_label(3, 5), ages.range_label(0, 5), ages.range_label(5, 22)
        ('[10, 20)', '(-inf, 20)', '[20, inf)')
        """
        low = "(-inf" if first == 0 else f"[{self.text(first - 1)}"
        return f"{low}, {'inf' if last == len(self) else self.text(last - 1)})"

    def text(self, edge: int) -> str:
        """Return one edge as labels write it."""
        return str(_texts(self, edge, edge + 1)[0])


def _decimal_steps(values: pa.Array, key: OrderedKey) -> np.ndarray:
    """Return whole steps from the first edge to each number, from -1 to `steps`; -2 for NaN."""
    low, high = float(key.edges(0, 1)[0]), float(key.edges(key.steps, key.steps + 1)[0])
    if pa.types.is_integer(values.type):
        numbers = np.clip(unmasked(values), math.floor(low) - 1, math.ceil(high)).astype(np.float64)
    else:
        numbers = unmasked(values.cast(pa.float64()))
    known, below = ~np.isnan(numbers), numbers < low
    numbers = np.clip(np.where(known, numbers, low), low, high)
    guess = np.floor((numbers * 10.0**key.digits - key.start) / key.step).astype(np.int64)
    # The product has an error of less than a unit, and a step is at least one: the guess is wrong by at most one step.
    guess -= numbers < _edge(key, guess)
    guess += numbers >= _edge(key, guess + 1)
    return np.where(known, np.where(below, -1, guess), -2)


def _edge(key: OrderedKey, number: np.ndarray) -> np.ndarray:
    """Return the nearest float64 of each edge: the quotient of two exact numbers is rounded once."""
    return (key.start + number * key.step) / 10.0**key.digits


def _whole_steps(values: pa.Array, key: OrderedKey) -> np.ndarray:
    ticks = unmasked(values.cast(pa.int64()))
    return (np.clip(ticks, key.start - 1, key.start + key.steps * key.step) - key.start) // key.step


def _texts(key: OrderedKey, first: int, last: int) -> pa.Array:
    """Return edges as texts: decimals without trailing zeros, moments in ISO 8601, UTC."""
    units = key.start + np.arange(first, last, dtype=np.int64) * key.step
    if key.moments:
        texts = pc.strftime(pa.array(units).cast(pa.timestamp("us", "UTC")), format="%Y-%m-%dT%H:%M:%S")
        return pc.binary_join_element_wise(_without_zeros(texts), "Z", "")
    if key.digits == 0:
        return pa.array(units).cast(pa.string())
    whole, rest = np.divmod(np.abs(units), 10**key.digits)
    sign = pa.array(np.where(units < 0, "-", ""), pa.string())
    fraction = pc.utf8_lpad(pa.array(rest).cast(pa.string()), key.digits, "0")
    return pc.binary_join_element_wise(sign, _without_zeros(_joined(pa.array(whole), fraction)), "")


def _joined(whole: pa.Array, fraction: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(whole.cast(pa.string()), fraction, ".")


def _without_zeros(texts: pa.Array) -> pa.Array:
    """Return texts with a point without trailing zeros, and without the point if it is then the end."""
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
