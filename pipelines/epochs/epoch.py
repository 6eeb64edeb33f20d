"""One epoch, from what is committed to what is public: the same steps in the same order for batch and streams.

    commits -> start -> job -> attempt -> its files -> record -> commit -> show -> clean

The job, and how the files of an attempt are made of it, are the caller's: by a pipeline over the changelog
(`pipelines.epochs.run`), or of what the shards of a stream have proposed (`pipelines.epochs.stream_publish`).
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pipelines.epochs.failures import winner_named
from pipelines.epochs.job import Before, Job
from pipelines.epochs.settled import files_of, goes_on, keep_settled, record_of, refuse_another_plan, settled_by
from pipelines.sinks.epochs import load_shown
from pipelines.spec.load import Spec
from pipelines.store.attempt import Reading
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from transforms.common.errors import SlackwaterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What an epoch starts from; all are None for the first.

    Attributes:
        last: the epoch before it.
        before: what the epochs before it have settled and read.
        past: the folder with the state that the last of them left.
    """

    last: Commit | None = None
    before: Before | None = None
    past: str | None = None

    @property
    def epoch(self) -> int:
        return 1 if self.last is None else self.last.epoch + 1

    @property
    def released(self) -> int:
        """Windows that are published before it."""
        return 0 if self.last is None else self.last.windows


def start_of(spec: Spec, store: Store, commits: Sequence[Commit]) -> Start:
    """What the epoch after these starts from.

    Raises:
        RefusedError: another run was first; or the state is not there, or not what the last epoch left.
    """
    if not commits:
        return Start()
    last = commits[-1]
    with winner_named(store, last.epoch + 1):
        return Start(last=last, before=settled_by(spec, store, commits), past=store.attempts.state_folder(last))


def publish_epoch(spec: Spec, store: Store, start: Start, job: Job, make: Callable[[str, bool], Reading]) -> Commit:
    """Make an attempt at the epoch, commit it and show it.

    Args:
        make: writes nodes, estimates and, if it is asked to keep one, the state for the next epoch into the attempt's
            folder, and says how much it has read. It may sample noise: only what is committed counts.

    Raises:
        RefusedError: another run was first; or the state or the plan is not that of the last epoch.
    """
    keep = goes_on(spec, job)
    with winner_named(store, start.epoch):
        if start.before is not None:
            refuse_another_plan(job, start.before.plan)
        if start.last is not None:
            store.attempts.verify_state(start.last)  # the noise that goes on, above all
    attempt = store.begin(start.epoch)
    try:
        with winner_named(store, start.epoch):
            reading = make(attempt.folder, keep)
        if keep:
            keep_settled(attempt, job)
        store.attempts.note(attempt, reading)
        commit = store.commit(attempt, record_of(spec, job, attempt), files_of(spec, job))
    except BaseException:
        with suppress(Exception):  # what is reported is why the run ended
            store.discard(attempt)
        raise
    store.show()
    clean(store)
    return commit


def fill_tables(spec: Spec, store: Store) -> None:
    """Load into tables what they do not have of what is published, if the spec names any. Files come first: after them.

    Raises:
        SlackwaterError: a table did not take an epoch.
    """
    try:
        for line in load_shown(spec, store):
            print(f"slackwater: {line}", file=sys.stderr, flush=True)
    except SlackwaterError as error:
        raise type(error)(f"{error}; what is published in files stays so, and the next run loads the rest") from None


def clean(store: Store) -> None:
    """Remove what nobody needs. What is published stays so, whether or not that succeeds."""
    try:
        store.clean()
    except Exception as error:
        why = type(error).__name__
        print(f"slackwater: {store.private}/attempts: cannot be cleaned ({why}); the next run will", file=sys.stderr)
