"""The changes of an entry from one snapshot to the next are a function of the entry's own rows in them."""

from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fates import formats
from tests.fates.rows import Row, plain, row_of
from tests.fates.test_fates import SEED, SPECS
from tests.transforms.writing import look, parts
from transforms.common.batches import Batch
from transforms.sources.snapshots import compare, comparison_of, route

DAY = 86_400_000_000
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


@pytest.mark.hypothesis  # `make search` selects by this mark
@pytest.mark.parametrize("unit", [None, "u"])
def test_the_changes_of_an_entry_depend_on_no_other_entry(unit: str | None, tmp_path: Path) -> None:
    used = 0
    for number in range(SPECS):
        choose = Random(f"{SEED} {unit} {number}")
        tables = [[row_of(choose, 1000 + entry, odd=0.1) for entry in range(6) if choose.random() < 0.8] for _ in DAYS]
        known: dict[str, list[str]] | None = None
        for neighbour in range(12):
            odd = [[row_of(choose, 5000 + entry, odd=0.6) for entry in range(choose.randrange(3))] for _ in DAYS]
            odd = [rows + choose.sample(rows, len(rows) // 2) for rows in odd]  # repeated entries
            together = [choose.sample(one + other, len(one + other)) for one, other in zip(tables, odd, strict=True)]
            found = _changes(tmp_path / f"{number}-{neighbour}", together, unit, choose)
            kept = {entry: told for entry, told in found.items() if entry.startswith("e1")}
            assert known is None or kept == known, (number, neighbour)
            known, used = kept, used + len(kept)

    assert used > 20 * SPECS


def _changes(folder: Path, tables: list[list[Row]], unit: str | None, choose: Random) -> dict[str, list[str]]:
    """Return the changes of each entry, in order."""
    folder.mkdir()
    for day, rows in zip(DAYS, tables, strict=True):
        formats.csv(rows, folder / f"{day}.csv", choose, before=False)
    own: dict[str, Any] = {"time": None, "before": None, "after": None, "every": DAY, "owner": unit}
    layout = look(folder / "%Y-%m-%d.csv", "snapshots", numbers="x", others="w ok", types=(("ok", "bool"),), **own)
    comparison = comparison_of(layout)
    groups: dict[int, list[bytes]] = defaultdict(list)
    for part in parts(layout, batch_rows=choose.choice([2, 1000])):
        if isinstance(part, Batch):
            for group, payload in route(part, comparison):
                groups[group].append(payload)
    found: dict[str, list[str]] = defaultdict(list)
    for group in sorted(groups):
        payloads = choose.sample(groups[group], len(groups[group]))
        for part in compare((group, payloads), comparison):
            if isinstance(part, Batch):
                for row in part.table.to_pylist():
                    found[row["entry"]].append(repr({name: plain(value) for name, value in row.items()}))
    return {entry: sorted(told) for entry, told in found.items()}
