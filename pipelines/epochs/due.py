"""Which windows of a release are due; what is wrong with a command is said here, before any work."""

import argparse

from pipelines.epochs.flags import options_of, refuse_local_paths
from pipelines.epochs.job import timeline_of
from pipelines.epochs.source_progress import complete
from pipelines.spec.load import Spec, load
from pipelines.spec.times import moment_text, now
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError


def due(arguments: argparse.Namespace, flags: list[str]) -> tuple[Spec, int]:
    """The spec, and the moment up to which windows are due.

    Raises:
        SpecError: a flag, a path or a time that this command cannot have.
    """
    options_of(flags)
    spec = load(arguments.spec)
    if getattr(arguments, "assume_complete", False):
        spec = complete(spec)
    refuse_local_paths(spec, flags)
    clock = now()
    until = clock if arguments.until is None else arguments.until
    if timeline_of(spec, until).windows > timeline_of(spec, clock).windows:
        raise SpecError(
            f"--until {moment_text(until)}: windows up to then are not over, since it is {moment_text(clock)} by this "
            "machine's clock; what is published is final, so give a time that has passed, or leave --until out"
        )
    truth = getattr(arguments, "truth", None)  # of `evaluate`
    refuse_unreachable([*spec.changelog.source.paths, *spec.output.folders, truth], files=[spec.changelog.source.kafka])
    return spec, until
