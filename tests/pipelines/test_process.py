"""What a process settles for itself alone still means what it did when it was measured."""

import platform
import subprocess
import sys

import pytest
from apache_beam.runners.worker.statesampler import StateSampler
from apache_beam.utils.counters import CounterFactory

from pipelines import process

FAULTS = """
import resource
import sys

import numpy as np

from pipelines import process

if sys.argv[1] == "kept":
    process.keep_memory()
for _ in range(20):
    arrays = [np.ones(2**20) for _ in range(6)]  # 48 MiB
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def test_stages_wait_for_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StateSampler.__init__, "__defaults__", StateSampler.__init__.__defaults__)
    before = StateSampler("stage", CounterFactory()).sampling_period_ms

    process.end_stages_at_once()

    assert (before, StateSampler("stage", CounterFactory()).sampling_period_ms) == (200, process.SAMPLED_EVERY)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep memory in ways of their own")
def test_memory_that_is_freed_is_used_again() -> None:
    kept, fetched = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True).stdout)
        for how in ("kept", "fetched")
    )

    assert kept < fetched / 4
