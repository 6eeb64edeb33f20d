"""Rules of the code base: directions of imports, limits of size, and lists of packages that agree."""

import ast
import re
import runpy
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import networkx
import pytest
import setuptools  # type: ignore[import-untyped]

from pipelines.commands import COMMANDS
from privacy.noise.kinds import NOISE

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("privacy", "transforms", "pipelines", "slackwater")

SOURCES = ("transforms.sources.files", "transforms.sources.columns", "transforms.sources.formats")

STRATEGIES = tuple(f"privacy.strategies.{kind}" for kind in ("direct", "factorised", "tree"))

# What every command may import, and what some import in addition.
RUNNING = ("pipelines", *(f"pipelines.{room}" for room in ("common", "spec", "store", "sinks", "epochs", "published")))
OF_OTHERS = {
    "pipelines.audit": ("pipelines.pages", "pipelines.run", "pipelines.compact"),
    "pipelines.evaluate": ("pipelines.plan",),
    "pipelines.init": ("pipelines.changelog", "pipelines.plan"),
    "pipelines.local": (
        *("pipelines.pages", "pipelines.ledger", "pipelines.disclosure", "pipelines.audit"),
        "pipelines.report",
    ),
    "pipelines.metrics": ("pipelines.ledger",),
    "pipelines.plan": ("pipelines.pages",),
    "pipelines.registry": ("pipelines.pages", "pipelines.disclosure"),
    "pipelines.report": ("pipelines.pages", "pipelines.pages.pictures", "pipelines.disclosure", "pipelines.ledger"),
    "pipelines.run": ("pipelines.report",),
    "pipelines.sanitised": (
        *("pipelines.pages", "pipelines.ledger", "pipelines.metrics", "pipelines.report", "pipelines.disclosure"),
        "pipelines.show",
    ),
}

