"""Labels of queries, key columns and cells, which a curator states in the spec's section `about`.

People see labels, on pages and in text. Files for programs have the names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pipelines.published.release import Published
from pipelines.spec.about import cell_label_of, column_label_of, is_label, label_of
from pipelines.spec.load import load
from pipelines.store.folder import is_folder
from pipelines.store.record import disclosed


@dataclass(frozen=True, slots=True)
class Labels:
    """Texts by their keys (`pipelines.spec.about`); others may be among them."""

    texts: Mapping[str, str] = field(default_factory=dict)

    def query(self, name: str) -> str:
        """Return the label of a query, or its name."""
        return self.texts.get(label_of(name), name)

    def column(self, name: str) -> str:
        """Return the label of a key column, or its name."""
        return self.texts.get(column_label_of(name), name)

    def cell(self, columns: Sequence[str], values: Sequence[str]) -> list[str]:
        """Return the labels of the values of a cell, or the values.

        >>> Labels({"cell ward: m": "Medicine"}).cell(["ward", "sex"], ["m", "f"])
        ['Medicine', 'f']
        """
        pairs = zip(columns, values, strict=True)
        return [self.texts.get(cell_label_of(column, value), value) for column, value in pairs]

    def table(self, table: pa.Table, keys: Sequence[str]) -> pa.Table:
        """Return a table with labels in place of names.

        Args:
            table: Rows with the column `query` and a column for each key.
            keys: Names of the key columns.
        """
        if not any(is_label(key) for key in self.texts):
            return table
        for name in ("query", *keys):
            column = table.column(name).combine_chunks().dictionary_encode()
            values = [None if one is None else str(one) for one in column.dictionary.to_pylist()]
            said = [
                one if one is None else self.query(one) if name == "query" else self.cell([name], [one])[0]
                for one in values
            ]
            labelled = pa.array(said, pa.string()).take(column.indices)
            table = table.set_column(table.column_names.index(name), name, labelled)
        return table.rename_columns([self.column(name) if name in keys else name for name in table.column_names])


def labels_of(release: Published, path: str) -> Labels:
    """Return the labels of a release.

    Args:
        release: The public side of the release.
        path: Path that the user gave: of the spec, whose section `about` counts as it is now, or of the public folder,
            whose manifest has the labels.
    """
    return Labels(disclosed(release.epochs) if is_folder(path) else dict(load(path).about))
