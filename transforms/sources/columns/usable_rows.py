"""Iteration over the usable rows of a file, which collects the rows that are not usable."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from transforms.common.batches import DEAD_SCHEMA, Batch
from transforms.sources.columns.normalise import Skipped


class UsableRows:
    """Batches of a file or of a part of it. Dead letters and skipped rows are known when the iteration has ended.

    Attributes:
        skipped: Number of rows that are no changes, by reason.
    """

    def __init__(self, parts: Iterable[Batch | pa.Table | Skipped]) -> None:
        """Prepare the iteration.

        Args:
            parts: Batches, tables of dead letters, and skipped rows, as readers of formats yield them.
        """
        self.skipped: Counter[str] = Counter()
        self._parts = parts
        self._dead = [DEAD_SCHEMA.empty_table()]

    def __iter__(self) -> Iterator[Batch]:
        for part in self._parts:
            if isinstance(part, Batch):
                yield part
            elif isinstance(part, Skipped):
                self.skipped[part.reason] += part.rows
            else:
                self._dead.append(part)

    @property
    def dead(self) -> pa.Table:
        """All dead letters, in their order."""
        return pa.concat_tables(self._dead)

    @property
    def fault(self) -> str | None:
        """Reason why the file as a whole is dead; None if only rows are."""
        whole = self.dead.filter(self.dead["row"].is_null())
        return whole["reason"][0].as_py() if whole.num_rows else None
