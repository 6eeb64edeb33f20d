"""Keys that an epoch has found, as the manifest lists them: read from the files that the epoch publishes.

So the list says nothing that the files do not: a key is new if it has a level in this epoch, and no epoch before has
listed it.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.job import Job
from pipelines.store.attempt import Attempt
from pipelines.store.commit import Commit, FoundKeys
from transforms.aggregation.queries import Query
from transforms.common.output_formats import read_published
from transforms.common.sinks import read_bytes
from transforms.release.file_names import part_names
from transforms.release.published_columns import estimates_types
from transforms.release.release import ESTIMATES


def found_keys(job: Job, attempt: Attempt, format_: str, commits: Sequence[Commit]) -> tuple[FoundKeys, ...]:
    """Return the keys that are found in the windows of an epoch, by query and window, in the order of their texts.

    Args:
        job: The job of the epoch.
        attempt: The attempt whose files are committed.
        format_: Format of its files.
        commits: Commits of the epochs before it.
    """
    aggregation = job.aggregation
    found: list[FoundKeys] = []
    for key in aggregation.node_keys():
        query = aggregation.queries[key[1]]
        if query.discovers:
            known = [name for commit in commits for one in commit.found if one.query == query.name for name in one.keys]
            names = [f"{name}.{format_}" for name in part_names(aggregation, key)]
            files = [FileSystems.join(attempt.folder, ESTIMATES, name) for name in names]
            types = estimates_types(aggregation.queries)
            levels = pa.concat_tables(read_published(read_bytes(file), format_, types) for file in files)
            found += _of_query(query, levels, known, job)
    return tuple(found)


def _of_query(query: Query, rows: pa.Table, known: Sequence[str], job: Job) -> Iterator[FoundKeys]:
    """Yield the new keys of a query, window by window."""
    levels = rows.filter(pc.equal(rows["kind"], "level")).select([query.found_by, "window_end"])
    levels = levels.rename_columns(["key", "end"])
    new = levels.filter(pc.invert(pc.is_in(levels["key"], value_set=pa.array(known, pa.string()))))
    first = new.group_by("key").aggregate([("end", "min")]).sort_by([("end_min", "ascending"), ("key", "ascending")])
    ends = first["end_min"].cast(pa.int64())
    for end in pc.unique(ends).to_pylist():
        (window,), _ = job.aggregation.timeline.bounds.numbers(pa.array([end]).to_numpy())
        yield FoundKeys(query.name, int(window), end, tuple(first.filter(pc.equal(ends, end))["key"].to_pylist()))
