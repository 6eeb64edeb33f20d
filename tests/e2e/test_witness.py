"""A release with a witness and texts for readers, from the first run to a rollback of both folders."""

import json
import shutil
from pathlib import Path

import pytest

from pipelines.common.version import program
from pipelines.disclosure.facts import FACTS
from tests.e2e.specs import DAY, START, CommandLine, changelog, write, write_spec
from tests.pipelines.pages.elements import Elements

FIRST_TEXT, SECOND_TEXT = "first@example.org", "second@example.org"
NASTY = '<img src=x onerror="document.title=1">&amp;'
ABOUT = f"""about:
  curator: {{name: '{NASTY}', type: Nonprofit}}
  contact: {FIRST_TEXT}
  use: '{NASTY}'
  region: Ireland
  justification: '{NASTY}'
  title: '{NASTY}'
  description: '{NASTY} in `wards`'
  labels: {{beds: '{NASTY}, occupied'}}
"""


def until(windows: int) -> str:
    return f"--until={(START + windows * DAY).isoformat()}"


def disclosed(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "public/manifest.json").read_text())["disclosure"]
    return found


def test_a_rollback_is_refused_and_the_facts_of_a_release_are_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "data/all.parquet", changelog())
    witness = "private: private\n  witness: elsewhere/wards\n  latest: csv\n  report: after.html"
    (tmp_path / "elsewhere").mkdir()
    spec = write_spec(tmp_path, ("private: private", witness))
    spec.write_text(spec.read_text() + ABOUT)
    slackwater = CommandLine(tmp_path, capsys)

    assert slackwater("run", "spec.yaml", until(1)).code == 0
    facts = disclosed(tmp_path)
    shutil.copytree(tmp_path / "public", tmp_path / "old/public")
    shutil.copytree(tmp_path / "private", tmp_path / "old/private")
    spec.write_text(spec.read_text().replace(FIRST_TEXT, SECOND_TEXT))  # is no part of the frozen spec
    assert slackwater("run", "spec.yaml", until(3)).code == 0

    # The manifest states the facts as they are now, and the versions.
    assert list(facts)[: len(FACTS)] == list(FACTS)
    assert {*facts} - {*FACTS} == {"title", "description", "contact", "label beds"}
    assert FIRST_TEXT in facts["curator"]
    new = {name: facts[name].replace(FIRST_TEXT, SECOND_TEXT) for name in ("curator", "contact")}
    assert disclosed(tmp_path) == {**facts, **new}
    assert f"Contact: {SECOND_TEXT}" in (tmp_path / "after.html").read_text()
    epochs = json.loads((tmp_path / "public/manifest.json").read_text())["epochs"]
    assert [(epoch["program"], epoch["sampler"], epoch["witnessed"]) for epoch in epochs] == [(program(), 1, True)] * 2
    kept = [json.loads(path.read_text()) for path in sorted((tmp_path / "private/commits").iterdir())]
    assert [one["program"] for one in kept] == [program()] * 2
    assert "elsewhere" not in (tmp_path / "public/manifest.json").read_text()
    assert "about" not in (tmp_path / "public/spec.yaml").read_text()
    assert "Ireland" in (tmp_path / "public/manifest.json").read_text()

    # The page shows them without taking a text for HTML; for a spec, with its texts as they are now.
    for given, contact in (("public", SECOND_TEXT), ("spec.yaml", FIRST_TEXT)):
        spec.write_text(spec.read_text().replace(SECOND_TEXT, contact))
        assert slackwater("report", given, "-o", "page.html").code == 0
        page = Elements((tmp_path / "page.html").read_text())
        assert "img" not in [tag for tag, _ in page.found]
        # In four facts, twice as a title, as the publisher, in the description, and where the query is named.
        assert page.text.count(NASTY) == 15
        assert f"{NASTY} in `wards`" in page.text
        assert f"Contact: {contact}" in page.text
        assert [fact.heading for fact in FACTS.values() if fact.heading not in page.text] == []
        assert "A witness outside the two folders records each commit" in page.text
        assert f"Slackwater {program()}. Its samplers, version 1" in page.text

    # The table of each query has all numbers, and its file is replaced.
    shown = slackwater("show", "public", "--json")
    table = (tmp_path / "public/latest/beds.csv").read_text().splitlines()
    assert len(table) == json.loads(shown.out)["rows"] + 1
    assert [path.name for path in (tmp_path / "public/latest").iterdir()] == ["beds.csv"]

    # Ledger and registry know the commits.
    ledger = slackwater("ledger", "spec.yaml")
    assert "The witness elsewhere/wards records 2 epochs." in ledger.out
    account = json.loads(slackwater("ledger", "spec.yaml", "--json").out)
    assert account["witness"] == {"path": "elsewhere/wards", "epochs": 2}
    entry = json.loads(slackwater("registry", "spec.yaml", "-o", "entry.yaml", "--json").out)
    assert entry["deployment"]["basic"]["publication_date"] == epochs[0]["committed_at"][:10]

    # Both folders from the old backup, and no note next to the spec: on another machine, for example.
    shutil.rmtree(tmp_path / ".slackwater")
    for side in ("public", "private"):
        shutil.rmtree(tmp_path / side)
        shutil.copytree(tmp_path / "old" / side, tmp_path / side)
    refused = slackwater("run", "spec.yaml", until(3))
    assert refused.code == 1
    assert "private: holds 1 epoch, and the witness elsewhere/wards knows of 2; restore copies of both folders" in (
        refused.err
    )
    assert len([*(tmp_path / "private/attempts").iterdir()]) == 1

    # A new release has its own witness.
    shutil.rmtree(tmp_path / "public")
    shutil.rmtree(tmp_path / "private")
    refused = slackwater("run", "spec.yaml", until(3))
    assert (refused.code, "holds 0 epochs" in refused.err) == (1, True)
    slackwater("run", "spec.yaml", "--new-release", "other", until(1))
    assert (tmp_path / "elsewhere/wards-other").read_text().count("\n") == 1