# The rooms of each package, and which other rooms each may import. A package's files outside the rooms count as one.
ROOMS = {
    "privacy": (),
    "privacy.noise": ("privacy", "privacy.noise.exact"),
    "privacy.noise.exact": (),
    "privacy.accounting": ("privacy", "privacy.noise"),
    "privacy.strategies": ("privacy", "privacy.noise", *STRATEGIES),
    "privacy.strategies.direct": ("privacy", "privacy.strategies"),
    "privacy.strategies.factorised": ("privacy", "privacy.noise", "privacy.strategies"),
    "privacy.strategies.tree": ("privacy", "privacy.strategies"),
    "privacy.adaptive": ("privacy", "privacy.noise", "privacy.cells", "privacy.strategies"),
    "privacy.answers": ("privacy", "privacy.noise", "privacy.cells", "privacy.strategies", "privacy.smoothing"),
    "privacy.cells": ("privacy", "privacy.cells.kdtree"),
    "privacy.cells.kdtree": ("privacy", "privacy.cells"),
    "privacy.discovery": ("privacy", "privacy.noise", "privacy.strategies"),
    "privacy.evidence": ("privacy", "privacy.noise", "privacy.strategies", "privacy.adaptive", "privacy.cells"),
    "privacy.local": ("privacy",),
    "privacy.planning": (
        *("privacy", "privacy.noise", "privacy.accounting", "privacy.strategies", "privacy.adaptive"),
        "privacy.answers",
        "privacy.cells",
        "privacy.cells.kdtree",
        "privacy.discovery",
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
    "pipelines.disclosure": ("pipelines.spec", "pipelines.pages"),
    "pipelines.epochs": (
        *("pipelines", "pipelines.spec", "pipelines.common", "pipelines.store", "pipelines.sinks"),
        "pipelines.disclosure",
    ),
    "pipelines.common": ("pipelines.spec",),
    "pipelines.published": ("pipelines.spec", "pipelines.common", "pipelines.store", "pipelines.epochs"),
    "pipelines.pages": ("pipelines.spec", "pipelines.pages.pictures"),
    "pipelines.pages.pictures": ("pipelines.pages",),
    **{one.folder: (*RUNNING, *OF_OTHERS.get(one.folder, ())) for one in COMMANDS.values()},
    "pipelines": ("pipelines.common",),
    "slackwater": (),
}
BELOW = {
    "privacy": set[str](),
    "transforms": {"privacy"},
    "pipelines": {"privacy", "transforms"},
    "slackwater": {"privacy", "transforms", "pipelines"},
}
"""Packages that each package may import, with all their rooms."""

LATE = "command.py"
"""Only these files import inside functions, from their own folders, so that `--help` runs before Beam loads."""

# The mathematics uses no files, no clock, no process and no pipeline.
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


OPEN = {f"privacy.strategies.{name}" for name in ("base", "candidates", "choice", "table", "window_budgets")}
"""Modules of strategies that other packages may import."""


@pytest.mark.xdist_group("together")
def test_tests_of_a_group_stay_on_one_worker(request: pytest.FixtureRequest) -> None:
    """Otherwise each worker would silently start a separate Flink cluster."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not spread in groups: they are with --dist loadgroup")
    assert request.node.nodeid.endswith("@together")


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return all imports of a file, also those inside functions."""
    return [node for node in ast.walk(syntax(path)) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(path: Path) -> set[str]:
    """Return the top-level names of all imports of a file."""
    names: set[str] = set()
    for node in imports(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        else:
            names.add("." if node.level else str(node.module).split(".")[0])
    return names


def setup_arguments() -> dict[str, object]:
    """Return the keyword arguments that setup.py gives to setuptools."""
    given: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(setuptools, "setup", lambda **arguments: given.update(arguments))
        runpy.run_path("setup.py")
    return given


def canonical(requirement: str) -> str:
    """Return a distribution's name in the form that the package index compares."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def named(path: Path) -> str:
    """Return a module's name; for an __init__.py, the package's name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def uses(path: Path) -> set[str]:
    """Return the modules of this repository that a file imports."""
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


def test_imports_go_one_way_between_packages_and_between_rooms() -> None:
    wrong = set()
    for path in (path for package in PACKAGES for path in modules(package)):
        own = room_of(named(path)) if path.name != "__init__.py" else named(path)
        for name in uses(path):
            room, package = room_of(name), own.split(".")[0]
            if name not in MODULES or not (room == own or room in ROOMS[own] or room.split(".")[0] in BELOW[package]):
                wrong.add(f"{path.relative_to(ROOT)} imports {name}")

    assert wrong == set()


REMOVABLE = ("local", "sanitised")
"""Folders of each package that can be removed. Only entries of tables and names of `slackwater` change with them."""


def test_nothing_imports_removable_folders() -> None:
    """Commands find these folders in two tables of names: `pipelines.commands` and `pipelines.published.others`."""
    own = {f"{package}.{folder}" for package in PACKAGES for folder in REMOVABLE}
    found = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (path for package in PACKAGES if package != "slackwater" for path in modules(package))
        for name in uses(path)
        if ".".join(name.split(".")[:2]) in own and ".".join(named(path).split(".")[:2]) not in own
    }

    assert found == set()


def test_no_files_import_each_other_in_a_circle() -> None:
    arrows = [(named(path), name) for package in PACKAGES for path in modules(package) for name in uses(path)]

    assert [
        circle for circle in networkx.strongly_connected_components(networkx.DiGraph(arrows)) if len(circle) > 1
    ] == []


def test_other_packages_import_only_open_modules_of_strategies() -> None:
    """No other code checks a strategy's class: a new one needs its files, a row of the table and the spec's keys."""
    room = "privacy.strategies"
    known = {
        (str(path.relative_to(ROOT)), name)
        for path in (path for package in PACKAGES for path in modules(package))
        for name in uses(path)
        if not named(path).startswith(f"{room}.") and name.startswith(f"{room}.")
    }

    assert {(path, name) for path, name in known if name in MODULES and name not in OPEN} == set()


def test_only_the_table_imports_several_strategies() -> None:
    room = ROOT / "privacy" / "strategies"
    own = {*STRATEGIES, "privacy.strategies.sliding"}

    def strategy(name: str) -> str | None:
        return next((one for one in own if name == one or name.startswith(f"{one}.")), None)

    across = {
        f"{named(path)} imports {name}"
        for path in room.rglob("*.py")
        if path != room / "table.py"
        for name in uses(path)
        if name in MODULES and strategy(name) not in (None, strategy(named(path)))
    }

    assert across == set()


def test_imports_are_at_the_top_of_their_files() -> None:
    """An import inside a function hides a circle, or a dependency of a room."""
    inside = set()
    for path in (path for package in PACKAGES for path in modules(package)):
        if not any(node.col_offset for node in imports(path)):
            continue  # an indented import may also be in a condition at the top of a file
        tree = syntax(path)
        for node in (n for part in ast.walk(tree) if isinstance(part, ast.FunctionDef) for n in ast.walk(part)):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES:
                inside |= {(str(path.relative_to(ROOT)), f"{node.module}.{alias.name}") for alias in node.names}
            elif isinstance(node, ast.Import):
                inside |= {
                    (str(path.relative_to(ROOT)), alias.name)
                    for alias in node.names
                    if alias.name.split(".")[0] in PACKAGES
                }

    assert {path for path, _ in inside if Path(path).name != LATE} == set()
    assert {(path, name) for path, name in inside if not name.startswith(room_of(named(ROOT / path)))} == set()


def test_privacy_imports_neither_a_pipeline_nor_files_nor_a_clock() -> None:
    foreign = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("privacy")
        for name in imported(path) & NOT_MATHEMATICS
    }

    assert foreign == set()


@pytest.mark.parametrize("package", ["transforms", "pipelines", "slackwater"])
def test_beam_can_see_type_hints(package: str) -> None:
    """With postponed annotations Beam sees strings, so it neither checks types nor infers coders."""
    blind = {
        str(path.relative_to(ROOT))
        for path in modules(package)
        if "from __future__ import annotations" in path.read_text()
    }

    assert blind == set()


def test_setup_finds_every_package_and_nothing_else() -> None:
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }

    assert set(setup_arguments()["packages"]) == folders  # type: ignore[call-overload]


