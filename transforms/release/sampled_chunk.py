"""Chunk whose levels are sampled or repeated, as the data decide; it has all cells of its query.

Neighbours, sensitivity, guarantee and source: privacy.adaptive.budget and the policy's module. The exact level and the
carry continue from run to run: all steps together give the result of one.

Between steps, levels are *sketches*: the public numbers of a sample, a quarter of the size of the cells that are made
from them. Windows that repeat a sample share its sketch. Cells are made when tables are.

The state is a Parquet file with one row, with the form and the name of other chunks' states (noise_state): the exact
level, the last sketch for the next step, and the rest of the carry as JSON. It is the most secret file of all. It is
committed together with the decisions, so a release continues only from published decisions.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from privacy.adaptive.carry import AdaptiveCarry
from privacy.cells.base import Reading
from privacy.codec import Codec
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution
from privacy.planning.adaptive_part import AdaptivePart
from privacy.series import Ints
from privacy.strategies.base import Floats
from transforms.aggregation.node_sums import Aggregation
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.parquet_state import list_of, to_parquet
from transforms.release import noise
from transforms.release.blocks import OfDenseBlocks
from transforms.release.noise_state import described, opened
from transforms.release.published_tables import sampled_table

SampleAt = Callable[[int, NoiseDistribution | PrivateChoice, int], Ints]
"""Function that samples independent noise for the level at the end of a window.

Its arguments are the window's number, the distribution and the number of samples; it returns int64 [size].
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningLevel:
    """Private state that a step leaves for the next one.

    Attributes:
        level: Exact level at the end of the last window, int64 [cells].
        carry: Carry of the policy; None before the first window.
        reading: Reading of the last sample, if it was made already.
    """

    level: Ints
    carry: AdaptiveCarry | None
    reading: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketches:
    """Public output for some windows.

    Attributes:
        units: Units of the budget that the sample of each window took, int64 [windows]; 0: the last value is repeated.
        sketches: Different sketches, in their order.
        of: Number of the sketch of each window, int64 [windows].
    """

    units: Ints
    sketches: tuple[Ints, ...]
    of: Ints

    def to_bytes(self) -> bytes:
        """Return one row with a list for each array."""
        arrays = {
            "units": self.units,
            "of": self.of,
            "sizes": np.array([len(sketch) for sketch in self.sketches], dtype=np.int64),
            "sketches": np.concatenate([np.zeros(0, dtype=np.int64), *self.sketches]),
        }
        return to_bytes(pa.table({name: list_of(rows) for name, rows in arrays.items()}))

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Sketches":
        """Return the sketches that `to_bytes` has written.

        >>> given = Sketches(units=np.array([1, 0, 1]), sketches=(np.array([5, 6]), np.array([7])), of=np.zeros(3))
        >>> [sketch.tolist() for sketch in Sketches.from_bytes(given.to_bytes()).sketches]
        [[5, 6], [7]]
        """
        table = from_bytes(payload)
        names = ("units", "of", "sizes", "sketches")
        units, of, sizes, numbers = (
            table[name].combine_chunks().values.to_numpy(zero_copy_only=False) for name in names
        )
        sketches = np.split(numbers, np.cumsum(sizes)[:-1]) if len(sizes) else []
        return cls(units=units, sketches=tuple(sketches), of=of)

    def readings(self, part: AdaptivePart) -> list[Reading]:
        """Return the reading of each window's sketch."""
        each = [part.rule.publication.read(part.over, sketch) for sketch in self.sketches]
        return [each[place] for place in self.of.tolist()]


