"""A new release reports the cost of all known releases about the same people."""

import json
import math
import re
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import main
from pipelines.common.errors import ArgumentError
from pipelines.epochs.plans import plan_json, plan_of
from pipelines.ledger.apart import other_promises, text_of
from pipelines.run.new_release import new_release
from pipelines.run.new_release import write_spec as write_new_spec
from pipelines.spec.load import Spec, load
from pipelines.store.known_releases import keep_note, known, refuse_second, write_down
from pipelines.store.same_data import data_of
from pipelines.store.store import Store
from privacy.protection import EVERYTHING, Span
from tests.e2e.specs import CommandLine, changelog, write, write_spec
from tests.pipelines.store.releases import attempt_at, planned, record
from transforms.common.errors import RefusedError


def spec_of(folder: Path, name: str, epsilon: str = "1.0", *others: tuple[str, str]) -> Spec:
    changes = [("release: wards", f"release: {name}"), ("epsilon: 1.0", f"epsilon: {epsilon}"), *others]
    changes += [(f"{side}: {side}", f"{side}: {folder}/{side}-{name}") for side in ("public", "private")]
    return load(write_spec(folder, *changes, name=f"{name}.yaml"))


def begin(spec: Spec) -> None:
    """Commit a first epoch, as a run would, after it has noted what it knows."""
    write_down(known(spec))
    store = store_of(spec)
    plan = plan_json(spec, plan_of(spec))
    store.commit(attempt_at(store, 1), replace(record(1), release=spec.release, spec=spec.text, plan=plan), planned())


def store_of(spec: Spec) -> Store:
    return Store(spec.output.public, spec.output.private)


def begun(folder: Path, name: str, epsilon: str = "1.0", *others: tuple[str, str]) -> Spec:
    spec = spec_of(folder, name, epsilon, *others)
    begin(spec)
    return spec


