"""Randomise many people's answers as their devices would, for simulations and trusted gateways.

    in    bytes: changes of answers as Arrow IPC streams (CHANGES), in any batches and any order
    out   (part name, bytes): reports, a part for each window and block of people

Everybody reports in every window of the release, even without a change: the set of blocks does not depend on the input.
A whole release is randomised at once, since a device's carry runs from the first window to the last. The reports pass
through a reshuffle, so that later steps see one sample even if a step is repeated. Write the reports first, and let no
other step read this transform: a second run over the same answers is a second report on each, and costs epsilon again.
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
"""Schema of changes: from the end of this window on, the person has this answer, -1 for absent.

A person has at most one change in a window.
"""

BLOCK = 1 << 16
"""People that one worker randomises at a time."""


class Randomise(beam.PTransform):
    """Transform from changes of answers to reports.

    Neighbours differ in all answers of one person. Guarantee: local differential privacy of each person's reports with
    the epsilon and delta of the design. Source: privacy.local.client, docs/proofs/local.md.

    Args:
        design: Design of the survey; refused if it costs more than the next two allow.
        people: Number of people.
        most_epsilon, most_delta: Budget to which the people have agreed, as in `enrol`.
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
    """Yield the reports of some people, a table for each window.

    Args:
        design: Design of the survey.
        changes: Changes of these people's answers (`CHANGES`).
        first: Number of the first of them.
        people: How many people they are.
        chance: Source of randomness.

    Raises:
        ValueError: A person has two answers at the end of one window.
    """
    window, person = changes["window"].to_numpy(), changes["person"].to_numpy() - first
    answer = changes["answer"].to_numpy()
    if len(np.unique(person * design.windows + window)) < len(person):
        raise ValueError("a person has two answers at the end of one window")
    order = np.argsort(window, kind="stable")
    ends = np.searchsorted(window[order], np.arange(design.windows + 1))
    agreed = {"most_epsilon": design.epsilon, "most_delta": design.delta}  # `Randomise` has checked the cost
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
