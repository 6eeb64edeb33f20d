"""Whole runs: which numbers are published, from which rows, how often, and which values never are."""

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from pipelines import cli
from pipelines.run import operation as run
from pipelines.spec.public import public_spec
from tests.e2e.specs import (
    AGE,
    KEY,
    SECRETS,
    START,
    WARD,
    WINDOWS,
    CommandLine,
    changelog,
    contents,
    files_under,
    mutation,
    published,
    without_progress,
    write,
    write_spec,
)
from transforms.aggregation import shard_kernel as increments

FALSE_ALARM = 1e-6
TIME = pa.timestamp("us", "UTC")
NUMBERS = ["value", "stddev", "ci_low", "ci_high"]

MORE_QUERIES = (
    "publish: [level, change]",
    """publish: [level, change, entered, left]
  - name: ages
    measure: {mean: age, min: 0, max: 100}
    by: {ward: [b], age: [31, 32, other]}
    publish: [level, change]
  - name: squares
    measure: {second_moment: age, min: 0, max: 100}
    publish: level
  - name: spread
    measure: {variance: age, min: 0, max: 100}
    publish: level
  - name: years
    measure: {sum: age, min: 0, max: 1000000}
    publish: [level, change, entered]""",
)
ROWS_OF = {  # query: (cells, kinds)
    "beds": (3, ["level", "change", "entered", "left"]),
    "ages": (3, ["level", "change"]),
    "squares": (1, ["level"]),
    "spread": (1, ["level"]),
    "years": (1, ["level", "change", "entered"]),
}
GAUSSIAN = ("epsilon: 1.0", "epsilon: 1.0\n  delta: 1.0e-9")


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def released(slackwater: CommandLine, *changes: tuple[str, str], rows: list[dict[str, Any]] | None = None) -> Path:
    """The folder of a release that was made of the usual changelog or of `rows`."""
    write(slackwater.folder / "data" / "a.parquet", changelog() if rows is None else rows)
    write_spec(slackwater.folder, *changes)
    said = slackwater("run", "spec.yaml")
    assert (said.code, said.err) == (0, "")
    return slackwater.folder


def sorted_rows(table: pa.Table, without: Iterable[str]) -> list[tuple[Any, ...]]:
    kept = table.drop_columns([name for name in without if name in table.column_names])
    return sorted((tuple(row.values()) for row in kept.to_pylist()), key=repr)


def test_a_run_prints_and_logs_only_its_result(slackwater: CommandLine, caplog: pytest.LogCaptureFixture) -> None:
    released(slackwater)

    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize(("distribution", "changes"), [("discrete_laplace", ()), ("discrete_gaussian", (GAUSSIAN,))])
def test_the_published_columns_are_the_documented_ones(
    slackwater: CommandLine, distribution: str, changes: tuple[tuple[str, str], ...]
) -> None:
    folder = released(slackwater, MORE_QUERIES, *changes)

    estimates, nodes = published(folder, "estimates"), published(folder, "nodes")

    assert sorted(estimates.schema.names[4:6]) == ["age", "ward"]
    keys = [(name, pa.string()) for name in estimates.schema.names[4:6]]
    assert [(f.name, f.type) for f in estimates.schema] == [
        ("query", pa.string()),
        ("kind", pa.string()),
        ("window_start", TIME),
        ("window_end", TIME),
        *keys,
        *((name, pa.float64()) for name in NUMBERS),
    ]
    assert [(f.name, f.type) for f in nodes.schema] == [
        ("query", pa.string()),
        ("layer", pa.int32()),
        ("node_start", TIME),
        ("node_end", TIME),
        *keys,
        ("noisy_value", pa.float64()),
        ("scale", pa.float64()),
        ("mechanism", pa.string()),
    ]
    assert set(nodes["mechanism"].to_pylist()) == {distribution}
    frame = estimates.to_pandas()
    for query, (cells, kinds) in ROWS_OF.items():
        own = frame[frame["query"] == query]
        assert len(own) == cells * len(kinds) * WINDOWS
        assert sorted(set(own["kind"])) == sorted(kinds)
        assert own["age"].notna().all() == (query == "ages")
        assert own["ward"].notna().all() == (query in ("beds", "ages"))
        assert own["ward"].isna().all() == (query not in ("beds", "ages"))
    assert np.isfinite(frame[NUMBERS].to_numpy()).all()
    assert (frame["stddev"] > 0).all()
    assert ((frame["ci_low"] <= frame["value"]) & (frame["value"] <= frame["ci_high"])).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_which_rows_are_published_does_not_depend_on_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    output = ("  private: private", f"  private: private\n  format: {format_}")
    # Full; empty; one that has no listed ward; and one that lies beyond the horizon.
    unlisted = [mutation(n, START, None, (WARD, 50)) for n in range(9)]
    late = [mutation(n, START.replace(year=2030), None, ("a", 50)) for n in range(9)]
    found = []
    changelogs = [changelog(), [], unlisted, late][: 4 if format_ == "parquet" else 2]  # read alike, written otherwise
    for number, rows in enumerate(changelogs):
        folder = tmp_path / str(number)
        folder.mkdir()
        released(CommandLine(folder, capsys), MORE_QUERIES, output, rows=rows)
        found.append(
            (
                sorted_rows(published(folder, "estimates"), NUMBERS),
                sorted_rows(published(folder, "nodes"), ["noisy_value"]),
                sorted(re.sub(r"-[0-9a-f]{16}\.", ".", name) for name in contents(folder / "public")),
            )
        )

    assert len(found[0][0]) == sum(cells * len(kinds) for cells, kinds in ROWS_OF.values()) * WINDOWS
    assert found[1:] == found[:1] * (len(found) - 1)


