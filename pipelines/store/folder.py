"""The folders of a release: a local folder or a `gs://` prefix, with the same operations."""

import hashlib
from pathlib import Path

import pyarrow as pa

from pipelines.store.gcs import GcsFolder
from pipelines.store.local import LocalFolder
from transforms.common.errors import RefusedError
from transforms.common.output_formats import Types, read_published

Folder = LocalFolder | GcsFolder


def folder_at(root: str, *, private: bool) -> Folder:
    return GcsFolder(root) if "://" in root else LocalFolder(root, private=private)


def is_folder(path: str) -> bool:
    """Whether a path is that of a folder, and not of a spec. For remote paths, the name decides."""
    return not path.endswith((".yaml", ".yml")) if "://" in path else Path(path).is_dir()


def read_public(folder: Folder, name: str, sha256: str | None = None, *, of: str) -> bytes:
    """Return a file of a public folder, which may be a copy.

    Args:
        folder: The public folder.
        name: Name of the file in it.
        sha256: Digest in the manifest; None for the manifest itself.
        of: What the folder holds, for messages.

    Raises:
        RefusedError: The file is missing or another one.
    """
    content = folder.read(name)
    if content is None:
        raise RefusedError(f"{folder.path(name)}: missing; give the public folder of {of}, with all files")
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise RefusedError(f"{folder.path(name)}: not what the manifest says; get the folder again")
    return content


def read_public_table(folder: Folder, name: str, sha256: str, format_: str, types: Types, *, of: str) -> pa.Table:
    """Return a table of a public folder.

    Args:
        folder, name, sha256, of: As in `read_public`.
        format_, types: As in `read_published`.

    Raises:
        RefusedError: The file is missing, another one, or not such a table.
    """
    content = read_public(folder, name, sha256, of=of)
    try:
        return read_published(content, format_, types)
    except ValueError:
        raise RefusedError(f"{folder.path(name)}: not a table of {of}; get the folder again") from None
