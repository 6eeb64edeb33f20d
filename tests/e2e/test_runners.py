"""One release on every runner: the sums, bit for bit, and the rows of the embedded runner, in batch and as a stream.

An epsilon beyond reason leaves no noise, so that nodes are exact sums; other numbers are compared without their values.
"""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.flink.live import exact_sums
from benchmarks.flink.processes import workers_of
from pipelines.cli import main
from pipelines.epochs.flags import begin_pipeline
from pipelines.store.attempt import own_name
from privacy.sanitised.attributes import Category
from privacy.sanitised.record import Sanitisation
from templates.flink.local import Cluster
from tests.e2e import prism
from tests.e2e.flink import FLINK_GROUP, ON_FLINK, WITH_JAVA, one_at_a_time
from tests.e2e.job_service import job_service
from tests.e2e.played import LAG, move, play
from tests.e2e.runner_cases import CASES
from tests.e2e.specs import REPEATED, contents, published
from tests.statistical.test_worker_noise import keep_own, repeated
from tests.transforms.local.test_collect import DESIGN as LOCAL
from tests.transforms.local.test_collect import collection, estimated, everybody_comes
from transforms.common.ipc import to_bytes
from transforms.common.sinks import WriteTables, write_table
from transforms.local.collect import Collect
from transforms.local.randomise import Randomise, randomised
from transforms.local.read import ReadReports
from transforms.sanitised.sanitise import Sanitise

SHARDS = 3
NOISY = ("value", "stddev", "ci_low", "ci_high", "noisy_value")
"""Columns; of a mean the standard deviation depends on the noise as well. That of the nodes, `scale`, does not."""

PATIENCE = 240.0
"""Seconds; more than a run takes on a busy machine."""

RUNNERS: dict[str, list[Any]] = {
    "worker processes": [pytest.mark.xdist_group("job service")],
    "Prism": [prism.WITH_GO, pytest.mark.xdist_group("live")],
    "Flink": ON_FLINK,
}
"""With the marks of their tests."""

PAIRS = (
    ("Prism", "entries"),
    ("worker processes", "owners"),
)
"""What is awkward in a case is so on any runner: these show that sums come together there. Flink has all cases as one
stream, and one in three runs with its workers killed."""


FLINK_WAYS = [pytest.param(way, marks=WITH_JAVA) for way in ("a stream on Flink", "one run on Flink")]


def on(pairs: Iterable[tuple[str, str]]) -> pytest.MarkDecorator:
    """A test with these runners and cases."""
    return pytest.mark.parametrize(("runner", "name"), [pytest.param(*pair, marks=RUNNERS[pair[0]]) for pair in pairs])


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with job_service(tmp_path_factory.mktemp("job-service")) as flags:
        yield flags


def flags_of(runner: str, request: pytest.FixtureRequest) -> list[str]:
    """Pipeline options of a runner, which is started now if it is not there."""
    if runner == "Prism":
        return prism.flags()
    found = request.getfixturevalue("flink").flags if runner == "Flink" else request.getfixturevalue("workers")
    return list(found)


def begin(name: str, folder: Path, flags: Sequence[str], *, epochs: int | None = None) -> None:
    """Run the first epochs of a case, or all."""
    spec = CASES[name].prepare(folder)
    for epoch in range(len(CASES[name].epochs) if epochs is None else epochs):
        assert run(name, epoch, spec, flags) == 0


def run(name: str, epoch: int, spec: Path, flags: Sequence[str]) -> int:
    """Let an epoch's file land and run it; the exit code."""
    move(spec.parent, CASES[name].names[epoch])
    until = CASES[name].epochs[epoch].isoformat()
    return main(["run", str(spec), f"--until={until}", f"--shards={SHARDS}", *flags])


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a case that the embedded runner has run, once."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp("embedded") / name
        begin(name, folder, [REPEATED])
        return folder

    return made


def told(folder: Path, side: str) -> pa.Table:
    """Return the published rows without their noise, in a fixed order."""
    table = published(folder, side)
    table = table.drop([name for name in NOISY if name in table.column_names])
    return table.sort_by([(name, "ascending") for name in table.column_names])


def the_same(folder: Path, other: Path) -> None:
    """Check that exact sums and all published rows are equal."""
    assert exact_sums(folder) == exact_sums(other)
    assert any(exact_sums(folder).values())
    for side in ("nodes", "estimates"):
        assert told(folder, side).equals(told(other, side))
    assert decided(folder).equals(decided(other))


def decided(folder: Path) -> pa.Table:
    """Levels that are published adaptively, with their values, which have no noise."""
    table = published(folder, "estimates")
    if "sampled" not in table.column_names:
        return table.slice(0, 0)
    table = table.filter(table["sampled"].is_valid())
    assert set(table["sampled"].to_pylist()) == {True, False}
    return table.sort_by([(name, "ascending") for name in table.column_names])


