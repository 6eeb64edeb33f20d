"""The stream's half of transforms.bound_increment: shards close one window after another as the watermark passes.

    in    (shard, Arrival)      projected rows of one file that belong to a shard; a shard without any still ticks
    out   (windows, Proposal)   what a shard makes of the window that is closed now: sums, its state, files it has seen

The kernel is the same, `transforms.increments.advance_shard`: rows wait in Beam's state until an event-time timer at
their window's end (plus a lag in which files may still land) hands them over together with the shard's last state.

What a shard proposes counts only once the release store has committed it. A pipeline that is put back to an earlier
checkpoint may see files in another order before the same timer, and other runs may release too; so a shard that finds
its window committed takes the last committed state instead of making its own, keeps its rows, and lets the kernel drop
those that it knows already.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import BytesCoder
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    BagRuntimeState,
    BagStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    RuntimeTimer,
    TimerSpec,
    on_timer,
)
from apache_beam.utils.timestamp import Timestamp

from transforms.bounded_sums import Aggregation, NodeKey
from transforms.files import Listed
from transforms.increments import advance_shard, state_from_bytes, state_to_bytes
from transforms.payloads import pack, unpack
from transforms.sharding import from_bytes

LastState = Callable[[int, int], tuple[int, bytes] | None]
"""(windows, shard) to the shard's last committed state and its windows; None if these are less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What one shard makes of one window.

    Attributes:
        shard: its number.
        base: SHA-256 of the state that it started from; empty for none.
        state: what it leaves.
        sums: exact sums of the window.
        files: those whose rows came since the last proposal.
    """

    shard: int
    base: str
    state: bytes
    sums: tuple[tuple[NodeKey, bytes], ...]
    files: tuple[Listed, ...]

    def to_bytes(self) -> bytes:
        told = {"shard": self.shard, "base": self.base, "keys": [key for key, _ in self.sums]}
        listed = [[file.path, file.size, file.updated] for file in self.files]
        header = json.dumps(told | {"files": listed}).encode()
        return pack([header, self.state, *(payload for _, payload in self.sums)])

    @staticmethod
    def from_bytes(payload: bytes) -> "Proposal":
        header, state, *sums = unpack(payload)
        told = json.loads(header)
        keys = [(variant, query, family, chunk) for variant, query, family, chunk in told["keys"]]
        return Proposal(
            shard=told["shard"],
            base=told["base"],
            state=state,
            sums=tuple(zip(keys, sums, strict=True)),
            files=tuple(Listed(*file) for file in told["files"]),
        )


def arrival(file: Listed | None, rows: bytes) -> bytes:
    """Rows of a file, or of none: a tick."""
    return pack([json.dumps(None if file is None else [file.path, file.size, file.updated]).encode(), rows])


def close(shard: int, arrivals: Iterable[bytes], base: bytes, aggregation: Aggregation) -> Proposal:
    """The kernel: close the one window that the aggregation has and has not released.

    Args:
        base: the state that the shard left after the window before; empty for none.
    """
    tables, files = [], []
    for payload in arrivals:
        header, rows = unpack(payload)
        told = json.loads(header)
        if told is not None:
            files.append(Listed(*told))
        if rows:
            tables.append(from_bytes(rows))
    state = state_from_bytes(base) if base else None
    sums, after = advance_shard(pa.concat_tables(tables) if tables else None, state, aggregation)
    return Proposal(
        shard=shard,
        base=digest(base),
        state=state_to_bytes(after),
        sums=tuple(sums),
        files=tuple(dict.fromkeys(files)),
    )


def digest(state: bytes) -> str:
    """What a state is told by; empty for none."""
    return hashlib.sha256(state).hexdigest() if state else ""


class CloseWindows(beam.PTransform):
    """Arrivals to proposals, one a shard and window.

    Args:
        aggregation: its timeline's `released` windows are done, and all up to its `windows` are closed here.
        lag: after a window's end, how long files may land that hold its rows, in microseconds.
        last_state: what is committed.
    """

    def __init__(self, aggregation: Aggregation, *, lag: int, last_state: LastState) -> None:
        super().__init__()
        self._aggregation = aggregation
        self._lag = lag
        self._last_state = last_state

    def expand(self, arrivals: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[tuple[int, bytes]]:
        work = _CloseDoFn(self._aggregation, self._lag, self._last_state)
        return arrivals | "CloseWindows" >> beam.ParDo(work).with_output_types(tuple[int, bytes])


class _CloseDoFn(beam.DoFn):
    ARRIVED = BagStateSpec("arrived", BytesCoder())
    STATE = ReadModifyWriteStateSpec("state", BytesCoder())
    CLOSE = TimerSpec("close", TimeDomain.WATERMARK)

    def __init__(self, aggregation: Aggregation, lag: int, last_state: LastState) -> None:
        self._aggregation = aggregation
        self._lag = lag
        self._last_state = last_state

    def process(
        self,
        element: tuple[int, bytes],
        arrived: BagRuntimeState = beam.DoFn.StateParam(ARRIVED),
        state: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(STATE),
        timer: RuntimeTimer = beam.DoFn.TimerParam(CLOSE),
    ) -> None:
        shard, payload = element
        if state.read() is None:
            released, base = self._last_state(1, shard) or (0, b"")
            if released < self._aggregation.timeline.released:
                raise ValueError(f"{self._aggregation.timeline.released} windows are released, {released} committed")
            state.write(_kept(released, base))
            self._set(timer, released + 1)
        if payload:
            arrived.add(payload)

    @on_timer(CLOSE)
    def close(
        self,
        shard: int = beam.DoFn.KeyParam,
        arrived: BagRuntimeState = beam.DoFn.StateParam(ARRIVED),
        state: ReadModifyWriteRuntimeState = beam.DoFn.StateParam(STATE),
        timer: RuntimeTimer = beam.DoFn.TimerParam(CLOSE),
    ) -> Iterator[tuple[int, bytes]]:
        released, base = _of_kept(state.read())
        windows = released + 1
        if self._end(windows) > time.time() * 1_000_000:  # a stream that is drained ends all time at once
            return
        committed = self._last_state(windows, shard)
        if committed is not None:
            windows, base = committed
        else:
            timeline = replace(self._aggregation.timeline, released=released, windows=windows)
            proposal = close(shard, arrived.read(), base, replace(self._aggregation, timeline=timeline))
            arrived.clear()
            yield windows, proposal.to_bytes()
            base = proposal.state
        state.write(_kept(windows, base))
        self._set(timer, windows + 1)

    def _set(self, timer: RuntimeTimer, windows: int) -> None:
        """For the end of a window, if it has one: the millisecond after it, since runners know no finer times."""
        if windows <= self._aggregation.timeline.windows:
            timer.set(Timestamp(micros=-(-self._end(windows) // 1000) * 1000))

    def _end(self, windows: int) -> int:
        timeline = self._aggregation.timeline
        return timeline.start + windows * timeline.every + self._lag


def _kept(windows: int, state: bytes) -> bytes:
    return windows.to_bytes(8, "big") + state


def _of_kept(kept: bytes) -> tuple[int, bytes]:
    return int.from_bytes(kept[:8], "big"), kept[8:]
