"""A format is one entry of one table: its name occurs nowhere else, and other code asks the entry."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import slackwater
from pipelines.spec.load import load
from tests.e2e.specs import published
from tests.test_house import PACKAGES, ROOT, modules
from transforms.common.errors import SpecError
from transforms.sources.formats.csv import CSV
from transforms.sources.formats.table import FORMATS

NAMED = {
    "transforms/common/output_formats.py": {"parquet", "csv", "jsonl"},  # the table of written formats
    "pipelines/simulate/operation.py": {"parquet"},  # a spec that reads the written files
    "transforms/sources/rows.py": {"parquet"},  # rows of a pipeline are read as Parquet
    "pipelines/audit/files.py": {"parquet", "csv", "jsonl", "debezium"},  # an audit writes files without the product
    "pipelines/audit/prepared.py": {"debezium"},  # the format with truncates
    "pipelines/report/tables.py": {"csv"},  # readers of a page save a table for spreadsheets
    **{f"transforms/sources/formats/{name}.py": {name} for name in FORMATS},
}
"""Modules that may hold a format's name."""

HELP = """
import sys
from pipelines.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    print("loaded:", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def texts(path: Path) -> Iterator[str]:
    """Return the texts in a file's code, without its documentation."""
    tree = ast.parse(path.read_text())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


@pytest.mark.slow
def test_a_formats_name_is_in_its_module_and_in_no_other_code() -> None:
    found = {str(path.relative_to(ROOT)): set(texts(path)) & set(FORMATS) for p in PACKAGES for path in modules(p)}

    assert {path: names for path, names in found.items() if names} == NAMED


def test_help_loads_neither_beam_nor_arrow() -> None:
    said = subprocess.run(
        [sys.executable, "-c", HELP, "changelog", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert "--format NAME" in said
    assert not {"apache_beam", "pyarrow", "numpy", "pydantic", "duckdb"} & set(said.split("loaded:")[1].split())


SPEC = """\
release: toy
changelog: {format: toy, path: "*.toy", entry: stay, time: at, before: before_, after: after_}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-03T00:00:00Z}
output: {public: public, private: private, format: csv}
privacy: {epsilon: 10000000, constraint: {at_most: 2}}
queries:
  - {name: wards, measure: count, by: {ward: [a, b]}, publish: [level], strategy: disjoint}
"""


@pytest.mark.slow
def test_a_format_in_the_table_is_read_from_a_spec_and_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "stays.toy").write_text("stay,at,before_ward,after_ward\n1,2026-01-01T08:00:00Z,,a\n")
    with pytest.raises(SpecError, match=r"expected one of parquet, csv, .*, not 'toy'"):
        load(tmp_path / "spec.yaml")

    monkeypatch.setitem(FORMATS, "toy", replace(CSV, name="toy", endings=(".toy",)))
    monkeypatch.chdir(tmp_path)
    slackwater.run("spec.yaml", until="2026-01-03T00:00:00Z")

    levels = published(tmp_path, "estimates").to_pandas()
    assert levels[levels["ward"] == "a"]["value"].round().tolist() == [1, 1]
    assert levels[levels["ward"] == "b"]["value"].round().tolist() == [0, 0]