def total(spec: Spec) -> tuple[float, bool, list[str]]:
    told = known(spec).document(begun=True)
    return told["epsilon"], told["at_least"], sorted(release["release"] for release in told["releases"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_four_releases_cost_four_as_seen_from_each_of_them(folder: Path) -> None:
    specs = [begun(folder, name) for name in ("r", "b", "c", "d")]

    assert [total(spec) for spec in specs] == [(4.0, False, ["b", "c", "d", "r"])] * 4


def test_sums_are_of_the_numbers_as_they_are_written(folder: Path) -> None:
    """In floating point 0.1 + 0.7 is 0.7999999999999999."""
    begun(folder, "r", "0.7", ("constraint:", "delta: 2.0e-10\n  constraint:"))

    text = known(spec_of(folder, "b", "0.1")).text()

    assert "r             epsilon 0.7, delta 2e-10\n" in text
    assert "b (this one)  epsilon 0.1, delta 0\n" in text
    assert "in sum        epsilon 0.8, delta 2e-10\n" in text
    assert "Together they are (0.8, 2e-10)-differentially private" in text


def test_a_release_counts_with_the_spec_that_it_began_with(folder: Path) -> None:
    begun(folder, "r", "3.0")
    spec_of(folder, "r", "0.5")  # changed since; the release is frozen

    assert total(spec_of(folder, "b")) == (4.0, False, ["b", "r"])


def test_a_release_that_has_not_begun_or_reads_other_data_costs_nothing(folder: Path) -> None:
    begun(folder, "other", "1.0", ("data/*.parquet", "elsewhere/*.parquet"))
    waiting = spec_of(folder, "waiting")
    (folder / "compose.yaml").write_text("services: {db: {image: postgres}}\n")

    assert known(spec_of(folder, "b")).others == ()
    begin(waiting)
    assert total(spec_of(folder, "b")) == (2.0, False, ["b", "waiting"])


@pytest.mark.slow
def test_records_lead_to_other_releases_if_specs_are_gone(folder: Path) -> None:
    """b was made from r and c from b, and each spec was moved to a separate folder."""
    specs = [begun(folder, name) for name in ("r", "b", "c")]
    moved = []
    for spec in specs:
        (folder / f"of-{spec.release}").mkdir()
        moved.append(load(shutil.move(spec.path, folder / f"of-{spec.release}")))

    assert [total(spec) for spec in moved] == [(3.0, False, ["b", "c", "r"])] * 3


@pytest.mark.slow
def test_a_missing_private_folder_counts_and_makes_the_sum_a_lower_bound(folder: Path) -> None:
    r, b, c = (begun(folder, name) for name in ("r", "b", "c"))
    shutil.rmtree(b.output.private)
    b.path.unlink()

    assert total(r) == total(c) == (3.0, True, ["b", "c", "r"])
    text = known(spec_of(folder, "d")).text()
    assert "Together they are at least (4, 0), and there may be more of them.\n" in text
    assert f"Private folders of other releases are gone or cannot be read: {b.output.private}. Name them in" in text


def test_a_private_folder_that_was_moved_counts_once(folder: Path) -> None:
    r, b = (begun(folder, name) for name in ("r", "b"))
    shutil.move(b.output.private, folder / "vault")
    text = b.path.read_text().replace(b.output.private, f"{folder}/vault")
    b.path.rename(folder / "renamed.yaml").write_text(text)

    assert total(r) == total(load(folder / "renamed.yaml")) == (2.0, False, ["b", "r"])


def test_a_private_folder_that_holds_another_release_now_is_not_taken_for_the_old_one(folder: Path) -> None:
    r, b = (begun(folder, name, epsilon) for name, epsilon in (("r", "1.0"), ("b", "5.0")))
    shutil.rmtree(b.output.private)
    begin(spec_of(folder, "b", "2.0"))

    assert total(r) == (8.0, True, ["b", "b", "r"])
    b.path.unlink()  # so that records alone lead there
    assert total(r) == (8.0, True, ["b", "b", "r"])


def test_a_record_that_cannot_be_understood_makes_it_at_least(folder: Path) -> None:
    r, b = (begun(folder, name) for name in ("r", "b"))
    (known_to_b,) = (p for p in Path(b.output.private, "releases").iterdir() if p.name != "self.json")
    known_to_b.write_text("{")

    assert total(r) == (2.0, True, ["b", "r"])


def test_units_are_named_if_they_differ(folder: Path) -> None:
    begun(folder, "r", "1.0", ("privacy:", "privacy:\n  unit: who"))

    text = known(spec_of(folder, "b")).text()

    assert "epsilon 1, delta 0, for each who\n" in text
    assert "epsilon 1, delta 0, for each entry\n" in text


def test_data_is_compared_by_the_files_that_are_read(folder: Path) -> None:
    """A glob, a link, a link of a folder, a date in the name, another order of brokers."""
    write(folder / "data/2026-01-01.parquet", changelog(1))
    (folder / "linked").symlink_to(folder / "data")
    (folder / "other").mkdir()
    (folder / "other/link.parquet").symlink_to(folder / "data/2026-01-01.parquet")
    (folder / "other/2026.parquet").write_bytes(b"")
    own = data_of(["data/2026-01-01.parquet", "kafka://a:1,b:2/stays", "future/*.csv"])[0]

    for same in ("data/*", "linked/2026*", "other/*", "linked/../data/2026-01-01.parquet", "kafka://b:2/stays"):
        assert own & data_of([same])[0], same
    (folder / "future").symlink_to(folder / "data")
    assert data_of(["future/*.csv"])[0] & data_of(["data/*.csv"])[0]
    for another in ("other/2026.parquet", "data/*.csv", "kafka://b:2/visits", "kafka://c:2/stays"):
        assert not own & data_of([another])[0], another


def test_a_release_that_spells_its_data_otherwise_counts(folder: Path) -> None:
    write(folder / "data/a.parquet", changelog(1))
    (folder / "linked").symlink_to(folder / "data")
    begun(folder, "r", "1.0", ("data/*.parquet", "linked/a.parquet"))

    assert total(spec_of(folder, "b")) == (2.0, False, ["b", "r"])


def test_a_spec_that_cannot_be_loaded_is_named_and_makes_it_at_least(folder: Path) -> None:
    r = begun(folder, "r")
    for name, text in (("typo.yaml", "release: a\nqueries: [\n"), ("typos.yml", r.path.read_text() + "more: 1\n")):
        (folder / name).write_text(text)
    (folder / "compose.yaml").write_text("services: {db: [\n")
    (folder / ".hidden.yaml").symlink_to("nowhere")

    assert known(r).unread == (str(folder / "typo.yaml"), str(folder / "typos.yml"))
    assert total(r) == (1.0, True, ["r"])
    assert re.fullmatch(
        r"Cannot be read, and may concern another release about the same people: \S+/typo\.yaml, \S+/typos\.yml\. "
        r"Correct invalid specs, or move files .*",
        known(r).text(),
    )
    assert "typo.yaml" in known(spec_of(folder, "b")).text()


def edited(spec: Spec, *changes: tuple[str, str]) -> Spec:
    """Return the spec, edited in place."""
    text = spec.path.read_text()
    for before, after in (
        (spec.output.public, "elsewhere/public"),
        (spec.output.private, "elsewhere/private"),
        *changes,
    ):
        text = text.replace(before, after)
    spec.path.write_text(text)
    return load(spec.path)


def test_editing_a_spec_in_place_begins_no_second_release(folder: Path) -> None:
    write(folder / "data/a.parquet", changelog(1))
    first = begun(folder, "r")
    keep_note(first, store_of(first))
    second = edited(first, ("data/*.parquet", "data/a.*"), ("release: r", "release: s"))

    with pytest.raises(RefusedError, match=r"r\.yaml: began release 'r' of the same data in .*private-r, and another"):
        refuse_second(second, known(second))
    assert total(second) == (2.0, False, ["r", "s"])
    shutil.rmtree(first.output.private)
    with pytest.raises(RefusedError, match=r"If nobody has seen a number of it, remove .*\.slackwater/\w+\.json"):
        refuse_second(second, known(second))
    for note in (folder / ".slackwater").glob("*.json"):
        note.unlink()
    refuse_second(second, known(second))


def test_other_data_other_specs_and_a_first_run_that_failed_are_not_refused(folder: Path) -> None:
    write(folder / "data/a.parquet", changelog(1))
    first = begun(folder, "r")
    keep_note(first, store_of(first))
    other = spec_of(folder, "b")
    refuse_second(other, known(other))
    assert total(other) == (2.0, False, ["b", "r"])
    failed = spec_of(folder, "c")
    keep_note(failed, store_of(failed))
    refuse_second(again := edited(failed), known(again))
    others = edited(first, ("data/*.parquet", "elsewhere/*.parquet"))
    refuse_second(others, known(others))
    assert known(others).before == {}


def test_a_note_is_kept_in_the_state_folder_if_that_of_the_spec_is_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    first = begun(folder, "r")
    (folder / ".slackwater").write_text("")

    assert keep_note(first, store_of(first)) is None

    (note,) = (folder / "state/slackwater").glob("*/*.json")
    second = edited(first)
    assert list(known(second).before) == [str(note)]
    shutil.rmtree(folder / "state/slackwater")
    (folder / "state/slackwater").write_text("")
    told = keep_note(second, store_of(second))
    assert told is not None
    assert told.startswith(str(folder / ".slackwater"))


def spans(length: str) -> tuple[str, str]:
    return "constraint: {at_most: 4}", f"delta: 1.0e-9\n  protects: {{span: {length}}}"


def test_sums_of_spans_are_for_the_shortest(folder: Path) -> None:
    begun(folder, "r", "1.0", spans("2w"))
    spec_of(folder, "r", "1.0", spans("1d"))  # changed since; the release is frozen

    found = known(spec_of(folder, "b", "0.5", spans("3d")))

    assert (
        "r             epsilon 1, delta 1e-9, for everything that one privacy unit does in any 14 days\n"
        in found.text()
    )
    assert (
        "Together they are (1.5, 2e-9)-differentially private for everything that one privacy unit does in any 3 days"
        in (found.text())
    )
    assert found.document(begun=True)["protects"] == "everything that one privacy unit does in any 3 days"
    assert found.document(begun=False)["protects"] == "everything that one privacy unit does in any 14 days"


def test_a_distance_without_a_span_is_for_the_whole_schedule(folder: Path) -> None:
    ages = ("by: {ward: [a, b, other]}", "by: {ward: [a, b, other], age: {from: 30, to: 70, step: 10}}")
    places = (spans("3d")[0], "protects: {distance: {age: 10}}")
    begun(folder, "r", "1.0", ages, places, ('    where: "age >= 0"\n', ""))

    assert "r             epsilon 1, delta 0, for where one privacy unit is in any 6 days, up to 10 in age\n" in (
        known(spec_of(folder, "b", "0.5", spans("3d"))).text()
    )


def test_a_release_that_has_not_begun_says_of_other_distances_that_they_are_in_no_sum(folder: Path) -> None:
    def ages(distance: int) -> tuple[tuple[str, str], ...]:
        cells = ("by: {ward: [a, b, other]}", "by: {ward: [a, b, other], age: {from: 30, to: 70, step: 10}}")
        return cells, (spans("3d")[0], f"protects: {{distance: {{age: {distance}}}}}"), ('    where: "age >= 0"\n', "")

    begun(folder, "r", "1.0", *ages(10))
    found = known(spec_of(folder, "b", "0.5", *ages(20)))

    assert found.text(begun=False) == ("Not in the sum, which does not hold for the distances that they protect: r.")
    assert (found.document(begun=False)["epsilon"], found.document(begun=False)["at_least"]) == (0.0, True)
    assert "b (this one)  epsilon 0.5" in found.text(begun=True)


def test_next_to_a_span_a_release_that_protects_everything_costs_twice(folder: Path) -> None:
    """(1, 1e-9) for a unit with and without all its mutations; two steps from one course of a span to another."""
    begun(folder, "r", "1.0", ("constraint:", "delta: 1.0e-9\n  constraint:"))

    found = known(spec_of(folder, "b", "1.0", spans("3d")))

    told = found.document(begun=True)
    assert told["epsilon"] == 3.0
    assert 1e-9 + (1 + math.e) * 1e-9 <= told["delta"] <= 4.72e-9
    assert "Together they are (3, 4.719e-9)-differentially private for everything that one" in found.text()
    assert known(load(folder / "r.yaml")).document(begun=True)["epsilon"] == 1.0  # b has not begun


@pytest.mark.slow
def test_the_sum_is_shown_before_sampling_and_in_the_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slackwater = CommandLine(tmp_path, capsys)
    data = write(tmp_path / "data/all.parquet", changelog(3))
    write_spec(tmp_path)
    assert slackwater("run", "spec.yaml").err == ""
    said = [slackwater("run", "spec.yaml", "--new-release", name, "--json") for name in ("b", "c")]
    data.rename(tmp_path / "away.parquet")

    failed = slackwater("run", "spec-b.yaml", "--new-release", "d")  # which finds nothing to draw for

    assert [json.loads(one.out)["together"]["epsilon"] for one in said] == [2.0, 3.0]
    assert ["in sum" in one.err for one in said] == [True, True]
    assert failed.code == 2
    assert "Together they are (4, 0)-differentially private" in failed.err
    for name in ("spec.yaml", "spec-b.yaml", "spec-c.yaml"):
        assert json.loads(slackwater("ledger", name, "--json").out)["together"]["epsilon"] == 3.0  # d has not begun
        assert "Together they are (3, 0)-differentially private" in slackwater("ledger", name).out


def test_a_new_release_has_its_own_folders_report_and_witness(tmp_path: Path) -> None:
    shared = "  private: private\n  report: www.d/wards.html\n  witness: audit.d/commits.jsonl\n"
    old = write_spec(tmp_path, ("  private: private\n", shared))

    one, two = load(old).output, load(write_new_spec(str(old), "b")).output

    assert Path(two.report or "").name == "wards-b.html"
    assert Path(two.report or "").parent == Path(one.report or "").parent
    assert (two.witness or "").removeprefix(str(tmp_path)).lstrip("/") == "audit.d/commits-b.jsonl"
    assert not {one.public, one.private, one.witness} & {two.public, two.private, two.witness}


@pytest.mark.parametrize("flag", ["--until=2150-01-01T00:00:00Z", "--poll=10s", "--lag=30s", "--streaming"])
def test_an_invalid_command_writes_no_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str) -> None:
    write_spec(tmp_path, ("  until: 2026-01-06T00:00:00Z\n", ""))

    said = CommandLine(tmp_path, capsys)("run", "spec.yaml", "--new-release", "b", flag)

    assert said.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shards": 0}, "^shards: expected a whole number of at least 1"),
        ({"until": "2026-01-03"}, "^until: "),
        ({"new_release": "a/b"}, "^new_release 'a/b': expected a name without slashes"),
        ({"poll": timedelta(0), "options": ["--streaming", "--runner=FlinkRunner"]}, "^poll: expected a duration"),
    ],
)
def test_an_invalid_argument_writes_no_spec(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    spec = write_spec(tmp_path)

    with pytest.raises(ArgumentError, match=message):
        new_release(spec, **{"new_release": "b", **wrong})

    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]


