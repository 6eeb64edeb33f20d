"""The rules of the house: the way imports run, lists of packages that agree."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("privacy", "transforms", "pipelines", "slackwater")

SOURCES = ("transforms.sources.files", "transforms.sources.columns", "transforms.sources.formats")

# The rooms of each package, and which of its others each may import; files beside the rooms count as one.
ROOMS = {
    "privacy": (),
    "privacy.noise": ("privacy",),
    "privacy.accounting": ("privacy", "privacy.noise"),
    "privacy.strategies": ("privacy",),
    "privacy.adaptive": ("privacy", "privacy.noise", "privacy.cells"),
    "privacy.answers": ("privacy", "privacy.noise", "privacy.cells"),
    "privacy.cells": ("privacy",),
    "privacy.local": ("privacy",),
    "privacy.planning": (
        *("privacy", "privacy.noise", "privacy.accounting", "privacy.strategies", "privacy.adaptive"),
        "privacy.cells",
    ),
    "privacy.sanitised": ("privacy", "privacy.noise", "privacy.accounting"),
    "privacy.smoothing": ("privacy", "privacy.strategies"),
    "transforms": ("transforms.common",),
    "transforms.common": (),
    "transforms.sources.files": ("transforms.common",),
    "transforms.sources.columns": ("transforms.common", "transforms.sources.files"),
    "transforms.sources.formats": ("transforms.common", "transforms.sources.files", "transforms.sources.columns"),
    "transforms.sources": ("transforms.common", *SOURCES),
    "transforms.aggregation": ("transforms.common",),
    "transforms.local": ("transforms.common", "transforms.sources", *SOURCES),
    "transforms.release": ("transforms.common", "transforms.aggregation"),
    "transforms.sanitised": ("transforms.common",),
    "transforms.streams": (
        *("transforms.common", "transforms.sources", *SOURCES),
        *("transforms.aggregation", "transforms.release"),
    ),
    "pipelines.spec": (),
    "pipelines.store": ("pipelines.spec",),
    "pipelines.sinks": ("pipelines.spec", "pipelines.store"),
    "pipelines.epochs": ("pipelines.spec", "pipelines.store", "pipelines.sinks"),
    "pipelines.changelog": ("pipelines.spec", "pipelines.epochs", "pipelines.reports"),
    "pipelines.local": ("pipelines.spec", "pipelines.epochs"),
    "pipelines.reports": (
        *("pipelines.spec", "pipelines.store", "pipelines.epochs"),
        *("pipelines.local", "pipelines.sanitised"),
    ),
    "pipelines.sanitised": ("pipelines.spec", "pipelines.store", "pipelines.epochs"),
    "pipelines.pages": (
        *("pipelines.spec", "pipelines.epochs", "pipelines.reports", "pipelines.local", "pipelines.sanitised"),
    ),
    "pipelines": (
        *("pipelines.spec", "pipelines.store", "pipelines.epochs", "pipelines.changelog", "pipelines.reports"),
        *("pipelines.local", "pipelines.pages", "pipelines.sanitised"),
    ),
    "slackwater": (),
}
BELOW = {
    "privacy": set[str](),
    "transforms": {"privacy"},
    "pipelines": {"privacy", "transforms"},
    "slackwater": {"privacy", "transforms", "pipelines"},
}
"""Which packages each may import, any room of them."""

LATE = "pipelines/commands.py"
"""The only file with imports inside functions: `--help` answers before Beam is loaded, and a command without others."""

# The mathematics knows no files, no clock, no process and no pipeline.
NOT_MATHEMATICS = {
    "apache_beam",
    "datetime",
    "duckdb",
    "google",
    "io",
    "logging",
    "os",
    "pathlib",
    "pyarrow",
    "pydantic",
    "ruamel",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "time",
    "tqdm",
}


OPEN = {f"privacy.strategies.{name}" for name in ("base", "candidates", "choice", "table", "touched", "window_budgets")}
"""All that the rest knows of strategies."""

ABOUT_TREES = {("privacy/planning/paper.py", "privacy.strategies.tree_odd_nodes")}
"""The paper knows trees alone."""


@pytest.mark.xdist_group("together")
def test_tests_of_a_group_stay_on_one_worker(request: pytest.FixtureRequest) -> None:
    """Else each worker would start a Flink cluster of its own, without a word."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not spread in groups: they are with --dist loadgroup")
    assert request.node.nodeid.endswith("@together")


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


