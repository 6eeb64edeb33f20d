"""A page by itself: one file of HTML with its style, its scripts and its numbers in it, which asks no network.

All text is escaped here, and nowhere else: names of queries and of cells may hold anything.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

_ASSETS = files("pipelines.pages") / "assets"

CHARTS = "charts.js"
"""Draws numbers over time."""

ESTIMATES = "estimates.js"
"""Draws estimates beside each other."""

_DRAWING = ("d3.min.js", "plot.umd.min.js", "common.js")
"""What all that draw rest on; the first two are others' (assets/LICENSES.txt)."""

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""The browser itself keeps the page from the network."""


def page(title: str, parts: Iterable[str], *, data: Mapping[str, Any] | None = None, script: str = CHARTS) -> str:
    """The whole document.

    Args:
        parts: HTML, made by the functions below.
        data: what the script draws; None for a page without scripts.
    """
    scripts = ""
    if data is not None:
        scripts = f'<script type="application/json" id="data">{_json(data)}</script>\n'
        scripts += "\n".join(f"<script>{_asset(name)}</script>" for name in (*_DRAWING, script))
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
{"".join(parts)}
</main>
{scripts}
</body>
</html>
"""


def text(value: object) -> str:
    """Escaped, for a text and for an attribute in quotes.

    >>> text("a<b>")
    'a&lt;b&gt;'
    """
    return html.escape(str(value), quote=True)


def sentence(said: str) -> str:
    """Escaped; what stands between backticks is code.

    >>> sentence("`a<b` and ` alone")
    '<code>a&lt;b</code> and ` alone'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(said))


def paragraph(said: str, *, role: str = "") -> str:
    """`role`: a class of the style sheet."""
    return f"<p{_class(role)}>{sentence(said)}</p>\n"


def bullets(said: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{sentence(one)}</li>" for one in said) + "</ul>\n"


def table(caption: str, heading: Sequence[str], rows: Iterable[Sequence[object]], *, words: int = 1) -> str:
    """A table that scrolls by itself where the page is too narrow.

    Args:
        words: so many columns from the left are text, the others numbers. The first one names the row.
    """
    marks = ["" if place < words else "number" for place in range(len(heading))]
    head = "".join(
        f'<th scope="col"{_class(mark)}>{text(name)}</th>' for name, mark in zip(heading, marks, strict=True)
    )
    body = ""
    for row in rows:
        first, *others = row
        cells = "".join(f"<td{_class(mark)}>{text(cell)}</td>" for cell, mark in zip(others, marks[1:], strict=True))
        body += f'<tr><th scope="row">{text(first)}</th>{cells}</tr>\n'
    return (
        f'<div class="scrolls" tabindex="0" role="region" aria-label="{text(caption)}"><table>'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )


def contents(links: Iterable[tuple[str, str]]) -> str:
    """Anchors of sections, with what they are called."""
    items = "".join(f'<li><a href="#{name}">{text(title)}</a></li>' for name, title in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>\n'


def heading(said: str) -> str:
    """Of a part of a section."""
    return f"<h3>{text(said)}</h3>\n"


def drawn(place: int, otherwise: str) -> str:
    """Where a script draws what stands at a place of its data.

    Args:
        otherwise: which command has the numbers for whoever runs no scripts.
    """
    return (
        f'<div class="charts" data-place="{place}"><noscript>The charts need scripts. '
        f"<code>{text(otherwise)}</code> prints the numbers as a table.</noscript></div>\n"
    )


def signature() -> str:
    """For whoever answers for it."""
    return (
        '<div class="sign"><p>Read and agreed:</p>'
        "<p><span>Name</span><span>Date</span><span>Signature</span></p></div>\n"
    )


def section(name: str, title: str, parts: Iterable[str]) -> str:
    """A part of the page with a heading; `name` is its anchor, of letters and digits."""
    heading = f'<h2 id="{name}-title">{text(title)}</h2>\n'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}{"".join(parts)}</section>\n'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _json(data: Mapping[str, Any]) -> str:
    r"""As a script element may hold it.

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