def test_every_package_ships_its_types() -> None:
    """In a package without `py.typed` every type is Any, also `slackwater.Spec`, which comes from another package."""
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
    """Return the lines of both lists of exact versions, by the list's path."""
    paths = ("requirements.txt", "tests/requirements.txt")
    return {path: re.findall(r"^[^#\n]+.*$", (ROOT / path).read_text(), re.MULTILINE) for path in paths}


def test_requirements_pin_exactly_the_packages_of_setup() -> None:
    """One list is for the program and its demos, the other for what tests and documentation need in addition."""
    runs, tests = pins().values()
    asked = setup_arguments()
    extras: dict[str, list[str]] = asked["extras_require"]  # type: ignore[assignment]
    needed = {"runs": {canonical(line) for line in asked["install_requires"]}, "tests": set[str]()}  # type: ignore[attr-defined]
    for name, extra in extras.items():
        needed["tests" if name in TESTED else "runs"] |= {canonical(line) for line in extra}

    assert all(re.match(r"[A-Za-z0-9._-]+==[^ ]+( |$)", line) for line in runs + tests)
    assert len({canonical(line) for line in runs + tests}) == len(runs + tests)
    chosen = [{canonical(line) for line in lines if "#" in line} for lines in (runs, tests)]  # comments are reasons
    assert chosen[0] | chosen[1] == needed["runs"] | needed["tests"]
    assert needed["runs"] <= chosen[0]


@pytest.mark.parametrize(
    "name", ["requirements", "tests/requirements", "tests/bigquery/requirements", "tests/fuzz/requirements"]
)
def test_hashes_are_those_of_the_pinned_versions(name: str) -> None:
    """`make install` reads the lock file, people read and change the other one; `make lock` makes both equal."""
    pinned = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / f"{name}.txt").read_text(), re.MULTILINE)
    entries = re.findall(
        r"^([\w.-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n",
        (ROOT / f"{name}.lock").read_text(),
        re.MULTILINE,
    )

    assert sorted((canonical(one), version) for one, version in pinned) == [
        (one, version) for one, version, _ in entries
    ]
    assert (
        "".join(f"{one}=={version}{hashes}\n" for one, version, hashes in entries)
        == (ROOT / f"{name}.lock").read_text()
    )


def test_pytest_collects_the_doctests_of_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]

    assert "--doctest-modules" in settings["addopts"]
    assert set(PACKAGES) <= set(settings["testpaths"])


def test_names_in_docstrings_exist() -> None:
    """A docstring names a module of this repository by its full name, or a name inside it."""
    known = {
        str(path.relative_to(ROOT).with_suffix("")).replace("/", "."): path for p in PACKAGES for path in modules(p)
    }
    rooms = {name.rpartition(".")[0] for name in known}
    missing = []
    for name, path in known.items():
        nodes = [
            node for node in ast.walk(syntax(path)) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        ]
        told = "\n".join(filter(None, map(ast.get_docstring, nodes)))
        for found in re.findall(rf"\b(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*){{2,}}", told):
            module, _, inside = found.rpartition(".")
            there = found in known or found in rooms
            there |= module in known and re.search(rf"\b{inside}\b", known[module].read_text()) is not None
            if not there and module.rpartition(".")[0] not in known:
                missing.append((name, found))

    assert missing == []


LONG_FUNCTION, MANY_PARAMETERS, LONG_MODULE = 60, 8, 300
"""Limits; lines of docstrings do not count."""

BEYOND = {"privacy.local.candidates.tree"}
"""Functions and modules beyond the limits; CONTRIBUTING has the reasons."""


def sources() -> Iterator[Path]:
    """Return all modules of the packages."""
    return (path for package in PACKAGES for path in modules(package))


