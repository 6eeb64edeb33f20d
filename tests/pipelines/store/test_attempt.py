"""Attempts know whether their run lives."""

import os
import subprocess
import sys

from pipelines.store.attempt import Run, whole


def test_a_process_is_reported_alive_until_it_ends() -> None:
    code = "from pipelines.store.attempt import Run, text_of; "
    code += "print(text_of(Run.this()).decode().replace(chr(10), ' '), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        run = whole(Run, child.stdout.readline())
        assert run is not None
        assert run.alive() is True

        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert run.alive() is False  # though it is not buried yet
    assert run.alive() is False
