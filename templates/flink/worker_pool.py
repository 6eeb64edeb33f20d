"""Starts a Python worker, a process of its own, whenever a task manager of this machine asks for one.

    python templates/flink/worker_pool.py PORT

Workers run in this environment and in the current folder, without pipeline options or staged files: what a pipeline
needs must be installed here. Beam has such a pool too (apache_beam.runners.worker.worker_pool_main), which serves one
task manager alone: it distinguishes workers by ids that every task manager counts from one, so that the first to stop
its worker ends another's, which is then waited for without end. It also listens on all networks, to anyone who wants
something run. And Flink waits without end for a worker that dies before it has reached it, so here one that dies while
it starts is started again.

Workers are forked from a process that has imported all that they need, which takes seconds, and has no threads. So the
pool must be started anew when what is installed has changed.
"""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.forkserver import ensure_running

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.runners.worker.sdk_worker import SdkHarness

READY = multiprocessing.get_context("forkserver")
IMPORTED = ["apache_beam.runners.worker.sdk_worker", "pipelines.commands"]

TRIES = 5
AT_ONCE = 16
"""Workers that may be starting."""


def work(url: str, worker_id: str, calling: Connection) -> None:
    """A worker's life; says when it is about to call its task manager."""
    harness = SdkHarness(url, worker_id=worker_id)
    calling.send_bytes(b".")
    calling.close()
    harness.run()


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service; a worker ends by itself when its task manager hangs up, whether or not that says so here."""

    def StartWorker(self, request: beam_fn_api_pb2.StartWorkerRequest, context: object) -> object:  # noqa: N802
        if any(self._start(request) for _ in range(TRIES)):
            return beam_fn_api_pb2.StartWorkerResponse()
        return beam_fn_api_pb2.StartWorkerResponse(error=f"the worker died {TRIES} times while it started; see its log")

    def _start(self, request: beam_fn_api_pb2.StartWorkerRequest) -> bool:
        """Whether it lives when it is about to call."""
        reads, writes = READY.Pipe(duplex=False)
        named = (request.control_endpoint.url, request.worker_id, writes)
        READY.Process(target=work, args=named, daemon=True).start()
        writes.close()
        with reads:
            try:
                return bool(reads.recv_bytes())
            except EOFError:
                return False

    def StopWorker(self, request: beam_fn_api_pb2.StopWorkerRequest, context: object) -> object:  # noqa: N802
        return beam_fn_api_pb2.StopWorkerResponse()


def main(port: int) -> None:
    """Serve until the process is ended."""
    READY.set_forkserver_preload(IMPORTED)
    ensure_running()
    server = grpc.server(ThreadPoolExecutor(AT_ONCE))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(WorkerPool(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(int(sys.argv[1]))
