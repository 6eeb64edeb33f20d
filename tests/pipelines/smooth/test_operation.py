"""`slackwater smooth` on the public folder of a release that some version made, with no private one at hand."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest

from pipelines import cli
from pipelines.published.release import Published
from privacy.accounting.accounting import Budget
from privacy.adaptive.dsat import Dsat
from privacy.cells.choice import CellChoice
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Series
from tests.releases.continued import rows_of, unpacked
from tests.transforms.plans import laplace_plan
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline
from transforms.common.errors import InputError
from transforms.common.sinks import read_bytes, write_table
from transforms.release.linear_chunk import add_noise
from transforms.release.published_columns import TIME
from transforms.release.published_tables import estimates_table
from transforms.release.smoothed_tables import smoothed_table, why_not

RELEASES = Path(__file__).parents[2] / "releases"
RELEASE = RELEASES / "0.3.0/everything"
ADDED = ["smoothed", "model_low", "model_high"]
Row = dict[str, str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a release without its private side, as a reader has it."""
    folder = unpacked(RELEASE, tmp_path_factory.mktemp("kept"))
    for name in ("private", "data", "next"):
        shutil.rmtree(folder / name)
    return folder / "public"


@pytest.fixture
def public(kept: Path, tmp_path: Path) -> Path:
    """Return a copy of the public folder that a test may change."""
    return Path(shutil.copytree(kept, tmp_path / "public"))


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """The exit code and the error of a command that writes nothing."""

    def run(public: Path, *arguments: str, output: Path = tmp_path / "smooth.csv") -> tuple[int, str]:
        code = cli.main(["smooth", str(public), "-o", str(output), *arguments])
        assert not output.exists()
        return code, capsys.readouterr().err

    return run


def smoothed(public: Path | str, output: Path, *arguments: str) -> list[Row]:
    assert cli.main(["smooth", str(public), "-o", str(output), *arguments]) == 0
    return rows_of(output)


def manifest_of(public: Path) -> Any:
    return json.loads((public / "manifest.json").read_text())


def published(public: Path, *, but: set[tuple[str, str]]) -> list[Row]:
    """Return the rows of all estimates, except these kinds of numbers of these queries."""
    rows = [row for path in sorted((public / "estimates").iterdir()) for row in rows_of(path)]
    return [row for row in rows if (row["query"], row["kind"]) not in but]


def test_every_number_of_a_count_has_a_smoothed_estimate(kept, tmp_path, capsys):
    """That release has all strategies; the output names the queries that are left out."""
    rows = smoothed(kept, tmp_path / "smooth.csv", "--json")
    told = json.loads(capsys.readouterr().out)
    left_out = {(one["query"], one["kind"]) for one in told["left_out"]}

    def as_published(row: Row) -> list[tuple[str, str]]:
        return sorted((name, text) for name, text in row.items() if text and name not in ADDED)

    assert sorted(map(as_published, rows)) == sorted(map(as_published, published(kept, but=left_out)))
    assert list(rows[0])[-3:] == ADDED
    for row in rows:
        low, high, value, model_low, model_high = (float(row[n]) for n in ("ci_low", "ci_high", *ADDED))
        assert low <= value <= high
        assert model_low <= value <= model_high
    assert told["rows"] == len(rows)
    assert left_out == {("squares", "level"), ("ages", "level_quantile"), ("steered", "level")}


@pytest.mark.slow
def test_quantiles_and_ranges_are_left_out_by_name_and_other_queries_are_smoothed(tmp_path, capsys):
    """Of two queries one has a column of quantiles; and the release is named by its spec."""
    left_out, queries = [], set()
    for name in ("everything", "ranges"):
        folder = unpacked(RELEASES / "0.3.0" / name, tmp_path / name)
        with chdir(folder):
            rows = smoothed("spec.yaml", tmp_path / f"{name}.csv", "--json")
        assert rows == smoothed(folder / "public", tmp_path / "again.csv")
        assert "quantile" not in rows[0]
        left_out += json.loads(capsys.readouterr().out.partition("\n}\n")[0] + "}")["left_out"]
        queries |= {row["query"] for row in rows}

    assert {(one["query"], one["kind"]) for one in left_out if "made from the cells" in one["why"]} == {
        ("ages", "level_quantile"),
        ("listed", "level_range"),
        ("listed", "entered_range"),
    }
    assert queries >= {"ages", "listed", "walks"}