@pytest.mark.parametrize(
    "changes",
    [
        (("epsilon: 1.0", "epsilon: 10000000"),),
        (("epsilon: 1.0", "epsilon: 10000000\n  delta: 1.0e-9\n  accounting: zcdp"),),
    ],
    ids=["laplace", "gaussian"],
)
def test_with_a_huge_epsilon_the_numbers_are_the_bounded_truth(
    slackwater: CommandLine, changes: tuple[tuple[str, str], ...]
) -> None:
    folder = released(slackwater, MORE_QUERIES, *changes)
    assert slackwater("evaluate", "spec.yaml", "--runs=1", "--truth=private/truth.parquet").code == 0
    truth = pq.read_table(folder / "private" / "truth.parquet").to_pandas()
    estimates = published(folder, "estimates").to_pandas()
    identity = [name for name in estimates.columns if name not in NUMBERS]

    both = estimates.merge(truth, on=identity, validate="one_to_one")

    assert len(both) == len(estimates) == len(truth)
    known = both[both["bounded"].notna()]
    # Each of at most 3 sums of at most 6 draws is beyond 40 of its standard deviations with a probability of at most
    # 2 (4/3)^6 exp(-40 sqrt(2) / 2), by Chernoff's bound on Laplace sums at half of the largest exponent.
    assert len(known) * 3 * 2 * (4 / 3) ** 6 * np.exp(-40 / np.sqrt(2)) < FALSE_ALARM
    error = (known["value"] - known["bounded"]).abs()
    assert (error <= 40 * np.sqrt(3) * known["stddev"] + 1e-9 * known["bounded"].abs()).all()
    beds = known["query"] == "beds"
    assert 40 * known["stddev"][beds].max() < 0.5
    assert (known["value"][beds].round() == known["bounded"][beds]).all()
    assert len(known) > 0.8 * len(both)
    assert (known["exact"] == known["bounded"]).all()  # nobody has more than 4 changes here
    assert len(set(known["bounded"])) > 30


def test_intervals_hold_the_truth_as_often_as_they_say(slackwater: CommandLine) -> None:
    folder = released(slackwater, ("every: 1d", "every: 30m"), ("publish: [level, change]", "publish: change"), rows=[])

    frame = published(folder, "estimates").to_pandas()

    # The truth is zero, and noise is independent between windows and cells: binomial counts, exactly.
    n = len(frame)
    assert n == 5 * 48 * 3
    held = int(((frame["ci_low"] <= 0) & (frame["ci_high"] >= 0)).sum())
    assert held >= binom.ppf(FALSE_ALARM / 2, n, 0.95)
    # With noise of half the scale they would nearly always hold it: 1 - 0.05^2.
    half_as_wide = frame["value"].abs() <= (frame["ci_high"] - frame["value"]) / 2
    scale = published(folder, "nodes")["scale"][0].as_py()
    reach = np.floor((frame["ci_high"] - frame["value"]).iloc[0] / 2)
    q = np.exp(-1 / scale)
    assert half_as_wide.sum() <= binom.isf(FALSE_ALARM / 2, n, 1 - 2 * q ** (reach + 1) / (1 + q))


