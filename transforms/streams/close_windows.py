"""Close windows in a stream: each shard closes one window after another as files are found.

    in    (shard, bytes)        `file_batch`: the rows of a file that belong to the shard; `mark`: time up to which all
                                files are found
    out   (windows, Proposal)   a shard's proposal for a window: sums, its state, files it has seen

The kernel is that of batch runs, `transforms.aggregation.shard_kernel.advance_shard`: rows wait in Beam's state until a
mark shows that all files are found that existed a lag after their window's end. File batches and marks are numbered in
the order in which they were found. They may arrive in any order: a window is closed with exactly the files before its
mark, the same for all shards, even if a runner repeats the step. Neither watermarks nor timers are needed, which
runners support badly in Python streams.

A shard's proposal counts only once the release store has committed it. A pipeline that is reset to an earlier
checkpoint may find files in another order, and other runs may release too. So a shard that finds its window committed
continues from the last committed state, keeps its rows, and lets the kernel drop those that the state already contains.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import BytesCoder
from apache_beam.transforms.userstate import (
    BagRuntimeState,
    BagStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
)

from privacy.codec import Codec
from privacy.json_values import parsed
from transforms.aggregation.node_sums import Aggregation, NodeKey
from transforms.aggregation.shard_kernel import advance_shard
from transforms.aggregation.shard_state import state_from_bytes, state_to_bytes
from transforms.common.ipc import from_bytes
from transforms.common.payloads import pack, unpack
from transforms.sources.files.listing import Listed
from transforms.streams.whole_bundles import keep_bundles_whole

CODEC = Codec()
"""Codec of headers and of what a shard keeps."""

LastState = Callable[[int, int, str | None], tuple[int, bytes] | None]
"""Lookup of a shard's last committed state.

