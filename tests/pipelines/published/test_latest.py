"""Tables of all published numbers, which each run replaces: they hold what `show` has."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import slackwater
from pipelines.published.latest import write_latest
from pipelines.spec.load import Output
from tests.releases.continued import unpacked
from transforms.common.errors import RefusedError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def output(tmp_path: Path) -> Output:
    """Return the folders of a release with quantiles and an adaptive query, whose files are CSV."""
    folder = unpacked(ROOT / "releases/0.3.0/everything", tmp_path)
    return Output(public=str(folder / "public"), private=str(folder / "private"), latest="parquet")


@pytest.mark.slow
def test_the_tables_hold_all_published_numbers_of_their_queries(output: Output) -> None:
    write_latest(output)
    write_latest(replace(output, latest="csv"))

    shown = slackwater.show(output.public).table
    names = set(shown["query"].to_pylist())
    folder = Path(output.public, "latest")
    assert {path.name for path in folder.iterdir()} == {f"{name}.{end}" for name in names for end in ("parquet", "csv")}
    for name in names:
        rows = shown.filter(pa.compute.equal(shown["query"], name))
        table = pq.read_table(folder / f"{name}.parquet")
        assert sorted(table["value"].to_pylist(), key=str) == sorted(rows["value"].to_pylist(), key=str)
        ends = list(zip(table["kind"].to_pylist(), table["window_end"].to_pylist(), strict=True))
        assert ends == sorted(ends)
        assert pyarrow.csv.read_csv(folder / f"{name}.csv").num_rows == rows.num_rows


@pytest.mark.slow
def test_a_table_without_news_is_not_written_again_and_a_stale_one_is_replaced(output: Output) -> None:
    write_latest(output)
    path = Path(output.public, "latest/covers.parquet")
    content, before = path.read_bytes(), path.stat().st_mtime_ns

    write_latest(output)
    assert path.stat().st_mtime_ns == before

    path.write_bytes(b"an older one")
    write_latest(output)
    assert path.read_bytes() == content
    write_latest(replace(output, latest=None))
    assert path.read_bytes() == content


def test_no_table_is_made_of_files_that_somebody_has_changed(output: Output) -> None:
    changed = next(Path(output.public, "estimates").glob("covers-*"))
    changed.write_bytes(changed.read_bytes().replace(b"covers", b"cavers"))

    with pytest.raises(RefusedError, match="not what the manifest says"):
        write_latest(output)

    assert not Path(output.public, "latest").exists()