@dataclass(frozen=True, slots=True)
class SampledChunk(OfDenseBlocks):
    """The levels of a query.

    Attributes:
        part: Part of the query.
    """

    part: AdaptivePart

    @property
    def parts(self) -> tuple[AdaptivePart, ...]:
        return (self.part,)

    def opened(self, payload: bytes, *, windows: int, plan: str) -> RunningLevel:
        """Return the state that `kept` has written (see `Chunk.opened`)."""
        table = opened(payload, windows=windows, plan=plan)

        def array(name: str) -> Ints:
            values: Ints = table[name].combine_chunks().values.to_numpy()
            return values

        try:
            level, published, document = array("level"), array("published"), json.loads(table["carry"][0].as_py())
        except KeyError:
            raise _not_whole() from None
        carry: AdaptiveCarry = Codec().read(AdaptiveCarry, document, "carry", published=published)
        if level.dtype != np.int64 or (len(level), carry.windows) != (self.part.over.cells, windows):
            raise _not_whole()
        self.part.rule.publication.check(self.part.over, carry)
        return RunningLevel(level=level, carry=carry)

    def step(self, held: RunningLevel | None, leaves: np.ndarray) -> tuple[RunningLevel, bytes]:
        """Publish some windows (see `Chunk.step`); leaves are int64 [components, windows, cells]."""
        after, sketches = publish(self.part, held, leaves[0], noise.sample_level)
        return after, sketches.to_bytes()

    def kept(self, held: RunningLevel, *, windows: int, plan: str) -> bytes | None:
        """Return the state for the next run (see `Chunk.kept`)."""
        if held.carry is None:  # no run continues from a run that closed no window
            return None
        columns = {
            "level": list_of(held.level),
            "published": list_of(held.carry.published),
            "carry": pa.array([json.dumps(Codec().write(held.carry))]),
        }
        return to_parquet(columns, metadata=described(windows=held.carry.windows, plan=plan))

    def nodes(self, content: bytes, aggregation: Aggregation, first_cell: int) -> None:
        """Return None: samples are estimates, so there are no nodes (`Chunk.nodes`)."""
        return

    def estimates(self, content: bytes, aggregation: Aggregation, first_cell: int) -> pa.Table:
        """Return the published table of numbers (see `Chunk.estimates`)."""
        sketches = Sketches.from_bytes(content)
        return sampled_table(sketches.units, sketches.readings(self.part), aggregation, self.part)


def publish(
    part: AdaptivePart, held: RunningLevel | None, leaves: Ints, sample: SampleAt
) -> tuple[RunningLevel, Sketches]:
    """Decide about some windows, one after another.

    Neighbours, sensitivity, guarantee and source: privacy.adaptive.budget and the policy's module.

    Args:
        part: Part of the query.
        held: State of the previous step; None in the first, whose row 0 is the initial level, which is not published
            separately.
        leaves: Exact sums of all cells of the query, int64 [windows, cells], in grid steps.
        sample: Source of noise.

    Returns:
        State for the next step, and the public sketches.
    """
    level, rows = (leaves[0], leaves[1:]) if held is None else (held.level, leaves)
    carry = None if held is None else held.carry
    reading = None if held is None else held.reading
    sketches: list[Ints] = []
    units, of = np.zeros((2, len(rows)), dtype=np.int64)
    for row, change in enumerate(rows):
        level = level + change
        window = 1 if carry is None else carry.windows + 1
        found = part.rule.publication.step(part.scales, part.over, carry, level, partial(sample, window), reading)
        units[row], reading, carry = found.units, found.reading, found.carry
        if found.units or not sketches:
            sketches.append(found.public)
        of[row] = len(sketches) - 1
    # A view would keep all leaves in memory.
    return RunningLevel(level=level.copy(), carry=carry, reading=reading), Sketches(
        units=units, sketches=tuple(sketches), of=of
    )


def released_anew(part: AdaptivePart, leaves: Ints) -> Ints | Floats:
    """Return the levels that a run with fresh noise would publish in all windows, [windows, cells]; for evaluations."""

    def sample(_: int, distribution: NoiseDistribution | PrivateChoice, size: int) -> Ints:
        return distribution.noise(size)

    _, sketches = publish(part, None, leaves, sample)
    return np.array([reading.cells for reading in sketches.readings(part)])


def _not_whole() -> ValueError:
    return ValueError("the state of levels is incomplete")
