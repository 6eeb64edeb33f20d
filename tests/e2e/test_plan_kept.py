"""A release continues with its first plan: nothing is planned twice, and another plan is refused."""

import json
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from pipelines import cli
from pipelines.epochs import plans
from pipelines.epochs.plans import committed_plan, plan_json, plan_of
from pipelines.spec.load import load
from pipelines.store.record import digest_of_text
from pipelines.store.store import Store
from privacy.planning.document import plan_to_json
from privacy.strategies.table import OFFERS
from tests.e2e.specs import START, CommandLine, changelog, contents, published, write, write_spec
from tests.pipelines.spec_text import loaded
from tests.rights import plain_rights

GAUSSIAN = ("epsilon: 1.0", "epsilon: 1.0\n  delta: 1.0e-9")
AUTO = ("strategy: disjoint", "strategy: auto")

Changes = tuple[tuple[str, str], ...]

PRIVATE = "w7c1place"
"""In every path, in a comment and in the names of columns that are not published."""


def until(day: int) -> str:
    return f"--until={(START + timedelta(days=day)).isoformat()}"


def begin(folder: Path, *changes: tuple[str, str]) -> Path:
    """Create a release with one epoch."""
    write_spec(folder, *changes)
    write(folder / "data/a.parquet", changelog())
    with chdir(folder):
        assert cli.main(["run", "spec.yaml", until(2)]) == 0
    return folder


@pytest.fixture(scope="module")
def one_epoch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("begun"))


@pytest.fixture
def slackwater(one_epoch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Return a command line in a copy of the release."""
    return CommandLine(Path(copytree(one_epoch, tmp_path / "copy")), capsys)


def first_record(slackwater: CommandLine) -> Path:
    return slackwater.folder / "private/commits/000001.json"


def alter(slackwater: CommandLine, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the plan in the first record, as if it had been committed so."""
    path = first_record(slackwater)
    record = json.loads(path.read_text())
    plan = json.loads(record["plan"])
    change(plan)
    record["plan"] = json.dumps(plan)
    record["plan_sha256"] = digest_of_text(record["plan"])
    path.write_text(json.dumps(record))
    (slackwater.folder / "public/manifest.json").unlink()


def chosen(slackwater: CommandLine) -> list[dict[str, Any]]:
    """The strategies of the release in what `plan` prints."""
    document = json.loads(slackwater("plan", "spec.yaml", "--json").out)
    taken = [one for query in document["queries"] for one in query["candidates"] if one["chosen"]]
    return [{**one, "why": None} for one in taken]  # which compares it with what today's planner knows


@pytest.mark.parametrize("changes", [(GAUSSIAN, AUTO), (AUTO,)], ids=["gaussian", "laplace"])
def test_a_planner_that_chooses_differently_does_not_change_a_release(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    plan_again: Callable[[], None],
    changes: Changes,
) -> None:
    slackwater = CommandLine(begin(tmp_path, *changes), capsys)
    spec = load(tmp_path / "spec.yaml")
    store = Store(str(slackwater.folder / "public"), str(slackwater.folder / "private"))
    plan = committed_plan(spec, store.commits())
    kept = chosen(slackwater)
    text = (slackwater.folder / "public/plan.json").read_bytes()
    for name in ("tree", "factorised"):
        monkeypatch.setitem(OFFERS, name, replace(OFFERS[name], candidates=lambda _: iter(())))
    plan_again()
    assert plan_of(spec) != plan

    said = slackwater("run", "spec.yaml", until(5))

    assert said.code == 0, said.err
    assert chosen(slackwater) == kept
    assert (slackwater.folder / "public/plan.json").read_bytes() == text
    nodes = published(slackwater.folder, "nodes")
    assert len(set(nodes["scale"].to_pylist())) == 1
    assert set(nodes["query"].to_pylist()) == {"beds"}
    names = {path.stem.split("-0000")[0] for path in (slackwater.folder / "public/nodes").iterdir()}
    assert len(names) == 1
    (released,) = plan.parts
    component = plan.demands[0].measure.components[0]
    assert nodes["scale"][0].as_py() == released.noise[0].scale * component.grid


def test_nothing_is_planned_once_a_release_has_begun(slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(*_: object, **__: object) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr(plans, "make_plan", again)

    for command in (["plan"], ["ledger"], ["metrics"], ["evaluate", until(2)], ["run", until(5)], ["ledger"]):
        said = slackwater(command[0], "spec.yaml", *command[1:])
        assert said.code == 0, said.err
    assert "has begun and continues with this plan" in slackwater("plan", "spec.yaml").out


def test_plan_says_whether_it_is_the_releases(slackwater: CommandLine) -> None:
    write_spec(slackwater.folder, ("private: private", "private: new"), name="new.yaml")
    assert json.loads(slackwater("plan", "new.yaml", "--json").out)["begun"] is False
    assert "has begun" not in slackwater("plan", "new.yaml").out

    assert json.loads(slackwater("plan", "spec.yaml", "--json").out)["begun"] is True
    write_spec(slackwater.folder, ("epsilon: 1.0", "epsilon: 2.0"), name="other.yaml")
    other = slackwater("plan", "other.yaml")
    assert "epsilon 2, delta 0" in other.out
    assert "a release of another spec" in other.out

    (slackwater.folder / "private").chmod(0)
    with plain_rights():
        unseen = slackwater("plan", "spec.yaml")
    (slackwater.folder / "private").chmod(0o700)
    assert unseen.code == 0
    assert "is unknown here" in unseen.out


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("{"), lambda path: path.write_text("")])
def test_a_lost_or_changed_public_plan_is_restored(slackwater: CommandLine, damage: Callable[[Path], None]) -> None:
    path = slackwater.folder / "public/plan.json"
    content = path.read_bytes()
    manifest = json.loads((slackwater.folder / "public/manifest.json").read_text())
    assert manifest["plan_sha256"] == digest_of_text(content.decode())

    damage(path)

    assert slackwater("run", "spec.yaml", until(2)).code == 0
    assert path.read_bytes() == content
    damage(path)
    assert slackwater("run", "spec.yaml", until(3)).code == 0
    assert path.read_bytes() == content


