"""JSON lines with many names of members that no query reads."""

import time

import pyarrow as pa
import pytest

from tests.transforms.writing import NOON, look, parts, read, write_jsonl
from transforms.common.images import IMAGE
from transforms.sources.columns.layout import Layout
from transforms.sources.formats import jsonl

SECONDS = 7.0
"""Limit of processor time: at least twice the time that is needed, and less than half of that of a quadratic reader."""


def lines(rows: int, names: int, *, apart: int = 0) -> list[dict]:
    """Return rows with a number of names each; the first name of row i has the number i * apart."""
    return [
        {
            "id": row,
            "at": NOON,
            "before": None,
            "after": {"x": row, **{f"n{row * apart + n}": 1 for n in range(names)}},
        }
        for row in range(rows)
    ]


def images(layout: Layout) -> list[int]:
    return [image for part in parts(layout) for image in part.table[f"{IMAGE}.after"].to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("found", [lines(2, 8000), lines(8000, 1, apart=1)], ids=["one line", "each its own"])
def test_names_that_no_query_reads_take_little_time(tmp_path, found):
    path = write_jsonl(tmp_path / "a.jsonl", found)
    began = time.process_time()

    rows = read(look(path, "jsonl", numbers="x", before="before", after="after"), batch_rows=5000)

    assert time.process_time() - began < SECONDS
    assert [row["after.x"] for row in rows] == [row["after"]["x"] for row in found]


@pytest.mark.slow
def test_lines_with_different_names_have_the_digests_that_each_has_alone(tmp_path, monkeypatch):
    found = lines(600, 3, apart=2)
    path = write_jsonl(tmp_path / "a.jsonl", found)
    layout = look(path, "jsonl", numbers="x", before="before", after="after")
    cells, parse = [], jsonl.parse

    def counted(block: pa.Buffer, rows: int, fields):
        cells.append(rows * len(fields))
        return parse(block, rows, fields)

    monkeypatch.setattr(jsonl, "parse", counted)
    together = images(layout)
    alone = []
    for line in found[::60]:
        alone += images(
            look(write_jsonl(tmp_path / "b.jsonl", [line]), "jsonl", numbers="x", before="before", after="after")
        )

    assert max(cells) < 600 * 600
    assert together[::60] == alone
    assert len(set(together)) == 600
