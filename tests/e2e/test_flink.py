"""Releases on a real Flink cluster: the sums and rows of the embedded runner, in epochs, and with workers killed.

One cluster serves all tests. They are skipped only where Java or Maven is missing; anything else that keeps the cluster
from starting fails.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from templates.flink.distribution import missing
from templates.flink.local import Cluster, cluster
from tests.e2e.changelogs import cut, flat, generate, table, write_parquet
from tests.e2e.specs import contents

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=f"NO TEST ON FLINK: {missing()} is not installed"),
    pytest.mark.xdist_group("flink"),
]

PATIENCE = 240.0
"""Seconds; more than a run takes on a busy machine."""

SPEC = """\
release: wards
changelog: {{format: parquet, path: {folder}/data/*.parquet, entry: stay, time: at, order: [lsn, pos],
  before: before_, after: after_}}
privacy: {{unit: person, epsilon: 100000000000, delta: 1.0e-9, accounting: zcdp, mechanism: gaussian,
  constraint: {{by: fare, classes: {{pass: {{at_most: 1}}, multi: {{at_most: 6}}}}}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-11T00:00:00Z}}
queries:
  - {{name: beds, measure: count, by: {{ward: [a, b, other]}}, publish: [level, change, entered]}}
  - {{name: total, measure: {{sum: x, min: -3, max: 5}}, by: {{ward: [a, b]}}, publish: [level]}}
output: {{public: {folder}/public, private: {folder}/private}}
"""


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("flink") / "cluster") as started:
        yield started


def prepare(folder: Path, files: int) -> Path:
    """Owners of several stays, in so many files; the spec's path, with absolute paths in it."""
    (folder / "data").mkdir(parents=True)
    mutations = generate(41, stays=200)
    for number, part in enumerate(cut(mutations, files)):
        write_parquet(flat(table(part)), folder / "data" / f"part-{number}.parquet")
    (folder / "spec.yaml").write_text(SPEC.format(folder=folder), encoding="utf-8")
    return folder / "spec.yaml"


def told(folder: Path) -> tuple[list[str], np.ndarray]:
    """What the published numbers are about, in order, and the numbers."""
    rows = pa.concat_tables(pq.read_table(path) for path in sorted((folder / "public/estimates").rglob("*.parquet")))
    assert pc.max(rows["stddev"]).as_py() < 0.05 / 40  # a Gaussian is off by more than 0.05 with less than 1e-300
    about = [str(row) for row in rows.drop_columns(["value", "ci_low", "ci_high"]).to_pylist()]
    order = sorted(range(len(about)), key=about.__getitem__)
    return [about[place] for place in order], rows["value"].to_numpy()[order]


def test_flink_sums_what_the_embedded_runner_does(flink: Cluster, tmp_path: Path) -> None:
    spec = prepare(tmp_path, 3)
    truths = []
    for name, flags in (("flink", flink.flags), ("embedded", [])):
        path = tmp_path / f"{name}.parquet"
        assert main(["evaluate", str(spec), "--runs=1", "--shards=3", "--truth", str(path), *flags]) == 0
        truths.append(pq.read_table(path))

    assert truths[0].equals(truths[1])
    assert truths[0]["exact"].to_pylist() != truths[0]["bounded"].to_pylist()


def test_a_release_in_epochs_goes_on_after_its_workers_were_killed(flink: Cluster, tmp_path: Path) -> None:
    """Flink tries again, or else the run fails and is run again: what was told stays, and all is told once."""
    here, there = tmp_path / "flink", tmp_path / "embedded"
    for folder, flags in ((here, flink.flags), (there, [])):
        spec = prepare(folder, 3)
        late = folder / "data" / "part-2.parquet"
        late.rename(folder / "late.parquet")
        assert main(["run", str(spec), "--until=2026-01-05T00:00:00Z", "--shards=3", *flags]) == 0
        (folder / "late.parquet").rename(late)
    first = contents(here / "public")

    killed: list[int] = []
    killer = threading.Thread(target=kill_workers, args=(flink, here / "private/attempts", killed))
    killer.start()
    code = main(["run", str(here / "spec.yaml"), "--until=2026-01-12T00:00:00Z", *flink.flags])
    killer.join()

    assert killed
    if code != 0:
        assert code == 4
        assert main(["run", str(here / "spec.yaml"), "--until=2026-01-12T00:00:00Z", *flink.flags]) == 0
    assert main(["run", str(there / "spec.yaml"), "--until=2026-01-12T00:00:00Z"]) == 0
    last = contents(here / "public")
    del first["manifest.json"]
    assert first.items() <= last.items()
    assert len(json.loads(last["manifest.json"])["epochs"]) == 2
    (about, numbers), (about_embedded, numbers_embedded) = told(here), told(there)
    assert about == about_embedded
    assert len(set(about)) == len(about)
    np.testing.assert_allclose(numbers, numbers_embedded, rtol=0, atol=0.1)


def kill_workers(flink: Cluster, attempts: Path, killed: list[int]) -> None:
    """Kill every worker as soon as the second epoch has written a file of estimates: noise is drawn, not committed."""
    end = time.monotonic() + PATIENCE
    while not list(attempts.glob("000002-*/estimates/*")) and time.monotonic() < end:
        time.sleep(0.01)
    told = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(flink.processes["workers"].pid)], capture_output=True, text=True, check=False
    )
    for worker in told.stdout.split():
        os.kill(int(worker), signal.SIGKILL)
        killed.append(int(worker))
