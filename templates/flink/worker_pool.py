"""Starts a Python worker, a process of its own, whenever a task manager of this machine asks for one.

    python templates/flink/worker_pool.py PORT

Workers run in this environment and in the current folder, without pipeline options or staged files: what a pipeline
needs must be installed here. Beam has such a pool too (apache_beam.runners.worker.worker_pool_main), which serves one
task manager alone: it tells workers apart by ids that every task manager counts from one, so that the first to stop
its worker ends another's, which is then waited for without end. It also listens on all networks, to anyone who wants
something run.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

WORKER = """
import sys
from apache_beam.runners.worker.sdk_worker import SdkHarness
SdkHarness(sys.argv[1], worker_id=sys.argv[2]).run()
"""


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service; a worker ends by itself when its task manager hangs up, whether or not that says so here."""

    def __init__(self) -> None:
        self._workers: list[subprocess.Popen[bytes]] = []

    def StartWorker(self, request: beam_fn_api_pb2.StartWorkerRequest, context: object) -> object:  # noqa: N802
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        command = [sys.executable, "-c", WORKER, request.control_endpoint.url, request.worker_id]
        self._workers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: beam_fn_api_pb2.StopWorkerRequest, context: object) -> object:  # noqa: N802
        return beam_fn_api_pb2.StopWorkerResponse()


def main(port: int) -> None:
    """Serve until the process is ended."""
    server = grpc.server(ThreadPoolExecutor(1))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(WorkerPool(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(int(sys.argv[1]))
