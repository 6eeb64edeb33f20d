"""Other kinds of releases than those of sums, sanitised records and surveys of devices, and which commands they have.

A kind is a folder that nothing else imports (`tests/test_house.py`): to remove a kind, remove its folder, its entry
here, and its own command. For each command that it has, the folder has a module with a function, both of the command's
name, with the arguments of the command. The module `ledger` also has `other_promises`, the releases next to a spec
(`pipelines.ledger.apart`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pipelines.spec.document import read_document
from pipelines.spec.kinds import SpecKind, kind_of
from pipelines.store.folder import folder_at, is_folder
from pipelines.store.shown import MANIFEST
from privacy.json_values import parsed
from transforms.common.cloud import refuse_unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKind:
    """An entry of the table.

    Attributes:
        folder: Package of its modules.
        commands: Commands for which it has a function.
        member: Member that only its public manifest has; None if it has no public folder.
    """

    folder: str
    commands: frozenset[str]
    member: str | None = None

    def function(self, module: str, name: str) -> Callable[..., Any]:
        """Import a function of the kind."""
        found: Callable[..., Any] = getattr(import_module(f"{self.folder}.{module}"), name)
        return found


OTHERS: Mapping[SpecKind, OtherKind] = {
    "devices": OtherKind(folder="pipelines.local", commands=frozenset({"ledger", "audit"})),
    "records": OtherKind(
        folder="pipelines.sanitised",
        commands=frozenset({"ledger", "metrics", "report", "show"}),
        member="records",
    ),
}


def of_other_kind(command: str, path: str) -> Callable[..., Any] | None:
    """Return the function of a command for the kind of release at a path.

    Returns:
        None if the path is of a release of sums, or of a kind without the command.
    """
    kind = _kind_at(path)
    entry = None if kind is None else OTHERS.get(kind)
    return None if entry is None or command not in entry.commands else entry.function(command, command)


def _kind_at(path: str) -> SpecKind | None:
    if not is_folder(path):
        return kind_of(read_document(Path(path)).content)
    refuse_unreachable([path])
    try:
        members = parsed(folder_at(path, private=False).read(MANIFEST) or b"{}")
    except ValueError:
        return None
    kinds = [kind for kind, entry in OTHERS.items() if isinstance(members, dict) and entry.member in members]
    return kinds[0] if kinds else None
