"""One key with a hierarchy: bars of the nodes below a node, from the root down."""

from typing import Any

from pipelines.pages.pictures.base import Picture, Pictured


def _suits(subject: Pictured) -> bool:
    return bool(subject.query.hierarchies) and len(subject.query.by) == 1 and not subject.of


def _document(subject: Pictured) -> dict[str, Any]:
    """Return the inner nodes of each level, from the deepest up: name, first cell, and the cell after the last."""
    ((_, hierarchy),) = subject.query.hierarchies
    return {"levels": [[*map(list, zip(one.names, one.begins, one.ends, strict=True))] for one in hierarchy.levels]}


TREE = Picture(suits=_suits, document=_document, whole=True)
