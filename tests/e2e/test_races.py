"""Whole runs at once on one release: one publishes each epoch, and every other one knows it."""

import io
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pipelines.store.attempt import Attempt
from pipelines.store.commit import Commit
from pipelines.store.record import History
from pipelines.store.store import FileNames, Store
from tests.e2e.specs import START, WINDOWS, changelog, contents, files_under, published, write, write_spec
from tests.pipelines.store.releases import verify
from tests.processes import CLEAN, FORKED

pytestmark = FORKED

RUNS = 5
PATIENCE = 300.0
"""Seconds; a run that waits longer for the others fails."""


@dataclass(frozen=True, slots=True)
class Told:
    """Outcome of one run, and the number of committed epochs that it found at first."""

    code: int
    out: str
    err: str
    found: int


def run(folder: Path, until: str, gate: Any, *, late: float, at_the_commit: bool, answers: Any) -> None:
    """Run `slackwater run` in a separate process; with `at_the_commit` no run commits before all have sampled."""
    from pipelines import cli

    found: list[int] = []
    look, commit = Store.open, Store.commit

    def looking(store: Store) -> History | None:
        history = look(store)
        found.append(0 if history is None else len(history.commits))
        return history

    def committing(store: Store, attempt: Attempt, record: Commit, made: FileNames) -> Commit:
        gate.wait(PATIENCE)
        return commit(store, attempt, record, made)

    Store.open = looking  # type: ignore[method-assign]
    if at_the_commit:
        Store.commit = committing  # type: ignore[method-assign]
    else:
        gate.wait(PATIENCE)
        time.sleep(late)
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = cli.main(["run", "spec.yaml", f"--until={until}"])
    answers.put(Told(code, out.getvalue(), err.getvalue(), found[0]))


def race(folder: Path, until: str, *, late: list[float], at_the_commit: bool) -> list[Told]:
    gate, answers = CLEAN.Barrier(RUNS), CLEAN.SimpleQueue()
    processes = [
        CLEAN.Process(
            target=run,
            args=(folder, until, gate),
            kwargs={"late": seconds, "at_the_commit": at_the_commit, "answers": answers},
        )
        for seconds in late
    ]
    for process in processes:
        process.start()
    told = []
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
        told.append(answers.get())  # small enough for the pipe to hold all of them
    return told


ROUNDS = {
    "all have drawn before one commits": ([0.0] * RUNS, True),
    "each starts a little later": ([0.25 * number for number in range(RUNS)], False),
}


def test_of_five_runs_at_once_one_publishes_each_epoch_and_the_others_report_it(tmp_path: Path) -> None:
    write_spec(tmp_path)
    write(tmp_path / "data" / "all.parquet", changelog())
    store = Store(str(tmp_path / "public"), str(tmp_path / "private"))
    kept: dict[str, bytes] = {}

    for epoch, (late, at_the_commit) in enumerate(ROUNDS.values(), start=1):
        until = (START + timedelta(days=epoch)).isoformat()
        told = race(tmp_path, until, late=late, at_the_commit=at_the_commit)

        store.open()
        *_, commit = store.commits()
        assert commit.epoch == commit.windows == epoch
        # Each run that found the epoch open has sampled for it: one commits, and the others report the winner.
        entered = [one for one in told if one.found == epoch - 1]
        winners = [one for one in entered if one.code == 0]
        assert len(winners) == 1
        assert f"epoch {epoch}, 1 window released" in winners[0].out
        assert all(name in winners[0].out for name in commit.files)
        who = f"another run, attempt {commit.attempt}, committed epoch {epoch} at {commit.committed_at}; nothing of"
        for one in entered:
            if one not in winners:
                assert (one.code, one.out) == (1, "")
                assert who in one.err
        # A later run has nothing to do, or shows what the winner had committed and not shown yet.
        for one in told:
            if one not in entered:
                assert (one.code, one.found) == (0, epoch)
                assert "nothing is due" in one.out or f"epoch {epoch}, 1 window released" in one.out
        assert len(entered) == RUNS or not at_the_commit

        now = contents(tmp_path / "public")
        assert kept.items() <= now.items()
        kept = {name: content for name, content in now.items() if name != "manifest.json"}
        assert sorted(kept) == sorted([*(name for c in store.commits() for name in c.files), "spec.yaml", "plan.json"])

    verify(store, store.commits())
    nodes = published(tmp_path, "nodes").to_pandas()
    assert not nodes.duplicated(["query", "layer", "node_start", "node_end", "ward"]).any()
    assert len(nodes) == 3 * (len(ROUNDS) + 1)  # of each ward the initial level and every window
    assert len(ROUNDS) < WINDOWS
    attempts = {path.name for path in (tmp_path / "private/attempts").iterdir()}
    assert attempts == {commit.attempt for commit in store.commits()[-2:]}
    assert not [path for path in files_under(tmp_path / "private") if path.name == "failure.txt"]
