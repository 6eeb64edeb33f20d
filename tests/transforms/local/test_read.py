"""Files of reports: an invalid row is a dead letter alone; and tests of the rows that count."""

import json
import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privacy.local.client import Reports
from privacy.local.document import mark
from privacy.local.signatures import SECRET, device_key, sign
from tests.transforms.local.test_collect import DESIGN, collection
from transforms.common.sinks import write_table
from transforms.local.collect import parts_of, secret_of
from transforms.local.distinct import Quality
from transforms.local.read import tables_of
from transforms.local.report_tables import SCHEMA, table_of

GOOD = {"person": 1, "window": 0, "layer": 0, "symbol": 0, "sign": 1, "design": mark(DESIGN)}
ABSURD: dict[str, tuple[Any, ...]] = {
    "person": (10**22, True, "x", "", -1, 10, 1.0, 0.5, None, "1 ", "0x1F", "é"),
    "window": (2**40, "soon", None, -1),
    "layer": (300, 2**64, False, "a"),
    "symbol": (-7, 2**33, "1e2", None),
    "sign": (1.0, 200, "+1", 0, None, "- 1"),
    "design": (None,),
}


def absurd_rows() -> list[dict[str, Any]]:
    return [{**GOOD, name: value} for name, values in ABSURD.items() for value in values]


def counts(paths: list[str], secret: str | None = None) -> tuple[list[int], Quality]:
    """Return the people whose reports count, and the treatment of the other rows."""
    of, people, total = replace(collection(10), secret=secret), [], Counter[tuple[str, str]]()
    for path in paths:
        for table in tables_of(path, signed=secret is not None):
            parts, left_out = parts_of(of, table)
            people += [person for _, part in parts for person in part["person"].to_pylist()]
            total += left_out
    return sorted(people), total


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_invalid_row_of_text_is_a_dead_letter_alone(tmp_path: Path, kind: str) -> None:
    rows = [GOOD, *absurd_rows(), {**GOOD, "person": 2}]
    lines = [json.dumps(row) for row in rows]
    if kind == "csv":
        cells = [["" if value is None else str(value).lower() for value in row.values()] for row in rows]
        lines = [",".join(GOOD), *(",".join(row) for row in cells)]
    broken = ["{", "[]", "7,7"] if kind == "jsonl" else ["7,7", "1,2,3,4,5,6,7,8"]
    path = tmp_path / f"a.{kind}"
    path.write_text("\n".join([*lines, *broken]) + "\n")

    people, left_out = counts([str(path)])

    assert people == [1, 2]
    assert left_out == {("unusable", str(path)): len(rows) - 2 + len(broken)}


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("person", pa.array([1, None, 2**63 + 5, 2], pa.uint64())),
        ("person", pa.array([1.0, 0.5, None, 2.0])),
        ("person", pa.array(["1", "x", "1" * 23, "2"])),
        ("sign", pa.array([1, 200, -200, -1], pa.int16())),
        ("layer", pa.array([0, 256, 2**40, 0], pa.int64())),
    ],
)
def test_an_invalid_row_of_parquet_is_a_dead_letter_alone(tmp_path: Path, name: str, column: pa.Array) -> None:
    table = pa.Table.from_pylist([{**GOOD, "person": person} for person in (1, 5, 6, 2)])
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path := f"{tmp_path}/a.parquet")

    people, left_out = counts([path])

    assert people == [1, 2]
    assert left_out == {("unusable", path): 2}


def test_reports_of_another_design_are_left_out_and_counted_by_file(tmp_path: Path) -> None:
    theirs = {**GOOD, "design": mark(replace(DESIGN, survey="the same numbers about something else"))}
    paths = [f"{tmp_path}/{name}" for name in ("ours.parquet", "theirs.parquet", "both.csv")]
    for path, rows in zip(paths, ([GOOD], [theirs, theirs], [theirs, {**GOOD, "person": 2}]), strict=True):
        write_table(pa.Table.from_pylist(rows), path, format_=path.rpartition(".")[2])  # type: ignore[arg-type]

    people, left_out = counts(paths)

    assert people == [1, 2]
    assert left_out == {("other_design", paths[1]): 2, ("other_design", paths[2]): 1}


def test_a_report_without_the_signature_of_its_device_does_not_count(tmp_path: Path) -> None:
    """Forged, changed, copied from another report, and from a device that was enrolled in another survey."""
    (tmp_path / "secret").write_text(secrets.token_hex(SECRET) + "\n")
    secret = secret_of((tmp_path / "secret").read_bytes())
    other = replace(DESIGN, survey="another")

    def signed(person: int, by: bytes) -> dict[str, Any]:
        sent = Reports(
            person=np.array([person]),
            layer=np.zeros(1, dtype=np.uint8),
            symbol=np.zeros(1, dtype=np.uint32),
            sign=np.ones(1, dtype=np.int8),
            design=mark(DESIGN),
        )
        (row,) = table_of(sent, window=1).to_pylist()
        return {**row, "signature": sign(by, sent, window=1)[0]}

    good = signed(1, device_key(secret, DESIGN, 1))
    rows = [
        good,
        signed(2, device_key(secret, DESIGN, 1)),
        signed(2, device_key(secret, other, 2)),
        signed(2, device_key(secrets.token_bytes(SECRET), DESIGN, 2)),
        {**good, "person": 2},
        {**good, "symbol": 1 - good["symbol"]},
        {**good, "sign": -good["sign"]},
        {**good, "window": 3},
        *({**good, "signature": each} for each in (None, "", good["signature"].upper() + " ", good["signature"][:-2])),
    ]
    for path in (f"{tmp_path}/a.csv", f"{tmp_path}/a.jsonl", f"{tmp_path}/a.parquet"):
        write_table(pa.Table.from_pylist(rows), path, format_=path.rpartition(".")[2])  # type: ignore[arg-type]

        people, left_out = counts([path], str(tmp_path / "secret"))

        assert people == [1]
        assert left_out == {("unsigned", path): len(rows) - 1}
    write_table(SCHEMA.empty_table(), path)
    with pytest.raises(ValueError, match="no column 'signature'"):
        counts([path], str(tmp_path / "secret"))


@pytest.mark.parametrize("content", ["", "00" * 31, "00" * 33, "secret", "é"])
def test_a_secret_of_another_size_is_refused(content: str) -> None:
    with pytest.raises(ValueError, match="32 bytes in hexadecimal"):
        secret_of(content.encode())
