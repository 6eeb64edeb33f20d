"""The result of a command: a document, a text, and what a notebook shows."""

from dataclasses import fields
from html import escape
from typing import Any, Protocol


class Value(Protocol):
    """The result of a command."""

    def to_json(self) -> dict[str, Any]:
        """Return the document that the command line prints with `--json`: by default the members, by their names."""
        members = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {name: [*one] if isinstance(one, tuple) else one for name, one in members.items()}

    def text(self) -> str:
        """Return the text that the command line prints."""
        ...

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<pre>{escape(self.text())}</pre>"
