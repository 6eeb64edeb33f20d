"""`slackwater sanitise`: each record is published once, with noisy values only, also after failures."""

import csv
import json
import re
import shutil
import subprocess
import sys
import threading
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from pipelines.common.version import program
from pipelines.ledger.apart import other_promises
from pipelines.sanitised import operation
from pipelines.sanitised.ledger import ledger
from pipelines.sanitised.models import SanitiseModel
from pipelines.sanitised.operation import sanitise
from pipelines.sanitised.published_plan import plan_json, read_plan
from pipelines.sanitised.spec import load_sanitise
from pipelines.sanitised.store import Sanitised, names_done, sanitised_store
from pipelines.store.attempts import draft_of
from pipelines.store.folder import folder_at
from privacy.accounting.accounting import Budget
from privacy.noise.sampling import SAMPLERS
from tests.e2e.specs import CommandLine, Said, contents
from tests.pipelines.spec_text import changed
from tests.test_readme import commands, keys_of
from transforms.common.errors import RefusedError, SpecError
from transforms.common.sinks import write_table

NAME = "k7f3secret"
"""The name of every record begins so: no output but the private one may hold it."""

SPEC = """\
sanitise: survey
records: {format: csv, path: data/*.csv, entry: person}
columns:
  - {name: work, kind: category, values: [none, part, full], missing: none, epsilon: 2.0}
  - {name: age, kind: number, min: 18, max: 98, step: 1, epsilon: 1.0, delta: 1.0e-9}
  - {name: ills, kind: set, values: [asthma, gout], epsilon: 2.0}
  - {name: load, kind: curve, points: [h0, h1], min: 0, max: 5, step: 0.5, epsilon: 4.0}
output: {public: public, private: private, format: csv}
"""
COLUMNS = ["work", "age", "ills", "h0", "h1"]


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    (tmp_path / "spec.yaml").write_text(SPEC)
    people(tmp_path / "data/first.csv", range(40))
    return CommandLine(tmp_path, capsys)


def people(path: Path, numbers: range) -> None:
    """As the path's ending says. Some have no value in a column."""
    rows = [
        {
            "person": f"{NAME}-{n}",
            "extra": f"{NAME}-extra",
            "work": ["none", "part", "full", None][n % 4],
            "age": 18 + n,
            "ills": ["asthma", "gout; asthma", None][n % 3],
            "h0": 1.0,
            "h1": None if n % 5 else 2.5,
        }
        for n in numbers
    ]
    path.parent.mkdir(exist_ok=True)
    write_table(pa.Table.from_pylist(rows), str(path), format_=path.suffix[1:])


def spec(slackwater: CommandLine, *changes: tuple[str, str]) -> None:
    text = SPEC
    for old, new in changes:
        text = changed(old, new, text)
    (slackwater.folder / "spec.yaml").write_text(text)


def records(folder: Path) -> list[dict[str, str]]:
    """Return the records of all files that the manifest names."""
    manifest = json.loads((folder / "manifest.json").read_text())
    files = [name for epoch in manifest["epochs"] for name in epoch["files"]]
    return [row for name in files for row in csv.DictReader((folder / name).read_text().splitlines())]


def test_the_number_of_records_is_kept_and_nothing_else_of_them_is_published(slackwater):
    said = slackwater("sanitise", "spec.yaml")

    assert (said.code, said.err) == (0, "")
    found = records(slackwater.folder / "public")
    assert len(found) == 40
    assert {tuple(row) for row in found} == {tuple(COLUMNS)}
    assert {row["work"] for row in found} <= {"none", "part", "full"}
    public = contents(slackwater.folder / "public")
    assert {name.split("/")[0] for name in public} == {"manifest.json", "plan.json", "records"}
    assert [name for name, content in public.items() if NAME.encode() in content] == []
    assert NAME not in said.out


