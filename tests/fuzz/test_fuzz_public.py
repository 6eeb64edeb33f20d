"""Public folders, designs and estimates that somebody has changed: a command works, or names the file in one line."""

import hashlib
import io
import json
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipelines import cli
from pipelines.local.survey import Survey, frozen, write_survey
from privacy.local.bound import LocalBound
from privacy.local.candidates import tree
from privacy.local.mutation_space import MutationSpace
from tests.fuzz.documents import changed
from tests.fuzz.mutations import mutate
from tests.pipelines.report.records_page import public_records
from tests.releases.continued import unpacked
from tests.searches import TIMES
from transforms.common.sinks import write_table
from transforms.local.report_tables import SCHEMA

RELEASES = Path(__file__).parents[1] / "releases/0.3.0"
KINDS = ("everything", "ranges", "span", "records", "survey")
CASES = 12


class Folder:
    """A public folder of one kind, the commands that read it, and its original files."""

    def __init__(self, kind: str, root: Path) -> None:
        made = root / "made"
        made.mkdir()
        self.path = {"records": public_records, "survey": _survey}.get(kind, _release)(made)
        if kind not in ("records", "survey"):
            unpacked(RELEASES / kind, made)
        self.out = root
        self.files = {str(file.relative_to(self.path)): file.read_bytes() for file in self.path.rglob("*.*")}
        self.commands = _commands(kind, str(self.path), str(root), spec=str(made / "spec.yaml"))

    def put(self, name: str, content: bytes) -> None:
        """Change a file, and its digest in the manifest, as somebody with write access to both can."""
        (self.path / name).write_bytes(content)
        if "manifest.json" not in self.files or name in ("manifest.json", "spec.yaml"):
            return
        manifest, digest = json.loads(self.files["manifest.json"]), hashlib.sha256(content).hexdigest()
        if name == "plan.json":
            manifest["plan_sha256"] = digest
        for epoch in manifest["epochs"]:
            if name in epoch["files"]:
                epoch["files"][name] = {"sha256": digest, "size": len(content)}
        (self.path / "manifest.json").write_text(json.dumps(manifest, indent=1))

    def restore(self) -> None:
        for name, content in self.files.items():
            if (self.path / name).read_bytes() != content:
                (self.path / name).write_bytes(content)


def _release(folder: Path) -> Path:
    return folder / "public"


def _survey(folder: Path) -> Path:
    (folder / "public").mkdir()
    design = tree(MutationSpace(answers=2), LocalBound(at_most=1), windows=4, arity=2, height=2, epsilon=1.0)
    survey = Survey(release="work", names=("a", "b"), people=9, publish=("level",), start=0, every=10**9, design=design)
    write_survey(frozen(survey), str(folder / "public/design.json"))
    reports = pa.table({name: np.arange(3) for name in SCHEMA.names}).cast(SCHEMA)
    write_table(reports, str(folder / "public/reports.jsonl"), format_="jsonl")
    code = cli.main(_commands("survey", str(folder / "public"), str(folder / "public"), spec="")[0])
    assert code == 0
    return folder / "public"


def _commands(kind: str, public: str, out: str, *, spec: str) -> list[list[str]]:
    if kind == "survey":
        design = f"{public}/design.json"
        return [
            ["local", "estimate", design, f"{public}/reports.jsonl", "-o", f"{out}/estimates.csv"],
            ["local", "report", design, f"{public}/estimates.csv", "-o", f"{out}/page.html"],
        ]
    common = [["show", public], ["report", public, "-o", f"{out}/page.html"], ["ledger", public]]
    private = [["ledger", spec], ["metrics", spec]]
    if kind == "records":
        return common + private
    query = {"everything": "covers", "ranges": "listed", "span": "stays"}[kind]
    return [
        *common,
        ["answer", public, "--query", query],
        ["smooth", public, "--query", query, "-o", f"{out}/smoothed.csv"],
        ["plan", f"{public}/spec.yaml"],
        *private,
        ["metrics", spec, "--private"],
    ]


Folders = Callable[[str], Folder]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return cache(lambda kind: Folder(kind, tmp_path_factory.mktemp(kind)))