@pytest.mark.few(1)
@on(PAIRS)
def test_a_run_has_the_sums_and_rows_of_the_embedded_runner(runner, name, embedded, tmp_path, request):
    begin(name, tmp_path / "case", flags_of(runner, request))

    the_same(tmp_path / "case", embedded(name))


@on((("Flink", "local"),))
def test_reports_and_sanitised_records_are_published_once_and_counted_in_the_same_way(runner, name, tmp_path, request):
    """Records at an epsilon at which one of 40 values comes out as another with probability 1e-15."""
    people = 2000
    ward = Category.planned("ward", ["a", "b", "other"], missing="other", epsilon=40.0)
    records = pa.table({"who": [*range(40), 3], "ward": [*["a", "b", None, "q"] * 10, "q"]})
    sent = list(randomised(LOCAL, everybody_comes(people), first=0, people=people))
    for number, table in enumerate([*sent, sent[1]]):
        write_table(table, str(tmp_path / f"sent/{number}.parquet"))
    with begin_pipeline(flags_of(runner, request)) as pipeline:
        paths = pipeline | "Paths" >> beam.Create([str(path) for path in (tmp_path / "sent").iterdir()])
        found = (paths | ReadReports()).batches | Collect(collection(people))
        changes = pipeline | "Changes" >> beam.Create([to_bytes(everybody_comes(people))])
        rows = pipeline | "Records" >> beam.Create([to_bytes(records.slice(0, 25)), to_bytes(records.slice(25))])
        parts = {
            "Estimates": found["estimates"] | "E" >> beam.Map(lambda payload: ("estimates", payload)),
            "Quality": found["quality"]
            | "Q" >> beam.Map(lambda them: ("quality", to_bytes(pa.table({k[0]: [n] for k, n in them.items()})))),
            "Reports": changes | Randomise(LOCAL, people=people, most_epsilon=8.0),
            "Sanitised": rows
            | Sanitise(Sanitisation(attributes=(ward,)), entry="who")
            | "S" >> beam.Map(lambda payload: (f"sanitised-{uuid4().hex}", payload)),
        }
        for name, part in parts.items():
            part | name >> WriteTables(str(tmp_path / "out"))

    out = {path.stem: pq.read_table(path) for path in (tmp_path / "out").iterdir()}
    here, _ = estimated(collection(people), sent)
    assert out["estimates"].equals(here)
    counts = {"counted": sum(table.num_rows for table in sent), "repeated": sent[1].num_rows, "contradictory": 0}
    assert out["quality"].to_pylist() == [counts]
    # Half of the people, by chance, report in every window, the others in every second one.
    sizes = [out[f"reports-{window:05d}-00000"].num_rows for window in range(4)]
    assert (sizes[0], sizes[1], sizes[3]) == (sizes[2], people, people)
    assert 0 < sizes[0] < people
    came = pa.concat_tables([table for name, table in out.items() if name.startswith("sanitised-")])
    assert Counter(came["ward"].to_pylist()) == {"a": 10, "b": 10, "other": 20}


@WITH_JAVA
@FLINK_GROUP
def test_workers_that_flink_starts_share_no_noise(flink, tmp_path):
    """They are forked from one process, which has imported everything."""
    files: list[Path] = []
    for jobs in (1, 2):  # each job has separate workers, and Flink may give all elements of one to a single worker
        with begin_pipeline(flink.flags) as pipeline:
            pieces = pipeline | beam.Create(range(24)) | beam.Reshuffle()
            pieces | beam.Map(keep_own, str(tmp_path))
        files = list(tmp_path.iterdir())
        assert len(files) == 24 * jobs
        workers = {path.name.partition("-")[0] for path in files}
        if len(workers) > 1:
            break

    assert len(workers) > 1, "one worker did all of it"
    assert repeated([np.frombuffer(path.read_bytes(), np.int64) for path in files]) == 0


