"""What a process changes in Beam still means what it did when it was measured."""

import ctypes
import subprocess
import sys
from importlib.metadata import version

import apache_beam as beam
import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.worker.statesampler import StateSampler
from apache_beam.transforms import core
from apache_beam.utils.counters import CounterFactory

from pipelines import process

LOADED = """
import sys

from pipelines import process
from pipelines.commands import parser_of, prepare

given = parser_of("run").parse_args(["run", "spec.yaml"])
process.load(lambda: prepare(given, []), [])
needless = ("google.cloud.storage", "google.cloud.dataflow", "scipy", "requests", "pipelines.plan", "pandas")
needless += ("beartype", "cryptography", "httplib2")
assert not {*needless} & {*sys.modules}, {*needless} & {*sys.modules}

from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.runner import create_runner
from apache_beam.transforms import util
from apache_beam.typehints import typehints
from google.cloud import dataflow

print(*(typehints.is_consistent_with(*kinds, use_beartype=True) for kinds in ((int, 0.5), (bool, int), (int, bool))))
import beartype.door, beartype.roar, cryptography.fernet

assert typehints.is_subhint is beartype.door.is_subhint
assert typehints.BeartypeDoorException is beartype.roar.BeartypeDoorException
assert util.Fernet is cryptography.fernet.Fernet

for _ in range(2):
    print(FileSystems.get_filesystem("gs://bucket/file").__class__.__name__)
print(create_runner("DataflowRunner").__class__.__name__, FileSystems.get_filesystem("file").__class__.__name__)
"""


def test_the_changed_version_of_beam_is_installed() -> None:
    """With another version measure the changes again (docs/decisions/start-of-a-command.md), then state it here."""
    assert version("apache-beam") == process.BEAM


def test_another_beam_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "BEAM", "0.0.0")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    heard, found = core.get_function_args_defaults, FileSystems.get_filesystem

    assert process.load(lambda: len(sys.meta_path), []) == len(sys.meta_path)
    assert (core.get_function_args_defaults, FileSystems.get_filesystem) == (heard, found)


@pytest.mark.slow
def test_a_command_imports_a_module_only_when_it_needs_it() -> None:
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)

    assert said.returncode == 0, said.stderr
    beartype = ["False", "True", "False"]
    assert said.stdout.split() == beartype + ["GCSFileSystem"] * 2 + ["DataflowRunner", "LocalFileSystem"]


FAULTS = """
import resource

import numpy as np

from pipelines import process

def faults():
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.zeros(3 * 2**17) for _ in range(12)]
    for array in arrays:
        array += 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begin

process.keep_memory()
print(faults(), faults())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_freed_arrays_are_used_again() -> None:
    said = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)

    first, second = map(int, said.stdout.split())
    assert first > 9_000  # pages of 36 MiB
    assert second < 900


class _Step(beam.DoFn):
    def process(self, element: int, *more: int, key: int = beam.DoFn.TimestampParam) -> None: ...

    def finish_bundle(self, last: int = 0) -> None: ...

    @classmethod
    def setup(cls, one: int, two: int = 2) -> None: ...

    @staticmethod
    def teardown(one: int, two: int = 2) -> None: ...

    def start_bundle(*everything: int) -> None: ...  # type: ignore[override]


def test_beam_still_gets_the_same_functions_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_stage_does_not_wait_for_the_record_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StateSampler.__init__, "__defaults__", StateSampler.__init__.__defaults__)
    assert StateSampler("stage", CounterFactory()).sampling_period_ms == 200

    process.end_stages_soon()

    assert StateSampler("stage", CounterFactory()).sampling_period_ms == process.SAMPLED_EVERY