def test_the_next_epoch_changes_no_smoothed_row(public, tmp_path):
    after_two = smoothed(public, tmp_path / "two.csv")
    manifest = manifest_of(public)
    first, second = manifest["epochs"]
    for name in second["files"]:
        (public / name).unlink()
    (public / "manifest.json").write_text(
        json.dumps(manifest | {"epochs": [first], "windows": first["windows"], "until": first["until"]})
    )

    after_one = smoothed(public, tmp_path / "one.csv")

    assert 0 < len(after_one) < len(after_two)
    assert [row for row in after_two if row in after_one] == after_one


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_files_of_every_format_are_read(public, tmp_path, format_: str):
    expected = smoothed(public, tmp_path / "smooth.csv", "--query", "pairs", "--query", "walks")
    manifest = manifest_of(public)
    for epoch in manifest["epochs"]:
        for name in [name for name in epoch["files"] if name.startswith("estimates/")]:
            texts, numbers = (
                dict.fromkeys(("ward", "age"), pa.string()),
                {"sampled": pa.bool_(), "quantile": pa.float64()},
            )
            types = {**texts, **numbers, "window_start": TIME, "window_end": TIME}
            nulls = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True)
            path = str((public / name).with_suffix(f".{format_}"))
            write_table(pa_csv.read_csv(public / name, convert_options=nulls), path, format_=format_)
            del epoch["files"][name]
            digest = {"sha256": hashlib.sha256(read_bytes(path)).hexdigest(), "size": 0}
            epoch["files"][str(Path(path).relative_to(public))] = digest
    (public / "manifest.json").write_text(json.dumps(manifest))
    spec = (public / "spec.yaml").read_text()
    (public / "spec.yaml").write_text(spec.replace("\n  format: csv\n  public", f"\n  format: {format_}\n  public"))

    assert smoothed(public, tmp_path / "again.csv", "--query", "walks", "--query", "pairs") == expected
    assert {row["query"] for row in expected} == {"walks", "pairs"}


@pytest.mark.slow
def test_a_changed_or_missing_file_of_the_release_is_refused(public, refused):
    name = next(name for name in manifest_of(public)["epochs"][1]["files"] if name.startswith("estimates/walks"))
    (public / name).write_bytes((public / name).read_bytes() + b"\n")

    code, said = refused(public)

    assert code == 1
    assert f"{name}: not what the manifest says" in said
    (public / name).unlink()
    assert f"{name}: missing" in refused(public)[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "wards"], "no query of the release; it has covers"),
        (["--query", "squares"], "the error of a mean depends on the data"),
        (
            ["--runner=FlinkRunner"],
            "takes no pipeline options, and it has no such flag; see `slackwater smooth --help`",
        ),
    ],
)
def test_queries_that_cannot_be_smoothed_are_reported(kept, refused, arguments, message):
    code, said = refused(kept, *arguments)

    assert code == 2
    assert message in said


def test_nothing_is_written_into_the_public_folder_or_in_no_format(public, refused, tmp_path):
    assert refused(public, output=public / "smooth.csv")[0] == 2
    assert "must end in .parquet, .csv, .jsonl" in refused(public, output=tmp_path / "smooth")[1]
    assert "manifest.json: missing" in refused(public / "nodes")[1]


def test_rows_that_are_missing_or_there_twice_are_refused(kept):
    release = Published(str(kept))
    query = next(query for query in release.spec.queries if query.name == "covers")
    rows = release.estimates(query)
    levels = rows.filter(pc.equal(rows.column("kind"), "level"))
    smooth = lambda table: smoothed_table(  # noqa: E731
        table, query, Series(kind="level"), release.plan, windows=release.bounds
    )

    assert smooth(levels.slice(0)).num_rows == levels.num_rows
    for wrong in (levels.slice(1), levels.slice(0, len(levels) - 1), pa.concat_tables([levels, levels.slice(0, 1)])):
        with pytest.raises(InputError, match="query covers, level"):
            smooth(wrong)


@pytest.mark.parametrize(
    ("consistent", "adaptive", "why"),
    [
        (False, None, None),
        (True, None, "made consistent"),
        (False, Dsat(samples=5), "the data decide"),
    ],
)
def test_numbers_whose_noise_is_not_known_are_left_out(consistent, adaptive, why):
    level = Series(kind="level")
    query = Query(name="beds", measure=Measure(kind="count"), publish=(level,), consistent=consistent)
    plan = make_plan(
        [replace(query.demand, adaptive=adaptive)],
        promise=Promise(constraint=AtMost(2), window=1, windows=8, owner=False),
        budget=Budget(epsilon=1.0),
        mechanism="laplace",
        accounting=None,
    )

    told = why_not(query, level, plan)

    assert told is None if why is None else why in str(told)


@pytest.mark.slow
def test_a_smoothed_number_is_never_outside_its_published_interval_by_rounding():
    """Cells that are made from sums over cells are scaled for smoothing. Narrow intervals leave most at an end."""
    ages, level = OrderedKey(start=0, step=1, steps=10), Series(kind="level")
    over = CellChoice(name="tree", branching=3)
    query = Query(name="ages", measure=Measure(kind="count"), by=(("age", ages),), publish=(level,), over=over)
    timeline = Timeline(start=0, every=1, windows=20)
    plan, aggregation = laplace_plan((query,), AtMost(1), timeline)
    (released,) = plan.linear(0, "net")
    estimates = estimates_table(add_noise(np.zeros((1, 21, query.cells), int), released), aggregation, released, 0)
    for name, off in (("ci_low", -0.1), ("ci_high", 0.1)):
        place = estimates.column_names.index(name)
        estimates = estimates.set_column(place, name, pc.add(estimates["value"], off))

    table = smoothed_table(estimates, query, level, plan, windows=timeline.bounds)

    low, high, value, model_low, model_high = (table[name].to_numpy() for name in ("ci_low", "ci_high", *ADDED))
    assert ((low <= value) & (value <= high)).all()
    assert ((model_low <= value) & (value <= model_high)).all()
