"""Bounds of the windows of a release: committed bounds never change, and later ones follow today's calendar.

A calendar is public, but it can change: a country ends summer time, or `tzdata` corrects its history. So each epoch
commits the ends of its windows (pipelines.store.commit), and the manifest shows them. These ends are never computed
from `tzdata` again. Noise is scaled to the shortest windows that the calendar had when the release was planned. If
windows become shorter later, nothing more is published with that plan.
"""

from collections.abc import Sequence
from itertools import chain

from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text, now
from pipelines.store.commit import Commit
from privacy.counted import counted
from privacy.planning.plan import Plan
from transforms.common.errors import RefusedError
from transforms.common.windows import Windows
from transforms.common.zones import tzdata


def bounds_of(spec: Spec, commits: Sequence[Commit]) -> Windows:
    """Return the bounds of all windows; for a release without an end, of the next 50 years.

    Raises:
        RefusedError: Today's calendar does not continue from the committed windows.
    """
    schedule = spec.schedule
    if schedule.calendar is None:
        return Windows(start=schedule.start, every=schedule.every)
    return continued(today(spec), commits[0].start if commits else None, [*chain(*(commit.ends for commit in commits))])


def today(spec: Spec) -> Windows:
    """Return the bounds by today's calendar alone."""
    schedule = spec.schedule
    assert schedule.calendar is not None
    return schedule.calendar.ahead(now()) if schedule.windows is None else schedule.calendar.leading(schedule.windows)


def continued(calendar: Windows, start: int | None, committed: Sequence[int]) -> Windows:
    """Return the bounds of a calendar, with the committed ones in place of its first ones.

    Args:
        calendar: Bounds by today's calendar.
        start: Committed start of the first window; None before the first epoch.
        committed: Committed ends of windows. All times are in microseconds since the epoch, UTC.

    Raises:
        RefusedError: Today's calendar does not continue from the committed windows.

    >>> continued(Windows(start=0, every=10, ends=(10, 20, 30)), 0, [11]).ends
    (11, 20, 30)
    """
    ends = (calendar.ends or ())[len(committed) :]
    last = committed[-1] if committed else start
    if last is not None and ends and ends[0] <= last:
        raise RefusedError(
            f"by {tzdata()} the next window ends at {moment_text(ends[0])}, but windows are published up to "
            f"{moment_text(last)}; continue with the version of tzdata that the release began with"
        )
    begin = calendar.start if start is None else start
    return Windows(start=begin, every=calendar.every, ends=(*committed, *ends))


def moved(spec: Spec, commits: Sequence[Commit]) -> str | None:
    """Return a note if today's calendar has other bounds than the committed ones; else None."""
    if spec.schedule.calendar is None or not commits:
        return None
    committed = [commits[0].start, *chain(*(commit.ends for commit in commits))]
    calendar = today(spec)
    found = [calendar.start, *(calendar.ends or ())][: len(committed)]
    other = [place for place, (then, here) in enumerate(zip(committed, found, strict=False)) if then != here]
    if not other:
        return None
    return (
        f"{tzdata()} has other bounds for {counted(len(other), 'published window')}, the first at "
        f"{moment_text(committed[other[0]])}; they stay as they were published"
    )


def refuse_shorter(plan: Plan, bounds: Windows) -> None:
    """Refuse bounds that are shorter than the noise of a plan allows.

    Raises:
        RefusedError: A span of time may touch more windows than the noise was scaled to.
    """
    if bounds.slack > plan.promise.slack and plan.promise.counts_windows:
        raise RefusedError(
            f"by {tzdata()} windows are shorter than noise was scaled to when the release was planned, so that a span "
            "of time would touch more of them; continue with the version of tzdata that the release began with, or run "
            "with --new-release NAME, which adds up both budgets"
        )
