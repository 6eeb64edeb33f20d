"""`slackwater compact`: the published files of a release's epochs as few large ones."""

import argparse

from pipelines.epochs.failures import failures_kept
from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.epochs.settled import refuse_another
from pipelines.spec.load import load
from pipelines.store.store import Store
from privacy.counted import counted
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError


def compact(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "compact")
    spec = load(arguments.spec)
    refuse_unreachable(spec.output.folders)
    with failures_kept(spec, "compact", done="no published value is lost or changed; compact again"):
        store = Store(spec.output.public, spec.output.private)
        history = store.open()
        if history is None:
            raise RefusedError(f"{spec.output.public}: nothing is published there yet; run the release first")
        refuse_another(spec, history.commits)
        done = store.compact()
    made = done.made
    document = {
        "release": spec.release,
        "epochs": None if made is None else [made.first, made.last],
        "files": [] if made is None else list(made.files),
        "removed": done.removed,
    }
    if made is None:
        text = f"{spec.release}: nothing to compact, but {counted(done.removed, 'file')} of an earlier run removed"
        return document, text if done.removed else f"{spec.release}: nothing to compact"
    return document, (
        f"{spec.release}: {counted(made.last - made.first + 1, 'epoch')} up to {made.last} in "
        f"{counted(len(made.files), 'file')} in place of "
        f"{done.removed:,}, with the same rows"
    )
