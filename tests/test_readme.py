"""Pages for new users are correct: commands run, tables agree with the code, links have targets."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from packaging.specifiers import SpecifierSet
from pydantic_core import PydanticUndefined
from ruamel.yaml import YAML

from pipelines.cli import main
from pipelines.commands import parser_of
from pipelines.epochs.flags import options_of
from pipelines.spec.fields import Section
from pipelines.spec.load import load
from privacy.planning.statement import ALWAYS, IN_SPAN, NOT_REACTING, REACTING
from tests.test_house import setup_arguments
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.release.published_columns import OF_SOME
from transforms.sources.formats.csv import RESTS_ON

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
COMMANDS = ROOT / "docs/reference/commands.md"
OUTPUTS = ROOT / "docs/reference/outputs.md"
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
OPTIONAL = {column.name for column in OF_SOME}
"""Columns that only some releases have."""
WITH_COMMANDS = [README, ROOT / "CONTRIBUTING.md", ROOT / "templates/README.md"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language, without the indent of lists."""
    found = re.findall(rf"^( *)```{re.escape(language)}\n(.*?)^\1```$", path.read_text(), re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def commands(path: Path, language: str = "sh") -> list[list[str]]:
    lines = [line for block in blocks(path, language) for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines]


def on_cluster(command: list[str]) -> bool:
    return any(word.startswith("--runner=") for word in command)


def table(page: Path, heading: str) -> list[list[str]]:
    """Return the rows of all tables of a page under a heading, cell by cell."""
    text = page.read_text()
    sections = dict(re.findall(r"^#+ (.*)\n((?:(?!#+ ).*\n?)*)", text, re.MULTILINE))
    rows = [line for line in sections[heading].splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows]


@cache
def recipe(target: str, *settings: str) -> list[str]:
    """Return the commands that make would run for a target. It would look for Pythons each time if none were given."""
    command = ["make", "--no-print-directory", "-n", target, "PYTHON=python3", "NEWEST=python3", *settings]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def named_files(page: Path) -> list[tuple[str, str]]:
    """Return the files that a page tells its reader to save, by name."""
    return re.findall(r"`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the README's example files, in which all its commands ran in order."""
    folder = tmp_path_factory.mktemp("stranger")
    for name, text in named_files(README):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with chdir(folder):
        for command in commands(README):
            if command[0] != "make" and not on_cluster(command):
                assert main(command[1:]) == 0, shlex.join(command)
    return folder


def test_the_commands_of_the_readme_lead_to_a_release(stranger: Path) -> None:
    told = [command[1] for command in commands(README)]
    assert told == ["demo", "test", "plan", "evaluate", "run", "report"]
    assert (stranger / "releases/wards/public/manifest.json").exists()
    published = [pyarrow.csv.read_csv(path) for path in (stranger / "releases/wards/public/estimates").iterdir()]
    assert sum(one.num_rows for one in published) == 31 * 3 * 2


def test_the_readmes_lines_of_python_give_the_total_of_each_window(
    stranger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks(README, "python")
    found: dict[str, Any] = {}

    with chdir(stranger):
        exec(block, found)  # noqa: S102

    assert found["table"].num_rows == 31 * 3 * 2
    assert found["total"].num_rows == 31
    assert "ci_high" in capsys.readouterr().out


def test_the_citation_has_the_current_version_and_name() -> None:
    cited = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text())
    asked = setup_arguments()

    assert (cited["version"], cited["license"]) == (asked["version"], asked["license"])
    assert [author["name"] for author in cited["authors"]] == [asked["author"]]


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 110


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=name_of)
def test_every_make_command_is_a_target(path: Path) -> None:
    targets = [command[1] for command in commands(path) if command[0] == "make"]

    assert all(recipe(target) for target in targets)


def test_make_demo_runs_the_commands_of_the_demos_test() -> None:
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
def test_make_checks_style_and_types_and_runs_its_tests(target: str, tests: str) -> None:
    steps = [line.removeprefix(".venv/bin/") for line in recipe(target)]

    *others, suite = [line for line in steps if re.match(r"(ruff|mypy|python -m pytest) ", line)]
    assert others == [
        "ruff format --check .",
        "ruff check .",
        "mypy privacy transforms pipelines slackwater benchmarks examples templates",
    ]
    assert suite.startswith("python -m pytest -n auto --dist loadgroup --no-loadscope-reorder" + tests)
    assert bool(tests) or suite.endswith("-reorder")  # all of the suite


def test_make_newest_runs_the_tests_of_make_check_on_another_python() -> None:
    own = recipe("check", "PYTHON=python3.11", "VENV=.venv-none")
    newest = recipe("newest", "NEWEST=python3.13", "PYTHON=python3.11", "VENV=.venv-none")

    (setup,) = [line for line in newest if "venv --clear .venv-none/newest" in line]
    (tests,) = [line for line in own if "python -m pytest" in line]
    assert setup.startswith('"python3.13" ')
    assert tests.replace(".venv-none/bin", ".venv-none/newest/bin") in newest


@pytest.mark.parametrize(("version", "supported"), [("3.10", False), ("3.11", True), ("3.13", True), ("3.14", False)])
def test_make_and_setup_accept_the_same_versions_of_python(version: str, supported: bool, tmp_path: Path) -> None:
    """The test's `python` imitates that version: it runs the code of `make` with another `sys.version_info`."""
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
def test_make_test_fails_if_any_step_fails(failing: str, tmp_path: Path) -> None:
    """The other steps still run."""
    said = tmp_path / "said"
    tools = {"style": "ruff", "type": "mypy", "suite": "python"}
    (tmp_path / "bin").mkdir()
    for target, tool in tools.items():
        (tmp_path / "bin" / tool).write_text(f"#!/bin/sh\necho {target} >> {said}\nexit {int(target == failing)}\n")
        (tmp_path / "bin" / tool).chmod(0o755)

    ready = tmp_path / "ready"  # newer than its prerequisites, otherwise make would set up an environment again
    ready.touch()
    settings = [f"{name}={ready}" for name in ("READY", "TESTED", "EMULATOR")]
    settings += [f"BIN={tmp_path}/bin", f"VENV={tmp_path}/venv"]
    ended = subprocess.run(["make", *settings, "test"], cwd=ROOT, capture_output=True, check=False)

    assert ended.returncode != 0
    assert set(said.read_text().split()) == set(tools)


def test_commands_for_clusters_name_only_options_that_exist() -> None:
    pages = [ROOT / "docs/how-to/flink.md", ROOT / "docs/how-to/dataflow.md"]
    found = [command for page in pages for command in commands(page) if on_cluster(command) and command[-1] != "..."]

    assert len(found) == 2
    for command in found:
        arguments, flags = parser_of().parse_known_args(command[1:])
        options = options_of(flags)
        assert arguments.command == "run"
        assert options.get_all_options(retain_unknown_options=True).keys() == options.get_all_options().keys()


@pytest.mark.few(2)
@pytest.mark.parametrize("command", commands(ROOT / "templates/README.md"), ids=shlex.join)
def test_every_template_can_be_planned(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    assert main([*command[1:], "--json"]) == 0  # the text would plan each spec with other changes, too
    assert "differential privacy of the whole release" in capsys.readouterr().out


def test_the_page_of_templates_names_every_template() -> None:
    planned = {command[-1] for command in commands(ROOT / "templates/README.md")}

    assert planned == {name_of(path) for path in (ROOT / "templates/specs").iterdir()}


def test_the_spec_of_the_reference_is_valid(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(blocks(ROOT / "docs/reference/spec.md", "yaml")[0])

    assert load(tmp_path / "spec.yaml").release == "flights-2013"


def sections_in(annotation: Any) -> Iterator[tuple[str, type[Section]]]:
    """Yield the sections that a type holds, each with the text between the key and the section's keys."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield "", annotation
    between = ".*" if getattr(annotation, "__origin__", None) is dict else ""
    for part in get_args(annotation):
        yield from ((between + rest, section) for rest, section in sections_in(part))


def keys_of(model: type[Section], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every key of a section, with its default in the form of the pages."""
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


@pytest.mark.parametrize("page", ["docs/protection.md", "docs/design.md"])
def test_pages_with_the_privacy_claim_state_its_conditions(page: str) -> None:
    told = " ".join((ROOT / page).read_text().split())

    of_spans = IN_SPAN if page == "docs/design.md" else ()
    assert [
        condition for condition in (*ALWAYS, *of_spans, REACTING, NOT_REACTING, RESTS_ON) if condition not in told
    ] == []


def test_every_exit_code_is_listed() -> None:
    codes = {row[0] for row in table(COMMANDS, "Exit codes") if re.fullmatch(r"`\d`", row[0])}
    errors = (RefusedError, SpecError, InputError, SlackwaterError)

    assert codes == {"`0`", *(f"`{error.exit_code}`" for error in errors)}


@pytest.mark.parametrize("side", ["estimates", "nodes"])
def test_the_page_lists_the_columns_of_published_files(stranger: Path, side: str) -> None:
    listed = [row[0].strip("`") for row in table(OUTPUTS, side) if row[0] != "column"]
    path = next((stranger / "releases/wards/public" / side).iterdir())

    found = pyarrow.csv.read_csv(path).column_names
    assert [name for name in found if name != "ward"] == [name for name in listed if name not in OPTIONAL]


def test_every_optional_column_is_listed() -> None:
    assert {row[0].strip("`") for row in table(OUTPUTS, "estimates")} >= OPTIONAL


def test_the_private_folder_holds_the_expected_files(stranger: Path) -> None:
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


def test_code_of_the_page_on_pipelines_comes_from_the_examples() -> None:
    examples = [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    found = blocks(ROOT / "docs/pipelines.md", "python")

    assert len(found) == 5
    assert [block for block in found if not any(block in example for example in examples)] == []


def prose(path: Path) -> str:
    """Return a page without its commands and files."""
    return re.sub(r"^ *```.*?^ *```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def leads_somewhere(link: str, path: Path) -> bool:
    """Return whether a link's file exists, and its heading if the link names one."""
    name, _, heading = link.partition("#")
    target = path.parent / name if name else path
    if not heading or not target.exists():
        return target.exists()
    headings = re.findall(r"^#+ (.*)$", prose(target), re.MULTILINE)
    return heading in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_have_targets(path: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)) if not link.startswith("https://")]

    assert [link for link in links if not leads_somewhere(link, path)] == []


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\(([\w-]+\.md)\)", (folder / "README.md").read_text())

    assert sorted(listed) == sorted(path.name for path in folder.iterdir() if path.name != "README.md")