@pytest.mark.parametrize("flags", [[], ["--direct_runner_bundle_repeat=1"]], ids=["once", "bundles repeated"])
def test_each_node_has_one_value_and_estimates_are_made_from_it(slackwater: CommandLine, flags: list[str]) -> None:
    write(slackwater.folder / "data" / "a.parquet", changelog())
    write_spec(slackwater.folder)
    assert slackwater("run", "spec.yaml", *flags).code == 0

    nodes = published(slackwater.folder, "nodes").to_pandas()
    estimates = published(slackwater.folder, "estimates").to_pandas()

    assert len(nodes) == (WINDOWS + 1) * 3
    assert not nodes.duplicated(["query", "layer", "node_end", "ward"]).any()
    assert not estimates.duplicated(["query", "kind", "window_end", "ward"]).any()
    for ward in ("a", "b", "other"):
        values = nodes[nodes["ward"] == ward].sort_values("node_end")["noisy_value"].to_numpy()
        own = estimates[estimates["ward"] == ward].sort_values("window_end")
        assert np.array_equal(own[own["kind"] == "change"]["value"], values[1:])
        assert np.array_equal(own[own["kind"] == "level"]["value"], np.cumsum(values)[1:])


def test_a_second_run_has_nothing_to_do_and_changes_no_byte(slackwater: CommandLine) -> None:
    folder = released(slackwater)
    before = contents(folder / "public")

    said = slackwater("run", "spec.yaml")
    told = slackwater("run", "spec.yaml", "--json")
    streamed = slackwater("run", "spec.yaml", "--streaming", "--runner=PrismRunner")

    assert (said.code, said.err) == (0, "")
    assert streamed == said
    assert said.out == "wards: nothing is due, all 5 windows of the schedule are published\n"
    assert json.loads(told.out)["windows"] == 0
    assert contents(folder / "public") == before


@pytest.mark.parametrize(
    ("changes", "flags", "why"),
    [
        ((("epsilon: 1.0", "epsilon: 2.0"),), [], "private: holds release 'wards' made from another spec"),
        ((("release: wards", "release: beds"),), [], "private: holds release 'wards' made from another spec"),
        (
            (("until: 2026-01-06", "until: 2026-01-16"),),
            [],
            "private: holds release 'wards' made from another spec, and a second release spends a second budget; "
            "only schedule.until differs, and a release keeps its end: restore it, and publish up to it; then write "
            "its end, 2026-01-06T00:00:00Z, as schedule.start and",
        ),
    ],
)
def test_a_second_release_into_the_same_folder_is_refused(
    slackwater: CommandLine, changes: tuple[tuple[str, str], ...], flags: list[str], why: str
) -> None:
    write(slackwater.folder / "data" / "a.parquet", changelog())
    write_spec(slackwater.folder)
    assert slackwater("run", "spec.yaml", "--until=2026-01-04T12:00:00Z").code == 0
    before = contents(slackwater.folder / "public")
    write_spec(slackwater.folder, *changes)

    said = slackwater("run", "spec.yaml", *flags)

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"slackwater: {why}")
    assert len(said.lines) >= 3  # and what is different
    assert contents(slackwater.folder / "public") == before


def test_a_failing_engine_is_one_line_and_its_details_stay_private(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OverflowError(f"{KEY} of {AGE}")

    monkeypatch.setattr(increments, "sum_leaves", fail)
    write(slackwater.folder / "data" / "a.parquet", changelog())
    write_spec(slackwater.folder)

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.out) == (4, "")
    assert len(said.lines) == 1
    assert "nothing new was published; details (private): private/failure.txt" in said.err
    assert [secret for secret in SECRETS if secret in said.err] == []
    assert not (slackwater.folder / "public").exists()
    trace = slackwater.folder / "private" / "failure.txt"
    assert "Traceback" in trace.read_text()
    assert KEY in trace.read_text()
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600


