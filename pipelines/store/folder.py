"""Where the bytes of a release lie: a local folder or a `gs://` prefix, with the same operations."""

import hashlib
from pathlib import Path

import pyarrow as pa

from pipelines.store.gcs import GcsFolder
from pipelines.store.local import LocalFolder
from transforms.common.errors import RefusedError
from transforms.common.published_files import Types, read_published
from transforms.common.sinks import OutputFormat

Folder = LocalFolder | GcsFolder


def folder_at(root: str, *, private: bool) -> Folder:
    return GcsFolder(root) if "://" in root else LocalFolder(root, private=private)


def is_folder(path: str) -> bool:
    """Whether a path is that of a folder, and not of a spec: of a remote one its name says so."""
    return not path.endswith((".yaml", ".yml")) if "://" in path else Path(path).is_dir()


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


def read_public_table(
    folder: Folder, name: str, sha256: str, format_: OutputFormat, types: Types, *, of: str
) -> pa.Table:
    """A table of a public folder; arguments as of `read_public` and `read_published`.

    Raises:
        RefusedError: it is missing, another one, or not such a table.
    """
    content = read_public(folder, name, sha256, of=of)
    try:
        return read_published(content, format_, types)
    except ValueError:
        raise RefusedError(f"{folder.path(name)}: not a table of {of}; get the folder anew") from None
