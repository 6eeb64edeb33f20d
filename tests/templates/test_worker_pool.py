"""The pool starts a Python worker of Flink again if it dies during its start, since Flink waits for it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

from benchmarks.flink.processes import workers_of
from templates.flink.local import free_ports
from templates.flink.worker_pool import TRIES

PATIENCE = 240.0
"""Seconds to wait for a worker; more than it takes to start on a busy machine."""


@pytest.fixture
def pool() -> Iterator[tuple[int, int]]:
    """Yield the pool's process and port."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "templates.flink.worker_pool", str(port)]
    with subprocess.Popen(command, start_new_session=True) as process:
        yield process.pid, port
        os.killpg(process.pid, signal.SIGKILL)


class TaskManager(beam_fn_api_pb2_grpc.BeamFnControlServicer):
    """The service that a running worker calls. Before `listen`, all workers stay in their start."""

    def __init__(self) -> None:
        self.called: SimpleQueue[str] = SimpleQueue()
        self._ended = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(2))
        beam_fn_api_pb2_grpc.add_BeamFnControlServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        (self.port,) = free_ports(1)

    def listen(self) -> None:
        assert self._server.add_insecure_port(f"127.0.0.1:{self.port}") == self.port
        self._server.start()

    def Control(self, _: object, context: grpc.ServicerContext) -> Iterator[beam_fn_api_pb2.InstructionRequest]:
        self.called.put(dict(context.invocation_metadata())["worker_id"])
        self._ended.wait()
        return iter(())

    def stop(self) -> None:
        self._ended.set()
        self._server.stop(0).wait()


@pytest.fixture
def task_manager() -> Iterator[TaskManager]:
    made = TaskManager()
    yield made
    made.stop()


def start(port: int, task_manager: TaskManager) -> str:
    """Request a worker, as a task manager does; return the reported error, if any."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)  # type: ignore[no-untyped-call]
        request = beam_fn_api_pb2.StartWorkerRequest(worker_id="3-1")
        request.control_endpoint.url = f"127.0.0.1:{task_manager.port}"
        told: str = stub.StartWorker(request, wait_for_ready=True, timeout=PATIENCE).error
        return told


def kill_next(pool: int, killed: list[int]) -> None:
    end = time.monotonic() + PATIENCE
    while not set(workers_of(pool)) - set(killed):
        assert time.monotonic() < end, "no worker was started"
        time.sleep(0.01)
    (worker,) = set(workers_of(pool)) - set(killed)
    os.kill(worker, signal.SIGKILL)
    killed.append(worker)


@pytest.mark.few(1)
@pytest.mark.parametrize("deaths", [1, TRIES])
def test_a_worker_that_dies_while_it_starts_is_started_again(
    pool: tuple[int, int], task_manager: TaskManager, deaths: int
) -> None:
    process, port = pool
    killed: list[int] = []

    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(start, port, task_manager)
        for _ in range(deaths):
            kill_next(process, killed)
        if deaths < TRIES:
            task_manager.listen()
        error = answer.result()

    if deaths < TRIES:
        assert error == ""
        assert task_manager.called.get(timeout=PATIENCE) == "3-1"
    else:
        assert error.startswith(f"the worker died {TRIES} times during its start")
