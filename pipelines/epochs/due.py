"""Find the windows of a release that are due, and report errors of a command before any work."""

from collections.abc import Sequence

from pipelines.common.arguments import SpecLike, spec_of
from pipelines.common.errors import ArgumentError
from pipelines.epochs.flags import options_of, refuse_local_paths
from pipelines.epochs.job import timeline_of
from pipelines.epochs.source_progress import complete
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text, now
from transforms.common.cloud import refuse_unreachable


def due(spec: SpecLike, until: int | None, flags: Sequence[str], *, assume_complete: bool = False) -> tuple[Spec, int]:
    """Return the spec, and the moment up to which windows are due.

    Args:
        spec: Spec of the release.
        until: In microseconds since 1970, UTC; None: now.
        flags: Beam's pipeline options.
        assume_complete: Whether the clock alone decides which windows are over.

    Raises:
        SpecError: The spec, a flag, a path or the moment is wrong.
    """
    options_of(flags)
    spec = spec_of(spec)
    if assume_complete:
        spec = complete(spec)
    refuse_local_paths(spec, flags)
    clock = now()
    end = clock if until is None else until
    if timeline_of(spec, end).windows > timeline_of(spec, clock).windows:
        raise ArgumentError(
            "until",
            f"windows up to then are not over, since it is {moment_text(clock)} by this machine's clock; published "
            "numbers are final, so give a time that has passed, or leave --until out",
            moment_text(end),
        )
    refuse_unreachable([*spec.changelog.source.paths, *spec.output.places], files=[spec.changelog.source.kafka])
    return spec, end