Its argument is (windows, shard, digest of the shard's own state before the last of these windows, or None if it has
none). It returns the state and its windows, or None if fewer windows are committed. It raises if the own state is not
the committed one: rows that are in the own state only would be lost.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Proposal of one shard for one window.

    Attributes:
        shard: Number of the shard.
        base: SHA-256 of the state from which it started; empty for none.
        state: State after the window.
        sums: Exact sums of the window.
        files: Files whose rows arrived since the last proposal.
        read: Rows of these files in all shards, and the unusable ones among them.
    """

    shard: int
    base: str
    state: bytes
    sums: tuple[tuple[NodeKey, bytes], ...]
    files: tuple[Listed, ...]
    read: tuple[int, int] = (0, 0)

    def to_bytes(self) -> bytes:
        keys = tuple(key for key, _ in self.sums)
        header = _Proposed(shard=self.shard, base=self.base, keys=keys, files=self.files, read=self.read)
        return pack([written(header), self.state, *(payload for _, payload in self.sums)])

    @staticmethod
    def from_bytes(payload: bytes) -> "Proposal":
        first, state, *sums = unpack(payload)
        header: _Proposed = CODEC.read(_Proposed, parsed(first))
        return Proposal(
            shard=header.shard,
            base=header.base,
            state=state,
            sums=tuple(zip(header.keys, sums, strict=True)),
            files=header.files,
            read=header.read,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposed:
    """Header of a proposal; members as in `Proposal`."""

    shard: int
    base: str
    keys: tuple[NodeKey, ...]
    files: tuple[Listed, ...]
    read: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """Header of a message to a shard.

    Attributes:
        number: Number of the file or mark among all of the stream, from 0.
        file: The file; None for a mark.
        read: Rows of the whole file, and the unusable ones among them.
        moment: Time of a mark, in microseconds since the epoch.
    """

    number: int
    file: Listed | None = None
    read: tuple[int, int] = (0, 0)
    moment: int = 0


def written(value: object) -> bytes:
    """Return the JSON of a dataclass, which `CODEC` reads."""
    return json.dumps(CODEC.write(value)).encode()


def file_batch(number: int, file: Listed, rows: bytes, *, read: tuple[int, int] = (0, 0)) -> bytes:
    """Return the message to a shard about a file: its rows of the shard, possibly none.

    Args:
        number: Number of the file among all files and marks of the stream, from 0.
        file: The file.
        rows: Payload of the shard's rows (transforms.aggregation.sharding); empty for no rows.
        read: Rows of the whole file, and the unusable ones among them.
    """
    return pack([written(_Header(number=number, file=file, read=read)), rows])


def mark(number: int, moment: int) -> bytes:
    """Return the message that all files that existed at a moment have lower numbers."""
    return pack([written(_Header(number=number, moment=moment))])


def close(shard: int, file_batches: Iterable[bytes], base: bytes, aggregation: Aggregation) -> Proposal:
    """Close the one window that the aggregation has and has not released.

    Args:
        shard: Number of the shard.
        file_batches: File batches with the rows since the last window.
        base: State that the shard left after the previous window; empty for none.
        aggregation: Its timeline has one window more than it has released.
    """
    tables, files = [], dict[Listed, tuple[int, int]]()
    for payload in file_batches:
        header, rows = _header(payload), unpack(payload)[1]
        if header.file is not None:
            files[header.file] = header.read
        if rows:
            tables.append(from_bytes(rows))
    state = state_from_bytes(base) if base else None
    sums, after = advance_shard(pa.concat_tables(tables) if tables else None, state, aggregation)
    return Proposal(
        shard=shard,
        base=digest(base),
        state=state_to_bytes(after),
        sums=tuple(sums),
        files=tuple(files),
        read=(sum(rows for rows, _ in files.values()), sum(dead for _, dead in files.values())),
    )


def digest(state: bytes) -> str:
    """Return the SHA-256 of a state; empty for none."""
    return hashlib.sha256(state).hexdigest() if state else ""


class CloseWindows(beam.PTransform):
    """Transform from file batches and marks to proposals, one for each shard and window.

    Args:
        aggregation: The `released` windows of its timeline are done; windows up to its `windows` are closed here.
        lag: Time after a window's end in which files with its rows can arrive, in microseconds.
        last_state: Lookup of committed states.
    """

    def __init__(self, aggregation: Aggregation, *, lag: int, last_state: LastState) -> None:
        super().__init__()
        self._aggregation = aggregation
        self._lag = lag
        self._last_state = last_state

    def expand(self, file_batches: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[tuple[int, bytes]]:
        keep_bundles_whole(file_batches.pipeline)
        work = _CloseDoFn(self._aggregation, self._lag, self._last_state)
        return file_batches | "CloseWindows" >> beam.ParDo(work).with_output_types(tuple[int, bytes])


@dataclass(frozen=True, slots=True)
class _Known:
    """Knowledge of a shard.

    Attributes:
        windows: Number of windows that it has closed.
        whole: Number of file batches and marks that have arrived without a gap, from the first on.
        beyond: Numbers of later ones that have arrived.
        marks: (number, moment) of marks that close a window once all messages before them have arrived.
    """

    windows: int
    whole: int = 0
    beyond: tuple[int, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()

    def having(self, number: int) -> "_Known":
        """
        >>> _Known(0).having(1).having(2).whole, _Known(0).having(1).having(0).whole
        (0, 2)
        """
        there, whole = {*self.beyond, number}, self.whole
        while whole in there:
            whole += 1
        return replace(self, whole=whole, beyond=tuple(sorted(n for n in there if n > whole)))

    def with_mark(self, number: int, moment: int) -> "_Known":
        return replace(self, marks=tuple(sorted({*self.marks, (number, moment)})))

    def due(self) -> tuple[int, int] | None:
        """First mark, if all messages before it have arrived."""
        return self.marks[0] if self.marks and self.marks[0][0] < self.whole else None


class _CloseDoFn(beam.DoFn):
    WAITING = BagStateSpec("waiting", BytesCoder())
    KNOWN = ReadModifyWriteStateSpec("known", BytesCoder())
    STATE = ReadModifyWriteStateSpec("state", BytesCoder())

    def __init__(self, aggregation: Aggregation, lag: int, last_state: LastState) -> None:
        self._aggregation = aggregation
        self._lag = lag
        self._last_state = last_state

    def process(
        self,
        element: tuple[int, bytes],
        held: BagRuntimeState = beam.DoFn.StateParam(WAITING),
        known: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(KNOWN),
        state: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(STATE),
    ) -> Iterator[tuple[int, bytes]]:
        shard, payload = element
        before = known.read()
        now = self._begin(shard, state) if before is None else CODEC.read(_Known, parsed(before))
        header = _header(payload)
        now = now.having(header.number)
        if header.file is not None:
            held.add(payload)
        elif self._closes(now.windows + 1, header.moment):
            now = now.with_mark(header.number, header.moment)
        while (due := now.due()) is not None:
            number, moment = due
            while self._closes(now.windows + 1, moment):
                windows, proposal = self._close(shard, now.windows + 1, number, held, state)
                now = replace(now, windows=windows)
                if proposal is not None:
                    yield windows, proposal.to_bytes()
            now = replace(now, marks=now.marks[1:])
        if (after := written(now)) != before:
            known.write(after)

    def _begin(self, shard: int, state: ReadModifyWriteRuntimeState) -> _Known:
        windows, base = self._last_state(1, shard, None) or (0, b"")
        if windows < self._aggregation.timeline.released:
            raise ValueError(f"{self._aggregation.timeline.released} windows are released, {windows} committed")
        state.write(base)
        return _Known(windows)

    def _close(
        self, shard: int, windows: int, number: int, held: BagRuntimeState, state: ReadModifyWriteRuntimeState
    ) -> tuple[int, Proposal | None]:
        """Close a window with the files before a mark; return the windows closed then (None: by another run)."""
        base = state.read() or b""
        committed = self._last_state(windows, shard, digest(base))
        if committed is not None:
            state.write(committed[1])
            return committed[0], None
        timeline = replace(self._aggregation.timeline, released=windows - 1, windows=windows)
        waiting = list(held.read())
        here = [payload for payload in waiting if _header(payload).number < number]
        proposal = close(shard, here, base, replace(self._aggregation, timeline=timeline))
        held.clear()
        for payload in waiting:
            if _header(payload).number > number:
                held.add(payload)
        state.write(proposal.state)
        return windows, proposal

    def _closes(self, windows: int, moment: int) -> bool:
        """Return whether a window exists and is over."""
        timeline = self._aggregation.timeline
        return windows <= timeline.windows and timeline.bounds.end(windows) + self._lag <= moment


def _header(payload: bytes) -> _Header:
    header: _Header = CODEC.read(_Header, parsed(unpack(payload)[0]))
    return header
