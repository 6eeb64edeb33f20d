"""The benchmark compares like with like: our bounded sums are DuckDB's, to the last digit."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest

from benchmarks.throughput import duck, generate, kinds, ours
from pipelines.cli import main

# DuckDB's sums hold only the days and wards that something happened in; ours hold all.
DIFFERENCES = """
select count(*) as rows, count(*) filter (bounded <> coalesce(change, 0)) as differ
from read_parquet($truth) as ours
left join read_parquet($duck) as duck
    on epoch_us(window_start) // 86_400_000_000 = duck.day and ours.ward = duck.ward
"""


def test_the_benchmark_and_duckdb_keep_the_same_mutations(tmp_path: Path) -> None:
    rows = 10_000
    files = str(tmp_path / "changelog" / "*.parquet")
    truth, sums = str(tmp_path / "truth.parquet"), str(tmp_path / "duck.parquet")
    generate.write(generate.changelog(rows, np.random.default_rng(7)), tmp_path / "changelog")
    duck.main(files, sums)
    spec = ours.write_spec(files, tmp_path / "out")

    code = main(["evaluate", str(spec), "--truth", truth])

    assert code == 0
    compared = duckdb.connect().execute(DIFFERENCES, {"truth": truth, "duck": sums}).fetchone()
    assert compared == (366 * 20, 0)


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_changelog_has_the_asked_number_of_mutations_and_its_chains_hold(rows: int) -> None:
    changelog = generate.changelog(rows, np.random.default_rng(3))

    broken = (
        duckdb.connect()
        .execute(
            """
        select count(*) from (
            select *, lag(after_ward) over life as ward, lag(after_x) over life as x
            from changelog window life as (partition by entry order by time, seq)
        )
        where (ward, x) is distinct from (before_ward, before_x)
            or (after_ward, after_x) is not distinct from (before_ward, before_x)
        """
        )
        .fetchone()
    )

    assert len(changelog) == rows
    assert broken == (0,)


def test_stays_and_versions_have_the_begins_of_the_log() -> None:
    made = kinds.tables(2_000, np.random.default_rng(4))
    keys = ["entry", "time"]
    log, stays, versions = (made[name].sort_by([(key, "ascending") for key in keys]) for name in made)

    assert log.select(keys) == stays.select(keys) == versions.select(keys)
    for table in (stays, versions):
        ends = table.filter(pc.is_valid(table["until"]))
        assert 0.9 * 2_000 < len(ends) < 2_000
        assert pc.all(pc.greater(ends["until"], ends["time"])).as_py()
    next_of_entry = pc.equal(versions["entry"][1:], versions["entry"][:-1])
    later = pc.greater(versions["time"][1:], versions["time"][:-1])
    followed = versions[:-1].filter(pc.and_(next_of_entry, later))
    begins = versions[1:].filter(pc.and_(next_of_entry, later))
    assert pc.mean(pc.equal(followed["until"], begins["time"])).as_py() > 0.99
