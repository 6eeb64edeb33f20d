"""What a process settles for itself alone still means what it did when it was measured."""

import platform
import subprocess
import sys

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.worker.statesampler import StateSampler
from apache_beam.transforms import core
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

LOADED = """
import sys
from argparse import Namespace

from pipelines import process
from pipelines.commands import imported

process.load(lambda: imported(Namespace(command="run", new_release=None)), [])
needless = ("google.cloud.storage", "google.cloud.dataflow", "scipy", "requests", "pipelines.reports", "pandas")
assert not {*needless} & {*sys.modules}, {*needless} & {*sys.modules}

from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.runner import create_runner
from google.cloud import dataflow

for _ in range(2):
    print(FileSystems.get_filesystem("gs://bucket/file").__class__.__name__)
print(create_runner("DataflowRunner").__class__.__name__, FileSystems.get_filesystem("file").__class__.__name__)
"""


@pytest.mark.slow
def test_a_command_imports_nothing_that_it_does_not_need_and_what_it_does_in_time() -> None:
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)

    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == ["GCSFileSystem"] * 2 + ["DataflowRunner", "LocalFileSystem"]


class _Step(beam.DoFn):
    def process(self, element: int, *more: int, key: int = beam.DoFn.TimestampParam) -> None: ...

    def finish_bundle(self, last: int = 0) -> None: ...

    @classmethod
    def setup(cls, one: int, two: int = 2) -> None: ...

    @staticmethod
    def teardown(one: int, two: int = 2) -> None: ...

    def start_bundle(*everything: int) -> None: ...  # type: ignore[override]


def test_beam_hears_of_functions_and_options_what_it_heard_before(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = core.get_function_args_defaults
    for holder, name in ((core, "get_function_args_defaults"), (PipelineOptions, "view_as")):
        monkeypatch.setattr(holder, name, getattr(holder, name))
    process.ask_once()

    assert core.get_function_args_defaults is not heard
    for step in (_Step(), _Step(), beam.FlatMap(lambda a, b=1: [a, b]).dofn):
        for method in (step.process, step.finish_bundle, step.setup, step.teardown, step.start_bundle, _Step.process):
            assert [*core.get_function_args_defaults(method)] == [*heard(method)]

    first, second = PipelineOptions(["--streaming"]), PipelineOptions([])
    seen = first.view_as(StandardOptions)
    first.view_as(StandardOptions).runner = "mine"
    assert (seen.runner, first.view_as(StandardOptions).streaming, seen is first.view_as(StandardOptions)) == (
        "mine",
        True,
        True,
    )
    assert first.get_all_options()["runner"] == "mine"
    assert second.view_as(StandardOptions).get_all_options()["runner"] is None
    assert not second.view_as(StandardOptions).streaming


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