def test_values_of_functions_hold_no_private_member_of_an_epoch(slackwater):
    """The digest of the names confirms a guess of all of them, and rows left out were sanitised before."""
    people(slackwater.folder / "data/second.csv", range(39, 41))
    with chdir(slackwater.folder):
        made = sanitise("spec.yaml")
        private = sanitised_store("public", "private").commits()
        epochs = (made.commit, *ledger("spec.yaml").commits)

    assert [(len(one.state), one.left_out) for one in private] == [(1, 1)]
    assert [(one.state, one.left_out, one.plan) for one in epochs] == [({}, 0, "")] * 2
    assert [one.files for one in epochs] == [one.files for one in private * 2]


def test_a_record_that_is_read_several_times_is_sanitised_once(slackwater):
    """Of 55 records 40 are done in the first run; one comes twice in one file. 15 are left."""
    slackwater("sanitise", "spec.yaml")
    before = contents(slackwater.folder / "public")
    again = slackwater("sanitise", "spec.yaml")
    people(slackwater.folder / "data/second.csv", range(20, 55))
    people(slackwater.folder / "data/third.csv", range(54, 55))

    more = slackwater("sanitise", "spec.yaml", "--json")

    assert "nothing new; 40 rows of records that are sanitised already" in again.out
    document = json.loads(more.out)
    assert (document["epoch"], document["records"], document["left_out"]) == (2, 15, 61)
    after = contents(slackwater.folder / "public")
    assert {name: after[name] for name in before if name.startswith("records/")} == {
        name: content for name, content in before.items() if name.startswith("records/")
    }
    assert len(records(slackwater.folder / "public")) == 55
    told = json.loads(slackwater("ledger", "spec.yaml", "--json").out)
    assert (told["total"], told["of_each"], told["records"]) == ({"epsilon": 9.0, "delta": 1e-9}, "record", 55)
    assert [(epoch["epoch"], epoch["records"]) for epoch in told["epochs"]] == [(1, 40), (2, 15)]
    assert [each["epsilon"] for each in told["columns"]] == [2.0, 1.0, 2.0, 4.0]
    with chdir(slackwater.folder):  # as in the ledger of a release next to it that reads the same files
        (promise,), _ = other_promises(Path("sums.yaml"), load_sanitise("spec.yaml").source)
    assert promise.so_far == 55
    assert NAME not in slackwater("ledger", "spec.yaml").out
    assert json.loads(slackwater("ledger", "public", "--json").out) == told
    shutil.rmtree(slackwater.folder / "public")
    slackwater("sanitise", "spec.yaml")
    assert contents(slackwater.folder / "public") == after
    manifest = json.loads(after["manifest.json"])
    assert manifest["loss"] == {"epsilon": 9.0, "delta": 1e-9}
    assert {(epoch["program"], epoch["sampler"]) for epoch in manifest["epochs"]} == {(program(), SAMPLERS)}


def test_a_run_that_died_after_its_commit_is_finished_to_the_same_bytes(slackwater):
    slackwater("sanitise", "spec.yaml")
    before = contents(slackwater.folder / "public")
    shutil.rmtree(slackwater.folder / "public")

    said = slackwater("sanitise", "spec.yaml")

    assert "nothing new" in said.out
    assert contents(slackwater.folder / "public") == before
    (path,) = (slackwater.folder / "public/records").iterdir()
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:9])  # of a run that died while it copied
    slackwater("sanitise", "spec.yaml")
    assert contents(slackwater.folder / "public") == before
    path.unlink()
    (kept,) = (slackwater.folder / "private").glob("attempts/*/records/*")
    kept.write_bytes(kept.read_bytes().swapcase())
    assert "missing, or not what epoch 1 committed; restore it" in slackwater("sanitise", "spec.yaml").err
    assert not path.exists()


