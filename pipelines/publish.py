"""Publish what a run made: one draw of noise for a release, ever, and all of it or nothing.

1. All files of an attempt stand in its folder on the private side.
2. The attempt is committed: `committed.json` is created on the private side, which only one run can do. From now on
   this draw is the release's, whatever happens; no other is ever made.
3. Its files are copied to the public side, and the manifest is created there. A file that it does not list is not part
   of the release. A run that dies in this step is finished by the next one, from the same draw.
"""

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apache_beam.io.filesystems import FileSystems

from pipelines.spec import Spec
from privacy.plan import Plan
from transforms.errors import RefusedError
from transforms.queries import Timeline
from transforms.release import ESTIMATES, NODES
from transforms.sinks import make_folder

MANIFEST = "manifest.json"
COMMITTED = "committed.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run's private working folder, named by chance so that no two runs share one."""

    name: str
    folder: str

    @staticmethod
    def begin(private: str) -> "Attempt":
        attempt = Attempt.of(private, secrets.token_hex(8))
        make_folder(attempt.folder)
        if "://" not in private:
            Path(private).chmod(0o700)
        return attempt

    @staticmethod
    def of(private: str, name: str) -> "Attempt":
        return Attempt(name, FileSystems.join(private, "attempts", name))

    def end(self) -> None:
        """Remove the working folder."""
        if "://" in self.folder:
            FileSystems.delete([f"{self.folder}/"])  # object stores have no folder whose existence could be asked
        elif FileSystems.exists(self.folder):
            FileSystems.delete([self.folder])


def manifest_of(folder: str, name: str = MANIFEST) -> dict[str, Any] | None:
    """The manifest in a release's public folder, or what is committed in its private one; None if there is none.

    Raises:
        RefusedError: it is there but cannot be understood; releasing again could spend the budget twice.
    """
    path = FileSystems.join(folder, name)
    if not FileSystems.exists(path):
        return None
    try:
        with FileSystems.open(path) as file:
            manifest = json.load(file)
    except ValueError:
        manifest = {}
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
        raise RefusedError(f"{path}: not a manifest of this version; restore it, or release under other output folders")
    return manifest


def publish(spec: Spec, plan: Plan, timeline: Timeline, attempt: Attempt) -> list[str]:
    """Commit an attempt and show it; the public paths of all files.

    Raises:
        RefusedError: another run committed or published first; nothing of this one is shown.
    """
    manifest = {
        "version": VERSION,
        "release": spec.release,
        "attempt": attempt.name,
        "spec_sha256": spec.sha256,
        "statement": plan.sentence,
        "loss": {"epsilon": plan.loss.epsilon, "delta": plan.loss.delta},
        "windows": timeline.windows,
        "start": timeline.start,
        "until": timeline.until,
        "committed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": {name: _sha256(path) for side in (NODES, ESTIMATES) for name, path in _made(attempt, side)},
    }
    create_once(FileSystems.join(spec.output.private, COMMITTED), _json(manifest))
    return show(spec, manifest)


def show(spec: Spec, manifest: dict[str, Any]) -> list[str]:
    """Copy a committed attempt's files to the public side and create the manifest there.

    May be called again after a failure: it copies the same bytes.
    """
    public = spec.output.public
    attempt = Attempt.of(spec.output.private, manifest["attempt"])
    sources = {name: path for side in (NODES, ESTIMATES) for name, path in _made(attempt, side)}
    if sources.keys() != manifest["files"].keys():
        raise RefusedError(
            f"{spec.output.private}: what was committed for release {manifest['release']!r} is neither published nor "
            "there any more; restore the public folder, since a new release would spend a second budget"
        )
    copied: list[str] = []
    try:
        for name, source in sources.items():
            path = FileSystems.join(public, *name.split("/"))
            make_folder(path.rsplit("/", 1)[0])
            if FileSystems.exists(path) and _sha256(path) == manifest["files"][name]:
                continue  # shown by a run that died, or by one that is finishing beside this one
            copied.append(path)  # before it is there, so that none is forgotten
            with FileSystems.open(source) as file:
                _write(path, file.read())
        create_once(FileSystems.join(public, MANIFEST), _json(manifest))
    except BaseException:
        if (manifest_of(public) or {}).get("attempt") != attempt.name:
            FileSystems.delete([path for path in copied if FileSystems.exists(path)])
        raise
    _write(FileSystems.join(public, "spec.yaml"), spec.text.encode())
    return [FileSystems.join(public, *name.split("/")) for name in sources]


def _made(attempt: Attempt, side: str) -> list[tuple[str, str]]:
    """Public name and private path of each file of one side; the attempt is part of the name."""
    made = []
    for found in FileSystems.match([FileSystems.join(attempt.folder, side, "*")])[0].metadata_list:
        name, ending = FileSystems.split(found.path)[1].rsplit(".", 1)
        made.append((f"{side}/{name}-{attempt.name}.{ending}", found.path))
    return sorted(made)


def _json(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, indent=1).encode()


def _write(path: str, content: bytes) -> None:
    """Write a file whole or not at all, also over one that somebody reads."""
    if "://" in path:
        with FileSystems.create(path, mime_type="application/octet-stream") as file:
            file.write(content)
        return
    draft = Path(f"{path}.{secrets.token_hex(8)}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _sha256(path: str) -> str:
    with FileSystems.open(path) as file:
        return hashlib.sha256(file.read()).hexdigest()


def create_once(path: str, content: bytes) -> None:
    """Create a file that must not exist, whole or not at all."""
    lost = RefusedError(f"{path}: another run has published this release; nothing of this run was kept")
    if path.startswith("gs://"):
        from google.api_core.exceptions import PreconditionFailed
        from google.cloud import storage

        bucket, name = path.removeprefix("gs://").split("/", 1)
        try:
            storage.Client().bucket(bucket).blob(name).upload_from_string(content, if_generation_match=0)
        except PreconditionFailed:
            raise lost from None
        return
    draft = f"{path}.{secrets.token_hex(8)}"
    Path(draft).write_bytes(content)
    try:
        os.link(draft, path)  # fails if the manifest is there, and shows it whole
    except FileExistsError:
        raise lost from None
    finally:
        Path(draft).unlink()
