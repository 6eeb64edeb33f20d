"""The pool of Flink's Python workers: one that dies while it starts is started again, since Flink waits for it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

from templates.flink import worker_pool
from templates.flink.local import free_ports
from templates.flink.worker_pool import TRIES, WorkerPool, work
from tests.processes import CLEAN

PATIENCE = 60.0
"""Seconds; more than a worker takes to start on a busy machine."""


class TaskManager(beam_fn_api_pb2_grpc.BeamFnControlServicer):
    """What a worker calls, once it runs."""

    def __init__(self) -> None:
        self.called: SimpleQueue[str] = SimpleQueue()
        self._ended = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(2))
        beam_fn_api_pb2_grpc.add_BeamFnControlServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self.port = self._server.add_insecure_port("127.0.0.1:0")
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
    started = TaskManager()
    yield started
    started.stop()


def asking(task_manager: TaskManager) -> beam_fn_api_pb2.StartWorkerRequest:
    """What a task manager asks for."""
    request = beam_fn_api_pb2.StartWorkerRequest(worker_id="3-1")
    request.control_endpoint.url = f"127.0.0.1:{task_manager.port}"
    return request


def test_a_pool_starts_a_worker_that_calls_whoever_asked_for_it(task_manager: TaskManager) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "templates.flink.worker_pool", str(port)]
    with subprocess.Popen(command, start_new_session=True) as pool:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)  # type: ignore[no-untyped-call]
            told = stub.StartWorker(asking(task_manager), wait_for_ready=True, timeout=PATIENCE)
        called = task_manager.called.get(timeout=PATIENCE)
        os.killpg(pool.pid, signal.SIGKILL)

    assert (told.error, called) == ("", "3-1")


def dying(deaths: int, graves: Path, url: str, worker_id: str, calling: Connection) -> None:
    """The work of a worker, if so many have died before it."""
    if len(list(graves.iterdir())) < deaths:
        (graves / str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    work(url, worker_id, calling)


@pytest.mark.parametrize("deaths", [1, TRIES])
def test_a_worker_that_dies_while_it_starts_is_started_again(
    task_manager: TaskManager, deaths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "READY", CLEAN)
    monkeypatch.setattr(worker_pool, "work", partial(dying, deaths, tmp_path))

    error = WorkerPool().StartWorker(asking(task_manager), None).error

    assert len(list(tmp_path.iterdir())) == deaths
    if deaths < TRIES:
        assert error == ""
        assert task_manager.called.get(timeout=PATIENCE) == "3-1"
    else:
        assert error.startswith(f"the worker died {TRIES} times while it started")
        assert task_manager.called.empty()
