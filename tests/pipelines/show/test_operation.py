"""`slackwater show` on the public folder of a release that some version made, with no private one at hand."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from pipelines import cli
from pipelines.show import operation
from pipelines.show.operation import show
from tests.releases.continued import rows_of, unpacked
from transforms.common.shown_tables import text_of, write_shown

RELEASE = Path(__file__).parents[2] / "releases/0.3.0/everything"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the public folder, with the spec next to it."""
    folder = unpacked(RELEASE, tmp_path_factory.mktemp("kept"))
    shutil.rmtree(folder / "private")
    return folder


@pytest.mark.slow
def test_all_estimates_of_all_epochs_are_one_table(kept, tmp_path, capsys):
    code = cli.main(["show", str(kept / "public"), "-o", str(tmp_path / "all.csv")])

    rows = rows_of(tmp_path / "all.csv")
    key = lambda row: tuple(row.values())  # noqa: E731
    files = sorted((kept / "public/estimates").iterdir())
    assert code == 0
    assert sorted(rows, key=key) == sorted((row for path in files for row in rows_of(path)), key=key)
    assert f"{len(rows):,} numbers up to 5 January 2026, 00:00 UTC in " in capsys.readouterr().out
    of_one = [row for row in rows if row["query"] == "covers" and row["kind"] == "level"]
    assert of_one == sorted(of_one, key=lambda row: row["window_end"])  # of both epochs, and the sort is stable


@pytest.mark.slow
def test_of_many_rows_the_first_and_last_are_printed_and_how_to_get_all(kept, tmp_path, monkeypatch, capsys):
    assert cli.main(["show", str(kept / "public")]) == 0
    every = capsys.readouterr().out.splitlines()
    assert len(every) == 1 + len(show(kept / "public").table)  # the kept release is small
    monkeypatch.setattr(operation, "PRINTED", 10)

    assert cli.main(["show", str(kept / "public")]) == 0
    few = capsys.readouterr().out.splitlines()
    assert cli.main(["show", str(kept / "public"), "-o", str(tmp_path / "all.txt")]) == 0

    words = [line.split() for line in few]  # columns are as wide as the rows that are shown need
    assert words[1:6] == [line.split() for line in every[1:6]]
    assert words[6:11] == [line.split() for line in every[-5:]]
    assert few[12] == (
        f"The first 5 and the last 5 of {len(every) - 1:,} rows. All of them: -o FILE.parquet, .csv or .jsonl; fewer: "
        "--query NAME."
    )
    assert len((tmp_path / "all.txt").read_text().splitlines()) == len(every)


@pytest.mark.slow
def test_a_spec_finds_its_public_folder_and_a_file_may_be_of_any_kind(kept, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(kept)
    arguments = ["show", "spec.yaml", "--query", "covers"]
    found = {}
    for name in ("a.parquet", "a.jsonl", "a.md", "a.txt"):
        assert cli.main([*arguments, "-o", str(tmp_path / name)]) == 0
        found[name] = tmp_path / name
    capsys.readouterr()
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out

    rows = pq.read_metadata(found["a.parquet"]).num_rows
    assert printed == found["a.txt"].read_text()
    assert printed.splitlines()[0].split()[:2] == ["query", "kind"]
    assert len(printed.splitlines()) == rows + 1
    assert len(found["a.jsonl"].read_text().splitlines()) == rows
    markdown = found["a.md"].read_text().splitlines()
    assert markdown[0].startswith("| query | kind |")
    assert markdown[2].startswith("| covers | level | the end of 1 January 2026 |")
    assert any(line.startswith("| covers | entered | 1 January 2026 |") for line in markdown)
    assert len(markdown) == rows + 2
    assert {line.count(" | ") for line in markdown} == {markdown[0].count(" | ")}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "code"), [("level_quantile", 0), ("level", 1)])
def test_only_a_quantile_may_have_no_value(tmp_path, capsys, kind, code):
    public = unpacked(RELEASE.parents[1] / "0.3.0/everything", tmp_path) / "public"
    manifest = json.loads((public / "manifest.json").read_text())
    name = next(name for name in manifest["epochs"][0]["files"] if name.startswith("estimates/ages"))
    table = pa_csv.read_csv(public / name).to_pandas()
    table.loc[table.index[table["kind"] == kind][0], "value"] = None
    table.to_csv(public / name, index=False)
    manifest["epochs"][0]["files"][name]["sha256"] = hashlib.sha256((public / name).read_bytes()).hexdigest()
    (public / "manifest.json").write_text(json.dumps(manifest))

    assert cli.main(["show", str(public), "--query", "ages", "--json"]) == code

    said = capsys.readouterr()
    if code:
        assert "query ages has a row without a number" in said.err
        return
    values = [row["value"] for row in json.loads(said.out)["estimates"] if row["kind"] == kind]
    assert values.count(None) == 1
    assert cli.main(["report", str(public), "-o", str(tmp_path / "page.html")]) == 0


def test_json_has_the_numbers_themselves(kept, capsys):
    assert cli.main(["show", str(kept / "public"), "--query", "covers", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == len(told["estimates"])
    assert told["estimates"][0]["window_end"].endswith("Z")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["spec.yaml", "--query", "wards"], "--query wards: no query of the release; it has covers"),
        (["spec.yaml", "-o", "all.xlsx"], "-o all.xlsx: the name must end in .parquet, .csv, .jsonl, .md, .txt"),
        (["spec.yaml", "-o", "public/all.csv"], "-o public/all.csv: lies in the public folder"),
        (["public/spec.yaml"], "public/spec.yaml: a published spec does not say where its release is; give the public"),
        (["spec.yaml", "--runner=FlinkRunner"], "show runs no pipeline"),
    ],
)
def test_requests_that_cannot_be_shown_are_refused(kept, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(kept)

    assert cli.main(["show", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(kept.glob("public/all*"))


def test_names_and_cells_are_neither_markdown_nor_formulas(tmp_path):
    table = pa.table({"query": ["beds"], "=w|a_": ["![b|](c)<script>\n*"], "+": ["=1+1"], "value": [-1234567.0]})

    write_shown(table, str(tmp_path / "a.csv"), local=lambda moment: moment)
    heading, _, row = text_of(table, local=lambda moment: moment, markdown=True).splitlines()

    assert heading == r"| query | =w\|a\_ | + | value |"
    assert row == r"| beds | ![b\|\](c)&lt;script> \* | =1+1 | -1234567 |"
    told = list(csv.reader((tmp_path / "a.csv").read_text().splitlines(keepends=True)))
    assert told == [["query", "'=w|a_", "+", "value"], ["beds", "![b|](c)<script>\n*", "'=1+1", "-1234567"]]


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])

    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("slackwater ")
