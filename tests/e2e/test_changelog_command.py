"""`slackwater changelog`: what is released from the converted files is what would be released from the source."""

import json
import re
import shlex
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.cloud import storage

from tests.e2e.changelogs import generate
from tests.e2e.specs import (
    SECRETS,
    START,
    CommandLine,
    changelog,
    contents,
    files_under,
    mutation,
    write,
    write_spec,
)
from tests.e2e.test_gcs import bucket  # noqa: F401
from tests.e2e.test_truth import CASES, truth
from tests.e2e.test_truth import write as write_case
from tests.pipelines.changelog.test_suggest import filled
from tests.transforms.events import FIXTURES, T0, event, state, wrapped, write_lines

FLAGS = ("--entry=stay", "--time=at", "--before=before_", "--after=after_")


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write_spec(tmp_path)
    write(tmp_path / "data/part-0.parquet", changelog()[::2])
    write(tmp_path / "data/part-1.parquet", changelog()[1::2])
    return CommandLine(tmp_path, capsys)


def parts(folder: Path) -> pa.Table:
    """All rows of a converted changelog."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def checked(slackwater: CommandLine, *arguments: str) -> dict[str, Any]:
    said = slackwater("changelog", *arguments, "--json")
    assert (said.code, said.lines) == (0, [])
    found: dict[str, Any] = json.loads(said.out)["check"]
    return found


ROUND_TRIPS = [
    "by class, without order",
    "new values only, csv without order",
    "owner, at most five changes, jsonl",
    "owner of the state, at most five, csv",
]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_the_same_is_released_from_the_copy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    mutations = generate(case.seed, stays=150, order=case.order, plain=case.format == "jsonl")
    write_case(tmp_path, case, mutations)
    monkeypatch.chdir(tmp_path)
    wanted = truth(tmp_path)

    said = CommandLine(tmp_path, capsys)("changelog", "spec.yaml", "-o", "copy")
    assert said.code == 0, said.err
    spec = (tmp_path / "spec.yaml").read_text()
    (tmp_path / "spec.yaml").write_text(re.sub(r"^changelog: .*$", said.out.splitlines()[-1], spec, flags=re.MULTILINE))
    shutil.rmtree(tmp_path / "data")

    assert truth(tmp_path).equals(wanted)


def test_rows_are_those_of_the_source_with_their_places(slackwater: CommandLine) -> None:
    said = slackwater("changelog", "data/*.parquet", "-o", "copy", *FLAGS)

    assert said.code == 0, said.err
    rows = parts(slackwater.folder / "copy").sort_by([("source_file", "ascending"), ("source_row", "ascending")])
    told = changelog()
    for found, row in zip(rows.to_pylist(), told[::2] + told[1::2], strict=True):
        assert (found["entry"], found["event_time"]) == (row["stay"], row["at"])
        for side in ("before", "after"):
            state = {name: row[f"{side}_{name}"] for name in ("ward", "age")}
            assert found[side] == (None if None in state.values() else {"stay": row["stay"], **state})
    assert rows["source_row"].to_pylist() == [*range(1, len(told[::2]) + 1), *range(1, len(told[1::2]) + 1)]


def test_check_states_that_its_output_is_private_and_its_findings(slackwater: CommandLine) -> None:
    rows = changelog()
    write(slackwater.folder / "data/part-2.parquet", [rows[0], rows[5], mutation(77, START, ("b", 1), None)])

    said = slackwater("changelog", "spec.yaml", "-o", "copy")

    assert "NOT FOR RELEASE" in said.out
    told = dict(re.findall(r"^  (\w[\w ]*\w) +([\w,:.-]+)$", said.out, re.MULTILINE))
    assert told["entries"] == "41"
    assert told["mutations"] == str(len(rows) + 1)
    assert told["duplicates"] == "2"
    assert told["rows read"] == str(len(rows) + 3)
    assert [secret for secret in SECRETS if secret in said.out + said.err] == []


@pytest.mark.parametrize("format_", ["jsonl", "csv.gz"])
def test_formats_are_recognised_by_file_name(slackwater: CommandLine, format_: str) -> None:
    write(slackwater.folder / f"text/part.{format_}", changelog())
    shutil.rmtree(slackwater.folder / "data")
    write(slackwater.folder / "data/part.parquet", changelog())

    found = checked(slackwater, f"text/*.{format_}", "-o", "copy", "--types=age=int64", *FLAGS)

    same = checked(slackwater, "spec.yaml", "-o", "other")
    assert found == same
    kind = parts(slackwater.folder / "copy").schema.field("after").type
    assert {field.name: str(field.type) for field in kind} == {"stay": "string", "ward": "string", "age": "int64"}


def test_rows_that_a_bundle_writes_twice_count_once(slackwater: CommandLine) -> None:
    found = checked(slackwater, "spec.yaml", "-o", "copy", "--direct_runner_bundle_repeat=1")

    assert (found["duplicates"], found["mutations"]) == (0, len(changelog()))


@pytest.mark.parametrize(("form", "cure"), [("csv", "'snaps/%Y-%m-%d.csv' for SRC"), ("jsonl", "from CSV and Parquet")])
def test_copies_of_a_table_are_not_silently_read_as_changes(slackwater: CommandLine, form: str, cure: str) -> None:
    for day in ("2026-01-01", "2026-01-02"):
        write(slackwater.folder / f"snaps/{day}.{form}", changelog())

    said = slackwater("changelog", f"snaps/*.{form}", "--suggest", *FLAGS)
    meant = slackwater("changelog", f"snaps/*.{form}", "--suggest", f"--format={form}", *FLAGS)

    assert (said.code, len(said.lines)) == (2, 1)
    assert said.lines[0].startswith(
        "slackwater: --format: missing, and the files' names hold dates; if each file is a c"
    )
    assert cure in said.lines[0]
    assert (meant.code, f"format: {form}" in meant.out) == (0, True)


def test_nightly_copies_give_the_numbers_of_the_source(slackwater: CommandLine) -> None:
    assert slackwater("evaluate", "spec.yaml", "--runs=1", "--truth=source.parquet").code == 0
    assert slackwater("changelog", "data/part-0.parquet", "-o", "copies/2026-01-01", *FLAGS).code == 0

    again = slackwater("changelog", "data/part-1.parquet", "-o", "copies/2026-01-01", *FLAGS)
    assert slackwater("changelog", "data/part-1.parquet", "-o", "copies/2026-01-02", *FLAGS).code == 0
    path = slackwater.folder / "spec.yaml"
    columns = "path: copies/*/*.parquet\n  entry: entry\n  time: event_time\n  before: before\n  after: after\n"
    path.write_text(re.sub(r"path: data(.*\n)+?  after: after_\n", columns, path.read_text()))
    assert slackwater("evaluate", "spec.yaml", "--runs=1", "--truth=copies.parquet").code == 0

    assert (again.code, len(again.lines)) == (2, 1)
    assert (
        "holds a copy already, and nothing is added to a copy; write new files to a separate folder" in again.lines[0]
    )
    source, copies = (pq.read_table(slackwater.folder / f"{name}.parquet") for name in ("source", "copies"))
    assert copies.equals(source)


def test_no_other_account_may_read_the_folder(slackwater: CommandLine) -> None:
    slackwater("changelog", "spec.yaml", "-o", "copy")

    folder = slackwater.folder / "copy"
    assert {path.name for path in folder.iterdir()} == {"part-000000.parquet", "diagnostics"}
    assert {path.stat().st_mode & 0o777 for path in (folder, folder / "diagnostics")} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in files_under(folder)} == {0o600}


def test_bad_rows_leave_no_changelog_but_their_list(slackwater: CommandLine) -> None:
    rows = changelog()
    write(slackwater.folder / "data/part-2.parquet", [rows[0], {**rows[0], "stay": None, "after_ward": "x"}])

    said = slackwater("changelog", "spec.yaml", "-o", "copy")

    assert (said.code, said.out) == (3, "")
    assert "part-2.parquet: row 2: column 'stay': entry is null" in said.lines[0]
    assert "no changelog was written: 1 of 82 rows cannot be used" in said.lines[1]
    folder = slackwater.folder / "copy"
    assert {path.name for path in folder.iterdir()} == {"diagnostics"}
    assert pq.read_table(folder / "diagnostics/dead_letters.parquet")["row"].to_pylist() == [2]
    found = checked(slackwater, "spec.yaml", "-o", "copy", "--bad-rows=0.1")  # into the same folder
    assert (found["rows_read"], found["rows_dead"], found["duplicates"]) == (82, 1, 1)


def test_a_changelog_without_rows_is_an_error(slackwater: CommandLine) -> None:
    shutil.rmtree(slackwater.folder / "data")
    write(slackwater.folder / "data/part.parquet", [])

    said = slackwater("changelog", "spec.yaml", "-o", "copy")

    assert said.code == 3
    assert said.lines == ["slackwater: data/part.parquet: the changelog has no changes; there is nothing to write"]


def test_columns_that_no_state_can_have_are_left_out_and_named(slackwater: CommandLine) -> None:
    folder = slackwater.folder / "odd"
    folder.mkdir()
    table = pa.Table.from_pylist(changelog()[:3]).append_column("after_tags", pa.array([["a"], [], ["b"]]))
    pq.write_table(table.append_column("before_tags", table["after_tags"]), folder / "part.parquet")

    said = slackwater("changelog", "odd/*.parquet", "-o", "copy", *FLAGS)

    assert said.lines == []
    assert "left out, since a state cannot have their types: tags" in said.out.splitlines()


REFUSED = [
    (["data/*.parquet"], ["-o: missing; name a private folder"]),
    (
        ["data/*.parquet", "-o", "x"],
        [
            "--entry: missing; name the column that holds an entry's key: one of 'stay', 'before_ward'",
            "--time: missing; name the column that holds the time of a change: one of 'stay', 'at'",
        ],
    ),
    (["data/*", "-o", "x", *FLAGS], ["--format: missing, and data/* does not end with .parquet"]),
    (["nowhere/*.parquet", "-o", "x", *FLAGS], ["SRC: no file matches 'nowhere/*.parquet'"]),
    (["spec.yaml", "-o", "x", "--entry=stay"], ["--entry: spec.yaml says this; leave the flag out"]),
    (["data/*.parquet", "-o", "x", *FLAGS[1:], "--entry=sty"], ["--entry: data/part-0.parquet has no column 'sty'"]),
    (["data/*.parquet", "-o", "x", *FLAGS, "--timezone=Paris"], ["--timezone: 'Paris' is not an IANA time zone"]),
    (["data/*.parquet", "-o", "x", *FLAGS, "--types=age"], ["--types: expected COLUMN=TYPE"]),
    (["data/*.parquet", "-o", "x", *FLAGS, "--types=age=int"], ["--types: "]),
    (["data/*.parquet", "-o", "x", *FLAGS, "--every=1d"], ["--every: only for format: snapshots"]),
    (
        ["data/*.parquet", "-o", "x", *FLAGS, "--unit=nurse"],
        ["--unit: data/part-0.parquet has no column 'before_nurse'"],
    ),
    (["spec.yaml", "-o", "public/x"], ["-o public/x: lies inside output.public; a changelog is never public"]),
    (["spec.yaml", "-o", "data"], ["-o data: is not empty; name a new folder"]),
    (["spec.yaml", "-o", "spec.yaml"], ["-o spec.yaml: is a file; name a new folder"]),
    (["spec.yaml", "-o", "x", "--sugest"], ["--sugest: not a flag of this command"]),
    (
        ["spec.yaml", "--suggest", "--runner=FlinkRunner"],
        ["--runner=FlinkRunner: changelog --suggest runs no pipeline"],
    ),
]


@pytest.mark.parametrize(("arguments", "wanted"), REFUSED, ids=[" ".join(a) for a, _ in REFUSED])
def test_invalid_arguments_are_reported_with_the_flag(
    slackwater: CommandLine, arguments: list[str], wanted: list[str]
) -> None:
    said = slackwater("changelog", *arguments)

    assert (said.code, said.out) == (2, "")
    assert not (slackwater.folder / "x").exists()
    assert (slackwater.folder / "data").stat().st_mode & 0o077  # an existing folder keeps its mode
    assert len(said.lines) == len(wanted), said.err
    for line, begin in zip(said.lines, wanted, strict=True):
        assert line.startswith(f"slackwater: {begin}")


def test_a_folder_inside_a_release_is_refused(slackwater: CommandLine) -> None:
    assert slackwater("run", "spec.yaml").code == 0

    said = slackwater("changelog", "data/*.parquet", "-o", "public/estimates/copy", *FLAGS)

    assert said.code == 2
    assert said.lines == [
        "slackwater: -o public/estimates/copy: lies inside the public folder of a release; a changelog is never public"
    ]


def test_the_suggested_spec_of_the_copy_is_planned_and_run(slackwater: CommandLine) -> None:
    said = slackwater("changelog", "data/*.parquet", "-o", "copy", "--suggest", *FLAGS)
    assert said.code == 0
    assert "NOT FOR RELEASE" in said.err
    (slackwater.folder / "new.yaml").write_text(filled(said.out))

    planned = slackwater("plan", "new.yaml")
    run = slackwater("run", "new.yaml", "--until=2026-01-08T00:00:00Z")

    assert (planned.code, run.code) == (0, 0), planned.err + run.err
    public = contents(slackwater.folder / "releases/first-release/public")
    assert json.loads(public["manifest.json"])["release"] == "first-release"
    assert [secret for secret in SECRETS for content in public.values() if secret.encode() in content] == []


def test_a_suggestion_alone_reads_the_source_as_it_is_and_writes_nothing(slackwater: CommandLine) -> None:
    before = contents(slackwater.folder)

    said = slackwater("changelog", "data/*.parquet", "--suggest", *FLAGS)
    document = json.loads(slackwater("changelog", "data/*.parquet", "--suggest", "--json", *FLAGS).out)

    assert (said.code, said.err) == (0, "")
    assert document == {"spec": said.out.rstrip("\n")}
    assert contents(slackwater.folder) == before
    (slackwater.folder / "new.yaml").write_text(filled(said.out))
    assert slackwater("plan", "new.yaml").code == 0


ENVELOPED = """\
release: stays
changelog: {format: debezium, path: topic/*.json, entry: id}
privacy: {epsilon: 1.0, constraint: {at_most: 4}}
schedule: {start: 2020-09-13T12:00:00Z, every: 1h, until: 2020-09-13T18:00:00Z}
queries:
  - {name: beds, measure: count, by: {ward: [a, b, other]}, publish: [level, entered]}
  - {name: cost, measure: {sum: cost, min: 0, max: 9}, publish: [level]}
strategy: disjoint
output: {public: public, private: private}
"""


def topic(folder: Path) -> None:
    """Debezium's events of a table that is emptied once, with a tombstone and a message."""
    hour = 3_600_000
    lines: list[Any] = [
        event("r", None, state(1), lsn=1),
        event("c", None, state(2, "b"), lsn=2, ts_ms=T0 + hour),
        wrapped(event("u", state(1), state(1, "b", 2.5), lsn=3, ts_ms=T0 + hour)),
        "null",
        event("c", None, state(3), lsn=4, ts_ms=T0 + 2 * hour),
        event("d", state(2, "b"), None, lsn=5, ts_ms=T0 + 2 * hour),
        event("t", None, None, lsn=6, ts_ms=T0 + 3 * hour),
        event("c", None, state(3), lsn=7, ts_ms=T0 + 4 * hour),
        {**event("m"), "message": {"prefix": "p", "content": "x"}},
    ]
    folder.mkdir()
    write_lines(folder / "part.json", [*lines, lines[1]])


def test_debezium_comes_through_with_its_truncates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic(tmp_path / "topic")
    (tmp_path / "spec.yaml").write_text(ENVELOPED)
    monkeypatch.chdir(tmp_path)
    wanted = truth(tmp_path)

    said = CommandLine(tmp_path, capsys)("changelog", "topic/*.json", "-o", "copy", "--entry=id", "--json")
    document = json.loads(said.out)

    found = document["check"]
    assert [found[name] for name in ("entries", "mutations", "duplicates", "gaps", "truncates")] == [3, 6, 1, 0, 1]
    assert [found[name] for name in ("insertions_again", "rows_read", "rows_skipped")] == [1, 8, 2]
    section = document["changelog"] | {"types": {"cost": "float64"}}  # what the events do not tell, the copy does not
    spec = re.sub(r"^changelog: .*$", f"changelog: {json.dumps(section)}", ENVELOPED, flags=re.MULTILINE)
    (tmp_path / "spec.yaml").write_text(spec)
    shutil.rmtree(tmp_path / "topic")
    assert truth(tmp_path).equals(wanted)


def test_debezium_without_entry_is_refused_with_the_columns_of_its_states(slackwater: CommandLine) -> None:
    topic(slackwater.folder / "topic")

    said = slackwater("changelog", "topic/*.json", "-o", "copy")
    explored = slackwater("changelog", "topic/*.json", "--suggest")

    missing = "slackwater: --entry: missing; name the column that holds an entry's key"
    assert said.lines == [f"{missing}; `--suggest` without -o lists the 4 columns that it could be"]
    assert explored.lines == [f"{missing}: one of 'id', 'ward', 'cost', 'note'"]


def test_datastream_names_its_key_itself(slackwater: CommandLine) -> None:
    (file,) = (FIXTURES / "datastream").glob("*mysql*.jsonl")
    (slackwater.folder / "stream").mkdir()
    shutil.copy(file, slackwater.folder / "stream")

    found = checked(slackwater, "stream/*.jsonl", "-o", "copy")

    assert found["gaps"] is None
    assert found["mutations"] > 0


def test_snapshots_are_converted_to_changes(slackwater: CommandLine) -> None:
    days = {"2026-01-01": [(1, "a"), (2, "b")], "2026-01-02": [(1, "b"), (2, "b")], "2026-01-03": [(1, "b"), (3, "a")]}
    for day, rows in days.items():
        folder = slackwater.folder / "table" / day
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [i for i, _ in rows], "ward": [w for _, w in rows]}), folder / "x.parquet")

    path = "table/%Y-%m-%d/*.parquet"
    found = checked(slackwater, path, "-o", "copy", "--entry=id", "--every=1d")

    names = ("entries", "mutations", "gaps", "deletions", "entries_there_before", "out_of_order")
    assert [found[name] for name in names] == [3, 5, 0, 1, 0, None]
    missing = slackwater("changelog", path, "-o", "other", "--entry=id", "--every=12h")
    assert (missing.code, missing.lines[0][:34]) == (3, "slackwater: snapshots are missing:")


def test_a_copy_in_gs_is_the_copy_on_disk(slackwater: CommandLine, bucket: storage.Client) -> None:  # noqa: F811
    for path in files_under(slackwater.folder / "data"):
        bucket.bucket("in").blob(f"data/{path.name}").upload_from_filename(str(path))
    flags = ("gs://in/data/*.parquet", *FLAGS)

    found = checked(slackwater, *flags, "-o", "gs://out/copy")

    names = sorted(blob.name for blob in bucket.list_blobs("out"))
    assert names == ["copy/diagnostics/dead_letters.parquet", "copy/diagnostics/read.json", "copy/part-000000.parquet"]
    assert found == checked(slackwater, "spec.yaml", "-o", "copy")
    rows = pq.read_table(BytesIO(bucket.bucket("out").blob("copy/part-000000.parquet").download_as_bytes()))
    kept = [name for name in rows.column_names if not name.startswith("source_")]
    assert sorted(map(str, rows.select(kept).to_pylist())) == sorted(
        map(str, parts(slackwater.folder / "copy").select(kept).to_pylist())
    )
    again = slackwater("changelog", *flags, "-o", "gs://out/copy")
    assert (again.code, again.lines[0][:42]) == (2, "slackwater: -o gs://out/copy: holds a copy")


def test_the_page_on_postgresql_works_as_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/from-postgresql.md").read_text()
    for name, text in re.findall(r"`([\w/.-]+)`:\n\n```\w+\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    lines = "".join(re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)).splitlines()
    slackwater = CommandLine(tmp_path, capsys)

    said = [slackwater(*shlex.split(line)[1:]) for line in lines]

    assert [line.split()[1] for line in lines] == ["changelog", "changelog", "plan", "evaluate", "run", "ledger"]
    assert [(one.code, one.lines) for one in said] == [(0, [])] * len(lines)
    assert re.search(r"entries +2\n +mutations +4\n", said[0].out)
    assert "format: debezium\n" in said[1].out
    assert re.search(r"^beds +level +3 +± 6 ", said[2].out, re.MULTILINE)
    assert "a 95 % margin of error of 6 beds" in " ".join(page.split())
    assert (tmp_path / "releases/stays/public/manifest.json").exists()