@cache
def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Those of a file, wherever in it."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(path: Path) -> set[str]:
    """Top-level names of everything that a file imports."""
    names: set[str] = set()
    for node in imports(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        else:
            names.add("." if node.level else str(node.module).split(".")[0])
    return names


def setup_arguments() -> dict[str, object]:
    """The literal keyword arguments of the call in setup.py."""
    for node in ast.walk(ast.parse((ROOT / "setup.py").read_text())):
        if isinstance(node, ast.Call):
            return {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
    raise AssertionError("setup.py calls nothing")


def canonical(requirement: str) -> str:
    """A distribution's name as the package index compares them."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def named(path: Path) -> str:
    """A module's name; a package's for its __init__.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def uses(path: Path) -> set[str]:
    """Modules of ours, of tests and of others that are no packages, which a file imports."""
    found: set[str] = set()
    for node in imports(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in names if name in MODULES} or {"." * node.level + str(node.module)}
    return {name for name in found if name.split(".")[0] in {*PACKAGES, "tests", "examples", "benchmarks", ""}}


MODULES = {named(path) for package in PACKAGES for path in modules(package) if path.name != "__init__.py"}


def room_of(module: str) -> str:
    return module.rpartition(".")[0]


def test_imports_run_one_way_between_packages_and_between_rooms() -> None:
    wrong = set()
    for path in (path for package in PACKAGES for path in modules(package)):
        own = room_of(named(path)) if path.name != "__init__.py" else named(path)
        for name in uses(path):
            room, package = room_of(name), own.split(".")[0]
            if name not in MODULES or not (room == own or room in ROOMS[own] or room.split(".")[0] in BELOW[package]):
                wrong.add(f"{path.relative_to(ROOT)} imports {name}")

    assert wrong == set()


def test_no_files_import_each_other_in_a_circle() -> None:
    arrows = [(named(path), name) for package in PACKAGES for path in modules(package) for name in uses(path)]

    assert [
        circle for circle in networkx.strongly_connected_components(networkx.DiGraph(arrows)) if len(circle) > 1
    ] == []


def test_no_strategy_is_known_outside_of_its_room() -> None:
    """Nobody asks of what class a strategy is: a new one is its own files, a row of the table and the spec's words."""
    known = {
        (str(path.relative_to(ROOT)), name)
        for path in (path for package in PACKAGES for path in modules(package))
        for name in uses(path)
        if room_of(named(path)) != "privacy.strategies" and room_of(name) == "privacy.strategies"
    }

    assert {(path, name) for path, name in known if name in MODULES and name not in OPEN} == ABOUT_TREES


def test_strategies_are_built_on_no_other_but_in_their_table() -> None:
    kinds = ("tree", "direct", "factorised")
    across = {
        f"{named(path)} imports {name}"
        for path in (ROOT / "privacy" / "strategies").glob("*.py")
        for name in uses(path)
        if path.stem != "table"
        and name in MODULES
        and (of := name.removeprefix("privacy.strategies.").split("_")[0]) in kinds
        and path.stem.split("_")[0] != of
    }

    assert across == set()


def test_imports_stand_at_the_top_of_their_files() -> None:
    """One inside a function hides a circle, or what a room depends on."""
    inside = set()
    for path in (path for package in PACKAGES for path in modules(package)):
        if not any(node.col_offset for node in imports(path)):
            continue  # or at the top of a file, in a condition
        tree = ast.parse(path.read_text())
        for node in (n for part in ast.walk(tree) if isinstance(part, ast.FunctionDef) for n in ast.walk(part)):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES:
                inside |= {(str(path.relative_to(ROOT)), f"{node.module}.{alias.name}") for alias in node.names}
            elif isinstance(node, ast.Import):
                inside |= {
                    (str(path.relative_to(ROOT)), alias.name)
                    for alias in node.names
                    if alias.name.split(".")[0] in PACKAGES
                }

    assert {path for path, _ in inside} == {LATE}


def test_privacy_imports_neither_a_pipeline_nor_files_nor_a_clock() -> None:
    foreign = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("privacy")
        for name in imported(path) & NOT_MATHEMATICS
    }

    assert foreign == set()


@pytest.mark.parametrize("package", ["transforms", "pipelines", "slackwater"])
def test_beam_can_see_type_hints(package: str) -> None:
    """With postponed annotations Beam sees strings, and checks and codes nothing."""
    blind = {
        str(path.relative_to(ROOT))
        for path in modules(package)
        if "from __future__ import annotations" in path.read_text()
    }

    assert blind == set()


def test_setup_lists_every_package_and_nothing_else() -> None:
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }

    assert set(setup_arguments()["packages"]) == folders  # type: ignore[call-overload]


