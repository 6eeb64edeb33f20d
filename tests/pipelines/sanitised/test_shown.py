"""`show`, `report` and `metrics` of sanitised records, from their public folder alone."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines import cli
from pipelines.sanitised import words
from pipelines.sanitised.published import PublishedRecords
from pipelines.sanitised.published_plan import RESTS_ON
from pipelines.sanitised.spec import load_sanitise
from pipelines.spec.times import people_time
from privacy.sanitised.attributes import Number
from privacy.sanitised.record import Sanitisation
from tests.e2e.specs import contents
from tests.e2e.test_metrics import OF_RECORDS, parsed
from tests.pipelines.report.records_page import HOURS, PEOPLE, TOWNS, public_records
from tests.pipelines.report.report_page import NASTY
from tests.pipelines.report.test_operation import Elements
from tests.releases.continued import rows_of
from transforms.sanitised.estimated_tables import estimated


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return public_records(tmp_path_factory.mktemp("people"))


def test_the_table_has_the_estimates_and_no_other_file_is_written(public, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(public.parent)
    before = contents(public.parent)

    assert cli.main(["show", "public", "-o", str(tmp_path / "all.csv")]) == 0
    said = capsys.readouterr().out
    assert cli.main(["show", "spec.yaml", "--query", "load", "--json"]) == 0
    of_one = json.loads(capsys.readouterr().out)
    assert cli.main(["show", "spec.yaml", "--query", "ills"]) == 0
    printed = capsys.readouterr().out.splitlines()

    assert (tmp_path / "all.csv").read_bytes() == (public.parent / "estimates.csv").read_bytes()
    assert said.startswith(f"people: {3 + 30 + 1 + 2 + 24} numbers from {PEOPLE} sanitised records in ")
    assert [row["value"] for row in of_one["estimates"]] == HOURS
    assert {name: of_one[name] for name in ("release", "records", "rows")} == {
        "release": "people",
        "records": PEOPLE,
        "rows": 24,
    }
    assert [line.split()[:3] for line in printed] == [
        ["attribute", "value", "kind"],
        ["ills", "asthma", "share"],
        ["ills", "gout", "share"],
    ]
    assert contents(public.parent) == before


def test_the_page_states_the_promise_and_its_cost_and_holds_no_name_of_a_record(public, capsys):
    output = public.parent / "page.html"
    assert cli.main(["report", str(public), "-o", str(output), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    page = Elements(output.read_text())
    output.unlink()

    manifest, told = json.loads((public / "manifest.json").read_text()), " ".join(page.text.split())
    assert [said for said in (*RESTS_ON, *words.NOT_PROTECTED) if said not in told] == []
    assert all(manifest[name] in told for name in ("statement", "spec_sha256"))
    assert people_time(manifest["epochs"][0]["committed_at"]) in told
    assert f"Sanitised so far: {PEOPLE} records in 1 run, each record once. Each costs epsilon 53.625 and" in told
    assert "Of 400 records up to 0.4 may have a revealed value" in told
    assert "Signature" not in told
    assert "would reduce the noise" not in told  # advice for the curator
    assert told.count("Not stated by the curator.") <= 1
    assert "Not stated by the curator Curator and contact; Intended use" in told
    assert "k7f3secret" not in output.name + told
    assert [one for tag, one in page.found if tag == "img" or one.get("src")] == []
    noisy = {(one["attribute"], one["value"]): one["noisy"] for one in document["signals"]}
    # For any noise: shares of a half are far from zero, and the margins of towns and of the age exceed the total.
    assert [noisy["work", "full"], noisy["work", NASTY], noisy["age", None]] == [False, True, True]
    warned = {one.partition(": ")[0]: one for one in document["warnings"]}
    assert warned["age"].startswith("age: mostly noise, since the interval is wider than half of the possible range.")
    assert warned["work"].startswith(f"work: mostly noise: {NASTY} (1 of 3 shares), since the interval contains zero,")
    assert warned["stars"].startswith("stars: sanitised values hardly depend on the true ones")
    assert warned["town"].startswith("town: mostly noise: 30 of 30 shares, since the interval contains zero,")
    assert TOWNS[0] in told
    for one in document["signals"][:3]:
        share, low, high = map(
            float, re.search(rf"work: {re.escape(one['value'])} *(\S+) % *(\S+) to (\S+) %", told).groups()
        )
        assert low <= 100 * one["ci_low"] < low + 1
        assert abs(share - 100 * one["estimate"]) <= 0.5
        assert high - 1 < 100 * one["ci_high"] <= high


def test_records_of_all_files_of_a_run_are_reported(tmp_path, monkeypatch, capsys):
    """A run writes a file for each million of records, and reads a quarter of a million at a time."""
    monkeypatch.setattr("pipelines.sanitised.operation.FILE_ROWS", 1)
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"person,work\n{name}1,full\n{name}2,full\n")
    spec = tmp_path / "few.yaml"
    spec.write_text(
        f"sanitise: few\nrecords: {{format: csv, path: {tmp_path}/*.csv, entry: person}}\ncolumns:\n"
        "  - {name: work, kind: category, values: [full, none, other], epsilon: 40}\n"
        f"output: {{public: {tmp_path}/public, private: {tmp_path}/private}}\n"
    )
    assert cli.main(["sanitise", str(spec)]) == 0
    assert len(list((tmp_path / "public/records").iterdir())) == 2
    capsys.readouterr()

    assert cli.main(["show", str(spec), "--json"]) == 0

    found = PublishedRecords(str(tmp_path / "public"))
    whole = estimated(pa.table({"work": ["full"] * 4}), found.record)
    assert json.loads(capsys.readouterr().out)["estimates"] == whole.to_pylist()


def test_a_curve_that_is_mostly_noise_is_labelled(tmp_path, capsys):
    text = (
        "sanitise: few\nrecords: {format: csv, path: few.csv, entry: person}\ncolumns:\n"
        "  - {name: load, kind: curve, points: [h0, h1], min: 0, max: 5, step: 0.5, epsilon: 1.0e-3}\n"
        f"output: {{public: {tmp_path}/public, private: {tmp_path}/private}}\n"
    ).replace("few.csv", f"{tmp_path}/few.csv")
    spec = tmp_path / "few.yaml"
    spec.write_text(text)
    (tmp_path / "few.csv").write_text("person,h0,h1\na,1,1\n")

    assert cli.main(["report", str(spec)]) == 1
    assert f"few.yaml: nothing is sanitised yet in {tmp_path}/public; `slackwater sani" in capsys.readouterr().err
    assert cli.main(["metrics", str(spec)]) == 0
    assert parsed(capsys.readouterr().out, "few")["slackwater_records_published_total",] == 0
    assert cli.main(["sanitise", str(spec)]) == 0
    capsys.readouterr()
    assert cli.main(["show", str(spec), "--json"]) == 0
    of_one_record = json.loads(capsys.readouterr().out)["estimates"]
    assert all(row["ci_high"] - row["ci_low"] > 2 * row["stddev"] > 1000 for row in of_one_record)  # noise is known
    with (tmp_path / "few.csv").open("a") as file:
        file.write("b,1,1\nc,1,1\n")
    assert cli.main(["sanitise", str(spec)]) == 0
    assert cli.main(["report", str(spec), "-o", str(tmp_path / "few.html")]) == 0
    # Noise of scale 10,000: that all three of a point lie within 2 of each other is rarer than 1e-7.
    assert "load: mostly noise: h0, h1 (2 of 2 means), since the interval is wider" in capsys.readouterr().out
    assert "3 records in 2 runs" in (tmp_path / "few.html").read_text()


def test_metrics_match_the_public_side(public, monkeypatch, capsys):
    monkeypatch.chdir(public.parent)

    assert cli.main(["metrics", "spec.yaml"]) == 0

    told = parsed(capsys.readouterr().out, "people")
    assert told.pop(("slackwater_last_commit_timestamp_seconds",)) > 1.7e9
    assert told == {
        ("slackwater_epochs_published_total",): 1,
        ("slackwater_records_published_total",): PEOPLE,
        ("slackwater_record_epsilon",): 53.625,
        ("slackwater_record_delta",): 1e-3,
    }
    assert {name for (name,) in told} >= OF_RECORDS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "public", "--query", "wrk"], "--query wrk: no attribute of the records; they have work, town, age,"),
        (["show", "public", "-o", "public/all.csv"], "-o public/all.csv: lies in the public folder"),
        (["report", "public", "-o", "public/all.html"], "-o public/all.html: lies in the public folder"),
        (["report", "nowhere.yaml"], "nowhere.yaml: "),
        (["smooth", "public", "-o", "all.csv"], "public: sanitised records; the commands for them are slackwater show"),
        (["metrics", "spec.yaml", "--private"], "--private: sanitised records have only public metrics; leave it out"),
    ],
)
def test_requests_that_cannot_be_shown_are_refused(public, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(public.parent)

    assert cli.main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(public.parent.rglob("all.*"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", b'{"records": 3}', "manifest.json: not a manifest of sanitised records that this version"),
        ("plan.json", b"{}", "plan.json: not what the manifest says; get the folder again"),
        ("plan.json", None, "plan.json: missing; give the public folder of sanitised records, with all files"),
        ("records/part*", b"", ".parquet: not what the manifest says; get the folder again"),
    ],
)
def test_an_incomplete_folder_is_refused(public, tmp_path, capsys, name, content, message):
    shutil.copytree(public, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob(name)
    path.chmod(0o600)
    path.unlink()
    if content is not None:
        path.write_bytes(content)

    assert cli.main(["show", str(tmp_path / "copy")]) == 1
    assert message in capsys.readouterr().err


def test_the_bound_on_certainty_is_stated_if_there_is_no_delta(public):
    record = load_sanitise(public.parent / "spec.yaml").record
    (age,) = (one for one in record.attributes if isinstance(one, Number))
    pure = Sanitisation(attributes=(replace(age, epsilon=1.0, scale=80.0),))

    assert words.how_well(pure, 400)[-1].endswith("can be at most 74 % sure after reading all of them.")
    assert "except with probability 0.001." in words.how_well(record, 1)[-1]  # too few to fear for one
    assert rows_of(public.parent / "estimates.csv")[0]["attribute"] == "work"
