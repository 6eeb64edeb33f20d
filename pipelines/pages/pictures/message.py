"""The main message of a chart in words: the largest cell with its interval, or how quantiles changed.

It reads the data of the page, so that it says what the chart shows; `assets/pictures.js` says the same of any window.
"""

from collections.abc import Sequence
from typing import Any

from pipelines.pages.pictures.table import PICTURES
from privacy.counted import counted


def message(document: dict[str, Any], *, series: int = 0, window: int = -1) -> list[str]:
    """Return sentences about one window of a series; none without a chart besides lines, or without numbers.

    Args:
        document: Data of the charts of one query.
        series: Place of the series.
        window: Place of the window among the shown ones.
    """
    picture, shown = document.get("picture"), document["series"][series]
    if picture is None or not shown["cells"] or not shown["cells"][0]["v"]:
        return []
    if "shares" in picture:
        return _of_quantiles(document, shown["cells"], window)
    cells, size = shown["cells"], len(document["cells"]) // len(picture.get("choices", [0]))
    first = picture.get("choice", 0) * size
    places = [place for place in range(first, first + size) if cells[place]["v"][window] is not None]
    if not places:
        return []
    top = max(places, key=lambda place: cells[place]["v"][window])
    number = told(cells[top], window, shown.get("repeated"))
    said = [f"{PICTURES[picture['kind']].largest}: {', '.join(document['cells'][top])}: {number}."]
    known = [place for place in places if cells[place]["lo"][window] is not None]
    if top in known:
        others = [place for place in known if cells[place]["hi"][window] >= cells[top]["lo"][window] and place != top]
        said.append(_overlapping(len(others)))
    within = document["within"]
    unsure = sum(is_unsure(cells[place]["lo"][window], cells[place]["hi"][window], within) for place in known)
    if unsure:
        what = (
            "cannot be distinguished from zero" if within is None else "have intervals wider than half of their range"
        )
        said.append(f"{unsure} of {counted(len(places), 'cell')} {what}.")
    return said


def is_unsure(low: float, high: float, within: Sequence[float] | None) -> bool:
    """Return whether an interval is uninformative (`pipelines.pages.numbers.says_nothing`)."""
    return low <= 0 <= high if within is None else high - low > (within[1] - within[0]) / 2


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
        return f"{_number(value)} ({'repeated, ' if repeated and repeated[window] else ''}no known interval)"
    return _interval(value, low, high)


def quantile_name(share: float) -> str:
    """Return the name of a quantile.

    >>> quantile_name(0.5), quantile_name(0.25)
    ('Median', '25 % quantile')
    """
    return "Median" if share == 0.5 else f"{100 * share:g} % quantile"


def _of_quantiles(document: dict[str, Any], cells: Sequence[dict[str, Any]], window: int) -> list[str]:
    """Return how the median changed, or the first quantile if there is no median."""
    shares, key = document["picture"]["shares"], document["picture"]["key"]
    share = 0.5 if 0.5 in shares else shares[0]
    place = next(at for at, label in enumerate(document["cells"]) if float(label[key]) == share)
    line = cells[place]
    said = [f"{quantile_name(share)}: {told(line, window)}."]
    if len(line["v"]) > 1 and None not in (line["lo"][0], line["lo"][window]):
        apart = line["lo"][window] > line["hi"][0] or line["hi"][window] < line["lo"][0]
        said.append(f"In the first window shown: {told(line, 0)}. The two intervals {'do not ' * apart}overlap.")
    return said


def _overlapping(count: int) -> str:
    if count == 0:
        return "No other interval overlaps this one."
    return f"The interval{'s' * (count > 1)} of {counted(count, 'other cell')} overlap{'s' * (count == 1)} this one."


def _interval(value: float, low: float, high: float) -> str:
    return f"{_number(value)} ({_number(low)} to {_number(high)})"


def _number(value: float) -> str:
    return f"{value:,.6f}".rstrip("0").rstrip(".")
