"""The Beam pipelines: one that releases, one that only sums. The same on every runner.

    files -> ReadChangelog -> Project -> BoundIncrement -> Release -> nodes, estimates, state
                 |               |   `-> BoundedSums -> sums as they are (evaluate)
                 `---------------`-> diagnostics

Both write into a folder of their own on the private side and return when the pipeline has ended; nothing they write
is public until `pipelines.store.store` says so.
"""

import difflib
import io
import threading
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions
from apache_beam.runners.runner import create_runner

from pipelines.epochs.job import Job
from pipelines.epochs.progress import Display
from pipelines.spec.load import Spec
from transforms.aggregation.bound_increment import STATE, BoundIncrement
from transforms.aggregation.bounded_sums import BoundedSums
from transforms.aggregation.node_sums import NodeKey
from transforms.aggregation.projection import Project
from transforms.common.errors import SpecError
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.sinks import WriteBytes, WriteTables, is_there
from transforms.release.release import ESTIMATES, NODES, Release
from transforms.sources.changelog import DEAD, READ, ReadChangelog
from transforms.sources.diagnostics import Diagnosis, WriteDiagnostics, diagnose

EMBEDDED_RUNNER = "FnApiRunner"
EMBEDDED_RUNNERS = (EMBEDDED_RUNNER, "DirectRunner", "BundleBasedDirectRunner")
OWN_FLAGS = ("until", "shards", "json", "runs", "truth", "new-release", "poll", "lag", "suggest", "bad-rows")


def run_release(
    job: Job, *, folder: str, format_: str, flags: Sequence[str], past: str | None = None, keep: bool = False
) -> Diagnosis:
    """Draw the noise and write `nodes` and `estimates` under `folder`; what was read.

    Args:
        past: the folder with the state that the run before left; None in the first run.
        keep: whether to write a `state` for the next run beside them.
    """
    submit_release(job, folder=folder, format_=format_, flags=flags, past=past, keep=keep)
    return diagnose(FileSystems.join(folder, "diagnostics"))


def submit_release(job: Job, *, folder: str, format_: str, flags: Sequence[str], past: str | None, keep: bool) -> None:
    """The pipeline of `run_release`, which a runner may also only check or write down."""
    with Display(job.layout), begin_pipeline(flags) as pipeline:
        bounded = _projected(pipeline, job, folder) | BoundIncrement(
            job.aggregation, shards=job.shards, past=past, keep=keep
        )
        told = bounded["sums"] | Release(job.release, past=past, keep=keep)
        for side in (NODES, ESTIMATES):
            told[side] | f"Write_{side}" >> WriteTables(FileSystems.join(folder, side), format_=format_)
        if keep:
            state = (bounded[STATE], told[STATE]) | "AllState" >> beam.Flatten()
            state | "WriteState" >> WriteBytes(FileSystems.join(folder, STATE))


def run_sums(job: Job, *, folder: str, flags: Sequence[str]) -> tuple[dict[NodeKey, list[bytes]], Diagnosis]:
    """The exact sums of every chunk, without noise: private, for `evaluate`."""
    sums_folder = FileSystems.join(folder, "sums")
    with Display(job.layout), begin_pipeline(flags) as pipeline:
        summed = _projected(pipeline, job, folder) | BoundedSums(job.aggregation, shards=job.shards)
        named = summed | "GatherParts" >> beam.GroupByKey() | "NameParts" >> beam.Map(_name)
        named | "WriteSums" >> WriteTables(sums_folder, format_="parquet")
    sums: dict[NodeKey, list[bytes]] = {key: [] for key in job.aggregation.node_keys()}
    for key, payloads in sums.items():
        path = FileSystems.join(sums_folder, f"{_part_name(key)}.parquet")
        if is_there(path):
            payloads.append(_payload(path))
    return sums, diagnose(FileSystems.join(folder, "diagnostics"))


def _projected(pipeline: beam.Pipeline, job: Job, folder: str) -> beam.PCollection[pa.Table]:
    read = pipeline | ReadChangelog(job.layout)
    projected = read["rows"] | Project(job.aggregation.projection)
    dead = (read[DEAD], projected[DEAD]) | "AllDead" >> beam.Flatten()
    (dead, read[READ]) | WriteDiagnostics(FileSystems.join(folder, "diagnostics"))
    return projected.projected


def begin_pipeline(flags: Sequence[str]) -> beam.Pipeline:
    """A pipeline with the options of these flags.

    Raises:
        SpecError: as `options_of`.
    """
    options = options_of(flags)
    try:
        return beam.Pipeline(options=options)
    except ValueError as error:  # an unknown runner, or one that misses an option
        raise SpecError(f"pipeline options: {' '.join(str(error).split())}") from None


