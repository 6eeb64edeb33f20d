"""Load published epochs into tables, each once, in an order that is safe if a run is killed.

    shown by the manifest -> not loaded, by the record -> no job, by the sink -> load job -> record

If a run is killed in between, the next run completes the work. The loaded rows are exactly the public ones, so nothing
is sampled or decided here. The id of a job follows from the release's first attempt, the epoch's attempt and the table.
Attempts have random names, so another release of the same name has other ids. If the record is lost or behind, the sink
knows the job: BigQuery for six months.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import partial
from tempfile import TemporaryFile
from typing import BinaryIO

from pipelines.sinks.base import SinkTable
from pipelines.sinks.load_file import END, load_schema, rows_of, write_load_file
from pipelines.sinks.table import SINKS
from pipelines.spec.load import Spec
from pipelines.spec.sinks import Loaded, TableSide
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from transforms.common.errors import RefusedError


def refuse_unusable_tables(spec: Spec, store: Store) -> None:
    """Check the tables before any work, and make missing ones."""
    commits = store.commits() if spec.output.tables else []
    for loaded in spec.output.tables:
        done = store.loads.done(loaded.name)
        last = job_id(commits, commits[done - 1], loaded.name) if 0 < done <= len(commits) else None
        _table(spec, loaded).refuse_unusable(loaded=done, last=last)


def load_shown(spec: Spec, store: Store) -> list[str]:
    """Load all published epochs that are not loaded yet; return a line for each.

    Raises:
        SlackwaterError: Loading an epoch failed. Published files stay, and the next run loads the epoch.
    """
    if not spec.output.tables:
        return []
    history = store.open()
    lines = []
    for loaded in spec.output.tables:
        commits = () if history is None else history.commits[: history.shown]
        for commit in commits[store.loads.done(loaded.name) :]:
            with TemporaryFile() as file:
                write = partial(_write, spec, store, commit, loaded.side)
                _table(spec, loaded).load_once(job_id(commits, commit, loaded.name), write, file)
            store.loads.note(loaded.name, commit.epoch)
            lines.append(f"epoch {commit.epoch}: {loaded.side} loaded into {loaded.name}")
    return lines


def job_id(commits: Sequence[Commit], commit: Commit, table: str) -> str:
    """Return the id of a load job, of letters, digits, - and _, which every sink accepts.

    Args:
        commits: Commits of all epochs.
        commit: Commit of the epoch to load.
        table: Name of the table.
    """
    named = json.dumps([commits[0].attempt, commit.attempt, table])
    release = re.sub(r"[^A-Za-z0-9_-]", "_", commit.release)
    return f"slackwater-{release}-{commit.epoch:06d}-{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def _table(spec: Spec, loaded: Loaded) -> SinkTable:
    return SINKS[loaded.sink](loaded.name, load_schema(loaded.side, spec.queries), END[loaded.side])


def _write(spec: Spec, store: Store, commit: Commit, side: TableSide, file: BinaryIO) -> int:
    schema = load_schema(side, spec.queries)
    while True:
        files, mixed = store.files_of(commit, side)
        contents = (store.shown.content(name, digest, commit.epoch) for name, digest in files.items())
        rows = partial(rows_of, commit=commit, side=side, format_=spec.output.format, schema=schema, mixed=mixed)
        try:
            return write_load_file(map(rows, contents), file, schema)
        except RefusedError:
            if store.files_of(commit, side) == (files, mixed):  # otherwise a compaction has replaced the files
                raise
            file.seek(0)
            file.truncate()