def test_the_next_run_removes_uncommitted_attempts_of_dead_runs(slackwater):
    """The attempt has the files of a run that was killed while it wrote."""
    slackwater("sanitise", "spec.yaml")
    left = slackwater.folder / "private/attempts/000002-0123456789abcdef"
    left.mkdir()
    (left / "run.json").write_text('{"host": "h", "place": "", "process": "", "began": "2026-01-01T00:00:00+00:00"}')
    (attempt,) = [one for one in left.parent.iterdir() if one != left]
    run = json.loads((attempt / "run.json").read_text())
    running = left.with_name("000002-0011223344556677")
    shutil.copytree(left, running)
    (running / "run.json").write_text(json.dumps(run))
    for one in (left, attempt):
        (one / "run.json").write_text(json.dumps(run | {"process": "1 0"}))  # of this machine, and long gone
    committing = left.with_name("000002-fedcba9876543210")
    shutil.copytree(left, committing)
    private = slackwater.folder / "private"
    (private / draft_of(committing.name)).write_text("{}")  # a commit that is on its way may yet come

    slackwater("sanitise", "spec.yaml")

    assert {one.name for one in left.parent.iterdir()} == {attempt.name, committing.name, running.name}


LOST = [
    (["private"], "manifest.json: shows 2 epochs and the private side has committed 0"),
    (
        ["private/commits/000002.json"],
        "manifest.json: shows 2 epochs and the private side has committed 1",
    ),
    (["private/attempts/*/names/names.parquet"], "names.parquet: missing, or not what epoch 1 left"),
    (["private/commits/000001.json"], "commits: holds other files than the records of epochs 1 to 1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "why"), LOST, ids=[lost[0] for lost, _ in LOST])
def test_nothing_is_sanitised_without_the_list_of_finished_records(slackwater, lost, why):
    slackwater("sanitise", "spec.yaml")
    people(slackwater.folder / "data/second.csv", range(40, 50))
    slackwater("sanitise", "spec.yaml")
    for pattern in lost:
        for path in slackwater.folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = contents(slackwater.folder / "public")

    said = slackwater("sanitise", "spec.yaml")

    assert (said.code, said.out) == (1, "")
    assert why in said.err
    assert contents(slackwater.folder / "public") == before


MADE = {"records": ["part.csv"], "names": ["names.parquet"]}


def test_of_two_runs_at_once_one_counts(tmp_path):
    store = sanitised_store(str(tmp_path / "public"), str(tmp_path / "private"))
    attempts = [store.begin(1), store.begin(1)]
    for attempt in attempts:
        for side, name in (("records", "part.csv"), ("names", "names.parquet")):
            write_table(pa.table({"name": ["a"]}), f"{attempt.folder}/{side}/{name}", format_=name.split(".")[1])
    done = Sanitised(
        release="r", epoch=1, spec_sha256="", plan="{}", statement="", loss=Budget(epsilon=1.0), records=1, left_out=0
    )

    committed = store.commit(attempts[1], done, MADE)
    with pytest.raises(RefusedError, match=r"another run, attempt .* committed epoch 1"):
        store.commit(attempts[0], done, MADE)

    store.discard(attempts[1])  # as a run that stops between its commit and what comes then
    late = store.begin(2)
    (Path(store.private) / draft_of(late.id)).write_text("{}")
    store.discard(late)  # its commit is on its way, and may yet come
    assert Path(late.folder).exists()
    assert [commit.attempt for commit in store.commits()] == [attempts[1].id]
    assert not Path(attempts[0].folder).exists()
    assert names_done(store, store.commits()).to_pylist() == ["a"]
    store.show()
    manifest = Path(store.public) / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(attempts[1].id.encode(), attempts[0].id.encode()))
    with pytest.raises(RefusedError, match="differs from what was committed"):
        store.open()  # as many epochs, of other records
    names = Path(attempts[1].folder) / "names/names.parquet"
    names.write_bytes(names.read_bytes().swapcase())  # of the same size
    with pytest.raises(RefusedError, match="missing, or not what epoch 1 left"):
        names_done(store, [committed])


@pytest.mark.slow
def test_showing_waits_until_another_process_has_shown(slackwater):
    """Otherwise an older manifest could replace a newer one."""
    slackwater("sanitise", "spec.yaml")
    store = sanitised_store(str(slackwater.folder / "public"), str(slackwater.folder / "private"))
    manifest = slackwater.folder / "public/manifest.json"
    whole = manifest.read_bytes()
    manifest.unlink()
    showing = threading.Thread(target=store.show)
    with folder_at(store.private, private=True).lock():
        showing.start()
        showing.join(0.2)
        assert showing.is_alive()
        assert not manifest.exists()
    showing.join(60)
    assert manifest.read_bytes() == whole


def test_another_spec_is_another_release_but_paths_may_change(slackwater):
    slackwater("sanitise", "spec.yaml")
    spec(slackwater, ("epsilon: 1.0", "epsilon: 3.0"))
    refused = slackwater("sanitise", "spec.yaml")
    spec(slackwater, ("data/*.csv", "data/f*.csv"))

    assert refused.code == 1
    assert "spec.yaml: differs from the spec of the release in private; a record is sanitised once" in refused.err
    assert "nothing new" in slackwater("sanitise", "spec.yaml").out
    spec(slackwater, ("data/*.csv", "data/first.csv"), ("public: public, private: private", "public: a, private: b"))
    moved = slackwater("sanitise", "spec.yaml")
    assert (moved.code, "spec.yaml: began release 'survey' of the same data in /" in moved.err) == (1, True)
    (slackwater.folder / "spec.yaml").rename(slackwater.folder / "another.yaml")
    assert slackwater("sanitise", "another.yaml").code == 0


@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_records_of_all_formats_can_be_written_in_all_formats(slackwater, format_):
    shutil.rmtree(slackwater.folder / "data")
    people(slackwater.folder / f"data/all.{format_}", range(30))
    changes = [
        ("format: csv, path", f"format: {format_}, path"),
        ("data/*.csv", f"data/*.{format_}"),
        ("private, format: csv", f"private, format: {format_}"),
    ]
    spec(slackwater, *changes)

    assert slackwater("sanitise", "spec.yaml", "--estimates", "out.csv").code == 0

    (path,) = (slackwater.folder / "public/records").iterdir()
    found = pq.read_table(path) if format_ == "parquet" else pyarrow.json.read_json(path)
    assert (found.num_rows, found.column_names) == (30, COLUMNS)
    estimates = pyarrow.csv.read_csv(slackwater.folder / "out.csv")
    assert estimates.num_rows == 3 + 1 + 2 + 2
    assert sum(row["estimate"] for row in estimates.to_pylist()[:3]) == pytest.approx(1)


def test_plan_says_cost_error_and_bound_and_reads_no_records(slackwater):
    shutil.rmtree(slackwater.folder / "data")

    said = slackwater("sanitise", "spec.yaml", "--plan")
    document = json.loads(slackwater("sanitise", "spec.yaml", "--plan", "--json").out)

    assert said.code == 0
    assert said.out.startswith("survey: epsilon 9, delta 1e-09 for each record\n")
    assert (
        "work: category, epsilon 2, delta 0\n    randomised response, the truth except with probability 0.2131;"
        in said.out
    )
    assert "missing or impossible values count as 58\n    mean error 80; no mechanism has less than 21.52" in said.out
    assert document["loss"] == {"epsilon": 9.0, "delta": 1e-9}
    assert all(one["error"] >= one["lower_bound"] > 0 for one in document["columns"])
    assert [path.name for path in slackwater.folder.iterdir()] == ["spec.yaml"]


def test_a_plan_is_read_back_and_its_claims_are_proved_again(slackwater):
    spec_ = load_sanitise(slackwater.folder / "spec.yaml")
    text = plan_json(spec_)

    assert read_plan(text, "plan.json")[0] == spec_.record
    weaker = json.loads(text)
    weaker["attributes"][1]["scale"] /= 2
    with pytest.raises(RefusedError, match=r"plan\.json: not a plan"):
        read_plan(json.dumps(weaker), "plan.json")


BAD = [
    ("kind: number, min: 18", "kind: number", "5: columns[1].min: missing; add min: 0"),
    ("step: 1,", "step: 0.7,", "5: columns[1]: step=0.7 does not lead from min=18.0 to max=98.0 in whole steps"),
    ("kind: number", "kind: nubmer", "5: columns[1].kind: expected one of number, category, set, curve, not 'nubmer'"),
    ("missing: none", "missing: no", "4: columns[0].missing: expected one of none, part, full, not 'no'"),
    (", missing: none", "", "4: columns[0].missing: missing; name the value that a missing or unlisted value"),
    ("missing: none", "mising: none", "4: columns[0].mising: unknown key; did you mean 'missing'?"),
    ("missing: none", "missing: none, at_most: 2", "4: columns[0].at_most: only for kind: set; remove it"),
    ("missing: none", "missing: none, distances: [[0, 1]]", "4: columns[0].distances: expected 3 rows of 3"),
    ("missing: none", "missing: none, distances: [[0, 1, 9], [1, 0, 1], [9, 1, 0]]", "this is not a metric"),
    ("epsilon: 4.0", "epsilon: 400", "7: columns[3].epsilon: expected at most 40, not 400"),
    ("points: [h0, h1]", "points: [h0, age]", "7: columns[3]: column 'age' is sanitised in columns[1] already"),
    ("name: age", "name: person", "5: columns[1]: the column of names (records.entry) is never published"),
    ("format: csv, path", "format: snapshots, path", "2: records.format: expected one of parquet, csv, jsonl"),
    ("path: data/*.csv", "path: public/a.csv", "2: records.path: lies inside output.public"),
    ("name: age", "name: aeg", "columns: data/first.csv has no column 'aeg'; the name of column 4 is similar"),
    ("entry: person", "entry: persom", "records.entry: data/first.csv has no column 'persom'; the name of column 1"),
    ("data/*.csv", "daten/*.csv", "records.path: no file matches 'daten/*.csv'"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "why"), BAD, ids=[new for _, new, _ in BAD])
def test_a_mistake_in_a_spec_is_one_line_with_its_place(slackwater, old, new, why):
    spec(slackwater, (old, new))

    said = slackwater("sanitise", "spec.yaml")

    assert (said.code, said.out, len(said.lines)) == (2, "", 1)
    assert why in said.err
    assert said.err.startswith("slackwater: spec.yaml:")
    assert not (slackwater.folder / "public").exists()


ROWS = [
    ("no name", f",{NAME},none,20,asthma,1,1\n", "row 41: column 'person': entry is null"),
    ("too few cells", f"{NAME}-99,none\n", "row 41: the row has a different number of cells than the header"),
]


@pytest.mark.parametrize(("row", "why"), [one[1:] for one in ROWS], ids=[one[0] for one in ROWS])
def test_a_row_that_cannot_be_a_record_ends_the_run(slackwater, row, why):
    with (slackwater.folder / "data/first.csv").open("a") as file:
        file.write(row)

    said = slackwater("sanitise", "spec.yaml")

    assert (said.code, said.out) == (3, "")
    assert f"data/first.csv: {why}" in said.err
    assert NAME not in said.err
    assert not (slackwater.folder / "public").exists()
    assert list((slackwater.folder / "private/attempts").iterdir()) == []


def refuses(said: Said, why: str) -> bool:
    return said.code == 2 and why in said.err


def test_a_file_that_changes_while_it_is_read_ends_the_run(slackwater, monkeypatch):
    path, sanitised = slackwater.folder / "data/first.csv", operation.sanitised

    def changing(*arguments, **named):
        people(path, range(41))
        return sanitised(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(operation, "sanitised", changing)
        said = slackwater("sanitise", "spec.yaml")

    assert said.code == 3
    assert "data/first.csv: has changed while it was read, so nothing new was published" in said.err
    assert contents(slackwater.folder / "public") == {}
    assert "41 records sanitised" in slackwater("sanitise", "spec.yaml").out


def test_files_without_records_release_nothing(slackwater):
    (slackwater.folder / "data/first.csv").write_text("person,work,age,ills,h0,h1\n")

    said = slackwater("sanitise", "spec.yaml")
    asked = slackwater("sanitise", "spec.yaml", "--estimates", "out.csv")

    assert (said.code, "nothing new" in said.out) == (0, True)
    assert (asked.code, "nothing is sanitised yet" in asked.err) == (1, True)
    assert not (slackwater.folder / "public").exists()


def test_invalid_flags_are_refused(slackwater):
    assert refuses(slackwater("sanitise", "spec.yaml", "--runner=FlinkRunner"), "sanitise runs no pipeline")
    assert refuses(slackwater("sanitise", "spec.yaml", "--estimates", "public/x.csv"), "lies in the public folder")
    assert refuses(slackwater("sanitise", "spec.yaml", "--estimates", "x.xlsx"), "must end in .parquet, .csv, .jsonl")


def test_the_separator_may_not_stand_in_an_element(slackwater):
    spec(slackwater, ("[asthma, gout]", "['a;b', gout]"))

    with pytest.raises(SpecError, match=r"columns\[2\]\.values: an element holds records\.separator"):
        load_sanitise(slackwater.folder / "spec.yaml")


PAGE = Path(__file__).parents[3] / "docs/sanitise.md"


def test_the_page_takes_a_stranger_to_sanitised_records(tmp_path, capsys):
    """Return all files and commands of the page."""
    for name, text in re.findall(r"`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    slackwater = CommandLine(tmp_path, capsys)

    said = [slackwater(*command[1:]) for command in commands(PAGE)]

    assert [one.code for one in said] == [0, 0, 0, 0]
    assert said[0].out.startswith("survey-2026: epsilon 5, delta 0 for each record")
    assert len(records(tmp_path / "releases/survey/public")) == 3
    estimates = pyarrow.csv.read_csv(tmp_path / "releases/survey/estimates.csv")
    assert estimates.num_rows == 4 + 1 + 3 + 3
    told = re.findall(r"^\| `(\w+)`", PAGE.read_text().split("\n## Estimates")[1], re.MULTILINE)
    assert [*told, "ci_high"] == estimates.column_names  # which is next to `ci_low`


def test_the_page_lists_every_key_with_its_default():
    told = dict(re.findall(r"^\| (`[\w.]+`) \| [^|]* \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE))

    assert told == dict(keys_of(SanitiseModel))


def test_names_are_text_unless_they_are_declared_whole_numbers(slackwater):
    """As texts, 7 and 07 are two records, which cost twice."""
    header = "person,work,age,ills,h0,h1\n"
    first, second = (slackwater.folder / f"data/{name}.csv" for name in ("first", "second"))
    for declared, records in ((False, 2), (True, 1)):
        for name in ("private", "public", ".slackwater"):
            shutil.rmtree(slackwater.folder / name, ignore_errors=True)
        spec(slackwater, *([("entry: person", "entry: person, entry_type: int64")] if declared else []))
        for path, name in ((first, "7"), (second, "07")):
            path.write_text(f"{header}{name},none,20,asthma,1,1\n")
        assert json.loads(slackwater("sanitise", "spec.yaml", "--json").out)["records"] == records

    second.write_text(f"{header}7.0,none,20,asthma,1,1\n")
    said = slackwater("sanitise", "spec.yaml")
    assert (said.code, "second.csv: row 1: column 'person': value not understood as int64" in said.err) == (3, True)


KILLED = """
import os, signal
from pipelines.sanitised.store import sanitised_store

attempt = sanitised_store("public", "private").begin(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_run_is_reported_and_removed(slackwater: CommandLine) -> None:
    subprocess.run([sys.executable, "-c", KILLED], cwd=slackwater.folder, check=False)
    assert len([*slackwater.folder.glob("private/attempts/*")]) == 1

    first, second = slackwater("sanitise", "spec.yaml"), slackwater("sanitise", "spec.yaml")

    assert (first.code, first.err.count("a run that began at 20")) == (0, 1)
    assert "the rows that were read are removed" in first.err
    assert (second.code, second.err.count("a run that began at 20")) == (0, 0)
    assert len([*slackwater.folder.glob("private/attempts/*")]) == 1
