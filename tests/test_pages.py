"""Tests of every documentation page: code runs or is valid unchanged, and the pages build a site."""

import re
import shlex
import subprocess
import sys
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import slackwater
from pipelines.cli import main
from pipelines.commands import parser_of
from pipelines.spec.load import load
from pipelines.spec.models import SpecModel
from pipelines.spec.queries import QuerySection
from tests.test_readme import COMMANDS, ROOT, blocks, name_of

FOLDERS = ("", "how-to/", "reference/", "explanation/")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(ROOT.glob(f"docs/{folder}*.md")))]
LANGUAGES = {"sh", "yaml", "python", "csv", "json", "jsonl", "sql", "crontab", "text", "{toctree}", "{eval-rst}"}
DOCS = ROOT / "docs"

BASE = """
release: base
changelog: {format: parquet, path: data/*.parquet, entry: id, time: at}
privacy: {unit: entry, epsilon: 1.0, constraint: {at_most: 4}}
schedule: {start: 2026-01-05T00:00:00Z, every: 1d, until: 2026-03-02T00:00:00Z}
queries: [{name: beds, measure: count, by: {age: {from: 0, to: 100, step: 5}}, publish: [level]}]
output: {public: public, private: private}
"""


def read(text: str) -> dict[str, Any]:
    return dict(YAML(typ="safe").load(text))


