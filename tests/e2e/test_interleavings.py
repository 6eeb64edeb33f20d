"""Streams in any interleaving that a runner may make: steps in any order, repeated after they had an effect, put back.

The steps are those of a real stream over a real release store. Chance plays the runner: what a step has read and
written is kept or forgotten as a whole, as on Flink and Dataflow, while what it did to the store stays. Two streams and
scheduled runs work on one release at once, and a run that has committed a draw may die before it shows it. If all files
land in time, every interleaving must have the same sums; if some are late, the last level is the same.
"""

import copy
import json
import random
from collections.abc import Callable
from contextlib import chdir, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from apache_beam.utils.timestamp import Timestamp

from benchmarks.crash.checks import Watch
from benchmarks.flink.live import contents, exact_sums
from pipelines.cli import main
from pipelines.epochs.stream import stream_job
from pipelines.epochs.stream_publish import Committed, _for_one_worker, _PublishDoFn
from pipelines.spec.load import load
from pipelines.store.store import Store
from tests.e2e.specs import NO_NOISE, START, WINDOWS, CommandLine, Row, changelog, write, write_spec
from tests.e2e.test_streaming import ENDS, FORMS, LAG, by_day
from tests.pipelines.spec_text import changed
from tests.runner_states import States, states
from transforms.common.errors import RefusedError
from transforms.streams.close_windows import _CloseDoFn
from transforms.streams.file_batches import _FindDoFn, _ReadDoFn

SEEDS = range(4)


class DiedError(Exception):
    """A worker has died."""


PATIENCE = 3
"""How often a refused stream is restarted from its checkpoint, before a new one begins."""


@dataclass(slots=True)
class Cut:
    """What a checkpoint holds: states, and what is on its way to each step."""

    find: States
    close: dict[int, States]
    publish: States
    found: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    proposals: list[Any] = field(default_factory=list)


class Stream:
    """A stream whose steps are chosen at random.

    Args:
        shards: Requested number of shards; published epochs override it.
    """

    def __init__(self, chance: random.Random, shards: int) -> None:
        self._chance = chance
        self._shards = shards
        self._slow: set[Callable[[Timestamp], None]] = set()
        self.begin()

    def begin(self) -> None:
        """Start from the published epochs."""
        spec = load("spec.yaml")
        job = stream_job(spec, Store("public", "private"), shards=self._shards)
        aggregation = replace(job.aggregation, timeline=replace(job.aggregation.timeline, windows=WINDOWS))
        lag = int(LAG.total_seconds() * 1_000_000)
        self._find = _FindDoFn(job.layout, 0)
        self._read = _ReadDoFn(job.layout, job.aggregation.projection, 0.0, "private/diagnostics/stream", job.shards)
        self._close = _CloseDoFn(aggregation, lag, Committed(Store("public", "private")))
        self._publish = _PublishDoFn(spec, job)
        self._publish.setup()
        close = {shard: states(self._close) for shard in range(job.shards)}
        self.now = Cut(states(self._find), close, states(self._publish))
        self.cuts = [copy.deepcopy(self.now)]
        self.refused = 0

    def step(self, moment: Timestamp) -> None:
        """Something that a runner may do next: a bundle, a checkpoint, or to go back to one."""
        steps = {self.look: 2, self.read: 4, self.close: 6, self.publish: 4, self.keep: 1, self.put_back: 0.3}
        if self._chance.random() < 0.03:  # for a while some steps are slow
            self._slow = {step for step in steps if self._chance.random() < 0.4}
        weights = [weight * (0.03 if step in self._slow else 1) for step, weight in steps.items()]
        step = self._chance.choices(list(steps), weights)[0]
        before = copy.deepcopy(self.now)
        try:
            step(moment)
        except RefusedError:
            self.refused += 1
            if self.refused > PATIENCE:
                with suppress(DiedError):
                    self.begin()
            else:
                self.put_back(moment)
        except DiedError:
            self.now = before
        else:
            if step != self.put_back and self._chance.random() < 0.1:
                self.now = before  # but what it did to the store stays

    def look(self, moment: Timestamp) -> None:
        self.now.found += self._find.process((0, b""), moment, **self.now.find)

    def read(self, _: Timestamp) -> None:
        for found in self._some(self.now.found):
            self.now.rows += self._read.process(found)

    def close(self, _: Timestamp) -> None:
        for shard, payload in self._some(self.now.rows):
            self.now.proposals += self._close.process((shard, payload), **self.now.close[shard])

    def publish(self, _: Timestamp) -> None:
        for proposal in self._some(self.now.proposals):
            list(self._publish.process(_for_one_worker(proposal), **self.now.publish))

    def keep(self, _: Timestamp) -> None:
        self.cuts.append(copy.deepcopy(self.now))

    def put_back(self, _: Timestamp) -> None:
        """To the last checkpoint, or one of those before it: a worker that was lost may have kept none since."""
        self.now = copy.deepcopy(self._chance.choice(self.cuts[-3:]))

    def _some(self, queue: list[Any]) -> list[Any]:
        """In any order, but nothing waits without end."""
        return [queue.pop(self._chance.randrange(min(len(queue), 6))) for _ in range(min(len(queue), 4))]


