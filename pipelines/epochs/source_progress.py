"""Which of the windows that are over by the clock the source is known to have passed (`changelog.freshness`).

So a connector that has stalled does not look like a quiet day. What is published of a window does not depend on it, and
when it is published depends on what the source says of itself, never on anybody's row (transforms.sources.freshness).
"""

from dataclasses import replace

from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text
from transforms.aggregation.queries import Timeline
from transforms.sources.files.listing import matching
from transforms.sources.freshness import NEVER, Freshness


def complete(spec: Spec) -> Spec:
    """The spec without its rule: the clock alone says what is over."""
    return replace(spec, changelog=replace(spec.changelog, freshness=None))


def source_passed(spec: Spec) -> int | None:
    """Up to when the source is known to have come, in microseconds since the epoch, UTC; None without a rule.

    It is asked before the files are listed that are read.

    Raises:
        InputError, SpecError: that cannot be seen.
    """
    rule = spec.changelog.freshness
    if rule is None:
        return None
    return rule.passed(matching(spec.changelog.source.paths) if rule.by == "newer_file" else ())


def waits(spec: Spec, over: Timeline, published: int, passed: int) -> str | None:
    """Why windows wait that are over; None if there are none.

    Args:
        over: the windows that are over by the clock.
        published: how many of them are published, or will be now.
    """
    rule = spec.changelog.freshness
    count = over.windows - published
    if rule is None or count <= 0:
        return None
    first = over.bounds.end(published + 1)
    which = f"window {published + 1}, which ended at {moment_text(first)},"
    more = f" and {count - 1:,} more wait" if count > 1 else " waits"
    return (
        f"{which}{more} for the source: {_seen(rule, passed)}; see that it goes on, or, if all changes up to then are "
        "there, run with --assume-complete"
    )


def _seen(rule: Freshness, passed: int) -> str:
    if rule.by == "newer_file":
        return "no file of changelog.path was stored after that"
    if passed == NEVER:
        return f"{rule.path} says nothing yet of how far it has come"
    return f"by {rule.path} it has come to {moment_text(passed)}"