def put_into(base: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a whole spec in which the keys of a part replace others; incompatible keys are removed."""
    keys = {field.alias or name for name, field in SpecModel.model_fields.items()}
    if not part.keys() <= keys:
        assert part.keys() <= {field.alias or name for name, field in QuerySection.model_fields.items()}
        return base | {"queries": [base["queries"][0] | part]}
    if "adaptive" in (part.get("strategy") or {}) or "protects" in part.get("privacy", {}):
        base = base | {"queries": [{"name": "beds", "measure": "count", "publish": ["level"]}]}
    for name in ("privacy", "changelog"):
        if name in part:
            kept = base[name] if name == "privacy" else {"time": "at"} if part[name].get("format") in ("jsonl",) else {}
            part = part | {name: {key: value for key, value in kept.items() if key != "constraint"} | part[name]}
    return base | part


def yaml_parts() -> list[Any]:
    return [
        pytest.param(text, id=f"{name_of(page)} {number}")
        for page in PAGES
        for number, text in enumerate(blocks(page, "yaml"), 1)
        # specs of another kind, and a pipeline: separate tests run them
        if page.name not in ("local.md", "sanitise.md") and not text.startswith("pipeline:")
    ]


@pytest.mark.parametrize("text", yaml_parts())
def test_every_spec_and_part_of_a_spec_is_valid(text: str, tmp_path: Path) -> None:
    with (tmp_path / "spec.yaml").open("w") as file:
        YAML(typ="safe").dump(put_into(read(BASE), read(text)), file)

    assert load(tmp_path / "spec.yaml").queries


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_is_fenced_and_has_a_known_language(page: Path) -> None:
    fences = re.findall(r"^ *```(.*)$", page.read_text(), re.MULTILINE)
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)

    assert set(fences[::2]) <= LANGUAGES
    assert set(fences[1::2]) <= {""}
    assert re.findall(r"^\n    [^ *-].*", prose, re.MULTILINE) == []


def command_lines() -> list[Any]:
    return [
        pytest.param(line, id=f"{name_of(page)}: {line}")
        for page in PAGES
        for block in blocks(page, "sh")
        for line in block.replace("\\\n", " ").splitlines()
    ]


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_is_valid(line: str) -> None:
    """Other tests run the commands that need no cluster. Google's commands cannot run here."""
    words = shlex.split(line, comments=True)
    match [words[0].removeprefix(".venv/bin/"), *words[1:]]:
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        case ["slackwater", *arguments]:
            typed = arguments[: arguments.index(">")] if ">" in arguments else arguments
            known, beams = parser_of().parse_known_args(typed)
            assert known.command
            assert [word for word in beams if not re.match(r"--\w+=|--streaming$|\.\.\.$", word)] == []
        case ["python", "-m", module, *_]:
            assert find_spec(module)
        case ["python", script]:
            assert f"`{script}`" in (DOCS / "tutorial.md").read_text()
        case ["gcloud", *arguments]:
            files = [word.partition("=")[2] or word for word in arguments if "templates/" in word and "://" not in word]
            assert all((ROOT / file).exists() for file in files)
        case [setting, *rest]:
            assert re.fullmatch(r"[A-Z]+=\S+", setting)
            assert rest == []


def test_spreadsheet_files_are_rewritten_as_the_page_describes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("export.csv").write_text("\ufeffno;at;fee;who\n007;03.01.2026 14:05;19,90;Zoë, A.\n8;31.12.2026 00:00;;\n")

    for block in blocks(DOCS / "how-to/changelogs.md", "python"):
        exec(block, {})  # noqa: S102

    assert Path("data/fees.csv").read_text() == (
        'no,at,fee,who\n007,2026-01-03 14:05:00,19.90,"Zoë, A."\n8,2026-12-31 00:00:00,,\n'
    )


def test_pages_show_what_plan_prints(tmp_path: Path) -> None:
    """The first block of text of each page, without regard to breaks of lines."""
    (tmp_path / "towns.yaml").write_text(blocks(DOCS / "how-to/find-keys.md", "yaml")[0])
    specs = {"find-keys": tmp_path / "towns.yaml", "maps": ROOT / "examples/stops/spec.yaml"}

    for page, spec in specs.items():
        shown = blocks(DOCS / f"how-to/{page}.md", "text")[0]
        assert " ".join(shown.split()) in " ".join(slackwater.plan(spec).text().split()), page


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all steps of the tutorial were run literally."""
    folder = tmp_path_factory.mktemp("library")
    page = DOCS / "tutorial.md"
    (folder / "made_up.py").write_text(blocks(page, "python")[0])
    (folder / "loans.yaml").write_text(blocks(page, "yaml")[0])
    with chdir(folder):
        for line in "".join(blocks(page, "sh")).splitlines():
            program, *arguments = shlex.split(line)
            if program.endswith("python"):
                subprocess.run([sys.executable, *arguments], check=True)
            else:
                assert main(arguments) == 0, line
    return folder


@pytest.mark.slow
def test_the_tutorial_leads_to_a_release(library: Path) -> None:
    assert (library / "loans.html").stat().st_size > 10_000
    assert len((library / "loans.md").read_text().splitlines()) == 2 + 25 * 4


@pytest.mark.slow
def test_commands_of_the_page_on_results_work(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chdir(library):
        for line in "".join(blocks(DOCS / "how-to/reading.md", "sh")).splitlines():
            assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out.count("29 June 2026, 00:00 UTC") >= 2


@pytest.mark.slow
def test_numbers_of_the_page_on_choices_equal_those_of_plan(
    library: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each `±` of the page, in a table or in a line, is a number that `plan` prints; one query of each kind."""
    page = (DOCS / "how-to/choosing.md").read_text()
    (library / "wards.yaml").write_text(blocks(ROOT / "README.md", "yaml")[0])
    monkeypatch.chdir(library)
    asked = ("wards.yaml --vary at_most=1,2,4,8,16", "loans.yaml --vary span=1w,2w,4w")

    for arguments in asked:
        assert main(["plan", *shlex.split(arguments)]) == 0

    said = re.findall(r"± ([\d.]+)", capsys.readouterr().out)
    assert len(said) == 13
    told = {float(number) for number in re.findall(r"± ([\d.]+)", page)}
    assert {round(float(number), 1) for number in said} <= told


@pytest.mark.slow
def test_commands_of_the_reference_work_on_the_release_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/stays.csv").write_text(blocks(ROOT / "README.md", "csv")[0])
    (tmp_path / "wards.yaml").write_text(blocks(ROOT / "README.md", "yaml")[0])
    monkeypatch.chdir(tmp_path)
    assert main(["run", "wards.yaml"]) == 0

    for block in blocks(COMMANDS, "sh"):
        for line in block.splitlines():
            arguments = shlex.split(line)[1:]
            if arguments[0] in ("report", "show", "answer", "smooth"):  # separate tests run the others
                assert main(arguments) == 0, line


def test_every_page_is_in_the_sites_list() -> None:
    listed = re.findall(r"^[\w./-]+$", (DOCS / "index.md").read_text(), re.MULTILINE)

    names = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES[1:]}
    assert names - {"index"} <= set(listed)


def test_the_page_on_python_has_every_public_name() -> None:
    told = re.findall(r"^\.\. auto\w+:: (\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)

    assert sorted([*told, "local"]) == sorted(slackwater.__all__)


def test_every_name_that_pages_import_is_in_the_reference() -> None:
    code = "\n".join(block for page in PAGES for block in blocks(page, "python"))
    listed = re.findall(r"^\.\. auto\w+:: ([\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE)

    imports = re.findall(r"^from ((?:privacy|transforms|pipelines)[\w.]*) import (.*)$", code, re.MULTILINE)
    imported = {f"{module}.{name}" for module, names in imports for name in names.split(", ")}
    assert len(imported) > 5
    assert imported <= set(listed)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Warnings concern broken links, pages that no list has, and unknown names."""
    # Garbage collection would take a quarter of the time and find nothing.
    program = "import gc, sys; from sphinx.cmd.build import main; gc.disable(); sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "-q", "-W", "--keep-going", "-c", "docs", "-b", "dummy"]
    done = subprocess.run(
        [*command, "-d", str(tmp_path), ".", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
