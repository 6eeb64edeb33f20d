"""A release as a stream on a real Flink cluster: live, with everything killed that can be.

`python -m benchmarks.flink` kills more often.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.flink.live import Live, cancel_jobs
from templates.flink.local import Cluster
from tests.e2e.flink import ON_FLINK

pytestmark = ON_FLINK


@pytest.fixture
def live(flink: Cluster, tmp_path: Path) -> Iterator[Live]:
    """A stream without end."""
    begun = Live.begin(tmp_path / "stream", flink)
    yield begun
    begun.writer.stop()
    begun.driver.kill()
    begun.driver.wait()
    cancel_jobs(flink)


def test_a_stream_publishes_each_window_once_whatever_is_killed(live: Live, tmp_path: Path) -> None:
    """While files land, before any end is near: Python's worker with the task manager, and the driver.

    Each alone is killed in `python -m benchmarks.flink`.
    """
    live.go_on(3)
    live.kill_worker()
    live.kill_task_manager()
    live.go_on(live.committed + 1)
    live.end_soon()

    live.finish(tmp_path / "runs")
