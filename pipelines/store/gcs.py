"""A `gs://` prefix for the release store: the operations of a local folder, on objects.

An object is written whole or not at all, and its generation distinguishes versions. An upload whose answer is lost may
have succeeded, or may still succeed later. So the outcome is always read from the bucket, never inferred from a
failure. An object that can be read is stored permanently, in more than one place: there is nothing to flush.

Access rights belong to the buckets: give only the job access to the private one.
"""

import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

THREADS = 8
"""Of one client, whose pool keeps ten connections."""


def _client() -> Any:
    from google.cloud import storage

    return storage.Client()


@dataclass(frozen=True, slots=True)
class GcsFolder:
    """Objects by their names from the prefix `root`, `gs://bucket/some/prefix`."""

    root: str
    client: Any = field(default_factory=_client, repr=False, compare=False)

    def path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def make(self, name: str = "") -> None:
        """Do nothing: object stores have no folders."""

    def refuse_unwritable(self) -> None:
        """Do nothing: the bucket checks rights at the first write."""

    def flush(self, names: Iterable[str]) -> None:
        """Do nothing: objects that were read or written are durable."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Take no lock: generations prevent an old writer from replacing a new object."""
        yield

    def hold(self, name: str) -> None:
        """Return no lock: object stores have none that ends with its process."""

    def is_held(self, name: str) -> None:
        """Return None: object stores do not show whether a run is alive."""

    def files(self, folder: str) -> dict[str, int]:
        """Sizes in bytes of all objects under a folder, by name from `root`."""
        prefix = self._name("")
        found = self._bucket().list_blobs(prefix=self._name(f"{folder}/"))
        return dict(sorted((blob.name.removeprefix(prefix), blob.size) for blob in found if blob.name[-1] != "/"))

    def folders(self, folder: str) -> list[str]:
        """Names of the folders in a folder."""
        found = self._bucket().list_blobs(prefix=self._name(f"{folder}/"), delimiter="/")
        prefixes = {prefix for page in found.pages for prefix in page.prefixes}
        return sorted(posixpath.basename(prefix.rstrip("/")) for prefix in prefixes)

    def read(self, name: str) -> bytes | None:
        from google.api_core.exceptions import NotFound

        try:
            content: bytes = self._blob(name).download_as_bytes()
        except NotFound:
            return None
        return content

    def read_all(self, names: list[str]) -> list[bytes | None]:
        with ThreadPoolExecutor(THREADS) as threads:
            return list(threads.map(self.read, names))

    def settle(self, names: list[str]) -> list[tuple[str, int] | None]:
        """SHA-256 and size of objects that others wrote; None for one that is missing."""
        with ThreadPoolExecutor(THREADS) as threads:
            return list(threads.map(self._digest, names))

    def write(self, name: str, content: bytes) -> None:
        """Write an object, and replace an older one if it exists."""
        self._blob(name).upload_from_string(content, content_type="application/octet-stream")

    def put(self, name: str, content: bytes) -> None:
        """Same as `write`: a written object is durable."""
        self.write(name, content)

    def create(self, name: str, content: bytes, *, draft: str) -> bytes:
        """Create an object unless it exists; return the object's content, which is `content` for exactly one caller.

        The draft is written first and stays: while it is there, a delayed request may still create the object.

        Args:
            name: Name of the object.
            content: Its content.
            draft: Name of the draft.
        """
        self.write(draft, content)
        if self.swap(name, content, 0):
            return content
        standing = self.read(name)  # ours, if a request was repeated whose first answer was lost
        if standing is None:
            raise FileNotFoundError(f"{self.path(name)}: somebody removed it")
        return standing

    def versioned(self, name: str) -> tuple[bytes | None, int]:
        """Return an object and its generation; None and 0 without one.

        The content may be newer than the generation: `swap` then fails, as it should.
        """
        blob = self._bucket().get_blob(self._name(name))
        return (None, 0) if blob is None else (self.read(name), int(blob.generation))

    def swap(self, name: str, content: bytes, version: int) -> bool:
        """Replace one generation of an object; return False if the object has another generation now.

        Args:
            name: Name of the object.
            content: New content.
            version: Generation to replace; 0 creates an object that does not exist.
        """
        from google.api_core.exceptions import PreconditionFailed

        try:
            self._blob(name).upload_from_string(
                content, content_type="application/octet-stream", if_generation_match=version
            )
        except PreconditionFailed:
            return False
        return True

    def remove(self, folder: str) -> None:
        """Remove all objects under a folder. Another process may do so at the same time."""
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(self._remove, self.files(folder)))

    def drop(self, names: Iterable[str]) -> None:
        """Remove objects. Another process may do so at the same time."""
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(self._remove, names))

    def _digest(self, name: str) -> tuple[str, int] | None:
        content = self.read(name)
        return None if content is None else (hashlib.sha256(content).hexdigest(), len(content))

    def _remove(self, name: str) -> None:
        from google.api_core.exceptions import NotFound

        with suppress(NotFound):  # somebody else was faster
            self._blob(name).delete()

    def _bucket(self) -> Any:
        return self.client.bucket(self.root.removeprefix("gs://").partition("/")[0])

    def _blob(self, name: str) -> Any:
        return self._bucket().blob(self._name(name))

    def _name(self, name: str) -> str:
        """Return the name in the bucket of a name in the folder."""
        prefix = self.root.removeprefix("gs://").partition("/")[2].strip("/")
        return f"{prefix}/{name}" if prefix else name
