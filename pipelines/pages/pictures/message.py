"""The main message of a chart in words: the largest cell with its interval, or how quantiles changed.

It reads the data of the page, so that it says what the chart shows; `assets/pictures.js` says the same of any window.
"""

from collections.abc import Sequence
from typing import Any

from pipelines.pages.course import number, told, when
from pipelines.pages.pictures.quantiles import middle_share
from pipelines.pages.pictures.table import PICTURES
from privacy.counted import counted
from transforms.release.marginal_tables import ALL


def message(
    document: dict[str, Any], others: Sequence[dict[str, Any]] = (), *, series: int = 0, window: int = -1
) -> list[str]:
    """Return sentences about one window of a series; none without a chart besides lines, or without numbers.

    Args:
        document: Data of the charts of one query.
        others: Data of the other charts of the page; a tree has its inner nodes there.
        series: Place of the series.
        window: Place of the window among the shown ones.
    """
    picture, shown = document.get("picture"), document["series"][series]
    if picture is None or not shown["cells"] or not shown["cells"][0]["v"]:
        return []
    if "shares" in picture:
        return _of_quantiles(document, shown, window)
    if "levels" in picture:
        return _of_tree(document, others, series, window)
    choices = picture.get("choices", []) if "axes" in picture else []
    whole = len(choices) < 2 or (picture["summed"] and not picture["choice"])
    among = "" if whole else f" of {', '.join(choices[picture['choice']])}"
    called = PICTURES[picture["kind"]].largest.replace("cell", merging(picture)[0])
    return _largest(document, shown, _drawn(document, shown), (called, among), window)


NONE_LARGEST = "No largest"
"""Begin of the message if most intervals overlap that of the largest number."""

OVERLAPPED = "Highest number"
"""What the largest number is called if other intervals overlap its own."""

Items = Sequence[tuple[str, dict[str, Any]]]
"""Names of what a chart shows, with their lines."""


def _drawn(document: dict[str, Any], shown: dict[str, Any]) -> Items:
    """Return the cells that the chart shows first; a map leaves out those beyond its edges."""
    picture, cells = document["picture"], document["cells"]
    size = len(cells) // len(picture.get("choices", [0]))
    places: Sequence[int] = range(picture.get("choice", 0) * size, (picture.get("choice", 0) + 1) * size)
    if "across" in picture:
        rows, columns = (len(axis["labels"]) for axis in picture["axes"])
        inside = (row * columns + column for row in range(1, rows - 1) for column in range(1, columns - 1))
        places = [places[0] + one for one in inside]
    return [(_named(document, place), shown["cells"][place]) for place in places]


def _named(document: dict[str, Any], place: int) -> str:
    """Return the name of a cell, of ordered keys with the key, and without keys that are added up over."""
    texts, axes = document["cells"][place], document["picture"].get("axes", [])
    listed = len(texts) - len(axes)
    summed = document["picture"].get("summed") and place < len(document["cells"]) // len(document["picture"]["choices"])
    named = ([] if summed else texts[:listed]) + [
        _along(axis, text) for axis, text in zip(axes, texts[listed:], strict=True)
    ]
    kept = [text for text in named if not document["part"] or text != ALL]
    return ", ".join(kept) or ("all cells together" if texts else document["name"])


def _along(axis: dict[str, Any], text: str) -> str:
    """Return the name of a cell along an ordered key."""
    if text == axis["labels"][0]:
        return f"{axis['key']} below {axis['texts'][0]}"
    return f"{axis['key']} {axis['texts'][-1]} or more" if text == axis["labels"][-1] else f"{axis['key']} {text}"


def _largest(
    document: dict[str, Any], shown: dict[str, Any], items: Items, called: tuple[str, str], window: int
) -> list[str]:
    """Return sentences about the largest of some items: which, how sure that is, and how many say nothing.

    Args:
        document: Data of the charts of one query.
        shown: Its series.
        items: The items.
        called: What the largest one is called, and of what it is the largest.
        window: Place of the window.
    """
    items = [(name, line) for name, line in items if line["v"][window] is not None]
    if not items:
        return ["no numbers."]
    top, line = _topmost(document, items, window)
    known, low = [one for one in items if one[1]["lo"][window] is not None], line["lo"][window]
    chosen = any(one["v"][window] > line["v"][window] for _, one in items)
    number, (noun, each) = f"{top}: {told(line, window, shown.get('repeated'))}", merging(document["picture"])
    others = [] if low is None else [name for name, one in known if one["hi"][window] >= low and one is not line]
    what = f"{OVERLAPPED if others else called[0]}{' that is not mostly noise' * chosen}{called[1]}"
    said = [f"{what}: {number}."]
    if others and len(others) > (len(known) - 1) / 2:
        of = f"{len(others):,} of {len(known) - 1:,} other {noun}s" if len(others) > 2 else " and ".join(others)
        rest = ", the highest that is not mostly noise" if chosen else ""
        said = [f"{NONE_LARGEST} {noun} can be named: the interval{_overlap(of, others)} that of {number}{rest}."]
    elif low is not None:
        said.append(_overlapping(others, noun))
    within = document["within"]
    unsure = sum(is_unsure(one["lo"][window], one["hi"][window], within) for _, one in known)
    if unsure:
        what = (
            "cannot be distinguished from zero" if within is None else "have intervals wider than half of their range"
        )
        said.append(f"{unsure} of {counted(len(items), noun)} {what}.")
    return [*said, each] if each else said


