"""Beam's job service and a pool of worker processes, as on a cluster but on one machine.

Steps are pickled and staged, and what they need is imported again by workers that know no command line.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from templates.flink.local import free_ports
from tests.e2e.prism import UNLISTED

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0


@contextmanager
def job_service(folder: Path) -> Iterator[list[str]]:
    """Pipeline options that lead there, for as long as the `with` block runs; logs go into the folder."""
    jobs, pool = free_ports(2)
    services = []
    with (folder / "services.log").open("wb") as log:
        for port, module, flag in (
            (jobs, "apache_beam.runners.portability.local_job_service_main", "-p"),
            (pool, "apache_beam.runners.worker.worker_pool_main", "--service_port"),
        ):
            command = [sys.executable, "-m", module, flag, str(port)]
            environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
            services.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log))
        try:
            for port, service in zip((jobs, pool), services, strict=True):
                _wait_for(port, service)
            yield [
                "--runner=PortableRunner",
                f"--job_endpoint=127.0.0.1:{jobs}",
                "--environment_type=EXTERNAL",
                f"--environment_config=127.0.0.1:{pool}",
                UNLISTED,
            ]
        finally:
            for service in services:
                service.terminate()
                service.wait(PATIENCE)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, "the service ended"
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens within {PATIENCE} s")
