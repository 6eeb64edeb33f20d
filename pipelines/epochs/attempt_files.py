"""Write the public and private files of an attempt from exact sums, in this process and without a runner."""

from collections.abc import Sequence

from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.epoch import Start
from pipelines.epochs.job import Job
from pipelines.spec.load import Spec
from transforms.aggregation.node_sums import NodeKey
from transforms.aggregation.shard_state import STATE
from transforms.common.ipc import from_bytes
from transforms.common.sinks import write_bytes, write_table
from transforms.release.release import ESTIMATES, NODES, protect, remember, tables


def write_files(
    spec: Spec,
    job: Job,
    start: Start,
    *,
    sums: Sequence[tuple[NodeKey, bytes]],
    state: Sequence[tuple[str, bytes]],
    folder: str,
    keep: bool,
) -> None:
    """Sample the noise, and write nodes, estimates and, if `keep`, the state. A second call samples fresh noise.

    Args:
        spec: Spec of the release.
        job: The job, with the plan and the windows.
        start: State from which the epoch starts.
        sums: Encoded exact sums of all shards, by node.
        state: Name and content of the state file of each shard.
        folder: Folder of the attempt, on the private side.
        keep: Whether to write the state for the next epoch.
    """
    release, format_, state = job.release, spec.output.format, [*state]
    for key in job.aggregation.node_keys():
        for noisy in protect(release, key, [payload for k, payload in sums if k == key], past=start.past, keep=keep):
            for side in (NODES, ESTIMATES):
                for name, table in tables(noisy, release, side):
                    write_table(from_bytes(table), FileSystems.join(folder, side, f"{name}.{format_}"), format_=format_)
            state += remember(noisy)
    if keep:
        for name, content in state:
            write_bytes((name, content), FileSystems.join(folder, STATE))
