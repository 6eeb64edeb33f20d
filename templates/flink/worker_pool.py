"""Starts a Python worker, a process of its own, whenever a task manager of this machine asks for one.

    python -m templates.flink.worker_pool PORT

Workers run in this environment and in the current folder, without pipeline options or staged files: what a pipeline
needs must be installed here. Beam has such a pool too (apache_beam.runners.worker.worker_pool_main), which serves one
task manager alone: it distinguishes workers by ids that every task manager counts from one, so that the first to stop
its worker ends another's, which is then waited for without end. It also listens on all networks, to anyone who wants
something run. And Flink waits without end for a worker that dies before it has reached it, so here one that dies while
it starts is started again.
"""

import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.forkserver import ensure_running

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

from pipelines.process import load_worker

FORKED = multiprocessing.get_context("forkserver")
"""Workers are forked from a process that has imported all, which takes two seconds, and has neither a channel nor a
thread of Python's. Noise is the system's, of which they share nothing."""

IMPORTED = ("apache_beam.runners.worker.sdk_worker", "pipelines.epochs.batch")

TRIES = 5
AT_ONCE = 16
"""Workers that may be starting."""


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service; a worker ends by itself when its task manager hangs up, whether or not that says so here."""

    def __init__(self) -> None:
        self._one_by_one = threading.Lock()

    def StartWorker(self, request: beam_fn_api_pb2.StartWorkerRequest, context: object) -> object:  # noqa: N802
        if any(self._start(request) for _ in range(TRIES)):
            return beam_fn_api_pb2.StartWorkerResponse()
        return beam_fn_api_pb2.StartWorkerResponse(error=f"the worker died {TRIES} times while it started; see its log")

    def _start(self, request: beam_fn_api_pb2.StartWorkerRequest) -> bool:
        """Whether it lives when it is about to call."""
        told, tells = FORKED.Pipe(duplex=False)
        worker = FORKED.Process(
            target=_work, args=(request.control_endpoint.url, request.worker_id, tells), daemon=True
        )
        with told, suppress(EOFError):
            with self._one_by_one, tells:
                worker.start()
            return bool(told.recv_bytes())
        return False

    def StopWorker(self, request: beam_fn_api_pb2.StopWorkerRequest, context: object) -> object:  # noqa: N802
        return beam_fn_api_pb2.StopWorkerResponse()


def _work(control: str, worker_id: str, tells: Connection) -> None:
    from apache_beam.runners.worker.sdk_worker import SdkHarness  # slow to import, and the pool does not need it

    harness = load_worker(lambda: SdkHarness)(control, worker_id=worker_id)
    tells.send_bytes(b".")
    tells.close()
    harness.run()


def main(port: int) -> None:
    """Serve until the process is ended."""
    FORKED.set_forkserver_preload([*IMPORTED])
    ensure_running()  # or the first worker would wait for the imports
    server = grpc.server(ThreadPoolExecutor(AT_ONCE))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(WorkerPool(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(int(sys.argv[1]))
