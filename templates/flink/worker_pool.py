"""Start a Python worker as a separate process whenever a task manager of this machine requests one.

    python -m templates.flink.worker_pool PORT

Workers run in this environment and in the current folder, without pipeline options or staged files: a pipeline's
packages must be installed here. Beam's pool (apache_beam.runners.worker.worker_pool_main) has three faults:

- It serves only one task manager. It distinguishes workers by ids that every task manager counts from one, so the first
  task manager that stops its worker can end another's, which Flink then waits for without end.
- It listens on all networks, and runs code for anyone who connects.
- Flink waits without end for a worker that dies before it has connected. Here, a worker that dies while it starts is
  started again.
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
"""Forks workers from a process that has imported all modules, which takes two seconds, and has neither a channel nor a
Python thread. Workers share no random state, because noise comes from the system's generator."""

IMPORTED = ("apache_beam.runners.worker.sdk_worker", "pipelines.epochs.batch")

TRIES = 5
AT_ONCE = 16
"""Number of workers that may start at the same time."""


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's service. A worker ends when its task manager disconnects, with or without a request to stop."""

    def __init__(self) -> None:
        self._one_by_one = threading.Lock()

    def StartWorker(self, request: beam_fn_api_pb2.StartWorkerRequest, context: object) -> object:  # noqa: N802
        if any(self._start(request) for _ in range(TRIES)):
            return beam_fn_api_pb2.StartWorkerResponse()
        return beam_fn_api_pb2.StartWorkerResponse(error=f"the worker died {TRIES} times during its start; see its log")

    def _start(self, request: beam_fn_api_pb2.StartWorkerRequest) -> bool:
        """Start a worker; return whether it is alive when it is about to connect."""
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
    from apache_beam.runners.worker.sdk_worker import SdkHarness  # slow to import, and not needed by the pool

    harness = load_worker(lambda: SdkHarness)(control, worker_id=worker_id)
    tells.send_bytes(b".")
    tells.close()
    harness.run()


def main(port: int) -> None:
    """Serve until the process is ended."""
    FORKED.set_forkserver_preload([*IMPORTED])
    ensure_running()  # otherwise the first worker would wait for the imports
    server = grpc.server(ThreadPoolExecutor(AT_ONCE))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(WorkerPool(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(int(sys.argv[1]))
