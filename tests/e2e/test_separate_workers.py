"""A whole release on worker processes of their own, behind Beam's job service, as on a cluster but on one machine.

Steps are pickled and staged, and what they need is imported anew by workers that know no command line.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from tests.pipelines.spec_text import GOOD, changed

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, "the service ended"
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens within {PATIENCE} s")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[str]]:
    """Pipeline options of a job service and a pool of workers."""
    jobs, pool = free_port(), free_port()
    services = []
    with (tmp_path / "services.log").open("wb") as log:
        for port, module, flag in (
            (jobs, "apache_beam.runners.portability.local_job_service_main", "-p"),
            (pool, "apache_beam.runners.worker.worker_pool_main", "--service_port"),
        ):
            command = [sys.executable, "-m", module, flag, str(port)]
            environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
            services.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log))
        try:
            for port, service in zip((jobs, pool), services, strict=True):
                wait_for(port, service)
            yield [
                "--runner=PortableRunner",
                f"--job_endpoint=127.0.0.1:{jobs}",
                "--environment_type=EXTERNAL",
                f"--environment_config=127.0.0.1:{pool}",
            ]
        finally:
            for service in services:
                service.terminate()
                service.wait(PATIENCE)


def test_worker_processes_release_what_the_embedded_runner_does(
    cluster: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stays.csv").write_text(
        "stay,at,ward,waited\n1,2026-01-01T08:00:00Z,a,30\n2,2026-01-02T09:00:00Z,b,\n1,2026-01-03T08:00:00Z,,\n"
    )
    text = changed("format: parquet", "format: csv", GOOD)
    text = changed("data/*.parquet", str(tmp_path / "stays.csv"), text)
    rows = []
    for name, flags in (("remote", cluster), ("embedded", [])):
        folder = tmp_path / name
        spec = changed("out/public", str(folder / "public"), text)
        spec = changed("out/private", str(folder / "private"), spec)
        (tmp_path / "spec.yaml").write_text(spec)

        assert main(["run", str(tmp_path / "spec.yaml"), *flags]) == 0, capsys.readouterr().err

        read = [pq.read_table(path) for path in sorted((folder / "public/estimates").iterdir())]
        rows.append([one.drop_columns(["value", "stddev", "ci_low", "ci_high"]) for one in read])
    assert rows[0] == rows[1]
