"""A page as its reader has it."""

import re
from html.parser import HTMLParser


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text without scripts and style, on one line."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._quiet = False
        self.feed(page)
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._quiet = tag in ("script", "style")
        self.text += "\n" if tag in ("p", "li", "th", "td", "h1", "h2", "h3", "caption") else ""

    def handle_data(self, data):
        self.text += "" if self._quiet else data
