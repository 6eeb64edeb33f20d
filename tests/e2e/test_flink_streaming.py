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
    """Yield a stream without end."""
    begun = Live.begin(tmp_path / "stream", flink)
    yield begun
    begun.writer.stop()
    begun.driver.kill()
    begun.driver.wait()
    cancel_jobs(flink)


def test_a_stream_publishes_each_window_once_after_any_process_is_killed(live: Live, tmp_path: Path) -> None:
    """While files land, before any end is near: Python's worker with the task manager, and the driver.

    Each alone is killed in `python -m benchmarks.flink`.
    """
    live.wait_for(3)
    live.kill_worker()
    live.kill_task_manager()
    live.wait_for(live.committed + 1)
    live.end_soon()

    live.finish(tmp_path / "runs")
