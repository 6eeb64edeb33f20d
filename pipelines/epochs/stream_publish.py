"""The last step of a stream: when all shards have proposed a window, sample its noise and commit it to the store.

    in    (windows, bytes)      proposals of shards (transforms.streams.close_windows)
    out   windows               each after it is published

One worker does this for all windows, in their order: `publish` is `pipelines.epochs.batch.run_release` without a
runner. A runner may call it twice for one window, and so may two streams; only the first commit in the store counts.
Later proposals are compared with it: a proposal that was not made from the committed state ends the stream.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.transforms.userstate import (
    BagRuntimeState,
    BagStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
)

from pipelines.epochs.attempt_files import write_files
from pipelines.epochs.epoch import Start, fill_tables, publish_epoch, start_of
from pipelines.epochs.job import Job
from pipelines.epochs.settled import refuse_another_beginning
from pipelines.spec.load import Spec
from pipelines.store.attempt import RowsRead
from pipelines.store.commit import Commit
from pipelines.store.store import Store, store_of
from privacy.counted import counted
from privacy.json_values import parsed
from transforms.aggregation.shard_state import file_of
from transforms.common.errors import RefusedError, SlackwaterError
from transforms.common.sinks import read_bytes
from transforms.sources.files.listing import Listed
from transforms.streams.close_windows import CODEC, Proposal, digest, written


@dataclass(frozen=True, slots=True)
class Committed:
    """Reads the last committed state of a shard; a `transforms.streams.close_windows.LastState`."""

    store: Store

    def __call__(self, windows: int, shard: int, base: str | None) -> tuple[int, bytes] | None:
        commits = self.store.commits()
        if not commits or commits[-1].windows < windows:
            return None
        if base is not None:
            self.store.show()  # in case the worker that committed it did not
        last, name = commits[-1], file_of(shard)
        made = {commit.windows: commit.state[name].sha256 for commit in commits if name in commit.state}
        if base is not None and base != made.get(windows - 1, ""):
            raise _another(last.windows)
        if name not in last.state:  # the schedule has ended
            return last.windows, b""
        path = self.store.attempts.state_paths(last)[name]
        content = read_bytes(path)
        if digest(content) != last.state[name].sha256:
            raise RefusedError(f"{path}: not what epoch {last.epoch} left; restore the private folder from a copy")
        return last.windows, content


def _another(windows: int) -> RefusedError:
    return RefusedError(
        f"another run has published {counted(windows, 'window')} in the meantime; start the stream again to continue "
        "from there"
    )


class Publish(beam.PTransform):
    """Transform from proposals to published windows."""

    def __init__(self, spec: Spec, job: Job) -> None:
        super().__init__()
        self._spec = spec
        self._job = job

    def expand(self, proposals: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[int]:
        return (
            proposals
            | "ForOneWorker" >> beam.Map(_for_one_worker).with_output_types(tuple[int, bytes])
            | "PublishWindows" >> beam.ParDo(_PublishDoFn(self._spec, self._job)).with_output_types(int)
        )


def _for_one_worker(proposal: tuple[int, bytes]) -> tuple[int, bytes]:
    windows, payload = proposal
    return 0, windows.to_bytes(8, "big") + payload


def _of_one_worker(payload: bytes) -> tuple[int, Proposal]:
    return int.from_bytes(payload[:8], "big"), Proposal.from_bytes(payload[8:])


class _PublishDoFn(beam.DoFn):
    WAITING = BagStateSpec("waiting", BytesCoder())
    PROPOSED = ReadModifyWriteStateSpec("proposed", BytesCoder())
    FILES = ReadModifyWriteStateSpec("files", BytesCoder())

    def __init__(self, spec: Spec, job: Job) -> None:
        self._spec = spec
        self._job = job

    def setup(self) -> None:
        self._store = store_of(self._spec.output)

    def process(
        self,
        element: tuple[int, bytes],
        waiting: BagRuntimeState = beam.DoFn.StateParam(WAITING),
        proposed: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(PROPOSED),
        files: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(FILES),
    ) -> Iterator[int]:
        waiting.add(element[1])
        shards: dict[str, list[int]] = json.loads(proposed.read() or b"{}")
        windows, proposal = _of_one_worker(element[1])
        shards[str(windows)] = sorted({*shards.get(str(windows), []), proposal.shard})
        published = self._published()
        if windows <= published:  # published by a step that may have ended before it could show it
            self._store.show()
        while len(shards.get(str(published + 1), [])) == self._job.shards:
            published += 1
            # A step published earlier windows and ended before it could note their files.
            due = {p: _of_one_worker(p) for p in waiting.read() if _of_one_worker(p)[0] <= published}
            rest = [p for p in waiting.read() if p not in due]
            seen = _seen(files.read()).with_files(p.files for _, p in due.values())
            proposals = [p for windows, p in due.values() if windows == published]
            publish(self._spec, self._job, self._store, published, proposals, seen.by_all(self._job.shards))
            _fill_tables(self._spec, self._store)
            waiting.clear()
            for payload in rest:
                waiting.add(payload)
            files.write(written(seen.without(self._job.shards)))
            yield published
        proposed.write(json.dumps({w: found for w, found in shards.items() if int(w) > published}).encode())

    def _published(self) -> int:
        commits = self._store.commits()
        return commits[-1].windows if commits else 0


def _seen(content: bytes | None) -> "_Seen":
    return CODEC.read(_Seen, parsed(content)) if content else _Seen()


def _fill_tables(spec: Spec, store: Store) -> None:
    """Load epochs into the tables. If that fails, the next window loads them: files do not wait for tables."""
    try:
        fill_tables(spec, store)
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Files whose rows some shards have proposed, and the number of these shards; other shards hold the rows back."""

    files: tuple[tuple[Listed, int], ...] = ()

    def with_files(self, proposed: Iterable[Sequence[Listed]]) -> "_Seen":
        """Return the files after each of some shards has proposed more."""
        counts = Counter(dict(self.files))
        counts.update(file for files in proposed for file in files)
        return _Seen(tuple(counts.items()))

    def by_all(self, shards: int) -> tuple[Listed, ...]:
        return tuple(file for file, count in self.files if count >= shards)

    def without(self, shards: int) -> "_Seen":
        """Return the files that some shards do not have yet."""
        return _Seen(tuple((file, count) for file, count in self.files if count < shards))


