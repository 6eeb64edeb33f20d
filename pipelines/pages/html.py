"""Pages as single files of HTML, with style, scripts and numbers inside, which need no network.

This module alone escapes text: names of queries and of cells may hold anything.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote

_ASSETS = files("pipelines.pages") / "assets"

CHARTS = ("charts.js", "compare.js")
"""Scripts that draw numbers over time and compare them."""

ESTIMATES = ("estimates.js",)
"""Script that draws estimates next to each other."""

_DRAWING = ("d3.min.js", "plot.umd.min.js", "common.js")
"""Scripts that all drawing needs; the first two are by other authors (assets/LICENSES.txt)."""

_BEFORE: Mapping[Sequence[str], Sequence[str]] = {CHARTS: ("times.js", "colours.js", "pictures.js", "lines.js")}
"""Scripts that others need."""

_NEEDS = {"hierarchy": ("bars",)}
"""Pictures whose scripts another one needs (`pipelines.pages.pictures.table`)."""

_LEFTWARDS = re.compile(
    r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc](?:[^0-9(:;<]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc])?"
)
"""A name that is written from right to left."""

_SMALL = re.compile(r"(?<![\w.])\d(?:\.\d+)?e-\d\d(?!\w)")
"""A small number with an exponent, such as a delta (`privacy.upward.shown`)."""

_NUMBER = re.compile(r"(?:± )?[-+]?[\d,]+(\.\d+)?")
"""Number in a cell of a table."""

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""Policy by which the browser keeps the page from the network."""


NO_ANCHORS: Mapping[str, str] = {}
"""For lists without anchors."""


class PageSection(NamedTuple):
    """A section of a page: its anchor, its title and all of its HTML."""

    name: str
    title: str
    html: str


