"""A format is one entry of one table: its name stands nowhere else, and what depends on it asks the entry."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.test_house import PACKAGES, ROOT, modules
from transforms.sources.formats.table import FORMATS

NAMED = {
    "transforms/common/sinks.py": {"parquet", "csv", "jsonl"},  # the table of what is written
    "transforms/common/published_files.py": {"parquet", "csv", "jsonl"},  # and of what is read back of that
    "pipelines/changelog/simulate.py": {"parquet"},  # a spec that reads what it writes
    "pipelines/local/estimated.py": {"csv"},  # of which formulas are told apart from texts
    "transforms/sources/rows.py": {"parquet"},  # rows of a pipeline are read as its files are
    **{f"transforms/sources/formats/{name}.py": {name} for name in FORMATS},
}
"""Where a format's name may stand."""

HELP = """
import sys
from pipelines.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    print("loaded:", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def texts(path: Path) -> Iterator[str]:
    """The texts in a file's code, without its documentation."""
    tree = ast.parse(path.read_text())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def test_a_formats_name_stands_in_its_own_module_and_in_no_other_code() -> None:
    found = {str(path.relative_to(ROOT)): set(texts(path)) & set(FORMATS) for p in PACKAGES for path in modules(p)}

    assert {path: names for path, names in found.items() if names} == NAMED


def test_help_loads_neither_beam_nor_arrow() -> None:
    said = subprocess.run(
        [sys.executable, "-c", HELP, "changelog", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert "--format NAME" in said
    assert not {"apache_beam", "pyarrow", "numpy", "pydantic", "duckdb"} & set(said.split("loaded:")[1].split())
