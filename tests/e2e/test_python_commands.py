"""Each function of `slackwater` returns what its command prints, as text and as a JSON document."""

import json
import re
from collections.abc import Callable
from contextlib import chdir
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import slackwater
from pipelines.common.value import Value
from tests.e2e.specs import CommandLine, changelog, write, write_spec

MOMENT = "2026-01-04T00:00:00Z"
FIRST = {"path": "data/*.parquet", "entry": "stay", "time": "at", "start": "2026-01-05T00:00:00Z"}
SIMULATED: dict[str, Any] = {"arrivals": 5.0, "stay": timedelta(days=2), "windows": 3, "seed": 7}

CASES: dict[str, tuple[list[str], Callable[[], Value]]] = {
    "plan": (["plan", "spec.yaml", "--explain"], lambda: slackwater.plan("spec.yaml", explain=True)),
    "plan --html": (["plan", "spec.yaml", "--html=p.html"], lambda: slackwater.plan_page("spec.yaml", "p.html")),
    "plan --vary": (
        ["plan", "spec.yaml", "--vary", "privacy.epsilon=1,2", "--target=beds=20"],
        lambda: slackwater.compare_plans("spec.yaml", vary=["privacy.epsilon=1,2"], target="beds=20"),
    ),
    "run": (["run", "spec.yaml"], lambda: slackwater.run("spec.yaml")),
    "ledger": (["ledger", "spec.yaml"], lambda: slackwater.ledger(slackwater.load("spec.yaml"))),
    "ledger of a folder": (["ledger", "public"], lambda: slackwater.ledger(Path("public"))),
    "compact": (["compact", "spec.yaml"], lambda: slackwater.compact("spec.yaml")),
    "show": (["show", "public", "--query=beds"], lambda: slackwater.show("public", query=["beds"])),
    "show -o": (["show", "spec.yaml", "-o", "s.csv"], lambda: slackwater.show("spec.yaml", output=Path("s.csv"))),
    "smooth": (["smooth", "public", "-o", "s.csv"], lambda: slackwater.smooth("public", output="s.csv")),
    "answer": (
        ["answer", "public", "--where=ward in ('a', 'b')", f"--window={MOMENT}"],
        lambda: slackwater.answer("public", where="ward in ('a', 'b')", window=datetime(2026, 1, 4, tzinfo=UTC)),
    ),
    "report": (["report", "public", "-o", "r.html"], lambda: slackwater.report("public", output="r.html")),
    "evaluate --compare": (
        ["evaluate", "early.yaml", "--compare", "early.yaml"],
        lambda: slackwater.compare_errors("early.yaml", ["early.yaml"]),
    ),
    "changelog": (
        ["changelog", "data/all.parquet", "--suggest", "--entry=stay", "--time=at", "--types=age=int64"],
        lambda: slackwater.changelog("data/all.parquet", suggest=True, entry="stay", time="at", types={"age": "int64"}),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of which all windows are published, and a spec of which none has closed."""
    folder = tmp_path_factory.mktemp("both")
    write(folder / "data/all.parquet", changelog())
    spec = write_spec(folder)
    late = spec.read_text().replace("2026-01-01T", "2150-01-01T").replace("  until: 2026-01-06T00:00:00Z\n", "")
    (folder / "early.yaml").write_text(re.sub("(public|private): (public|private)", r"\1: early/\2", late))
    with chdir(folder):
        slackwater.run("spec.yaml")
    return folder


@pytest.mark.parametrize("name", CASES)
def test_a_function_returns_the_output_of_the_command(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, function = CASES[name]
    command = CommandLine(folder, capsys)

    text, document = command(*arguments), command(*arguments, "--json")
    with chdir(folder):
        value = function()

    assert (text.code, document.code) == (0, 0), text.err
    assert text.out == f"{value.text()}\n"
    assert json.loads(document.out) == json.loads(json.dumps(value.to_json()))


def test_metrics_have_the_names_of_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = CommandLine(folder, capsys)("metrics", "spec.yaml", "--private", "--json")
    with chdir(folder):
        found = slackwater.metrics("spec.yaml", private=True)

    def names(document: dict[str, Any]) -> list[str]:
        return [one["name"] for one in document["metrics"]]

    assert names(json.loads(said.out)) == names(found.to_json())
    assert "# HELP slackwater_private_last_rows_read" in found.text()


def test_new_files_are_the_same_from_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "data/all.parquet", changelog())
    write_spec(tmp_path, ('    where: "age >= 0"\n', ""))
    command = CommandLine(tmp_path, capsys)
    command("init", "by-command.yaml", *(f"--{name}={value}" for name, value in FIRST.items()))
    command("simulate", "spec.yaml", "-o", "by-command", "--arrivals=5", "--stay=2d", "--windows=3", "--seed=7")
    with chdir(tmp_path):
        first = slackwater.init("by-function.yaml", **FIRST)
        made = slackwater.simulate("spec.yaml", "by-function", **SIMULATED)
        begun = slackwater.new_release("spec.yaml", "again", until="2026-01-03T00:00:00Z")
        with pytest.raises(slackwater.ArgumentError, match=r"^path: missing; .*\nentry: missing; "):
            slackwater.init("third.yaml", time="at")

    specs = [(tmp_path / f"{name}.yaml").read_text() for name in ("by-command", "by-function")]
    assert specs[0].replace("by-command", "by-function") == specs[1]
    assert (first.spec, made.windows) == ("by-function.yaml", 3)
    rows = [(tmp_path / name / "changelog.parquet").read_bytes() for name in ("by-command", "by-function")]
    assert rows[0] == rows[1]
    assert (begun.spec, begun.ran.windows, begun.ran.release) == ("spec-again.yaml", 2, "again")
    assert begun.text().endswith("run spec-again.yaml from now on")
    assert begun.ran.epoch is not None
    assert {field.name for field in fields(begun.ran.epoch)} == {
        *("epoch", "start", "until", "loss", "statement", "claim"),
    }
