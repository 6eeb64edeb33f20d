"""What a stranger reads is true: commands run, tables agree with the code, links lead somewhere."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, get_args

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from packaging.specifiers import SpecifierSet
from pydantic_core import PydanticUndefined

from pipelines.cli import _parser, main
from pipelines.epochs.flags import options_of
from pipelines.spec.fields import Section
from pipelines.spec.load import load
from pipelines.spec.models import SpecModel
from privacy.planning.statement import ALWAYS, IN_SPAN, NOT_REACTING, REACTING
from tests.test_house import setup_arguments
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
GUIDE = ROOT / "docs/guide.md"
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "templates/*.md",
        "privacy/**/*.md",
        "transforms/*.md",
        "pipelines/*.md",
        "benchmarks/*.md",
    )
    for path in ROOT.glob(pattern)
)
WITH_COMMANDS = [README, ROOT / "CONTRIBUTING.md", ROOT / "templates/README.md"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)


def commands(path: Path, language: str = "sh") -> list[list[str]]:
    return [shlex.split(line) for block in blocks(path, language) for line in block.splitlines()]


def on_cluster(command: list[str]) -> bool:
    return any(word.startswith("--runner=") for word in command)


def table(heading: str) -> list[list[str]]:
    """The rows of all tables of the guide under a heading, cell by cell."""
    text = GUIDE.read_text()
    sections = dict(re.findall(r"^#+ (.*)\n((?:(?!#+ ).*\n)*)", text, re.MULTILINE))
    rows = [line for line in sections[heading].splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows]


def recipe(target: str, *settings: str) -> list[str]:
    """What make would do for a target."""
    told = subprocess.run(
        ["make", "--no-print-directory", "-n", target, *settings], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the README's example files, in which its commands were run one after the other."""
    folder = tmp_path_factory.mktemp("stranger")
    for name, text in re.findall(r"`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with chdir(folder):
        for command in commands(README):
            if command[0] != "make" and not on_cluster(command):
                assert main(command[1:]) == 0, shlex.join(command)
    return folder


def test_readme_takes_a_stranger_from_files_to_a_release(stranger: Path) -> None:
    assert [command[1] for command in commands(README) if not on_cluster(command)] == [
        "demo",
        "test",
        "install",
        "plan",
        "evaluate",
        "run",
        "report",
    ]
    assert (stranger / "releases/wards/public/manifest.json").exists()
    published = [pyarrow.csv.read_csv(path) for path in (stranger / "releases/wards/public/estimates").iterdir()]
    assert sum(one.num_rows for one in published) == 31 * 3 * 2


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=name_of)
def test_every_make_command_is_a_target(path: Path) -> None:
    targets = [command[1] for command in commands(path) if command[0] == "make"]

    assert all(recipe(target) for target in targets)


def test_make_demo_does_what_the_test_of_the_demo_does() -> None:
    steps = [line for line in recipe("demo") if "examples" in line]

    assert [line.split("bin/")[-1] for line in steps] == [
        "python -m examples.flights.build",
        "slackwater run examples/flights/spec.yaml",
        "slackwater report examples/flights/spec.yaml -o out/flights/report.html",
        "python -m examples.flights.show",
    ]


@pytest.mark.parametrize(
    ("target", "tests"),
    [("test", ""), ("check", ' -m "not hypothesis and not slow" privacy transforms pipelines slackwater ')],
)
def test_make_looks_at_style_and_types_beside_its_tests(target: str, tests: str) -> None:
    steps = [line.removeprefix(".venv/bin/") for line in recipe(target, "NEWEST=")]

    *others, suite = [line for line in steps if re.match(r"(ruff|mypy|python -m pytest) ", line)]
    assert others == [
        "ruff format --check .",
        "ruff check .",
        "mypy privacy transforms pipelines slackwater",
    ]
    assert suite.startswith("python -m pytest -n auto --dist loadgroup --no-loadscope-reorder" + tests)
    assert bool(tests) or suite.endswith("-reorder")  # all of the suite


