"""Publish what a run made, at once or not at all.

Until now all files stand in an attempt's folder on the private side. Here they are copied to the public
side under the attempt's own names, and then the manifest is created, which only one run can do. The manifest is what
publishes: a file that it does not list is not part of the release.
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
VERSION = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run's private working folder, named by chance so that no two runs share one."""

    name: str
    folder: str

    @staticmethod
    def begin(private: str) -> "Attempt":
        name = secrets.token_hex(8)
        folder = FileSystems.join(private, "attempts", name)
        make_folder(folder)
        if "://" not in private:
            Path(private).chmod(0o700)
        return Attempt(name, folder)

    def end(self) -> None:
        """Remove the working folder."""
        if "://" in self.folder:
            FileSystems.delete([f"{self.folder}/"])  # object stores have no folder whose existence could be asked
        elif FileSystems.exists(self.folder):
            FileSystems.delete([self.folder])


def manifest_of(public: str) -> dict[str, Any] | None:
    """The manifest of a release; None if nothing was published.

    Raises:
        RefusedError: it is there but cannot be understood; releasing again could spend the budget twice.
    """
    path = FileSystems.join(public, MANIFEST)
    if not FileSystems.exists(path):
        return None
    try:
        with FileSystems.open(path) as file:
            manifest = json.load(file)
    except ValueError:
        manifest = {}
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
        raise RefusedError(
            f"{path}: not a manifest of this version; restore it, or release under another output.public"
        )
    return manifest


def publish(spec: Spec, plan: Plan, timeline: Timeline, attempt: Attempt) -> list[str]:
    """Copy the attempt's files and create the manifest; the public paths of all files.

    Raises:
        RefusedError: another run published first; nothing of this one is left.
    """
    public = spec.output.public
    copied: list[str] = []
    try:
        for side in (NODES, ESTIMATES):
            _copy(FileSystems.join(attempt.folder, side), FileSystems.join(public, side), attempt.name, copied)
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
            "files": {path.removeprefix(public).lstrip("/"): _sha256(path) for path in copied},
        }
        create_once(FileSystems.join(public, MANIFEST), json.dumps(manifest, indent=1).encode())
    except BaseException:
        if (manifest_of(public) or {}).get("attempt") == attempt.name:
            raise  # interrupted after the one step that publishes
        FileSystems.delete([path for path in copied if FileSystems.exists(path)])
        raise
    _write(FileSystems.join(public, "spec.yaml"), spec.path.read_bytes())
    return copied


def _copy(source: str, target: str, attempt: str, copied: list[str]) -> None:
    """Copy a folder's files; `copied` has each path before its file is there, so that none is forgotten."""
    make_folder(target)
    for found in sorted(FileSystems.match([FileSystems.join(source, "*")])[0].metadata_list, key=lambda f: f.path):
        name, ending = FileSystems.split(found.path)[1].rsplit(".", 1)
        path = FileSystems.join(target, f"{name}-{attempt}.{ending}")
        copied.append(path)
        with FileSystems.open(found.path) as file:
            _write(path, file.read())


def _write(path: str, content: bytes) -> None:
    with FileSystems.create(path, mime_type="application/octet-stream") as file:
        file.write(content)


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
