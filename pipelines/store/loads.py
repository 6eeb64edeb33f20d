"""How many epochs of a release are loaded into each table besides its files: `loads/<table>.json`, private.

Epochs are loaded one after the other, so a number is enough. It never decreases. If it is lost or too small, the
table's side must know which epochs it has (pipelines.sinks).
"""

from dataclasses import dataclass

from pipelines.store.folder import Folder
from pipelines.store.record import read_record, record_json
from transforms.common.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """All epochs up to this one are in a table."""

    table: str
    epochs: int


@dataclass(frozen=True, slots=True)
class Loads:
    """The records of loads in the private folder of a release."""

    folder: Folder

    def done(self, table: str) -> int:
        """Return how many epochs are in a table, according to the record.

        Raises:
            RefusedError: the record cannot be read.
        """
        content = self.folder.read(_name(table))
        if content is None:
            return 0
        loaded = read_record(_Loaded, content, self.folder.path(_name(table)), "a record of loads")
        if loaded.table != table:
            raise RefusedError(f"{self.folder.path(_name(table))}: not a record of loads into {table}; restore it")
        return loaded.epochs

    def note(self, table: str, epochs: int) -> None:
        """Record that all epochs up to this one are in a table."""
        with self.folder.lock():
            if self.done(table) < epochs:
                loaded = _Loaded(table=table, epochs=epochs)
                self.folder.write(_name(table), record_json(loaded))


def _name(table: str) -> str:
    return f"loads/{table.replace(':', '_')}.json"
