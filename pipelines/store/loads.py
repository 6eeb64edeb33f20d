"""How many epochs of a release are loaded into each table besides its files: `loads/<table>.json`, private.

Epochs are loaded one after the other, so a number says it all. It never goes back, and where it is lost, or behind, the
table's own side must know what it has (pipelines.sinks).
"""

import json
from dataclasses import dataclass

from pipelines.store.folder import Folder
from transforms.common.errors import RefusedError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Loads:
    """Those that the private folder of a release tells of."""

    folder: Folder

    def done(self, table: str) -> int:
        """Epochs that are in a table, as far as is known here.

        Raises:
            RefusedError: the record cannot be read.
        """
        content = self.folder.read(_name(table))
        if content is None:
            return 0
        try:
            document = json.loads(content)
            if document["version"] == _VERSION and document["table"] == table and type(document["epochs"]) is int:
                return int(document["epochs"])
        except (KeyError, TypeError, ValueError, RecursionError):
            pass
        raise RefusedError(
            f"{self.folder.path(_name(table))}: not a record of loads that this version of the program understands; "
            "restore it from a copy of the private folder"
        )

    def note(self, table: str, epochs: int) -> None:
        """All epochs up to this one are in a table."""
        with self.folder.lock():
            if self.done(table) < epochs:
                document = {"version": _VERSION, "table": table, "epochs": epochs}
                self.folder.write(_name(table), json.dumps(document, indent=1).encode())


def _name(table: str) -> str:
    return f"loads/{table.replace(':', '_')}.json"