def test_a_private_folder_that_cannot_be_written_ends_the_run(slackwater: CommandLine) -> None:
    write(slackwater.folder / "data" / "a.parquet", changelog())
    write_spec(slackwater.folder)
    (slackwater.folder / "private").write_text("a file")

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.out) == (4, "")
    assert len(said.lines) == 1
    assert "private" in said.err
    assert "Traceback" not in said.err
    assert not (slackwater.folder / "public").exists()


def test_a_public_folder_that_cannot_be_written_ends_the_run(slackwater: CommandLine) -> None:
    write(slackwater.folder / "data" / "a.parquet", changelog())
    write_spec(slackwater.folder)
    (slackwater.folder / "public").write_text("a file")

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.out) == (4, "")
    assert len(said.lines) == 1
    assert "Traceback" not in said.err
    assert (slackwater.folder / "public").read_text() == "a file"


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_the_public_side_holds_no_key_no_unlisted_value_and_no_exact_sum(slackwater: CommandLine, format_: str) -> None:
    total = 987_654_321
    rows = [mutation(0, START, None, ("a", total)), mutation(1, START, None, (WARD, AGE))]
    folder = released(
        slackwater,
        ("measure: count", "measure: {sum: age, min: 0, max: 1000000000}"),
        ("  private: private", f"  private: private\n  format: {format_}"),
        rows=rows,
    )

    # The noise of a sum has a scale of thousands of millions: it is 0 with a probability below 1 / scale for a node.
    nodes = published(folder, "nodes")
    assert len(nodes) / nodes["scale"][0].as_py() < 1e-7
    for name, content in contents(folder / "public").items():
        text = f"{name}\n{content.decode()}"
        assert [secret for secret in (*SECRETS, str(total)) if secret in text] == [], name


def test_the_manifest_lists_every_file_with_its_hash(slackwater: CommandLine) -> None:
    folder = released(slackwater, MORE_QUERIES)
    public = contents(folder / "public")

    manifest = json.loads(public.pop("manifest.json"))
    spec = public.pop("spec.yaml")
    plan = public.pop("plan.json")

    assert spec.decode() == public_spec((folder / "spec.yaml").read_text())
    (epoch,) = manifest["epochs"]
    told = {name: {"sha256": hashlib.sha256(c).hexdigest(), "size": len(c)} for name, c in public.items()}
    assert epoch["files"] == told
    assert manifest["plan_sha256"] == hashlib.sha256(plan).hexdigest()
    assert manifest["release"] == "wards"
    assert manifest["windows"] == WINDOWS
    assert 0.999 < manifest["loss"]["epsilon"] <= 1.0


def test_of_two_runs_at_once_one_publishes_and_the_other_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "data" / "a.parquet", changelog())
    write_spec(tmp_path)
    both_are_ready = threading.Barrier(2, timeout=300)
    run_release = run.run_release

    def together(*arguments: Any, **options: Any) -> Any:
        diagnosis = run_release(*arguments, **options)
        both_are_ready.wait()
        return diagnosis

    monkeypatch.setattr(run, "run_release", together)
    with chdir(tmp_path), ThreadPoolExecutor(2) as pool:
        codes = sorted(pool.map(cli.main, [["run", "spec.yaml"]] * 2))

    assert codes == [0, 1]
    assert re.search(
        r"another run, attempt \S+, committed epoch 1 at \S+; nothing of this run", capsys.readouterr().err
    )
    public = contents(tmp_path / "public")
    (epoch,) = json.loads(public["manifest.json"])["epochs"]
    listed = set(epoch["files"])
    assert set(public) == {*listed, "manifest.json", "spec.yaml", "plan.json"}
    assert len(published(tmp_path, "nodes")) == (WINDOWS + 1) * 3
    private = contents(tmp_path / "private")
    assert {name for name in private if not name.startswith("attempts/")} == {
        "commits/000001.json",
        "diagnostics/dead_letters.parquet",
        "diagnostics/read.json",
        "releases/self.json",
        "lock",
    }
    assert {name.split("/")[1] for name in private if name.startswith("attempts/")} == {epoch["attempt"]}


