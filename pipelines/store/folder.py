"""Where the bytes of a release lie: a local folder or a `gs://` prefix, with the same operations."""

import hashlib

from pipelines.store.gcs import GcsFolder
from pipelines.store.local import LocalFolder
from transforms.common.errors import RefusedError

Folder = LocalFolder | GcsFolder


def folder_at(root: str, *, private: bool) -> Folder:
    return GcsFolder(root) if "://" in root else LocalFolder(root, private=private)


def read_public(folder: Folder, name: str, sha256: str | None = None, *, of: str) -> bytes:
    """A file of a public folder that somebody else may have copied.

    Args:
        sha256: what the manifest says of it; None for the manifest itself.
        of: what the folder is of.

    Raises:
        RefusedError: it is missing, or another one.
    """
    content = folder.read(name)
    if content is None:
        raise RefusedError(f"{folder.path(name)}: missing; give the public folder of {of}, with all files")
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise RefusedError(f"{folder.path(name)}: not what the manifest says; get the folder anew")
    return content
