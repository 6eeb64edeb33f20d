"""Tables of files agree with the tree, and so does every file, module and install command that a page names.

A table whose first heading is `file` or `folder` lists all that the page's own folder holds, one row each.
"""

import importlib
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pipelines.spec.models import SpecModel
from tests.test_house import ROOT, canonical, pins, setup_arguments
from tests.test_readme import PAGES, keys_of, name_of

PACKAGES = ("benchmarks", "examples", "pipelines", "privacy", "templates", "tests", "transforms")
KINDS = ("file", "folder")
ELSEWHERE = {"made_up.py", "toeplitz.py"}
"""Files that pages name and the repository lacks: the tutorial's reader writes one, another library holds the other."""
KEYS = {key.strip("`") for key, _ in keys_of(SpecModel)}
"""Keys of the spec, since `privacy` is also a section."""


def tables(path: Path) -> list[list[list[str]]]:
    """Return all tables of a page as rows of cells, the heading first."""
    found = re.findall(r"^((?:\|.*\n)+)", path.read_text(), re.MULTILINE)
    rows = [[line for line in table.splitlines() if not line.startswith("|---")] for table in found]
    return [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in table] for table in rows]


def listed(path: Path, kind: str) -> list[str]:
    """Return the names in the first column of all tables whose first heading is `kind`."""
    told = [row[0] for table in tables(path) if table[0][0] == kind for row in table[1:]]
    return [cell.strip("`/") for cell in told if cell.startswith("`")]


@cache
def kept(folder: Path) -> set[Path]:
    """Return all files and folders of the project in a folder."""
    told = subprocess.run(["git", "ls-files", "-z", "."], cwd=folder, capture_output=True, text=True, check=True).stdout
    return {folder / part for name in told.split("\0") if name for part in (Path(name), *Path(name).parents[:-1])}


COMPLETE = [(path, kind) for path in PAGES for kind in KINDS if listed(path, kind)]


@pytest.mark.parametrize(("path", "kind"), COMPLETE, ids=[f"{name_of(path)}-{kind}" for path, kind in COMPLETE])
def test_a_table_of_files_lists_each_file_once_and_no_other(path: Path, kind: str) -> None:
    there = {
        found.name
        for found in kept(path.parent)
        if found.parent == path.parent and (found.is_dir() if kind == "folder" else found.suffix == ".py")
        if not found.name.startswith("test_")  # tests are next to their modules
    }

    assert sorted(listed(path, kind)) == sorted(there - {"__init__.py"})


def test_tables_of_files_are_found() -> None:
    assert {(name_of(path), kind) for path, kind in COMPLETE} >= {
        ("privacy/README.md", "file"),
        ("templates/README.md", "folder"),
    }


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_files_and_modules_that_a_page_names_exist(path: Path) -> None:
    """A page may leave out the first folders of a file's path; it names modules with or without a member."""
    text = path.read_text()
    files = set(re.findall(rf"`((?:docs|{'|'.join(PACKAGES)})/[\w./-]*)`", text))
    names = set(re.findall(r"`((?:[\w-]+/)*\w+\.py)`", text)) - ELSEWHERE
    modules = set(re.findall(rf"`((?:{'|'.join(PACKAGES)})\.[a-z_]\w*(?:\.\w+)*)`", text)) - files

    missing = {name for name in files if not (ROOT / name).exists()}
    missing |= {name for name in names if not any(f"/{found}".endswith(f"/{name}") for found in kept_paths())}
    missing |= {name for name in modules - KEYS if not leads_to_code(name)}
    assert missing == set()


@cache
def kept_paths() -> list[str]:
    return [found.relative_to(ROOT).as_posix() for found in kept(ROOT)]


def leads_to_code(name: str) -> bool:
    """Return whether a name is a module or a member of a module."""
    *parents, last = name.split(".")
    if (ROOT.joinpath(*parents, f"{last}.py")).exists() or ROOT.joinpath(*parents, last).is_dir():
        return True
    try:
        return hasattr(importlib.import_module(".".join(parents)), last)
    except ImportError:
        return False


def test_setup_allows_the_tested_versions() -> None:
    asked = setup_arguments()
    wanted = [*asked["install_requires"]]  # type: ignore[misc]
    for extra in asked["extras_require"].values():  # type: ignore[attr-defined]
        wanted += extra
    exact = dict(line.split()[0].split("==") for lines in pins().values() for line in lines)
    exact = {canonical(name): version for name, version in exact.items()}

    found = [Requirement(text) for text in wanted]
    assert [str(one) for one in found if not one.specifier.contains(exact[canonical(one.name)])] == []


def test_install_commands_use_a_checkout_and_existing_extras() -> None:
    """The project is on no package index, and somebody else could publish a package of the same name there."""
    told = [
        (path.name, command)
        for path in kept(ROOT)
        if path.is_file() and path.suffix in (".md", ".py", ".yaml", "") and path != Path(__file__).resolve()
        for command in re.findall(r"pip install ([^`\n]*)", path.read_text(errors="ignore"))
    ]
    extras = setup_arguments()["extras_require"]

    assert [one for one in told if "slackwater" in one[1]] == []
    named = [extra for _, command in told for extra in re.findall(r"\.\[([\w,]+)\]", command)]
    assert named
    assert {one for extra in named for one in extra.split(",")} <= extras.keys()  # type: ignore[attr-defined]