def test_a_run_that_dies_while_it_publishes_is_finished_from_the_same_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first run ends before anything is public, and without any clean-up, as if it had been killed."""
    write(tmp_path / "data" / "a.parquet", changelog())
    write_spec(tmp_path)
    dying = (
        "import os; from pipelines import cli; from pipelines.store.store import Store; "
        "Store.show = lambda *_: os._exit(9); cli.main(['run', 'spec.yaml'])"
    )
    root = Path(cli.__file__).parents[1]
    died = subprocess.run([sys.executable, "-c", dying], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)})
    assert died.returncode == 9
    assert not (tmp_path / "public").exists()
    (attempt,) = (tmp_path / "private" / "attempts").iterdir()
    drawn = {path.name: path.read_bytes() for path in (attempt / "nodes").iterdir()}

    with chdir(tmp_path):
        assert cli.main(["run", "spec.yaml"]) == 0
        assert "as an earlier run had committed them" in capsys.readouterr().out
        shown = {path.name: path.read_bytes() for path in (tmp_path / "public" / "nodes").iterdir()}
        assert sorted(shown.values()) == sorted(drawn.values())
        assert cli.main(["run", "spec.yaml"]) == 0
        assert "nothing is due" in capsys.readouterr().out


def test_json_is_one_document_with_the_promised_members(slackwater: CommandLine) -> None:
    write(slackwater.folder / "data" / "a.parquet", changelog())
    write_spec(slackwater.folder, MORE_QUERIES, ("strategy: disjoint", "strategy: auto"))

    plan, run, evaluate = (
        json.loads(slackwater(*command, "spec.yaml", "--json").out)
        for command in (["plan"], ["run"], ["evaluate", "--runs=2"])
    )

    assert {"release", "loss", "queries"} <= set(plan)
    assert set(plan["loss"]) == {"epsilon", "delta"}
    for query in plan["queries"]:
        assert [c["chosen"] for c in query["candidates"]].count(True) == 1
        for candidate in query["candidates"]:
            members = {"strategy", "parameters", "mechanism", "chosen", "why", "carried", "paper_epsilon", "numbers"}
            assert members <= set(candidate)
            kinds = [number["kind"] for number in candidate["numbers"]]
            assert kinds == ROWS_OF[query["name"]][1]
            assert all({"rmse", "stddev_first", "stddev_last"} <= set(number) for number in candidate["numbers"])
    assert {"release", "loss", "windows", "public", "files"} <= set(run)
    assert all((slackwater.folder / path).is_file() for path in run["files"])
    assert "NOT FOR RELEASE" in evaluate["notice"]
    for query in evaluate["queries"]:
        assert {"name", "strategy", "numbers"} <= set(query)
        cells, kinds = ROWS_OF[query["name"]]
        assert [(number["kind"], number["rows"]) for number in query["numbers"]] == [
            (k, cells * WINDOWS) for k in kinds
        ]
        assert all({"rmse_observed", "rmse_predicted", "bounding_rmse"} <= set(number) for number in query["numbers"])


def test_private_files_are_accessible_to_their_owner_alone(slackwater: CommandLine) -> None:
    folder = released(slackwater)
    assert slackwater("evaluate", "spec.yaml", "--runs=1", "--truth=truth.parquet").code == 0

    assert stat.S_IMODE((folder / "private").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "truth.parquet").stat().st_mode) == 0o600
    assert len(list((folder / "private" / "attempts").iterdir())) == 1  # that of the epoch, none of `evaluate`


def test_the_truth_is_never_written_to_the_public_side(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = released(slackwater)
    before = contents(folder / "public")

    monkeypatch.setattr("pipelines.evaluate.operation.run_sums", lambda *_, **__: pytest.fail("data was read"))
    said = slackwater("evaluate", "spec.yaml", "--runs=1", "--truth=public/sub/../truth.parquet")

    assert (said.code, said.out) == (2, "")
    assert len(said.lines) == 1
    assert contents(folder / "public") == before


def test_as_a_program_it_prints_only_its_result(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.parquet", changelog())
    write_spec(tmp_path)
    root = Path(__file__).parents[2]

    ran = subprocess.run(
        [sys.executable, "-m", "pipelines", "run", "spec.yaml", "--json"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (ran.returncode, without_progress(ran.stderr)) == (0, "")
    assert json.loads(ran.stdout)["windows"] == WINDOWS
    assert {path.suffix for path in files_under(tmp_path / "public")} == {".parquet", ".json", ".yaml"}
