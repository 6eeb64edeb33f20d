"""Find the windows for which the source is complete, among those that are over by the clock (`changelog.freshness`).

So a stalled connector does not look like a day without changes. The numbers of a window do not depend on it. The
time of publication depends on what the source reports about itself, never on any person's row
(transforms.sources.freshness).
"""

from dataclasses import replace

from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text
from transforms.aggregation.queries import Timeline
from transforms.sources.files.listing import matching
from transforms.sources.freshness import NEVER, Freshness


def complete(spec: Spec) -> Spec:
    """Return the spec without its rule, so that the clock alone decides which windows are over."""
    return replace(spec, changelog=replace(spec.changelog, freshness=None))


def source_passed(spec: Spec) -> int | None:
    """Return up to when the source is complete, in microseconds since the epoch, UTC; None without a rule.

    Call it before listing the files to read.

    Raises:
        InputError, SpecError: The source's report cannot be read.
    """
    rule = spec.changelog.freshness
    if rule is None:
        return None
    return rule.passed(matching(spec.changelog.source.paths) if rule.by == "newer_file" else ())


def waits(spec: Spec, over: Timeline, published: int, passed: int) -> str | None:
    """Return why windows that are over are not published yet; None if no window waits.

    Args:
        spec: Spec of the release.
        over: The windows that are over by the clock.
        published: Number of windows that are published, or will be now.
        passed: Time up to which the source is complete, in microseconds since the epoch, UTC.
    """
    rule = spec.changelog.freshness
    count = over.windows - published
    if rule is None or count <= 0:
        return None
    first = over.bounds.end(published + 1)
    which = f"window {published + 1}, which ended at {moment_text(first)},"
    more = f" and {count - 1:,} more wait" if count > 1 else " waits"
    return (
        f"{which}{more} for the source: {_seen(rule, passed)}; check the source, or, if all changes up to then are "
        "there, run with --assume-complete"
    )


def _seen(rule: Freshness, passed: int) -> str:
    if rule.by == "newer_file":
        return "no file of changelog.path was stored after that"
    if passed == NEVER:
        return f"{rule.path} does not report yet how far the source has come"
    return f"{rule.path} reports changes up to {moment_text(passed)}"