def merging(picture: dict[str, Any]) -> tuple[str, str]:
    """Return what sentences call what a chart shows, and how many cells each adds up; empty for single cells.

    >>> merging({}), merging({"merged": 2, "axes": [{}]})
    (('cell', ''), ('bar', 'Each bar adds up 2 cells.'))
    """
    merged = picture.get("merged", 1)
    if merged == 1:
        return "cell", ""
    if len(picture["axes"]) == 1:
        return "bar", f"Each bar adds up {merged} cells."
    return "square", f"Each square adds up {merged} by {merged} cells."


def _topmost(document: dict[str, Any], items: Items, window: int) -> tuple[str, dict[str, Any]]:
    """Return the largest of some known items: of those that an interval is informative about, if there are any."""
    sure = [
        one
        for one in items
        if one[1]["lo"][window] is None or not is_unsure(one[1]["lo"][window], one[1]["hi"][window], document["within"])
    ]
    return max(sure or items, key=lambda one: one[1]["v"][window])


def _of_tree(document: dict[str, Any], others: Sequence[dict[str, Any]], series: int, window: int) -> list[str]:
    """Return sentences about the nodes below the root, which the chart shows first, and about the largest value."""
    picture, shown = document["picture"], document["series"][series]
    at, values, choice = picture["at"], picture["values"], picture["choices"][picture["choice"]]
    lines = {
        tuple(cell): one["series"][series]["cells"][place]
        for one in (document, *others)
        if one["origin"] == document["origin"] and len(one["series"]) > series
        for place, cell in enumerate(one["cells"])
    }

    def found(names: Sequence[str]) -> Items:
        cells = [(name, (*choice[:at], name, *choice[at:])) for name in names]
        return [(name, lines[cell]) for name, cell in cells if cell in lines]

    root = len(picture["levels"][-1]) == 1
    top = picture["levels"][-2:-1] if root else picture["levels"][-1:]
    inner, nodes, place = {begin: (name, end) for name, begin, end in (top[0] if top else [])}, [], 0
    while place < len(values):
        name, place = inner.get(place, (values[place], place + 1))
        nodes.append(name)
    said = _largest(document, shown, found(nodes), ("Largest", ""), window)
    if inner and (leaves := [one for one in found(values) if one[1]["v"][window] is not None]):
        name, line = _topmost(document, leaves, window)
        said.append(f"Largest {document['keys'][at]}: {name}: {told(line, window, shown.get('repeated'))}.")
    return said


def is_unsure(low: float, high: float, within: Sequence[float] | None) -> bool:
    """Return whether an interval is uninformative (`pipelines.pages.numbers.says_nothing`)."""
    return low <= 0 <= high if within is None else high - low > (within[1] - within[0]) / 2


def quantile_name(share: float) -> str:
    """Return the name of a quantile.

    >>> quantile_name(0.5), quantile_name(0.25)
    ('Median', '25 % quantile')
    """
    return "Median" if share == 0.5 else f"{100 * share:g} % quantile"


def _of_quantiles(document: dict[str, Any], shown: dict[str, Any], window: int) -> list[str]:
    """Return how the median changed, or the first quantile if there is no median."""
    share, key = middle_share(document["picture"]["shares"]), document["picture"]["key"]
    line = shown["cells"][next(at for at, label in enumerate(document["cells"]) if float(label[key]) == share)]
    window, name = window % len(line["v"]), quantile_name(share)
    where = "at" if shown["kind"] == "level" else "for"

    def numbered(one: int) -> str:
        return f"{told(line, one)} {where} {when(shown, one)}"

    def known(one: int) -> bool:
        return line["v"][one] is not None and line["lo"][one] is not None

    if not window or not known(0) or not known(window):
        return [f"{name}: {numbered(window)}."]
    said = [f"{name}: from {numbered(0)} to {numbered(window)}: {_change(line, 0, window)}."]
    if window > 1 and known(window - 1):
        said.append(f"Since the window before: from {told(line, window - 1)}: {_change(line, window - 1, window)}.")
    return [*said, DERIVED]


DERIVED = (
    "No exact interval of such a difference is known: these follow from the intervals of both numbers, and are wider "
    "than needed."
)
"""What a reader must know about the intervals of differences of quantiles."""


def _change(line: dict[str, Any], first: int, last: int) -> str:
    """Return the difference of two numbers of a line with its interval, and whether it is larger than the noise.

    Both 95 % intervals hold at once with a probability of at least 90 %, and so does this one of the difference.
    """
    low, high = line["lo"][last] - line["hi"][first], line["hi"][last] - line["lo"][first]
    size = number(line["v"][last] - line["v"][first])  # of the numbers as they are shown
    which = "no difference" if size == "0" else f"{size.removeprefix('-')} {'lower' if size[0] == '-' else 'higher'}"
    answer = "may be noise alone" if low <= 0 <= high else "more than the noise explains"
    return f"{which} (90 % interval of the difference {number(low)} to {number(high)}); {answer}"


def _overlapping(names: Sequence[str], noun: str) -> str:
    if not names:
        return "No other interval overlaps this one."
    whose = f"{len(names):,} other {noun}s" if len(names) > 2 else " and ".join(names)
    return f"The interval{_overlap(whose, names)} this one."


def _overlap(whose: str, names: Sequence[str]) -> str:
    return f"{'s' * (len(names) > 1)} of {whose} overlap{'s' * (len(names) == 1)}"