def publish(
    spec: Spec, job: Job, store: Store, windows: int, proposals: Sequence[Proposal], files: Sequence[Listed]
) -> Commit:
    """Sample the noise of one window, commit it and show it; return the commit.

    Args:
        spec: Spec of the release.
        job: Job of the stream; the timeline and the files of the window replace its own.
        store: Store of the release.
        windows: Number of the window.
        proposals: One proposal of each shard.
        files: Files whose rows are all in the proposals so far.

    Raises:
        RefusedError: Another run was first, or a proposal was not made from the committed state.
        ValueError: There is not one proposal of each shard. A shard summed twice would contribute twice its bound.
    """
    if sorted(proposal.shard for proposal in proposals) != list(range(job.shards)):
        raise ValueError(f"window {windows} needs one proposal of each of {job.shards} shards")
    start = start_of(spec, store, store.commits())
    if start.before is not None:
        refuse_another_beginning(job, start.before)
    for proposal in proposals:
        base = None if start.last is None else start.last.state.get(file_of(proposal.shard))
        if proposal.base != ("" if base is None else base.sha256):
            raise _another(start.released)
    read = set() if start.before is None else {file.path for file in start.before.read}
    new = sorted((file for file in files if file.path not in read), key=lambda file: file.path)
    timeline = replace(job.aggregation.timeline, released=start.released, windows=windows)
    if start.last is not None and timeline.closed != start.last.until:  # it used another version of tzdata
        raise _another(start.released)
    job = replace(
        job,
        aggregation=replace(job.aggregation, timeline=timeline),
        layout=replace(job.layout, files=tuple(new)),
    )
    return publish_epoch(spec, store, start, job, partial(_write, spec, job, start, proposals))


def _write(spec: Spec, job: Job, start: Start, proposals: Sequence[Proposal], folder: str, keep: bool) -> RowsRead:
    """Write the files of an attempt: nodes, estimates and state."""
    sums = [part for proposal in proposals for part in proposal.sums]
    state = [(file_of(proposal.shard), proposal.state) for proposal in proposals]
    write_files(spec, job, start, sums=sums, state=state, folder=folder, keep=keep)
    rows, dead = next(proposal.read for proposal in proposals if proposal.shard == 0)  # each shard counts all
    return RowsRead(rows=rows, dead=dead)
