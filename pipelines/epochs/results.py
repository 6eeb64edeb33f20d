"""What a command says, as a document and as text; of a run above all."""

from textwrap import wrap
from typing import Any

from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from privacy.counted import counted

Result = tuple[dict[str, Any], str]
"""As `--json` prints it, and for people."""


def published(spec: Spec, store: Store, commit: Commit, how: str) -> Result:
    paths = store.shown.paths(commit)
    document = {
        "release": spec.release,
        "epoch": commit.epoch,
        "until": moment_text(commit.until),
        "windows": commit.windows - commit.released,
        "loss": commit.loss,
        "statement": commit.statement,
        "public": spec.output.public,
        "files": paths,
    }
    lines = [
        f"{spec.release}: epoch {commit.epoch}, {counted(commit.windows - commit.released, 'window')} released, "
        f"{moment_text(commit.start)} to {moment_text(commit.until)}, {how}",
        *wrap(commit.statement, 120),
        *(f"  {path}" for path in paths),
    ]
    return document, "\n".join(lines)


def nothing_due(spec: Spec, why: str) -> Result:
    document = {"release": spec.release, "windows": 0, "public": spec.output.public, "files": []}
    return document, f"{spec.release}: nothing is due, {why}"


def valid(spec: Spec) -> Result:
    document = {"release": spec.release, "windows": 0, "public": spec.output.public, "files": []}
    return document, f"{spec.release}: the job is valid; nothing was run, and nothing published"
