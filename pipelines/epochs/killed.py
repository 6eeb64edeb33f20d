"""Report runs that the system has killed, by the folder of their attempt, which names their process and its start."""

import sys
from collections.abc import Collection

from pipelines.store.attempt import Run
from pipelines.store.record import R
from pipelines.store.store import EpochStore, Store
from privacy.counted import counted
from transforms.common.memory import MEBIBYTE, available


def killed_text(runs: Collection[Run], rows: str) -> str:
    """Return one line on runs that were killed, at least one: when, and what to do.

    Args:
        runs: each with its start.
        rows: what becomes of the rows that were read, a verb.

    >>> run = Run(host="", place="", process="", began="2026-01-02T03:04:05+00:00")
    >>> killed_text([run], "are removed").partition(". ")[0]
    'a run that began at 2026-01-02T03:04:05+00:00 was killed before it finished; the rows that were read are removed'
    """
    last = max(run.began for run in runs)
    who = f"a run that began at {last} was killed before it finished"
    if len(runs) > 1:
        who = f"{counted(len(runs), 'run')}, the last of which began at {last}, were killed before they finished"
    return (
        f"{who}; the rows that were read {rows}. If memory ran out (this process may use "
        f'{available() // MEBIBYTE:,} MiB), see docs/operations.md, "Memory"'
    )


def left_by_killed(store: Store) -> str | None:
    """Return one line on killed runs whose files are still there, or None; removes nothing."""
    killed = store.killed()
    return killed_text(killed.values(), f"stay in {store.private}/attempts until the next run") if killed else None


def clean(store: EpochStore[R]) -> None:
    """Remove files that are no longer needed, and report killed runs. A failure does not affect published files."""
    try:
        killed = store.killed()
        removed = [killed[id_] for id_ in store.clean() if id_ in killed]
        if removed:
            print(f"slackwater: {killed_text(removed, 'are removed')}", file=sys.stderr, flush=True)
    except Exception as error:
        why = type(error).__name__
        print(f"slackwater: {store.private}/attempts: cannot be cleaned ({why}); the next run will", file=sys.stderr)
