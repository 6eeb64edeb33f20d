"""The public manifest of a release: a function of its commits and compactions, whoever writes it.

It is read strictly: what is not exactly what they say is refused.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from pipelines.spec.times import moment_text
from pipelines.store.commit import VERSION, Commit, check_chain, document_in, json_of
from pipelines.store.compaction import Compaction, shown_files
from privacy.counted import counted
from transforms.common.errors import RefusedError


def manifest_json(commits: Sequence[Commit], compactions: Sequence[Compaction] = ()) -> bytes:
    """The public manifest of the epochs so far, at least one; no source, state or spec text is in it."""
    first, last = commits[0], commits[-1]
    return json_of(
        {
            "version": VERSION,
            "release": first.release,
            "spec_sha256": first.spec_sha256,
            "plan_sha256": first.plan_sha256,
            "statement": last.statement,
            "loss": last.loss,
            "windows": last.windows,
            "start": first.start,
            "until": last.until,
            "epochs": [
                {
                    "epoch": commit.epoch,
                    "attempt": commit.attempt,
                    "committed_at": commit.committed_at,
                    "released": commit.released,
                    "windows": commit.windows,
                    "start": commit.start,
                    "until": commit.until,
                    "ends": list(commit.ends),
                    "files": {name: asdict(digest) for name, digest in files.items()},
                }
                for commit, files in zip(commits, shown_files(commits, compactions), strict=True)
            ],
        }
    )


def commits_of(manifest: Any) -> tuple[Commit, ...]:
    """The commits that a manifest shows, without what is private of them; for readers, who have nothing else.

    Raises:
        ValueError: it is not exactly what `manifest_json` writes of commits that follow on each other.
    """
    try:
        of_all = {name: manifest[name] for name in ("release", "spec_sha256", "plan_sha256", "statement", "loss")}
        each = [{**of_all, "spec": "", **epoch} for epoch in manifest["epochs"]]
        commits = _adapter().validate_json(json.dumps(each), strict=True)
        check_chain(commits, "")
        if json.loads(manifest_json(commits)) != manifest:
            raise ValueError("other members")
        for moment in (commits[0].start, commits[-1].until):
            moment_text(moment)
        for commit in commits:
            datetime.fromisoformat(commit.committed_at)
    except (KeyError, IndexError, TypeError, OverflowError, RefusedError) as error:
        raise ValueError("not a manifest") from error
    return commits


@cache
def _adapter() -> TypeAdapter[tuple[Commit, ...]]:
    return TypeAdapter(tuple[Commit, ...])


def shown_epochs(
    manifest: bytes | None, commits: Sequence[Commit], compactions: Sequence[Compaction], where: str
) -> tuple[int, int]:
    """How many epochs a manifest shows, and how many of the compactions; none if there is no manifest.

    Raises:
        RefusedError: it is not exactly what the first so many commits and compactions say.
    """
    if manifest is None:
        return 0, 0
    way_out = "a manifest; remove it and run again, which makes it anew from the commits on the private side"
    if not commits:
        way_out = "a manifest; restore it and the private folder, or release under other output folders"
    document = document_in(manifest, where, way_out)
    epochs = document.get("epochs")
    shown = len(epochs) if isinstance(epochs, list) else 0
    if shown > len(commits):
        raise RefusedError(
            f"{where}: shows {counted(shown, 'epoch')} and the private side has committed {len(commits)}; restore the "
            "private folder, since a run without it would sample new noise for what is published"
        )
    if shown:
        joined = sum(compaction.last <= shown for compaction in compactions)
        for known in range(joined, -1, -1):
            if document == json.loads(manifest_json(commits[:shown], compactions[:known])):
                return shown, known
    raise RefusedError(f"{where}: differs from what was committed, so it is not {way_out}")