def test_whoever_imports_a_package_has_its_types() -> None:
    """In one without the file all is Any, `slackwater.Spec` too, which is of another package."""
    shipped = setup_arguments()["package_data"]

    assert [name for name in PACKAGES if "py.typed" not in shipped.get(name, ())] == []  # type: ignore[attr-defined]
    assert [name for name in PACKAGES if not (ROOT / name / "py.typed").exists()] == []


def test_every_folder_with_code_is_a_package() -> None:
    """Without __init__.py a folder of tests would import another distribution's `tests`."""
    bare = {
        str(path.parent.relative_to(ROOT))
        for folder in (*PACKAGES, "tests")
        for path in (ROOT / folder).rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    }

    assert bare == set()


def test_no_other_distribution_owns_our_names() -> None:
    owners = packages_distributions()

    assert {name: set(owners.get(name, ["slackwater"])) for name in PACKAGES} == {
        name: {"slackwater"} for name in PACKAGES
    }


TESTED = ("docs", "test")
"""Extras that only tests and documentation need."""


def pins() -> dict[str, list[str]]:
    """The lines of both lists of exact versions, by the list's path."""
    paths = ("requirements.txt", "tests/requirements.txt")
    return {path: re.findall(r"^[^#\n]+.*$", (ROOT / path).read_text(), re.MULTILINE) for path in paths}


def test_requirements_pin_exactly_what_setup_asks_for() -> None:
    """What runs and its demos in one list, what tests and documentation need besides in the other."""
    runs, tests = pins().values()
    asked = setup_arguments()
    extras: dict[str, list[str]] = asked["extras_require"]  # type: ignore[assignment]
    needed = {"runs": {canonical(line) for line in asked["install_requires"]}, "tests": set[str]()}  # type: ignore[attr-defined]
    for name, extra in extras.items():
        needed["tests" if name in TESTED else "runs"] |= {canonical(line) for line in extra}

    assert all(re.match(r"[A-Za-z0-9._-]+==[^ ]+( |$)", line) for line in runs + tests)
    assert len({canonical(line) for line in runs + tests}) == len(runs + tests)
    chosen = [{canonical(line) for line in lines if "#" in line} for lines in (runs, tests)]  # these say why
    assert chosen[0] | chosen[1] == needed["runs"] | needed["tests"]
    assert needed["runs"] <= chosen[0]


def test_pytest_collects_the_doctests_of_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]

    assert "--doctest-modules" in settings["addopts"]
    assert set(PACKAGES) <= set(settings["testpaths"])


def test_what_docstrings_refer_to_is_there() -> None:
    """A module of ours, by its whole name, or something in it."""
    known = {
        str(path.relative_to(ROOT).with_suffix("")).replace("/", "."): path for p in PACKAGES for path in modules(p)
    }
    rooms = {name.rpartition(".")[0] for name in known}
    missing = []
    for name, path in known.items():
        tree = ast.parse(path.read_text())
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
        told = "\n".join(filter(None, map(ast.get_docstring, nodes)))
        for found in re.findall(rf"\b(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*){{2,}}", told):
            module, _, inside = found.rpartition(".")
            there = found in known or found in rooms
            there |= module in known and re.search(rf"\b{inside}\b", known[module].read_text()) is not None
            if not there and module.rpartition(".")[0] not in known:
                missing.append((name, found))

    assert missing == []