def page(
    title: str,
    parts: Iterable[str | PageSection],
    *,
    data: Mapping[str, Any] | None = None,
    script: Sequence[str] = CHARTS,
    pictures: Iterable[str] = (),
    copies: bool = False,
) -> str:
    """Return the whole document.

    Args:
        title: Title of the page.
        parts: HTML, made by the functions below, and sections.
        data: Data that the script draws; None for a page without charts.
        script: Names of the scripts that draw.
        pictures: Kinds of pictures that it draws (`pipelines.pages.pictures.table`).
        copies: Whether readers can copy the label and the promise as text.
    """
    scripts = f"<script>{_asset('copy.js')}</script>\n" if copies else ""
    if data is not None:
        scripts += f'<script type="application/json" id="data">{_json(data)}</script>\n'
        kinds = dict.fromkeys(one for kind in pictures for one in (*_NEEDS.get(kind, ()), kind))
        names = (*_DRAWING, *_BEFORE.get(script, ()), *(f"{kind}.js" for kind in kinds), *script)
        scripts += "\n".join(f"<script>{_asset(name)}</script>" for name in names)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>{_asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<main id="main">
{"".join(one if isinstance(one, str) else one.html for one in parts)}
</main>
{scripts}
</body>
</html>
"""


def text(value: object) -> str:
    """Return a value escaped, for a text or for an attribute in quotes; no line ends before a percent sign.

    >>> text("a<b> 95 %")
    'a&lt;b&gt; 95&nbsp;%'
    """
    return html.escape(str(value), quote=True).replace(" %", "&nbsp;%")


def written(said: object) -> str:
    """Return a text with its small numbers as decimals.

    >>> written("Delta is 1e-09, or 1.25e-06."), written("a1e-09")
    ('Delta is 0.000000001, or 0.00000125.', 'a1e-09')
    """
    return _SMALL.sub(lambda found: f"{Decimal(found.group()):f}", str(said))


def sentence(said: str) -> str:
    """Return a sentence escaped; text between backticks is shown as code.

    Names that are written from right to left do not move the numbers next to them.

    >>> sentence("level, \u05d0\u05d1: 5") == "level, <bdi>\u05d0\u05d1</bdi>: 5"
    True
    >>> sentence("`a<b` and ` alone")
    '<code>a&lt;b</code> and ` alone'
    """
    return _LEFTWARDS.sub(r"<bdi>\g<0></bdi>", re.sub("`([^`]+)`", r"<code>\1</code>", text(written(said))))


def paragraph(said: str, *, role: str = "") -> str:
    """Return a paragraph; `role` is a class of the style sheet."""
    return f"<p{_class(role)}>{sentence(said)}</p>\n"


def plain(said: str) -> str:
    """Return a paragraph of a text of somebody else, in which no sign has a meaning."""
    return f"<p>{text(said)}</p>\n"


def bullets(said: Iterable[str]) -> str:
    """Return a list with an item for each sentence."""
    return "<ul>" + "".join(f"<li>{sentence(one)}</li>" for one in said) + "</ul>\n"


def facts(pairs: Iterable[tuple[str, str | Sequence[str]]], anchors: Mapping[str, str] = NO_ANCHORS) -> str:
    """Return a list of facts, each with its name; one of several sentences has a list of them.

    Args:
        pairs: Names and facts.
        anchors: Anchors of facts by their names.
    """

    def described(said: str | Sequence[str]) -> str:
        if isinstance(said, str):
            return text(written(said))
        return "".join(["<ul>", *(f"<li>{text(written(one))}</li> " for one in said), "</ul>"])

    return (
        '<dl class="facts">\n'
        + "".join(
            f"<div{_anchor(anchors.get(name))}><dt>{text(name)}</dt>\n<dd>{described(said)}</dd></div>\n"
            for name, said in pairs
        )
        + "</dl>\n"
    )


def table(
    caption: str, heading: Sequence[str], rows: Iterable[Sequence[object]], *, words: int = 1, stacks: bool = False
) -> str:
    """Return a table that scrolls separately if the page is too narrow.

    Args:
        caption: Caption of the table.
        heading: Names of the columns.
        rows: Cells of each row. The first cell names the row.
        words: Number of columns from the left that are text; the others are numbers.
        stacks: Whether a narrow page stacks the cells of a row, the last one first, each with the name of its column.
            Of other tables with more than five columns, it puts the first one above the others.
    """
    marks = ["" if place < words else "number" for place in range(len(heading))]
    head = "".join(
        f'<th scope="col"{_class(mark)}>{text(name)}</th>' for name, mark in zip(heading, marks, strict=True)
    )
    body, names = "", [f' data-name="{text(name)}"' if stacks else "" for name in heading[1:]]
    lines = [[written(cell) for cell in row] for row in rows]
    fractions = [[_fraction(cell) for cell in column] for column in zip(*lines, strict=True)]
    longest = [max(column, key=len) for column in fractions]
    for first, *others in lines:
        cells = "".join(
            f"<td{_class(mark)}{name}{_missing(cell, most) if mark else ''}>{text(cell)}</td>"
            for cell, mark, name, most in zip(others, marks[1:], names, longest[1:], strict=True)
        )
        body += f'<tr><th scope="row">{text(first)}</th>{cells}</tr>\n'
    layout = ' class="stacks"' if stacks else ""
    if not stacks and len(heading) > 5:
        layout = f' class="wide" style="--columns: {len(heading) - 1}"'
    return (
        f'<div class="scrolls" tabindex="0" role="region" aria-label="{text(caption)}"><table{layout}>'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )


def with_contents(sections: Sequence[PageSection]) -> str:
    """Return sections below a table of contents, whose links are their titles."""
    items = "".join(f'<li><a href="#{one.name}">{text(one.title)}</a></li>' for one in sections)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>\n{"".join(one.html for one in sections)}'


def _fraction(cell: str) -> str:
    """Return the decimal point of a number and what follows it; empty for other texts.

    >>> _fraction("1,234.50"), _fraction("± 0.1"), _fraction("12"), _fraction("0.5 to 0.7")
    ('.50', '.1', '', '')
    """
    found = _NUMBER.fullmatch(cell)
    return "" if found is None else found[1] or ""


def _missing(cell: str, longest: str) -> str:
    """Return an attribute with the digits that a number lacks, which the style sheet leaves room for.

    So numbers of a column have their decimal points below each other.

    >>> _missing("12", ".50"), _missing("1.5", ".50"), _missing("not known", ".50")
    (' data-rest=".50"', ' data-rest="0"', '')
    """
    rest = longest[len(_fraction(cell)) :]
    return f' data-rest="{rest}"' if rest and _NUMBER.fullmatch(cell) else ""


def linked(heading: str, points: Iterable[tuple[str, str, str]]) -> str:
    """Return points as a list below a heading.

    Args:
        heading: Text above the list.
        points: Of each an address, the link's text, and a text after it.
    """
    items = "".join(f'<li><a href="{text(to)}">{text(said)}</a>: {text(more)}</li>' for to, said, more in points)
    return f"{paragraph(heading, role='latest')}<ul>{items}</ul>\n"


def beside(parts: Iterable[str], others: Iterable[str], more: Iterable[str]) -> str:
    """Return parts with others to their right on a wide page, and below them on a narrow one.

    Args:
        parts: HTML.
        others: HTML to the right, or below.
        more: HTML that is below both on a narrow page, and below the first on a wide one.
    """
    first, told, last = map("".join, (parts, others, more))
    begin = f'<div class="begin"><div>{first}</div><aside>{told}</aside><div>{last}</div></div>\n'
    return begin if told else first + last


IN_TABLE = "The plain table below has the latest numbers, and its CSV file more of them."
"""Where readers without scripts find the numbers of charts."""


def heading(said: str) -> str:
    """Return the heading of a part of a section."""
    return f"<h3>{text(said)}</h3>\n"


def drawn(place: int, said: str = "", parts: Iterable[str] = (), *, otherwise: str = IN_TABLE) -> str:
    """Return an element in which the script draws one item of its data.

    Args:
        place: Number of the item.
        said: The main message of the charts, for readers whose browser runs no scripts; the script draws its own.
        parts: HTML with other messages that the script draws itself.
        otherwise: Where these readers find the numbers.
    """
    told = "".join([*parts, plain(said) if said else ""])
    return (
        f'<div class="charts" data-place="{place}">{told}<noscript>The charts need scripts. '
        f"{text(otherwise)}</noscript></div>\n"
    )


def folded(summary: str, parts: Iterable[str], *, if_narrow: bool = False, for_paper: bool = False) -> str:
    """Return parts that a reader can unfold, also without scripts.

    Args:
        summary: Text that unfolds them.
        parts: HTML.
        if_narrow: Whether only a narrow page folds them, by its script; wide pages and paper show them.
        for_paper: Whether paper shows them.
    """
    attributes = ' class="told"' if for_paper else ' class="told" open' if if_narrow else ""
    return f"<details{attributes}><summary>{text(summary)}</summary>\n{''.join(parts)}</details>\n"


def link(to: str, said: str) -> str:
    """Return a paragraph with a link to another page."""
    return f'<p><a href="{text(quote(to))}">{text(said)}</a></p>\n'


def ended(begin: str, said: str, anchor: str, more: str) -> str:
    """Return a paragraph with a bold beginning that ends with a link to another place of the page."""
    return f'<p><strong>{text(begin)}</strong> {sentence(said)} <a href="#{anchor}">{text(more)}</a></p>\n'


def download(name: str, content: bytes, said: str) -> str:
    """Return a link that saves content that the page holds, also without scripts.

    Args:
        name: Name of the file.
        content: CSV.
        said: Text of the link.
    """
    data = base64.b64encode(content).decode()
    return f'<p><a download="{text(name)}" href="data:text/csv;charset=utf-8;base64,{data}">{text(said)}</a></p>\n'


def compared(place: int) -> str:
    """Return a folded element in which the script compares numbers of one item of its data; empty without scripts.

    Args:
        place: Number of the item.
    """
    note = (
        "Differences that the table above lists have the same interval here. That of another difference follows from "
        "the intervals of both numbers: it is wider than needed, and holds with at least 90 % probability."
    )
    home = f'<div class="compare" data-place="{place}"></div>\n'
    return folded("Compare two other numbers", [home, f'<p class="note">{note}</p>\n'])


def section(name: str, title: str, parts: Iterable[str]) -> PageSection:
    """Return a section of the page with a heading.

    Args:
        name: Anchor of the section, of letters and digits.
        title: Text of the heading.
        parts: HTML of the section.
    """
    heading = f'<h2 id="{name}-title">{text(title)}</h2>\n'
    made = f'<section id="{name}" aria-labelledby="{name}-title">{heading}{"".join(parts)}</section>\n'
    return PageSection(name, title, made)


def _anchor(name: str | None) -> str:
    return f' id="{name}"' if name else ""


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _json(data: Mapping[str, Any]) -> str:
    r"""Return data as JSON that a script element can hold.

    >>> _json({"cell": "</script>"})
    '{"cell":"\\u003c/script\\u003e"}'
    """
    said = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign, escape in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        said = said.replace(sign, escape)
    return said
