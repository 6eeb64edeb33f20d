"""Where the bytes of a release lie: a local folder or a `gs://` prefix, with the same operations."""

from pipelines.store.gcs import GcsFolder
from pipelines.store.local import LocalFolder

Folder = LocalFolder | GcsFolder


def folder_at(root: str, *, private: bool) -> Folder:
    return GcsFolder(root) if "://" in root else LocalFolder(root, private=private)
