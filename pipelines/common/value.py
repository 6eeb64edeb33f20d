"""The result of a command: a document, a text, and what a notebook shows."""

from html import escape
from typing import Any, Protocol


class Value(Protocol):
    """The result of a command."""

    def to_json(self) -> dict[str, Any]:
        """Return the document that the command line prints with `--json`."""
        ...

    def text(self) -> str:
        """Return the text that the command line prints."""
        ...

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<pre>{escape(self.text())}</pre>"