def is_long(node: ast.AST, lines: int, most: int) -> bool:
    """Return whether a module or function has more than `most` lines without its docstrings.

    Args:
        node: The module or function.
        lines: Its number of lines with docstrings.
        most: Largest number of lines.
    """
    if lines <= most:
        return False
    texts = [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)
    ]
    return lines - sum((text.end_lineno or 0) - text.lineno + 1 for text in texts) > most


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the parameters, without `self` and `cls`."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def test_functions_and_modules_keep_their_limits() -> None:
    beyond = {
        named(path) for path in sources() if is_long(syntax(path), len(path.read_text().splitlines()), LONG_MODULE)
    }
    for path in sources():
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if is_long(node, lines, LONG_FUNCTION) or len(parameters(node)) > MANY_PARAMETERS:
                    beyond.add(f"{named(path)}.{node.name}")

    assert beyond == BEYOND


def test_each_class_and_type_has_its_own_name() -> None:
    """Private classes of different modules may share a name, and so may type variables and names of equal types."""
    meanings: dict[str, set[str]] = {}
    for path in sources():
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                meanings.setdefault(node.name, set()).add(named(path))
        for node in syntax(path).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, type_ = node.targets[0].id, ast.unparse(node.value)
                if re.fullmatch(r"[A-Z][a-z]+([A-Z][a-z]+)*", name) and not type_.startswith("TypeVar("):
                    meanings.setdefault(name, set()).add(type_)

    assert {name: found for name, found in meanings.items() if len(found) > 1 and name not in ARRAYS} == {}


ARRAYS = ("Ints", "Integers")
"""Arrays of whole numbers, whose types some modules state more exactly."""


OPENED = {
    "pipelines.spec.queries": ["MadeOfCells"],
    "privacy.evidence.decisions": ["PrivateChoice"],
    "privacy.local.design": ["Signs", "Symbols"],
    "privacy.planning.plan": ["AdaptivePart", "DiscoveredPart", "LinearPart"],
    "transforms.aggregation.queries": ["OrderedKey"],
    "transforms.sources.columns.usable_rows": ["Batch", "Skipped"],
}
"""The only checks of our own classes: each is in one property or method, which gives other code the values of a class.

Other code asks objects for what differs. To add a class to a union, add what differs to it.
"""


def test_code_asks_objects_and_not_their_classes_or_names() -> None:
    """Errors are not counted, since handlers know their class only; nor is `Spec`, an alternative to its path.

    Kinds of noise have names, which no code compares either.
    """
    trees = {path: syntax(path) for path in sources()}
    own = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    own = {name for name in own if not name.endswith("Error")} - {"Spec"}
    checks: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                found = own & {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            elif isinstance(node, ast.MatchClass):
                found = own & {part.id for part in ast.walk(node.cls) if isinstance(part, ast.Name)}
            elif isinstance(node, ast.Compare):
                found = NOISE.keys() & {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            else:
                continue
            checks.setdefault(named(path), []).extend(found)

    assert {name: sorted(found) for name, found in checks.items() if found} == OPENED


RANGE = {"ge", "gt", "le", "lt", "multiple_of"}
"""Arguments of pydantic's `Field` that limit a number."""

CHECKS = {"at_least", "between", "check", "positive", "problems", "proportion"}
"""Functions and methods of privacy.checks."""


def limited(path: Path) -> Iterator[str]:
    """Yield the keys of models whose numbers a file limits with pydantic."""
    for node in (node for node in ast.walk(syntax(path)) if isinstance(node, ast.AnnAssign)):
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
        if any(keyword.arg in RANGE for call in calls for keyword in call.keywords):
            yield ast.unparse(node.target)


def checked(path: Path) -> Iterator[str]:
    """Yield the names of parameters whose numbers a file checks with privacy.checks."""
    for node in (node for node in ast.walk(syntax(path)) if isinstance(node, ast.Call)):
        called = getattr(node.func, "id", getattr(node.func, "attr", None))
        if called in CHECKS and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value).rpartition(".")[2]


def test_a_rule_of_a_number_is_in_the_library_or_in_a_model_of_specs_and_not_in_both() -> None:
    """A model makes the library's value within `pipelines.spec.errors.refused`, which adds the place in the spec."""
    library = {name for package in ("privacy", "transforms") for path in modules(package) for name in checked(path)}
    models = {(named(path), key) for path in modules("pipelines") for key in limited(path)}

    assert {"branching", "epsilon", "at_most"} <= library
    assert ("pipelines.spec.changelog", "bad_rows") in models
    assert {(module, key) for module, key in models if key in library} == set()