_STDERR = threading.Lock()
"""It is the whole process's: of two threads that take it at once, the second would put back what the first has set."""


def options_of(flags: Sequence[str]) -> PipelineOptions:
    """Beam's options from the flags that the command line does not know.

    Raises:
        SpecError: a flag that nobody knows (Beam itself would skip a misspelt `--until`), or a mode of the embedded
            runner that loses rows.
    """
    flags = list(flags)
    if not any(flag == "--runner" or flag.startswith("--runner=") for flag in flags):
        flags.append(f"--runner={EMBEDDED_RUNNER}")
    options = PipelineOptions(flags)
    _refuse_wrong_values(options)
    _refuse_unknown(options, flags)
    if options.get_all_options().get("direct_running_mode") == "multi_threading":
        raise SpecError(
            "--direct_running_mode=multi_threading loses rows without a word in this version of Beam, "
            "so it is refused: leave it out, or use multi_processing"
        )
    if options.get_all_options(retain_unknown_options=True).get("no_wait_until_finish"):
        raise SpecError(
            "--no_wait_until_finish: a run commits what its pipeline has written, so it waits; leave it out"
        )
    try:
        create_runner(options.view_as(StandardOptions).runner)
    except (ValueError, ImportError) as error:
        raise SpecError(f"--runner: {' '.join(str(error).split())[:200]}") from None
    # Workers find our code installed; pickling the main session would carry the command line along.
    options.view_as(SetupOptions).save_main_session = False
    return options


def refuse_local_paths(spec: Spec, flags: Sequence[str]) -> None:
    """
    Raises:
        SpecError: a path of this machine, for Dataflow, whose workers are other ones. What it means to a Flink cluster
            cannot be told from here.
    """
    if options_of(flags).view_as(StandardOptions).runner != "DataflowRunner":
        return
    paths = [("changelog.path", path) for path in spec.changelog.paths]
    paths += [("changelog.kafka", spec.changelog.kafka)] if spec.changelog.kafka else []
    paths += [("output.public", spec.output.public), ("output.private", spec.output.private)]
    for key, path in paths:
        if "://" not in path:
            raise SpecError(
                f"{spec.path}: {key}: {path!r} is a path of this machine, and Dataflow's workers are others; "
                "put it on gs://"
            )


def is_rehearsal(flags: Sequence[str]) -> bool:
    """Whether Dataflow is only asked to check a job, or to write it down.

    Raises:
        SpecError: another runner is asked so, which would run the job all the same.
    """
    options = options_of(flags).get_all_options(retain_unknown_options=True)
    asked = [name for name in ("dry_run", "template_location") if options.get(name)]
    if asked and options["runner"] != "DataflowRunner":
        raise SpecError(f"--{asked[0]}: is for --runner=DataflowRunner; plan looks at a release without running it")
    return bool(asked)


def _refuse_wrong_values(options: PipelineOptions) -> None:
    """Beam tells them by a list of all its options and leaves the program: here it is one line."""
    told = io.StringIO()
    try:
        with _STDERR, redirect_stderr(told):
            options.get_all_options()
    except SystemExit:
        raise SpecError(f"pipeline options: {told.getvalue().splitlines()[-1].partition('error: ')[2]}") from None


def _refuse_unknown(options: PipelineOptions, flags: Sequence[str]) -> None:
    """Refuse flags without a meaning; a remote runner's job server may have options that are not known here."""
    if not flags[0].startswith("-"):
        raise SpecError(f"{flags[0]}: one spec at a time; flags begin with --")
    known = options.get_all_options()
    for name in options.get_all_options(retain_unknown_options=True):
        meant = difflib.get_close_matches(name, OWN_FLAGS, 1)
        if name not in known and (meant or known["runner"] in EMBEDDED_RUNNERS):
            near = meant and meant[0] != name
            hint = f"did you mean --{meant[0]}?" if near else "see --help for those that there are"
            raise SpecError(f"--{name}: not a flag of this command, nor a Beam pipeline option; {hint}")


def _part_name(key: NodeKey) -> str:
    return "-".join(str(part) for part in key)


def _name(part: tuple[NodeKey, Iterable[bytes]]) -> tuple[str, bytes]:
    key, payloads = part
    return _part_name(key), to_bytes(pa.concat_tables([from_bytes(p) for p in payloads]))


def _payload(path: str) -> bytes:
    with FileSystems.open(path) as file:
        return to_bytes(pq.read_table(pa.BufferReader(file.read())))
