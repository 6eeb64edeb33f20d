"""One epoch, from committed state to public files: the same steps in the same order for batch and streams.

    commits -> start -> job -> attempt -> its files -> record -> commit -> show -> clean

The caller provides the job, and makes the files of an attempt: with a pipeline over the changelog
(`pipelines.run.operation`), or from the proposals of a stream's shards (`pipelines.epochs.stream_publish`).
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pipelines.epochs.failures import winner_named
from pipelines.epochs.job import Before, Job
from pipelines.epochs.killed import clean
from pipelines.epochs.settled import files_of, goes_on, keep_settled, record_of, refuse_another_plan, settled_by
from pipelines.sinks.epochs import load_shown
from pipelines.spec.load import Spec
from pipelines.store.attempt import RowsRead
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from transforms.common.errors import SlackwaterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """State from which an epoch starts; all attributes are None for the first epoch.

    Attributes:
        last: The epoch before it.
        before: Decisions of the first epoch, and files that earlier epochs have read.
        past: Folder with the state that the last epoch left.
    """

    last: Commit | None = None
    before: Before | None = None
    past: str | None = None

    @property
    def epoch(self) -> int:
        return 1 if self.last is None else self.last.epoch + 1

    @property
    def released(self) -> int:
        """Number of windows that are published before this epoch."""
        return 0 if self.last is None else self.last.windows


def start_of(spec: Spec, store: Store, commits: Sequence[Commit]) -> Start:
    """Return the state from which the next epoch starts.

    Args:
        spec: Spec of the release.
        store: Its store.
        commits: Commits of all epochs so far.

    Raises:
        RefusedError: Another run was first, or the state is missing or not what the last epoch left.
    """
    if not commits:
        return Start()
    last = commits[-1]
    with winner_named(store, last.epoch + 1):
        return Start(last=last, before=settled_by(spec, store, commits), past=store.attempts.state_folder(last))


def publish_epoch(spec: Spec, store: Store, start: Start, job: Job, make: Callable[[str, bool], RowsRead]) -> Commit:
    """Make an attempt at the epoch, commit it and show it; return the commit.

    Args:
        spec: Spec of the release.
        store: Its store.
        start: State from which the epoch starts.
        job: The job.
        make: Writes nodes, estimates and, if its second argument is true, the state for the next epoch into the folder
            of the attempt, and returns how much it has read. It may sample noise, since only the commit counts.

    Raises:
        RefusedError: Another run was first, or the state or the plan is not that of the last epoch.
    """
    keep = goes_on(spec, job)
    with winner_named(store, start.epoch):
        if start.before is not None:
            refuse_another_plan(job, start.before.plan)
        if start.last is not None:
            store.attempts.verify_state(start.last)  # above all the noise that continues
    attempt = store.begin(start.epoch)
    try:
        with winner_named(store, start.epoch):
            reading = make(attempt.folder, keep)
        if keep:
            keep_settled(spec, attempt, job)
        store.attempts.note(attempt, reading)
        record = record_of(spec, job, attempt, store.commits()[: attempt.epoch - 1])
        commit = store.commit(attempt, record, files_of(spec, job))
    except BaseException:
        with suppress(Exception):  # report why the run ended, not why the cleaning failed
            store.discard(attempt)
        raise
    store.show()
    clean(store)
    return commit


def fill_tables(spec: Spec, store: Store) -> None:
    """Load published epochs into the tables that do not have them, if the spec names tables. Call it after `show`.

    Raises:
        SlackwaterError: Loading an epoch into a table failed.
    """
    try:
        for line in load_shown(spec, store):
            print(f"slackwater: {line}", file=sys.stderr, flush=True)
    except SlackwaterError as error:
        raise type(error)(f"{error}; published files stay, and the next run loads the rest") from None
