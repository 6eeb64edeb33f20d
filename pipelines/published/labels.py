"""Labels of queries, key columns and cells, which a curator states in the spec's section `about`.

People see labels, on pages and in text. Files for programs have the names.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from pipelines.published.release import Published
from pipelines.spec.about import cell_label_of, column_label_of, is_label, label_of
from pipelines.spec.load import load
from pipelines.store.folder import is_folder
from pipelines.store.record import disclosed

_RANGE = re.compile(r"[\[(](-?(?:inf|\d[^\s,]*)), (-?(?:inf|\d[^\s,]*))\)")
"""Name of a cell or range of an ordered key in published files (`transforms.aggregation.ordered_key`)."""


def range_text(name: str) -> str:
    """Return the name of a cell or range of an ordered key as people write it; other names as they are.

    >>> range_text("[52.52, 52.53)"), range_text("(-inf, 20)"), range_text("[65, inf)"), range_text("[surgery, a)")
    ('52.52 to 52.53', 'below 20', '65 or more', '[surgery, a)')
    """
    found = _RANGE.fullmatch(name)
    if found is None:
        return name
    low, high = found.groups()
    if low == "-inf":
        return "any" if high == "inf" else f"below {high}"
    return f"{low} or more" if high == "inf" else f"{low} to {high}"


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
        """Return the labels of the values of a cell, or the values, ranges as people write them.

        >>> Labels({"cell ward: m": "Medicine"}).cell(["ward", "sex", "age"], ["m", "f", "[20, 25)"])
        ['Medicine', 'f', '20 to 25']
        """
        pairs = zip(columns, values, strict=True)
        return [self.texts.get(cell_label_of(column, value), range_text(value)) for column, value in pairs]

    def _exactly(self, column: str, value: str) -> str:
        return self.texts.get(cell_label_of(column, value), value)

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
            label = self.query if name == "query" else partial(self._exactly, name)
            said = [one if one is None else label(one) for one in values]
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