RECORDS = """\
sanitise: people
records: {format: parquet, path: [elsewhere.parquet, FILES], entry: stay}
columns:
  - {name: ward, kind: category, values: [a, b, other], epsilon: 0.5, delta: 1.0e-9}
output: {public: public-records, private: private-records}
"""
SURVEY = """\
release: work
local: {answers: [a, b], people: 5000, epsilon: 2.0, constraint: {at_most: 3}}
schedule: {start: 2026-01-01T00:00:00Z, every: 1w, until: 2026-03-05T00:00:00Z}
"""


def test_releases_that_protect_records_or_devices_are_listed_separately_and_not_in_the_sum(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neighbours are others there: a sum would say less than the truth for who is in all of them."""
    spec = begun(folder, "r")
    alone = known(spec).document(begun=True)
    files = spec.changelog.source.paths[0]
    (folder / "records.yaml").write_text(RECORDS.replace("FILES", files))
    (folder / "other-records.yaml").write_text(RECORDS.replace(", FILES", "").replace("people", "others"))
    (folder / "survey.yaml").write_text(SURVEY)
    (folder / "not-ours.yaml").write_text("local: 1")

    told, unread = other_promises(spec.path, spec.changelog.source)

    assert unread == (str(folder / "not-ours.yaml"),)

    assert [(each.release, each.of_each, each.epsilon, each.delta, each.so_far) for each in told] == [
        ("people", "record", 0.5, 1e-9, 0),
        ("work", "device", 2.0, 0.0, None),
    ]
    assert known(spec).document(begun=True) == alone
    *listed, words = text_of(told, (), EVERYTHING)
    assert listed[1:] == [
        "  people: epsilon 0.5, delta 1e-09 for each record, 0 sanitised so far",
        "  work: epsilon 2, delta 0 for each device, once its devices report",
    ]
    assert "2 epsilon of this release" in words
    (folder / "private-records/commits").mkdir(parents=True)
    (folder / "private-records/commits/000001.json").write_text("{}")
    assert [each.so_far for each in other_promises(spec.path, spec.changelog.source)[0]] == [None, None]
    assert text_of([], (), EVERYTHING) == []
    for protects in (Span(7 * 86_400_000_000), Span(7 * 86_400_000_000, near=(("lat", "0.001"),))):
        words = text_of(told, (), protects)[-1]
        assert "in any 7 days" in words
        assert not any(claim in words for claim in ("2 epsilon", "Only this release protects"))

    assert main(["ledger", "survey.yaml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["of_each"], document["total"]) == ("device", {"epsilon": 2.0, "delta": 0.0})
    assert (document["people"], document["windows"]) == (5000, 9)
    assert main(["ledger", "records.yaml"]) == 1
    assert "000001.json: not a record of sanitised records" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "name", "why"),
    [
        (
            ["run"],
            "survey.yaml",
            "a spec of a survey that devices randomise; the commands for it are slackwater local plan",
        ),
        (
            ["answer"],
            "records.yaml",
            "a spec of sanitised records; the commands for it are slackwater sanitise, show, report, metrics and",
        ),
        (
            ["sanitise"],
            "r.yaml",
            "a spec of a release of sums from a changelog; the commands for it are slackwater plan",
        ),
        (["local", "plan"], "records.yaml", "a spec of sanitised records"),
    ],
)
def test_a_spec_of_another_kind_is_one_line_that_names_its_commands(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str], name: str, why: str
) -> None:
    spec_of(folder, "r")
    (folder / "records.yaml").write_text(RECORDS.replace("FILES", "a.parquet"))
    (folder / "survey.yaml").write_text(SURVEY)

    assert main([*command, name]) == 2
    assert capsys.readouterr().err.splitlines()[0].startswith(f"slackwater: {name}: {why}")
