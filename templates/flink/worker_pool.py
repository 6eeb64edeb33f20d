"""Starts a Python worker, a process of its own, whenever a task manager of this machine asks for one.

    python templates/flink/worker_pool.py PORT

Workers run in this environment and in the current folder, without pipeline options or staged files: what a pipeline
needs must be installed here. Beam has such a pool too (apache_beam.runners.worker.worker_pool_main), which serves one
task manager alone: it distinguishes workers by ids that every task manager counts from one, so that the first to stop
its worker ends another's, which is then waited for without end. It also listens on all networks, to anyone who wants
something run. And Flink waits without end for a worker that dies before it has reached it, so here one that dies while
it starts is started again.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

WORKER = """
import os, sys
from pipelines.process import load_worker

def imported():
    from apache_beam.runners.worker.sdk_worker import SdkHarness
    import pipelines.epochs.batch
    return SdkHarness

harness = load_worker(imported)(sys.argv[1], worker_id=sys.argv[2])
os.write(int(sys.argv[3]), b".")
os.close(int(sys.argv[3]))
harness.run()
"""
"""Says when it has imported all, which takes a second, and is about to call its task manager."""

TRIES = 5
AT_ONCE = 16
"""Workers that may be starting."""


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service; a worker ends by itself when its task manager hangs up, whether or not that says so here."""

    def __init__(self) -> None:
        self._workers: list[subprocess.Popen[bytes]] = []

    def StartWorker(self, request: beam_fn_api_pb2.StartWorkerRequest, context: object) -> object:  # noqa: N802
        if any(self._start(request) for _ in range(TRIES)):
            return beam_fn_api_pb2.StartWorkerResponse()
        return beam_fn_api_pb2.StartWorkerResponse(error=f"the worker died {TRIES} times while it started; see its log")

    def _start(self, request: beam_fn_api_pb2.StartWorkerRequest) -> bool:
        """Whether it lives when it is about to call."""
        reads, writes = os.pipe()
        command = [sys.executable, "-c", WORKER, request.control_endpoint.url, request.worker_id, str(writes)]
        worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[writes])
        os.close(writes)
        started = os.read(reads, 1) == b"."
        os.close(reads)
        self._workers = [one for one in self._workers if one.poll() is None] + [worker]
        return started

    def StopWorker(self, request: beam_fn_api_pb2.StopWorkerRequest, context: object) -> object:  # noqa: N802
        return beam_fn_api_pb2.StopWorkerResponse()


def main(port: int) -> None:
    """Serve until the process is ended."""
    server = grpc.server(ThreadPoolExecutor(AT_ONCE))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(WorkerPool(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(int(sys.argv[1]))
