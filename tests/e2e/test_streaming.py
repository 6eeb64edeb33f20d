"""A release as a stream, on the runner that plays a test's clock, against scheduled runs over the same files."""

from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing import test_stream
from apache_beam.utils.timestamp import Timestamp

from benchmarks.flink.live import exact_sums
from pipelines.cli import main
from pipelines.epochs.stream import StreamRelease, stream_job
from pipelines.epochs.stream_publish import Committed, _PublishDoFn, publish
from pipelines.spec.load import load
from pipelines.store.store import Store
from tests.e2e.specs import (
    DAY,
    NO_NOISE,
    START,
    WINDOWS,
    CommandLine,
    Row,
    changelog,
    contents,
    published,
    write,
    write_spec,
)
from tests.pipelines.spec_text import changed
from tests.runner_states import states
from transforms.aggregation.shard_state import file_of
from transforms.common.errors import RefusedError
from transforms.streams.close_windows import Proposal, close, digest

LAG = timedelta(minutes=1)
ENDS = [START + DAY * (window + 1) for window in range(WINDOWS)]
HARD = (
    ("publish: [level, change]", "publish: [level, change, entered, left]"),
    ("strategy: disjoint", "strategy: {tree: {branching: 2, height: 3, refine: subtraction}}"),
    ("start: 2026-01-01T00:00:00Z", "start: 2026-01-01\n  timezone: Europe/London"),
    ("  time: at\n", "  time: at\n  freshness: newer_file\n"),
)
"""By a calendar, whose winter days are those of UTC; every file is stored long after these."""

FORMS = {"plain": (), "hard": HARD}


def by_day(rows: Sequence[Row]) -> list[list[Row]]:
    """What lands on each day of the schedule; the first day's file also holds all that was before."""
    days = [[row for row in rows if end - DAY <= row["at"] < end] for end in ENDS]
    days[0] = [row for row in rows if row["at"] < START] + days[0]
    return days


def late(days: list[list[Row]]) -> list[list[Row]]:
    """Every third row lands a day later, and every fourth twice."""
    landed: list[list[Row]] = [[] for _ in days]
    for day, rows in enumerate(days):
        for place, row in enumerate(rows):
            later = min(day + 1, len(days) - 1)
            landed[later if place % 3 == 2 and day else day].append(row)
            if place % 4 == 3:
                landed[later].append(row)
    return landed


def land(step: tuple[str, Sequence[Row]]) -> str:
    """Write a file that is not there yet, or only tick."""
    path, rows = step
    if rows and not Path(path).exists():
        write(Path(path), rows)
    return path


def land_and_say(step: tuple[str, Sequence[Row]]) -> str:
    """The same by a connector that then says how far it has come; it notes how many windows were published before."""
    path, rows = step
    if rows and not Path(path).exists():
        with Path("published").open("a") as file:
            file.write(f"{len(Store('public', 'private').commits())} ")
        Path("progress").write_text(ENDS[int(Path(path).stem[-1])].isoformat())
    return land(step)


