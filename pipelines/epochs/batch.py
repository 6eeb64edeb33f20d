"""The Beam pipelines: one that releases, and one that only sums. They are the same on every runner.

    files -> ReadChangelog -> Project -> BoundedSums -> ReleaseSums -> nodes, estimates, state
                 |               |            `-> sums as they are (evaluate)
                 `---------------`-> diagnostics

Each writes into a separate folder on the private side and returns when the pipeline has ended. Their files become
public only when `pipelines.store.store` commits them.
"""

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.flags import begin_pipeline, is_embedded
from pipelines.epochs.job import Job
from pipelines.epochs.progress import Display
from transforms.aggregation.bounded_sums import SUMS, BoundedSums
from transforms.aggregation.node_sums import MATCHED, NodeKey
from transforms.aggregation.projection import Project
from transforms.aggregation.shard_state import STATE
from transforms.common import exchange
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.memory import shortage
from transforms.common.sinks import WriteBytes, WriteTables, is_there, read_bytes
from transforms.release.release import ESTIMATES, NODES, ReleaseSums
from transforms.sources.changelog import DEAD, READ, ReadChangelog
from transforms.sources.diagnostics import Diagnosis, WriteDiagnostics, diagnose


def run_release(
    job: Job, *, folder: str, format_: str, flags: Sequence[str], past: str | None = None, keep: bool = False
) -> Diagnosis:
    """Sample the noise and write `nodes` and `estimates` under `folder`; return the counts of read rows.

    Args:
        job: The job.
        folder: Folder of the attempt, on the private side.
        format_: Format of the files.
        flags: Beam's pipeline options.
        past: Folder with the state of the last run; None in the first run.
        keep: Whether to write a `state` for the next run too.
    """
    with _exchange(folder, flags) as files:
        submit_release(job, folder=folder, format_=format_, flags=flags, past=past, keep=keep, exchange=files)
    return diagnose(FileSystems.join(folder, "diagnostics"))


def submit_release(
    job: Job,
    *,
    folder: str,
    format_: str,
    flags: Sequence[str],
    past: str | None,
    keep: bool,
    exchange: str | None = None,
) -> None:
    """Submit the pipeline of `run_release`, which a runner may also only check or write down.

    Args:
        job, folder, format_, flags, past, keep: As in `run_release`.
        exchange: As in `BoundedSums`.
    """
    _warn(flags)
    with Display(job.layout), begin_pipeline(flags) as pipeline:
        bounded = _projected(pipeline, job, folder) | BoundedSums(
            job.aggregation, shards=job.shards, past=past, keep=keep, exchange=exchange
        )
        released = bounded[SUMS] | "Release" >> ReleaseSums(job.release, past=past, keep=keep)
        for side in (NODES, ESTIMATES):
            released[side] | f"Write_{side}" >> WriteTables(FileSystems.join(folder, side), format_=format_)
        if keep:
            # Each in a separate step: a step that flattened both would hold all units' state in the runner's memory.
            for name, files in (("Units", bounded[STATE]), ("Noise", released[STATE])):
                files | f"WriteStateOf{name}" >> WriteBytes(FileSystems.join(folder, STATE))


def run_sums(job: Job, *, folder: str, flags: Sequence[str]) -> tuple[dict[NodeKey, list[bytes]], Diagnosis]:
    """Return the exact sums of every chunk, without noise, and the counts of matched rows. Both are private, for
    `evaluate`.

    Args:
        job: The job.
        folder: Private folder for the sums.
        flags: Beam's pipeline options.

    Returns:
        The encoded sums by node, and the counts of read rows.
    """
    _warn(flags)
    sums_folder = FileSystems.join(folder, "sums")
    with _exchange(folder, flags) as files, Display(job.layout), begin_pipeline(flags) as pipeline:
        bounded = _projected(pipeline, job, folder) | BoundedSums(job.aggregation, shards=job.shards, exchange=files)
        named = bounded[SUMS] | "GatherParts" >> beam.GroupByKey() | "NameParts" >> beam.Map(_name)
        named | "WriteSums" >> WriteTables(sums_folder)
    matched: list[NodeKey] = [(MATCHED, number, "net", 0) for number in range(len(job.aggregation.queries))]
    sums: dict[NodeKey, list[bytes]] = {key: [] for key in (*job.aggregation.node_keys(), *matched)}
    for key, payloads in sums.items():
        path = FileSystems.join(sums_folder, f"{_part_name(key)}.parquet")
        if is_there(path):
            payloads.append(_payload(path))
    return sums, diagnose(FileSystems.join(folder, "diagnostics"))


def _warn(flags: Sequence[str]) -> None:
    """Print a warning if all workers are in this process and its memory is too small."""
    if is_embedded(flags) and (warning := shortage()):
        print(f"slackwater: {warning}", file=sys.stderr, flush=True)


def _exchange(folder: str, flags: Sequence[str]) -> AbstractContextManager[str | None]:
    """Return a folder through which rows are exchanged as files if all workers are on this machine; else None."""
    return exchange.folder_in(folder) if is_embedded(flags) and "://" not in folder else nullcontext()


def _projected(pipeline: beam.Pipeline, job: Job, folder: str) -> beam.PCollection[pa.Table]:
    read = pipeline | ReadChangelog(job.layout)
    projected = read["rows"] | Project(job.aggregation.projection)
    dead = (read[DEAD], projected[DEAD]) | "AllDead" >> beam.Flatten()
    (dead, read[READ]) | WriteDiagnostics(FileSystems.join(folder, "diagnostics"))
    return projected.projected


def _part_name(key: NodeKey) -> str:
    return "-".join(str(part) for part in key)


def _name(part: tuple[NodeKey, Iterable[bytes]]) -> tuple[str, bytes]:
    key, payloads = part
    return _part_name(key), to_bytes(pa.concat_tables([from_bytes(p) for p in payloads]))


def _payload(path: str) -> bytes:
    return to_bytes(pq.read_table(pa.BufferReader(read_bytes(path))))
