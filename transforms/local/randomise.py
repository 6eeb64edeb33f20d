"""Many people's answers to reports, as their devices would make them: for simulations, and gateways that are trusted.

    in    bytes: changes of answers as Arrow IPC streams (CHANGES), in any batches and any order
    out   (part name, bytes): reports, a part for each window and block of people

Everybody reports in every window of the release, also who has no change: blocks of people exist whatever comes in. A
whole release is randomised at once, since a device's carry runs from the first window to the last. The reports go
through a reshuffle, so that what follows sees one draw even where a step is repeated; write them first, and let nothing
else read this transform: a second run over the same answers is a second report on each, and costs epsilon again.
"""

from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa

from privacy.local.chance import Chance
from privacy.local.client import DEVICE, NOT_THERE, enrol, refuse_dearer, report
from privacy.local.design import Design
from transforms.common.ipc import from_bytes, to_bytes
from transforms.local.report_tables import table_of

CHANGES = pa.schema([("person", pa.int64()), ("window", pa.int32()), ("answer", pa.int32())])
"""From this window's end on the person's answer is this one, -1: not there. At most one for a person and window."""

BLOCK = 1 << 16
"""People that one worker randomises at a time."""


class Randomise(beam.PTransform):
    """Changes of answers to reports.

    Args:
        design: refused if it costs more than the next two.
        most_epsilon, most_delta: what the people have agreed to, as of `enrol`.
        people: how many.
    """

    def __init__(self, design: Design, *, people: int, most_epsilon: float, most_delta: float = 0.0) -> None:
        super().__init__()
        refuse_dearer(design, most_epsilon=most_epsilon, most_delta=most_delta)
        self._design = design
        self._people = people

    def expand(self, changes: beam.PCollection[bytes]) -> beam.PCollection[tuple[str, bytes]]:
        blocks = range(-(-self._people // BLOCK))
        everybody = changes.pipeline | "Everybody" >> beam.Create([(block, to_bytes(_NONE)) for block in blocks])
        split = changes | "Split" >> beam.FlatMap(_split, self._people, self._design.windows)
        return (
            (everybody, split)
            | "Both" >> beam.Flatten()
            | "Meet" >> beam.GroupByKey()
            | "Report" >> beam.FlatMap(_reported, self._design, self._people)
            | "Once" >> beam.Reshuffle()
        )


def randomised(
    design: Design, changes: pa.Table, *, first: int, people: int, chance: Chance = DEVICE
) -> Iterator[pa.Table]:
    """The reports of some people, a table for each window.

    Args:
        changes: of these people, see CHANGES.
        first: the number of the first of them.
        people: how many they are.
    """
    window, person = changes["window"].to_numpy(), changes["person"].to_numpy() - first
    answer = changes["answer"].to_numpy()
    if len(np.unique(person * design.windows + window)) < len(person):
        raise ValueError("a person has two answers at the end of one window")
    order = np.argsort(window, kind="stable")
    ends = np.searchsorted(window[order], np.arange(design.windows + 1))
    agreed = {"most_epsilon": design.epsilon, "most_delta": design.delta}  # `Randomise` has looked
    devices, answers = enrol(design, people, **agreed, chance=chance), np.full(people, NOT_THERE, dtype=np.int64)
    for number in range(design.windows):
        rows = order[ends[number] : ends[number + 1]]
        answers[person[rows]] = answer[rows]
        reports, devices = report(design, devices, number, answers, chance)
        yield table_of(reports, window=number, first=first)


_NONE = CHANGES.empty_table()


def _split(payload: bytes, people: int, windows: int) -> Iterator[tuple[int, bytes]]:
    table = from_bytes(payload).select(CHANGES.names)
    person = table["person"].to_numpy()
    if len(person) and not (person.min() >= 0 and person.max() < people):
        raise ValueError(f"persons must be numbers from 0 to {people - 1}")
    window = table["window"].to_numpy()
    if len(window) and not (window.min() >= 0 and window.max() < windows):
        raise ValueError(f"windows must be numbers from 0 to {windows - 1}")
    block = person // BLOCK
    for one in np.unique(block).tolist():
        yield one, to_bytes(table.filter(pa.array(block == one)))


def _reported(part: tuple[int, Iterable[bytes]], design: Design, people: int) -> Iterator[tuple[str, bytes]]:
    block, payloads = part
    changes = pa.concat_tables([from_bytes(payload) for payload in payloads]).combine_chunks()
    first = block * BLOCK
    tables = randomised(design, changes, first=first, people=min(BLOCK, people - first))
    for window, table in enumerate(tables):
        if table.num_rows:
            yield f"reports-{window:05d}-{block:05d}", to_bytes(table)