@pytest.fixture(scope="module")
def on_flink(flink: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the folder of each case, which one job has played: files land between the windows."""
    folder = tmp_path_factory.mktemp("streams")
    streams = dict(played(name, folder / name) for name in CASES)
    play(streams, shards=SHARDS, flags=one_at_a_time(flink))
    return folder


@pytest.mark.parametrize("name", [pytest.param(name, marks=ON_FLINK) for name in CASES])
def test_a_stream_on_flink_has_the_sums_and_rows_of_the_embedded_runner(name, on_flink, embedded):
    """Each window is a separate epoch."""
    the_same(on_flink / name, embedded(name))


@pytest.mark.few(2)
@FLINK_GROUP  # where the embedded runner has run both
@pytest.mark.parametrize("way", ["epochs", "one run", *FLINK_WAYS, "a stream"])
def test_public_folders_are_equal_if_changelogs_differ_in_keys_that_are_not_found(way, embedded, tmp_path, request):
    names = ("keys", "other keys")
    folders = [tmp_path / name for name in names]
    match way:
        case "epochs":
            folders = [embedded(name) for name in names]
        case "one run" | "one run on Flink":
            flags = request.getfixturevalue("flink").flags if way.endswith("Flink") else []
            for name, folder in zip(names, folders, strict=True):
                spec = CASES[name].prepare(folder)
                move(folder, "0.parquet")
                assert run(name, 1, spec, flags) == 0
        case "a stream":
            flags = ["--runner=BundleBasedDirectRunner"]
            play(dict(map(played, names, folders)), shards=SHARDS, flags=flags, waits=False)
        case _:
            folders = [request.getfixturevalue("on_flink") / name for name in names]

    one, other = map(public, folders)

    assert one == other
    rows = published(folders[1], "estimates").filter(pc.field("query") == "pairs")
    assert set(rows["town"].to_pylist()) == {"Ulm", "Hof", "Bad Ems"}
    assert [
        name for epoch in one["manifest.json"]["epochs"] for found in epoch.get("found", ()) for name in found["keys"]
    ]


@FLINK_GROUP
def test_numbers_of_found_keys_are_those_of_listed_cells(embedded) -> None:
    """From the window of discovery on; of `left` and sliding sums, the first one begins there."""
    table = published(embedded("keys"), "estimates")

    for name in ("means", "sums"):
        rows, listed = (
            table.filter(pc.field("query") == query)
            .sort_by([(key, "ascending") for key in ("kind", "window_end", "town")])
            .select(["kind", "window_start", "window_end", "town", "value"])
            .to_pylist()
            for query in (name, f"listed_{name}")
        )
        first = {row["town"]: row["window_end"] for row in reversed(rows) if row["kind"] == "level"}
        assert len(first) == 3
        assert rows == [
            row
            for row in listed
            if row["window_end" if row["kind"] == "level" else "window_start"] >= first[row["town"]]
        ]
        assert {row["kind"] for row in rows} > {"level", "left"}
        assert len({row["value"] for row in rows}) > 10


def played(name: str, folder: Path) -> tuple[Path, list[Any]]:
    """Return the spec of a case, prepared in a folder, and its steps as a stream."""
    case = CASES[name]
    return case.prepare(folder), [*chain(*zip(case.names, [until + 2 * LAG for until in case.epochs], strict=True))]


def public(folder: Path) -> dict[str, Any]:
    """Return everything that is public, without the random names of attempts, their times and hashes of paths."""
    files: dict[str, Any] = dict(contents(folder / "public"))
    manifest, plan = (json.loads(files.pop(name)) for name in ("manifest.json", "plan.json"))
    for document, name in ((manifest, "spec_sha256"), (plan, "spec_sha256"), (manifest, "plan_sha256")):
        del document[name]
    for epoch in manifest["epochs"]:
        attempt = epoch.pop("attempt")
        files = {own_name(name, attempt): content for name, content in files.items()}
        epoch["files"] = {own_name(name, attempt): digest for name, digest in epoch["files"].items()}
        del epoch["committed_at"]
    return files | {"manifest.json": manifest, "plan.json": plan}


@WITH_JAVA
@FLINK_GROUP
def test_a_release_on_flink_continues_after_its_workers_were_killed(flink, embedded, tmp_path):
    """Flink tries again, or else the run fails and is run again: published numbers stay, and each is published once.

    The embedded runner runs the epochs before and after.
    """
    folder = tmp_path / "case"
    begin("owners", folder, [], epochs=1)
    first = contents(folder / "public")

    killed: list[int] = []
    killer = threading.Thread(target=kill_workers, args=(flink, folder / "private/attempts", killed))
    killer.start()
    code = run("owners", 1, folder / "spec.yaml", flink.flags)
    killer.join()

    assert killed
    if code != 0:
        assert code == 4
        assert run("owners", 1, folder / "spec.yaml", flink.flags) == 0
    assert run("owners", 2, folder / "spec.yaml", []) == 0
    del first["manifest.json"]
    assert first.items() <= contents(folder / "public").items()
    the_same(folder, embedded("owners"))


def kill_workers(flink: Cluster, attempts: Path, killed: list[int]) -> None:
    """Kill every worker as soon as the second epoch has written a file of estimates: noise is drawn, not committed."""
    end = time.monotonic() + PATIENCE
    while not list(attempts.glob("000002-*/estimates/*")) and time.monotonic() < end:
        time.sleep(0.01)
    for worker in workers_of(flink.processes["workers"].pid):
        os.kill(worker, signal.SIGKILL)
        killed.append(worker)