def test_make_check_also_runs_on_the_newest_python_that_is_supported() -> None:
    steps = recipe("check", "NEWEST=python3.13", "PYTHON=python3.11", "VENV=.venv-none")

    (setup,) = [line for line in steps if "venv --clear .venv-none/newest" in line]
    own, newest = [line.split("python -m pytest") for line in steps if "python -m pytest" in line]
    assert setup.startswith('"python3.13" ')
    assert (own[0], newest[0]) == (".venv-none/bin/", ".venv-none/newest/bin/")
    assert own[1] == newest[1]


@pytest.mark.parametrize(("version", "supported"), [("3.10", False), ("3.11", True), ("3.13", True), ("3.14", False)])
def test_make_and_setup_accept_the_same_versions_of_python(version: str, supported: bool, tmp_path: Path) -> None:
    """A command that answers like that version: it runs what `make` asks with another `sys.version_info`."""
    python = tmp_path / "python"
    info = tuple(int(part) for part in version.split("."))
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = {info}; $2"\n')
    python.chmod(0o755)

    settings = [f"PYTHON={python}", f"NEWEST={python}", f"VENV={tmp_path}/venv"]
    asked = subprocess.run(
        ["make", "--eval=ask: ; @echo '$(call first,$(PYTHON))'", *settings, "ask"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert asked.stdout.strip() == (str(python) if supported else "")
    assert SpecifierSet(str(setup_arguments()["python_requires"])).contains(version) == supported


@pytest.mark.parametrize("failing", ["style", "type", "suite"])
def test_make_test_fails_if_any_of_them_does(failing: str, tmp_path: Path) -> None:
    """The rest is run all the same."""
    said = tmp_path / "said"
    tools = {"style": "ruff", "type": "mypy", "suite": "python"}
    (tmp_path / "bin").mkdir()
    for target, tool in tools.items():
        (tmp_path / "bin" / tool).write_text(f"#!/bin/sh\necho {target} >> {said}\nexit {int(target == failing)}\n")
        (tmp_path / "bin" / tool).chmod(0o755)

    ready = tmp_path / "ready"  # newer than what it rests on, or make would set up an environment anew
    ready.touch()
    settings = [f"{name}={ready}" for name in ("READY", "TESTED", "EMULATOR")]
    settings += [f"BIN={tmp_path}/bin", f"VENV={tmp_path}/venv"]
    ended = subprocess.run(["make", *settings, "test"], cwd=ROOT, capture_output=True, check=False)

    assert ended.returncode != 0
    assert set(said.read_text().split()) == set(tools)


def test_commands_for_clusters_name_only_options_that_exist() -> None:
    found = [command for command in commands(README) if on_cluster(command)]

    assert len(found) == 2
    for command in found:
        arguments, flags = _parser().parse_known_args(command[1:])
        options = options_of(flags)
        assert arguments.command == "run"
        assert options.get_all_options(retain_unknown_options=True).keys() == options.get_all_options().keys()


@pytest.mark.parametrize("command", commands(ROOT / "templates/README.md"), ids=shlex.join)
def test_every_template_can_be_planned(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    assert main(command[1:]) == 0
    assert "differential privacy of the whole release" in capsys.readouterr().out


def test_the_page_of_templates_names_every_template() -> None:
    planned = {command[-1] for command in commands(ROOT / "templates/README.md")}

    assert planned == {name_of(path) for path in (ROOT / "templates/specs").iterdir()}


def test_the_guides_spec_is_a_spec(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(blocks(GUIDE, "yaml")[0])

    assert load(tmp_path / "spec.yaml").release == "flights-2013"


def sections_in(annotation: Any) -> Iterator[tuple[str, type[Section]]]:
    """Sections that a type holds, with what stands between the key and theirs."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield "", annotation
    between = ".*" if getattr(annotation, "__origin__", None) is dict else ""
    for part in get_args(annotation):
        yield from ((between + rest, section) for rest, section in sections_in(part))


def keys_of(model: type[Section], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key of a section with its default as the guide writes it."""
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if default is PydanticUndefined:
            told = "required"
        elif default is None or default in ([], {}):
            told = "none"
        else:
            told = f"`[{', '.join(default)}]`" if isinstance(default, list) else f"`{default}`"
        name = field.alias or name
        yield f"`{prefix}{name}`", told
        for between, section in sections_in(field.annotation):
            yield from keys_of(section, f"{prefix}{name}{between}.")


def test_the_guide_lists_every_key_of_the_spec_with_its_default() -> None:
    headings = ("Top", "changelog", "privacy", "schedule", "queries", "output")
    told = {row[0]: row[2] for heading in headings for row in table(heading) if row[0] != "key"}

    assert told == dict(keys_of(SpecModel))


@pytest.mark.parametrize("page", ["docs/protection.md", "docs/design.md"])
def test_what_a_claim_rests_on_is_told_where_the_claim_is(page: str) -> None:
    told = " ".join((ROOT / page).read_text().split())

    of_spans = IN_SPAN if page == "docs/design.md" else ()
    assert [condition for condition in (*ALWAYS, *of_spans, REACTING, NOT_REACTING) if condition not in told] == []


def test_the_guide_lists_every_command_and_flag() -> None:
    words = {row[0].strip("`") for row in table("The command line")}
    (subparsers,) = (action for action in _parser()._actions if isinstance(action.choices, dict))
    assert isinstance(subparsers.choices, dict)
    flags = {
        flag
        for parser in subparsers.choices.values()
        for action in parser._actions
        for flag in action.option_strings
        if flag not in ("-h", "--help")
    }

    assert {word for word in words if word.startswith("-")} == flags
    assert subparsers.choices.keys() <= words


def test_the_guide_lists_every_exit_code() -> None:
    codes = {row[0] for row in table("The command line") if re.fullmatch(r"`\d`", row[0])}
    errors = (RefusedError, SpecError, InputError, SlackwaterError)

    assert codes == {"`0`", *(f"`{error.exit_code}`" for error in errors)}


@pytest.mark.parametrize("side", ["estimates", "nodes"])
def test_the_guide_lists_every_published_column(stranger: Path, side: str) -> None:
    told = [row[0].strip("`") for row in table(side) if row[0] != "column"]
    path = next((stranger / "releases/wards/public" / side).iterdir())

    assert ["ward" if name.startswith("*") else name for name in told] == pyarrow.csv.read_csv(path).column_names


def test_what_the_guide_says_of_the_private_folder_is_there(stranger: Path) -> None:
    private = stranger / "releases/wards/private"

    found = {str(path.relative_to(private)) for path in private.rglob("*") if path.is_file()}
    assert {re.sub(r"^attempts/[\w-]+/(\w+/)?.*", r"attempts/*/\1", name) for name in found} == {
        "attempts/*/",
        "attempts/*/nodes/",
        "attempts/*/estimates/",
        "commits/000001.json",
        "diagnostics/dead_letters.parquet",
        "diagnostics/read.json",
        "lock",
        "releases/self.json",
    }
    assert pq.read_schema(private / "diagnostics/dead_letters.parquet").names == ["file", "row", "reason"]


def test_code_in_the_page_on_pipelines_is_code_of_the_examples() -> None:
    examples = [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    found = blocks(ROOT / "docs/pipelines.md", "python")

    assert len(found) == 5
    assert [block for block in found if not any(block in example for example in examples)] == []


def prose(path: Path) -> str:
    """A page without its commands and files."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def leads_somewhere(link: str, path: Path) -> bool:
    """To a file, and to a heading of it if one is named."""
    name, _, heading = link.partition("#")
    target = path.parent / name if name else path
    if not heading or not target.exists():
        return target.exists()
    headings = re.findall(r"^#+ (.*)$", prose(target), re.MULTILINE)
    return heading in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)) if not link.startswith("https://")]

    assert [link for link in links if not leads_somewhere(link, path)] == []


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\(([\w-]+\.md)\)", (folder / "README.md").read_text())

    assert sorted(listed) == sorted(path.name for path in folder.iterdir() if path.name != "README.md")
