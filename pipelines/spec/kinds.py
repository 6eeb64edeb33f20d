"""The three kinds of specs, recognised by keys that no other kind has; and the commands for each kind.

The design of a survey is a fourth kind, because it is easily given in place of the spec of the survey.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pipelines.spec.document import Document
from transforms.common.errors import SpecError

SpecKind = Literal["sums", "records", "devices", "design"]

_WHAT: dict[SpecKind, tuple[str, str]] = {
    "sums": (
        "a spec of a release of sums from a changelog",
        "slackwater plan, run, evaluate, show, report, registry, metrics and ledger",
    ),
    "records": ("a spec of sanitised records", "slackwater sanitise, show, report, metrics and ledger"),
    "devices": (
        "a spec of a survey that devices randomise",
        "slackwater local plan, local estimate, local report and ledger",
    ),
    "design": ("the design of a survey, not a spec", "slackwater local estimate and local report"),
}


_SIGNS: dict[SpecKind, set[str]] = {
    "sums": {"changelog", "queries"},
    "records": {"sanitise"},
    "devices": {"local"},
    "design": {"design"},
}

KEYS = frozenset[str]().union(*_SIGNS.values())
"""Keys that distinguish a spec from other YAML."""


def kind_of(content: Mapping[str, Any]) -> SpecKind | None:
    """Return the kind of a spec; None if it has keys of no kind or of several, so that each unknown key is reported.

    >>> kind_of({"sanitise": "a", "columns": []}), kind_of({"queries": []}), kind_of({"sanitise": "a", "queries": []})
    ('records', 'sums', None)
    """
    found = [kind for kind, keys in _SIGNS.items() if keys & content.keys()]
    return found[0] if len(found) == 1 else None


def refuse_another(document: Document, kind: SpecKind) -> None:
    """Refuse a spec of another kind.

    Raises:
        SpecError: The spec is of another kind; the message names the commands for that kind.
    """
    found = kind_of(document.content)
    if found not in (None, kind):
        what, commands = _WHAT[found]
        raise SpecError(f"{document.name}: {what}; the commands for it are {commands}")