def known_from_the_start() -> list[Row]:
    """Without images before an entry's first row, except for the first window: later ones ignore earlier states."""
    seen, rows = set(), []
    for row in sorted(changelog(), key=lambda row: row["at"]):
        is_new = row["stay"] not in seen and row["at"] >= ENDS[0]
        rows.append({**row, "before_ward": None, "before_age": None} if is_new else row)
        seen.add(row["stay"])
    return rows


def prepare(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    write_spec(folder, ("  until: 2026-01-06T00:00:00Z\n", ""), NO_NOISE, *FORMS["hard"])
    return folder


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Any, ...], float]:
    """The exact sums of one run over all files."""
    folder = prepare(tmp_path_factory.mktemp("runs") / "whole")
    write(folder / "data/all.parquet", known_from_the_start())
    with chdir(folder):
        assert main(["run", "spec.yaml", f"--until={ENDS[-1]:%Y-%m-%dT%H:%M:%SZ}"]) == 0
    return exact_sums(folder)


def mortal(show: Callable[[Store], None], chance: random.Random) -> Callable[[Store], None]:
    """Return a variant of `show` that may end the process before it shows a committed draw, or right after."""

    def dies(store: Store) -> None:
        dies_at = chance.choices(("never", "before", "after"), (6, 1, 1))[0]
        if dies_at != "before":
            show(store)
        if dies_at != "never":
            raise DiedError

    return dies


@pytest.mark.few(2)
@pytest.mark.parametrize(("seed", "is_late"), [(seed, seed in (1, 2)) for seed in SEEDS])
def test_each_number_is_published_once_and_each_row_counts_once_if_a_runner_repeats_steps(
    seed, is_late, exact, tmp_path, capsys, monkeypatch
):
    folder, chance = prepare(tmp_path / "streams"), random.Random(seed)
    waiting = {f"data/day-{day}.parquet": rows for day, rows in enumerate(by_day(known_from_the_start())) if rows}
    monkeypatch.chdir(folder)
    spec = Path("spec.yaml")
    spec.write_text(changed("private: private\n", "private: private\n  witness: ../witness\n", spec.read_text()))
    write(Path("data/day-0.parquet"), waiting.pop("data/day-0.parquet"))
    store, watch, passed = Store("public", "private"), Watch(), 0
    moment = Timestamp(START.timestamp())
    # A stream that begins before anything is published settles for itself into how many shards units are split.
    streams = [Stream(chance, shards) for shards in ((3, 3), (3, 2))[seed % 2]]
    monkeypatch.setattr(Store, "show", mortal(Store.show, chance))
    for step in range(20_000):
        release = store.open() if step % 10 == 0 else None
        if release and release.last.windows == WINDOWS and release.shown == len(release.commits):
            break
        if passed < WINDOWS and chance.random() < 0.01:
            passed += 1
            moment = Timestamp((ENDS[passed - 1] + LAG).timestamp() + 1)
        for day, path in [(int(path[9]), path) for path in waiting]:
            # When its day begins, or at some time before the last day does.
            if passed >= (WINDOWS - 1 if is_late else day) or (passed >= day and chance.random() < 0.005):
                write(Path(path), waiting.pop(path))
        if passed and chance.random() < 0.001:
            said = CommandLine(folder, capsys)("run", "spec.yaml", f"--until={ENDS[passed - 1]:%Y-%m-%dT%H:%M:%SZ}")
            assert said.code in (0, 1, 4), said.err
        chance.choice(streams).step(moment)
        if step % 20 == 0:
            watch.look(contents(folder / "public"), contents(folder / "private"))

    watch.look(contents(folder / "public"), contents(folder / "private"))
    assert watch.epochs[-1]["windows"] == WINDOWS
    assert [json.loads(line)["epoch"] for line in (tmp_path / "witness").read_text().splitlines()] == [
        commit.epoch for commit in store.commits()
    ]
    found = exact_sums(folder)
    assert is_late or found == exact
    assert found.keys() == exact.keys()
    for ward in ("a", "b", "other"):
        net = [key for key in exact if (key[0], key[1], key[-1]) == ("beds", 0, ward)]
        assert sum(found[key] for key in net) == sum(exact[key] for key in net)
    recorded = [source.path for commit in store.commits() for source in commit.sources]
    assert len(recorded) == len(set(recorded))