def stream(
    days: Sequence[Sequence[Row]],
    *,
    begin: int = 0,
    known: int | None = None,
    landing: Callable[[tuple[str, Sequence[Row]]], str] = land,
) -> None:
    """Day after day a file lands, is seen twice, and the day's window closes.

    Args:
        known: how many windows, each with one file, the stream knows of when it starts, as after a checkpoint.
    """
    spec = load("spec.yaml")
    store = Store(spec.output.public, spec.output.private)
    job = stream_job(spec, store, shards=3)
    if known is not None:
        timeline = replace(job.aggregation.timeline, released=known, windows=known)
        layout = replace(job.layout, files=job.layout.files[:known])
        job = replace(job, layout=layout, aggregation=replace(job.aggregation, timeline=timeline))
    clock = test_stream.TestStream().advance_watermark_to(Timestamp((ENDS[begin] - DAY).timestamp()))
    for day, rows in enumerate(days, begin):
        clock.add_elements([(f"data/day-{day}.parquet", list(rows))])
        clock.add_elements([("", [])])
        clock.advance_watermark_to(Timestamp((ENDS[day] + LAG).timestamp() + 1))
        clock.add_elements([("", [])])  # what was there at this look
        clock.add_elements([("", [])])  # is reported at this one
    clock.advance_watermark_to_infinity()
    options = PipelineOptions(["--runner=BundleBasedDirectRunner"])
    options.view_as(StandardOptions).streaming = True
    with beam.Pipeline(options=options) as pipeline:
        publish = StreamRelease(spec, job, windows=begin + len(days), lag=LAG // timedelta(microseconds=1))
        pipeline | clock | beam.Map(landing) | publish


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run after each window's end, of rows that are late and twice."""
    folder = prepare(tmp_path_factory.mktemp("runs"), *HARD)
    for day, rows in enumerate(late(by_day(changelog()))):
        write(folder / f"data/day-{day}.parquet", rows)
        with chdir(folder):
            assert main(["run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}", "--shards=3"]) == 0
    return folder


def told(folder: Path, side: str) -> pa.Table:
    """Return the published rows without their noise, in a fixed order."""
    table = published(folder, side)
    table = table.drop([name for name in ("value", "ci_low", "ci_high", "noisy_value") if name in table.column_names])
    keys = [(name, "ascending") for name in table.column_names]
    return table.sort_by(keys)


def prepare(folder: Path, *changes: tuple[str, str]) -> Path:
    """The spec, without an end, and no noise."""
    (folder / "data").mkdir()
    write_spec(folder, ("  until: 2026-01-06T00:00:00Z\n", ""), NO_NOISE, *changes)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepare(tmp_path)


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    return prepare(tmp_path, *HARD)


def test_streams_and_scheduled_runs_take_over_from_each_other(hard, runs, capsys, monkeypatch):
    days = late(by_day(changelog()))
    monkeypatch.chdir(hard)
    write(hard / "data/day-0.parquet", days[0])  # columns are read from the first files

    stream(days[:2])
    before = contents(hard / "public")
    write(hard / "data/day-2.parquet", days[2])
    said = CommandLine(hard, capsys)("run", "spec.yaml", f"--until={ENDS[2]:%Y-%m-%dT%H:%M:%SZ}")
    assert said.code == 0, said.err
    stream(days[3:], begin=3)

    assert exact_sums(hard) == exact_sums(runs)
    assert any(exact_sums(hard).values())
    for side in ("nodes", "estimates"):
        assert told(hard, side).equals(told(runs, side))
    commits = Store("public", "private").commits()
    assert [(c.epoch, c.released, c.windows) for c in commits] == [(e, e - 1, e) for e in range(1, WINDOWS + 1)]
    assert [[source.path for source in c.sources] for c in commits] == [
        [f"data/day-{day}.parquet"] if rows else [] for day, rows in enumerate(days)
    ]
    after = contents(hard / "public")
    assert {name: after[name] for name in before if name != "manifest.json"} == {
        name: content for name, content in before.items() if name != "manifest.json"
    }


def test_a_stream_that_is_put_back_continues_from_the_published_epochs(hard, runs, monkeypatch):
    """As after a checkpoint that is older than the last epochs, with files seen in another order than before."""
    days = late(by_day(changelog()))
    monkeypatch.chdir(hard)
    write(hard / "data/day-0.parquet", days[0])
    stream(days[:3])
    before = contents(hard / "public")
    commits = Store("public", "private").commits()

    stream([[], *days[2:]], begin=1, known=1)  # the file of the second day is found when its window has closed

    after = contents(hard / "public")
    assert {name: after[name] for name in before if name != "manifest.json"} == {
        name: content for name, content in before.items() if name != "manifest.json"
    }
    assert Store("public", "private").commits()[:3] == commits
    assert exact_sums(hard) == exact_sums(runs)


def test_a_stream_continues_from_epochs_that_another_run_published(hard, runs, capsys, monkeypatch):
    days = late(by_day(changelog()))
    monkeypatch.chdir(hard)
    write(hard / "data/day-0.parquet", days[0])
    stream(days[:1])
    for day in (1, 2):
        write(hard / f"data/day-{day}.parquet", days[day])
        said = CommandLine(hard, capsys)("run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}")
        assert said.code == 0, said.err

    stream(days[1:], begin=1, known=1)

    assert exact_sums(hard) == exact_sums(runs)
    assert [c.windows for c in Store("public", "private").commits()] == [1, 2, 3, 4, 5]


def test_windows_of_a_stalled_connector_wait_and_get_their_own_changes_when_it_resumes(tmp_path, monkeypatch):
    """For two days nothing comes; on the next its backlog does. By the clock alone all of that would be late."""
    rule = ("  time: at\n", "  time: at\n  freshness: {file: progress}\n")
    for name in ("stream", "run"):
        (tmp_path / name).mkdir()
        prepare(tmp_path / name, rule)
        (tmp_path / name / "progress").write_text(ENDS[0 if name == "stream" else -1].isoformat())
    first, *stalled, last = days = by_day(changelog())
    monkeypatch.chdir(tmp_path / "run")
    for day, rows in enumerate(days):
        write(Path(f"data/day-{day}.parquet"), rows)
        assert main(["run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}", "--shards=3"]) == 0
    monkeypatch.chdir(tmp_path / "stream")
    write(Path("data/day-0.parquet"), first)

    stream([first, [], [], [row for rows in stalled for row in rows], last], landing=land_and_say)

    assert Path("published").read_text().split() == ["1", "4"]
    assert [c.windows for c in Store("public", "private").commits()] == [1, 2, 3, 4, 5]
    assert exact_sums(tmp_path / "stream") == exact_sums(tmp_path / "run")


def test_no_noise_is_sampled_for_proposals_that_another_run_has_overtaken(folder, monkeypatch):
    days = by_day(changelog())
    monkeypatch.chdir(folder)
    write(folder / "data/day-0.parquet", days[0])
    stream(days[:1])
    spec, store = load("spec.yaml"), Store("public", "private")
    job = stream_job(spec, store)
    now = replace(job.aggregation, timeline=replace(job.aggregation.timeline, windows=2))
    known = [Committed(Store("public", "private"))(1, shard, None) for shard in range(3)]
    proposals = [close(shard, [], state[1], now) for shard, state in enumerate(known) if state is not None]
    stale = [replace(proposals[0], base=digest(b"another")), *proposals[1:]]
    before = contents(folder)

    with pytest.raises(RefusedError, match="another run has published 1 window in"):
        publish(spec, job, store, 2, stale, [])

    # A shard that is summed twice would contribute twice, one that is left out not at all.
    for wrong in ([*proposals, proposals[0]], [proposals[0], proposals[0], proposals[2]], proposals[:2]):
        with pytest.raises(ValueError, match="one proposal of each of 3 shards"):
            publish(spec, job, store, 2, wrong, [])
    assert contents(folder) == before
    assert publish(spec, job, store, 2, proposals, []).windows == 2


def test_a_stream_whose_decisions_differ_from_the_published_ones_ends(folder, capsys, monkeypatch):
    """It began before anything was published, and then a scheduled run was first."""
    days = by_day(changelog())
    monkeypatch.chdir(folder)
    write(folder / "data/day-0.parquet", days[0])
    spec, store = load("spec.yaml"), Store("public", "private")
    fresh = stream_job(spec, store, shards=2)
    assert (folder / "private").stat().st_mode & 0o777 == 0o700  # before a worker writes into it
    said = CommandLine(folder, capsys)("run", "spec.yaml", f"--until={ENDS[0]:%Y-%m-%dT%H:%M:%SZ}", "--shards=3")
    assert said.code == 0, said.err
    same = stream_job(spec, store)
    now = replace(same.aggregation, timeline=replace(same.aggregation.timeline, windows=2))
    known = [Committed(Store("public", "private"))(1, shard, None) for shard in range(3)]
    proposals = [close(shard, [], state[1], now) for shard, state in enumerate(known) if state is not None]
    typed = replace(same, layout=replace(same.layout, states=(("age", "float64"), ("ward", "string"))))
    planned = replace(same, plan=replace(same.plan, parts=same.plan.parts[:-1]))
    timeline = replace(same.aggregation.timeline, start=same.aggregation.timeline.start + 1)
    moved = replace(same, aggregation=replace(same.aggregation, timeline=timeline))
    before = contents(folder)

    for job, made in ((fresh, proposals[:2]), (typed, proposals)):
        with pytest.raises(RefusedError, match="another run has begun this release in the meantime"):
            publish(spec, job, store, 2, made, [])
    with pytest.raises(RefusedError, match="in the meantime, with another plan"):
        publish(spec, planned, store, 2, proposals, [])
    with pytest.raises(RefusedError, match="another run has published 1 window in the meantime; start the stream"):
        publish(spec, moved, store, 2, proposals, [])
    ticks = beam.Pipeline() | beam.Create([0])
    with pytest.raises(RefusedError, match="in the meantime, with another plan"):
        ticks | "planned" >> StreamRelease(spec, planned, windows=3, lag=0)
    with pytest.raises(RefusedError, match="made from another spec"):
        ticks | "elsewhere" >> StreamRelease(replace(spec, sha256="c0ffee"), same, windows=3, lag=0)

    assert contents(folder) == before
    assert publish(spec, same, store, 2, proposals, []).windows == 2


def test_a_shard_whose_own_window_was_not_committed_ends_the_stream(folder, capsys, monkeypatch):
    """Another run committed a window that the shard has closed: no continuing state has its rows."""
    days = by_day(changelog())
    monkeypatch.chdir(folder)
    write(folder / "data/day-0.parquet", days[0])
    stream(days[:1])
    (first,) = Store("public", "private").commits()
    own = first.state[file_of(0)].sha256
    said = CommandLine(folder, capsys)("run", "spec.yaml", f"--until={ENDS[2]:%Y-%m-%dT%H:%M:%SZ}")
    assert said.code == 0, said.err
    committed = Committed(Store("public", "private"))

    taken = committed(2, 0, own)

    assert taken is not None
    assert taken[0] == 3
    for windows, base in ((2, digest(b"another")), (3, own), (1, own)):
        with pytest.raises(RefusedError, match="another run has published 3 windows"):
            committed(windows, 0, base)


def test_the_next_process_shows_a_committed_epoch_that_was_not_shown(folder, monkeypatch):
    """A shard that is put back, and the last step, repeated after it died in between."""
    days = by_day(changelog())
    monkeypatch.chdir(folder)
    write(folder / "data/day-0.parquet", days[0])
    stream(days[:1])
    manifest = folder / "public/manifest.json"
    content = manifest.read_bytes()
    spec, store = load("spec.yaml"), Store("public", "private")
    job = stream_job(spec, store)
    proposal = Proposal(shard=0, base="", state=b"", sums=(), files=())
    again = _PublishDoFn(spec, job)
    again.setup()

    for find in (
        lambda: Committed(store)(1, 0, ""),
        lambda: list(again.process((0, (1).to_bytes(8, "big") + proposal.to_bytes()), **states(again))),
        lambda: stream_job(spec, store),
    ):
        manifest.unlink()
        find()
        assert manifest.read_bytes() == content


def test_rows_that_a_stream_cannot_use_are_listed_on_the_private_side(folder, monkeypatch):
    days = by_day(changelog())
    monkeypatch.chdir(folder)
    text = (folder / "spec.yaml").read_text()
    (folder / "spec.yaml").write_text(changed("  before: before_\n", "  before: before_\n  bad_rows: 0.5\n", text))
    bad = {**days[0][0], "stay": None}
    write(folder / "data/day-0.parquet", [*days[0], bad])

    stream(days[:1])

    (file,) = (folder / "private/diagnostics/stream").iterdir()
    (letter,) = pq.read_table(file).to_pylist()
    assert (letter["file"], letter["row"]) == ("data/day-0.parquet", len(days[0]) + 1)


def test_windows_to_come_do_not_close_when_a_stream_is_drained(tmp_path, monkeypatch):
    """At a stream's end its watermark passes all time."""
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    soon = (datetime.now(UTC) + DAY).strftime("%Y-%m-%dT00:00:00Z")
    write_spec(tmp_path, ("2026-01-01T00:00:00Z", soon), ("  until: 2026-01-06T00:00:00Z\n", ""))
    write(tmp_path / "data/day-0.parquet", changelog())

    stream([changelog()])

    assert Store("public", "private").commits() == []