def told(folder: Folder, command: list[str]) -> int:
    """Return the exit code of a command that works, or is refused in lines that name a file of the folder."""
    error = io.StringIO()
    with chdir(folder.path.parent), redirect_stdout(io.StringIO()), redirect_stderr(error):
        code = cli.main(command)
    lines = error.getvalue().splitlines()
    assert (code == 0) == (lines == []), (code, lines)
    for line in lines:
        assert line.startswith("slackwater: "), line
        assert "public/" in line or "spec.yaml" in line or str(folder.path) in line, line
        assert len(line) < 1000, line
    return code


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_is_read_or_refused_in_a_line_that_names_it(folders: Folders, kind: str) -> None:
    folder = folders(kind)
    for seed in range(CASES * TIMES):
        choose = Random(seed)
        top = [name for name in folder.files if "/" not in name]
        name = choose.choice([*top, *top, *folder.files])
        good = folder.files[name]
        if name.endswith(".json") and choose.random() < 0.8:
            new = json.dumps(changed(json.loads(good), choose)).encode()
        else:
            new = mutate(good, folder.files[choose.choice([*folder.files])], choose)
        try:
            folder.put(name, new)
            told(folder, choose.choice(folder.commands))
        except BaseException as error:
            error.add_note(f"{name}, seed {seed}")
            raise
        finally:
            folder.restore()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("span", "manifest.json"),
        ("span", "plan.json"),
        ("records", "manifest.json"),
        ("records", "plan.json"),
        ("survey", "design.json"),
    ],
)
def test_a_file_that_is_only_nested_is_refused(folders: Folders, kind: str, name: str) -> None:
    folder = folders(kind)
    folder.put(name, b"[" * 200_000)

    assert [told(folder, command) for command in folder.commands[:2]] == [1 if kind != "survey" else 2] * 2
    folder.restore()


def test_a_manifest_of_records_without_files_is_refused(folders: Folders) -> None:
    folder = folders("records")
    manifest = json.loads(folder.files["manifest.json"])
    for epoch in manifest["epochs"]:
        epoch["files"] = {}
    folder.put("manifest.json", json.dumps(manifest, indent=1).encode())

    assert [told(folder, command) for command in folder.commands[:2]] == [1, 1]
    folder.restore()


def test_a_manifest_with_more_windows_than_rows_is_refused_at_once(folders: Folders) -> None:
    folder = folders("span")
    manifest = json.loads(folder.files["manifest.json"])
    last = manifest["epochs"][-1]
    every = (last["until"] - last["start"]) // (last["windows"] - last["released"])
    for windows in (10**9, 10**15):
        manifest["windows"] = last["windows"] = windows
        manifest["until"] = last["until"] = manifest["start"] + windows * every
        folder.put("manifest.json", json.dumps(manifest).encode())

        assert {told(folder, command) for command in folder.commands[:4]} == {1}
    folder.restore()


@pytest.mark.parametrize(
    ("kind", "member", "commands"),
    [
        ("ranges", ("leaf",), ["answer"]),
        ("ranges", ("over", "axes", 1, "cells"), ["report", "ledger", "answer"]),
        ("everything", ("leaf",), ["report", "answer"]),
    ],
)
def test_a_plan_that_does_not_fit_its_tables_is_refused(
    folders: Folders, kind: str, member: tuple[str | int, ...], commands: list[str]
) -> None:
    """The plan is whole and fits the manifest: that something is wrong shows only while it is used."""
    folder = folders(kind)
    plan = json.loads(folder.files["plan.json"])
    part = plan["queries"][0]["parts"][0]
    for name in member[:-1]:
        part = part[name]
    part[member[-1]] += 1
    folder.put("plan.json", json.dumps(plan).encode())

    assert {told(folder, command) for command in folder.commands if command[0] in commands} == {1}
    folder.restore()


def _renamed(manifest: Any, plan: Any) -> None:
    plan["queries"][0]["demand"]["name"] = "another"


def _cheaper(manifest: Any, plan: Any) -> None:
    manifest["loss"]["epsilon"] /= 2


def _later(manifest: Any, plan: Any) -> None:
    manifest["until"] = manifest["epochs"][-1]["until"] = manifest["until"] + 1


@pytest.mark.parametrize("change", [_renamed, _cheaper, _later])
def test_a_manifest_and_a_plan_of_different_releases_are_refused(
    folders: Folders, capsys: pytest.CaptureFixture[str], change: Callable[[Any, Any], None]
) -> None:
    folder = folders("span")
    manifest, plan = (json.loads(folder.files[name]) for name in ("manifest.json", "plan.json"))
    change(manifest, plan)
    content = json.dumps(plan).encode()
    manifest["plan_sha256"] = hashlib.sha256(content).hexdigest()
    (folder.path / "plan.json").write_bytes(content)
    (folder.path / "manifest.json").write_text(json.dumps(manifest))

    for command in folder.commands[:5]:
        assert cli.main(command) == 1
        assert "of other queries, windows or privacy than spec.yaml and manifest.json say" in capsys.readouterr().err
    folder.restore()


@pytest.mark.parametrize(
    ("name", "member", "value"),
    [
        ("manifest.json", "another", 1),
        ("manifest.json", "committed_at", "yesterday"),
        ("plan.json", "release", 7),
    ],
)
def test_an_unknown_or_invalid_member_is_refused(folders: Folders, name: str, member: str, value: object) -> None:
    folder = folders("span")
    document = json.loads(folder.files[name])
    (document["epochs"][0] if member == "committed_at" else document)[member] = value
    folder.put(name, json.dumps(document).encode())

    assert {told(folder, command) for command in folder.commands[:5]} == {1}
    folder.restore()
