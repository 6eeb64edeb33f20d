"""Numbers of charts in words: one with its interval, its window, and the course of all windows of a series."""

from collections.abc import Sequence
from typing import Any

from transforms.common.dates import number_name

FEWEST = 3
"""Least number of new numbers that have a course."""


def course(shown: dict[str, Any]) -> str:
    """Return the highest and the lowest number of all cells together, or the first and the last one if these are them.

    Windows that repeat numbers do not count. Empty with few numbers, without a sum of all cells, and if most intervals
    overlap that of the highest number, which is then no peak.

    >>> line = {"v": [1, 5, 2], "lo": [0, 4, 1], "hi": [2, 6, 3]}
    >>> course({"kind": "change", "first": 86_400_000, "step": 86_400_000, "width": 86_400_000, "cells": [line]})
    'highest for 2 January 1970: 5 (4 to 6), lowest for 1 January 1970: 1 (0 to 2)'
    """
    line = shown["cells"][0] if len(shown["cells"]) == 1 else shown.get("total", {"v": []})
    repeated = shown.get("repeated") or [False] * len(line["v"])
    known = [at for at, value in enumerate(line["v"]) if value is not None and not repeated[at]]
    if len(known) < FEWEST:
        return ""
    high, low = (choose(known, key=lambda at: line["v"][at]) for choose in (max, min))
    if line["v"][high] == line["v"][low]:
        return ""
    low_end = line["lo"][high]
    alike = [at for at in known if at != high and None not in (low_end, line["hi"][at]) and line["hi"][at] >= low_end]
    if len(alike) > len(known) // 2:
        return ""
    moments = {at: f"{'at' if shown['kind'] == 'level' else 'for'} {when(shown, at)}" for at in (high, low, known[0])}
    if {high, low} == {known[0], known[-1]}:
        last = known[-1]
        return f"from {told(line, known[0])} {moments[known[0]]} to {told(line, last)} {moments[last]}"
    return f"highest {moments[high]}: {told(line, high)}, lowest {moments[low]}: {told(line, low)}"


def told(line: dict[str, Any], window: int, repeated: Sequence[bool] | None = None) -> str:
    """Return a number with its interval, as the script writes it.

    Args:
        line: Numbers of a cell.
        window: Place of the window.
        repeated: Which windows repeat the numbers of the one before; None: none of them.

    >>> told({"v": [1234.5], "lo": [1200], "hi": [1269]}, 0), told({"v": [5], "lo": [None], "hi": [None]}, 0)
    ('1,234.5 (1,200 to 1,269)', '5 (no known interval)')
    """
    value, low, high = (line[name][window] for name in ("v", "lo", "hi"))
    if value is None:
        return "unknown"
    if low is None:
        return f"{number(value)} ({'repeated, ' if repeated and repeated[window] else ''}no known interval)"
    return _interval(value, low, high)


def when(shown: dict[str, Any], window: int) -> str:
    """Return the window of a number, as the script writes it."""
    if "spans" in shown:
        start, _, end = shown["spans"][window]
    else:
        end = shown["first"] + window * shown["step"]
        start = end - shown["width"]
    return number_name(shown["kind"], round(start * 1000), round(end * 1000))


def _interval(value: float, low: float, high: float) -> str:
    return f"{number(value)} ({number(low)} to {number(high)})"


def number(value: float) -> str:
    """Return a number as the script writes it."""
    return f"{round(value, 6) + 0.0:,.6f}".rstrip("0").rstrip(".")  # no negative zero
