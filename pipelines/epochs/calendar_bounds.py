"""Where the windows of a release begin and end: for ever as they were committed, and beyond that by today's calendar.

A calendar is public, but what is known of it changes: a country gives up summer time, or `tzdata` mends its history. So
each epoch commits the ends of its windows (pipelines.store.commit), and the manifest shows them. Those are never asked
of `tzdata` again. Noise is scaled to the shortest windows that the calendar had when the release was planned; should it
have shorter ones later, nothing more is published under that plan.
"""

from collections.abc import Sequence
from itertools import chain

from pipelines.spec.calendar import tzdata
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text, now
from pipelines.store.commit import Commit
from privacy.counted import counted
from privacy.planning.plan import Plan
from transforms.common.errors import RefusedError
from transforms.common.windows import Windows


def bounds_of(spec: Spec, commits: Sequence[Commit]) -> Windows:
    """Of all windows; without an end of those of the next 50 years.

    Raises:
        RefusedError: the calendar of today does not go on from what is committed.
    """
    schedule = spec.schedule
    if schedule.calendar is None:
        return Windows(start=schedule.start, every=schedule.every)
    return continued(today(spec), commits[0].start if commits else None, [*chain(*(commit.ends for commit in commits))])


def today(spec: Spec) -> Windows:
    """By today's calendar alone."""
    schedule = spec.schedule
    assert schedule.calendar is not None
    windows = schedule.calendar.ahead(now())
    return Windows(start=windows.start, every=windows.every, ends=(windows.ends or ())[: schedule.windows])


def continued(calendar: Windows, start: int | None, committed: Sequence[int]) -> Windows:
    """
    Args:
        start: that is committed; None before the first epoch.
        committed: ends of the windows so far.

    >>> continued(Windows(start=0, every=10, ends=(10, 20, 30)), 0, [11]).ends
    (11, 20, 30)
    """
    ends = (calendar.ends or ())[len(committed) :]
    last = committed[-1] if committed else start
    if last is not None and ends and ends[0] <= last:
        raise RefusedError(
            f"by {tzdata()} the next window ends at {moment_text(ends[0])}, when {moment_text(last)} is published "
            "already; continue with the version of tzdata that the release began with"
        )
    begin = calendar.start if start is None else start
    return Windows(start=begin, every=calendar.every, ends=(*committed, *ends))


def moved(spec: Spec, commits: Sequence[Commit]) -> str | None:
    """Whether today's calendar has other bounds than are committed; what to tell people then."""
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
    """
    Raises:
        RefusedError: noise is scaled to how many windows a time touches, and that may be more by these bounds.
    """
    if bounds.slack > plan.promise.slack and plan.promise.counts_windows:
        raise RefusedError(
            f"by {tzdata()} windows are shorter than noise was scaled to when the release was planned, so that a span "
            "of time would touch more of them; continue with the version of tzdata that the release began with, or run "
            "with --new-release NAME, which adds up both budgets"
        )
