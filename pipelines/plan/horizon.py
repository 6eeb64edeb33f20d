"""The windows over which a plan averages errors."""

from pipelines.epochs.job import timeline_of
from pipelines.spec.load import Spec
from pipelines.spec.times import now
from privacy.counted import counted
from transforms.aggregation.queries import Timeline

YEAR = 365 * 86_400_000_000
"""Microseconds."""


def horizon_of(spec: Spec, until: int | None = None) -> Timeline:
    """Return the windows over which a plan averages errors.

    Args:
        spec: The spec.
        until: Up to this moment. None: to the schedule's end. Without an end, the windows that have closed; if there is
            none, those of the first year, and at least one.
    """
    if until is None:
        until = spec.schedule.until
    if until is not None:
        return timeline_of(spec, until)
    closed = timeline_of(spec, now())
    return closed if closed.windows else timeline_of(spec, spec.schedule.start + max(YEAR, spec.schedule.every))


def window_text(spec: Spec, windows: int) -> str:
    """Return the windows over which errors are averaged, in words."""
    end = ""
    if spec.schedule.until is None:
        end = " so far" if timeline_of(spec, now()).windows == windows else ""
        end += " (the schedule has no end)"
    return f"{counted(windows, 'window')} of {spec.schedule.length}{end}"
