"""The three kinds of specs, told apart by the keys that none of the others has; and which commands are for which.

A survey's design is a file beside its spec, and easily taken for it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pipelines.spec.document import Document
from transforms.common.errors import SpecError

Kind = Literal["sums", "records", "devices", "design"]

_WHAT: dict[Kind, tuple[str, str]] = {
    "sums": (
        "a spec of a release of sums from a changelog",
        "slackwater plan, run, evaluate, show, report, metrics and ledger",
    ),
    "records": ("a spec of sanitised records", "slackwater sanitise, show, report, metrics and ledger"),
    "devices": (
        "a spec of a survey that devices randomise",
        "slackwater local plan, local estimate, local report and ledger",
    ),
    "design": ("the design of a survey, not a spec", "slackwater local estimate and local report"),
}


_SIGNS: dict[Kind, set[str]] = {
    "sums": {"changelog", "queries"},
    "records": {"sanitise"},
    "devices": {"local"},
    "design": {"design"},
}

KEYS = frozenset[str]().union(*_SIGNS.values())
"""Keys that tell a spec from other YAML."""


def kind_of(content: Mapping[str, Any]) -> Kind | None:
    """None where keys of none, or of several, are there: then each unknown key is told.

    >>> kind_of({"sanitise": "a", "columns": []}), kind_of({"queries": []}), kind_of({"sanitise": "a", "queries": []})
    ('records', 'sums', None)
    """
    found = [kind for kind, keys in _SIGNS.items() if keys & content.keys()]
    return found[0] if len(found) == 1 else None


def refuse_another(document: Document, kind: Kind) -> None:
    """
    Raises:
        SpecError: the spec is of another kind; it names the commands for that.
    """
    found = kind_of(document.content)
    if found not in (None, kind):
        what, commands = _WHAT[found]
        raise SpecError(f"{document.name}: {what}; the commands for it are {commands}")
