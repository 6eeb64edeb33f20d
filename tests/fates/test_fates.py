"""The treatment of a row is a function of that row and the spec alone (and of the schema that a file declares).

Rows of every format are read with neighbouring rows of all kinds, in different blocks, files and orders, and compared.
"""

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.fates.reading import CASES, Fate, RefusedError, Spec, fates, write
from tests.fates.rows import Row, row_of
from tests.searches import TIMES
from transforms.sources.files.listing import Listed

SPECS = int(os.environ.get("FATES_SPECS", str(2 * TIMES)))
"""Specs for each format, more in `make search`. For a longer one set FATES_SPECS; FATES_SEED selects other specs."""

SEED = os.environ.get("FATES_SEED", "1")
FOLDERS, FILES = 1, 8
"""Changelogs read with each spec, and files in each. Any two of these files are compared: 28 pairs."""


@pytest.mark.hypothesis  # `make search` selects by this mark
@pytest.mark.parametrize("name", CASES)
def test_the_treatment_of_a_row_depends_on_no_other_row(name, tmp_path):
    told: Counter[str] = Counter()
    for number in range(SPECS):
        told += neighbours(name, f"{SEED} {name} {number}", tmp_path / str(number))

    assert told["compared"] > SPECS * FOLDERS * FILES // 2, told
    assert told["used"] > SPECS * FILES // 2, told


def neighbours(name: str, seed: str, folder: Path) -> Counter[str]:
    """Read files that share rows, each with other odd rows, and compare the treatment of the shared rows."""
    choose = Random(seed)
    spec = Spec.of(CASES[name], choose)
    common = [row_of(choose, 1000 + number, odd=choose.choice([0.0, 0.1])) for number in range(6)]
    known: dict[int, Fate] = {}
    told: Counter[str] = Counter()
    for number in range(FOLDERS):
        place = folder / str(number)
        place.mkdir(parents=True)
        files = [_neighbour(common, choose) for _ in range(FILES)]
        entries = [write(spec, rows, place / f"{at:02}.{spec.case.extension}", choose) for at, rows in enumerate(files)]
        try:
            layout = spec.look(place)
        except RefusedError as refused:
            told += Counter({"refused": 1, f"refused: {refused}"[-100:]: 1})
            continue
        for file, keys in zip(layout.files, entries, strict=True):
            try:
                found = fates(spec, layout, file, keys, choose)
            except RefusedError as refused:
                told += Counter({"refused": 1, f"refused: {refused}"[-100:]: 1})
                continue
            told["compared"] += 1
            for row in common:
                if row.entry in found:
                    fate = known.setdefault(row.entry, found[row.entry])
                    assert found[row.entry] == fate, _difference(seed, file, row, fate, found[row.entry])
                    told[str(fate[0]) if isinstance(fate[0], str) else "used"] += 1
    return told


def _neighbour(common: list[Row], choose: Random) -> list[Row]:
    """Return most of the common rows, or a single one, with odd rows between, before or after them."""
    rows = choose.sample(common, choose.choice([1, 2, 4, 5, 6, 6]))
    odd = [
        row_of(choose, 5000 + place, odd=choose.choice([0.1, 0.6])) for place in range(choose.choice([0, 1, 1, 2, 3]))
    ]
    if choose.random() < 0.5:
        return choose.sample(rows + odd, len(rows + odd))
    return odd + rows if choose.random() < 0.7 else rows + odd


def _difference(seed: str, file: Listed, row: Row, one: Fate, other: Fate) -> str:
    return f"seed {seed!r}, file {file.path}, row e{row.entry}, how {row.how}:\n  {one}\n  {other}"
