"""A BigQuery emulator on loopback that speaks the service's own protocol, with one empty dataset."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from templates.flink.local import free_ports

HERE = Path(__file__).parent
OWN = Path(sys.prefix) / "bigquery"
"""The emulator's environment, which `make install` sets up."""

PROJECT, DATASET = "house-data", "releases"


@contextmanager
def emulator(folder: Path) -> Iterator[tuple[str, bigquery.Client]]:
    """Yield the emulator's address and a client.

    Args:
        folder: Folder for its output.
    """
    python = OWN / "bin" / "python"
    assert python.exists(), f"{OWN}: the emulator is not installed; make install sets it up"
    rest, grpc = free_ports(2)
    address = f"http://127.0.0.1:{rest}"
    command = [python, HERE / "start.py", "--rest-port", str(rest), "--grpc-port", str(grpc), "--log-level", "error"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(OWN / "home"), "TMPDIR": str(folder)}
    said = folder / "emulator.log"
    with said.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process:
        try:
            _wait(address, process, said)
            client = _client(address)
            client.create_dataset(DATASET)
            yield address, client
            client.close()
        finally:
            process.terminate()
            process.wait(30)


def _client(address: str) -> bigquery.Client:
    options = {"api_endpoint": address}
    return bigquery.Client(project=PROJECT, credentials=AnonymousCredentials(), client_options=options)


def _wait(address: str, process: "subprocess.Popen[bytes]", said: Path) -> None:
    for _ in range(600):
        try:
            with urlopen(f"{address}/bigquery/v2/projects/{PROJECT}/datasets", timeout=5):
                return
        except (URLError, ConnectionError):
            assert process.poll() is None, said.read_text()
            time.sleep(0.1)
    raise AssertionError(f"the emulator did not start: {said.read_text()}")