def test_a_plan_that_was_edited_on_the_private_side_is_refused(slackwater: CommandLine) -> None:
    path = first_record(slackwater)
    path.write_text(path.read_text().replace('\\"cells\\": 3', '\\"cells\\": 4'))

    for command in ("run", "plan", "ledger", "metrics"):
        said = slackwater(command, "spec.yaml", *([until(5)] if command == "run" else []))
        assert (said.code, said.out) == (1, ""), command
        assert "000001.json: the plan is not what was committed; restore it from a copy" in said.err


def louder(plan: dict[str, Any]) -> None:
    plan["queries"][0]["parts"][0]["noise"][0]["scale"] = (0.5).hex()


def other_noise(plan: dict[str, Any]) -> None:
    plan["queries"][0]["parts"][0]["noise"][0]["kind"] = "discrete_gaussian"


def moves_nothing(plan: dict[str, Any]) -> None:
    plan["queries"][0]["parts"][0]["sensitivity"]["l1"] = (0.0).hex()


def claims_more(plan: dict[str, Any]) -> None:
    plan["budget"]["epsilon"] = (1.5).hex()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan.update(version=99), "version: not 1, so another version of this program wrote it"),
        (lambda plan: plan.update(scales=[1]), "scales: unknown"),
        (lambda plan: plan.pop("claim"), "claim: missing"),
        (lambda plan: plan["promise"].update(window="1d"), "promise.window: expected an integer"),
        (lambda plan: plan.pop("release"), "release: missing"),
        (lambda plan: plan.update(release="others"), "release, spec_sha256: of another release"),
        (lambda plan: plan.update(spec_sha256="c0ffee"), "release, spec_sha256: of another release"),
        (
            lambda plan: plan["promise"].update(window=1),
            "it is for other queries, windows or privacy than this version",
        ),
        (
            lambda plan: plan["queries"][0]["demand"].update(cells=4),
            "it is for other queries, windows or privacy than this",
        ),
        (claims_more, "it is for other queries, windows or privacy than this version"),
        (other_noise, "mechanism: laplace, but the part has noise of another mechanism"),
        (
            moves_nothing,
            "this version of the program cannot prove what the release claims (l1: expected a number above 0",
        ),
        (louder, "this version of the program proves epsilon 14 for its noise, and the release claims 1"),
    ],
)
def test_no_noise_is_sampled_for_an_unreadable_or_unsuitable_plan(
    slackwater: CommandLine, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    alter(slackwater, change)
    before = contents(slackwater.folder / "private/attempts")

    for command in ("run", "ledger"):
        said = slackwater(command, "spec.yaml", *([until(5)] if command == "run" else []))
        assert (said.code, said.out) == (1, ""), command
        assert "the plan of release 'wards', in the record of epoch 1 and in plan.json" in said.err
        assert message in said.err
        assert len(said.lines) == 1 + (command == "run")  # which first shows the epoch that is not public
    assert contents(slackwater.folder / "private/attempts") == before


def test_a_public_plan_contains_no_path_and_nothing_that_the_public_spec_withholds(tmp_path: Path) -> None:
    query = f"measure: {{sum: x{PRIVATE}, min: 0, max: 3}}, where: 'y{PRIVATE} > 3', by: {{z{PRIVATE}: [q, r]}}"
    spec = loaded(
        tmp_path,
        f"""\
# {PRIVATE}
release: wards
changelog: {{format: csv, path: data/{PRIVATE}.csv, entry: stay{PRIVATE}, time: at{PRIVATE}, order: o{PRIVATE}}}
privacy: {{epsilon: 1, constraint: {{by: fare, classes: {{a: {{at_most: 4}}, b: {{within: 3d}}}}}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d}}
queries:
  - {{name: beds, {query}, publish: [change]}}
output: {{public: {PRIVATE}/public, private: {PRIVATE}/private}}
""",
    )

    told = plan_json(spec, plan_of(spec))

    assert PRIVATE not in told
    assert str(tmp_path) not in told
    assert json.loads(told)["spec_sha256"] == spec.sha256


def test_texts_that_look_like_lists_of_numbers_are_kept_as_they_are(tmp_path: Path) -> None:
    classes = "{by: fare, classes: {'[ 1, 2 ]': {at_most: 2}, '[  3  ]': {at_most: 1}}}"
    write_spec(tmp_path, ("{at_most: 4}", classes))
    spec = load(tmp_path / "spec.yaml")

    assert plan_to_json(plan_of(spec)).items() <= json.loads(plan_json(spec, plan_of(spec))).items()
