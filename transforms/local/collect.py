"""From reports to estimates, on any runner.

    in    bytes: reports as Arrow IPC streams (report_tables.SCHEMA), in any batches and any order
    out   bytes: one table of estimates; and under QUALITY what was left out

Reports of one window and one block of people meet at one worker, where each person's counts once; from there on tallies
add up. Nothing is sampled: a step that is repeated gives what it gave before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import apache_beam as beam
import numpy as np
import pyarrow as pa

from privacy.local.client import Reports
from privacy.local.collector import Estimates, Tally, changes, empty, levels, tally
from privacy.local.design import Design
from privacy.local.plan import Series
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.several import Collections
from transforms.local.distinct import Quality, distinct
from transforms.local.report_tables import SCHEMA, usable

BLOCK = 1 << 20
"""People whose reports on a window one worker holds at a time."""

QUALITY = "quality"

Node = tuple[int, int]
"""Layer and number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What is collected and published; all public.

    Attributes:
        people: how many there are, those that never report among them.
        names: of the answers.
        publish: which series.
        start: of the first window, in microseconds since the epoch.
        every: length of a window in microseconds.
        windows: how many have closed.
    """

    design: Design
    people: int
    names: tuple[str, ...]
    publish: tuple[Series, ...]
    start: int
    every: int
    windows: int


class Collect(beam.PTransform):
    """Reports to estimates, and what was left out: `{"estimates": bytes, "quality": Quality}`."""

    def __init__(self, collection: Collection) -> None:
        super().__init__()
        self._collection = collection

    def expand(self, batches: beam.PCollection[bytes]) -> Collections:
        collection = self._collection
        split = batches | "Split" >> beam.ParDo(_Split(collection)).with_outputs(QUALITY, main="parts")
        counted = (
            split.parts
            | "Meet" >> beam.GroupByKey()
            | "Count" >> beam.ParDo(_Count(collection)).with_outputs(QUALITY, main="tallies")
        )
        estimates = (
            batches.pipeline
            | "Once" >> beam.Create([b""])
            | "Estimate" >> beam.Map(_estimated, beam.pvalue.AsList(counted.tallies), collection)
        )
        quality = (
            (split[QUALITY], counted[QUALITY])
            | "Both" >> beam.Flatten()
            | "Sum" >> beam.CombineGlobally(_summed_quality)
        )
        return {"estimates": estimates, QUALITY: quality}


def parts_of(collection: Collection, table: pa.Table) -> tuple[list[tuple[tuple[int, int], pa.Table]], int]:
    """The reports of closed windows by window and block of people, and how many rows are no reports."""
    design = collection.design
    table = table.select(SCHEMA.names)
    fits = usable(design, table, people=collection.people)
    unusable = len(fits) - int(fits.sum())
    if unusable:
        table = table.filter(pa.array(fits))
    table = table.cast(SCHEMA)
    window, block = table["window"].to_numpy().astype(np.int64), table["person"].to_numpy() // BLOCK
    key = window * (collection.people // BLOCK + 1) + block
    found = []
    keys = np.unique(key).tolist()
    for one in keys:
        place = divmod(one, collection.people // BLOCK + 1)
        if place[0] < collection.windows:
            part = table if len(keys) == 1 else table.filter(pa.array(key == one))
            found.append((place, part.drop_columns("window")))
    return found, unusable


def counted(design: Design, window: int, tables: Iterable[pa.Table]) -> tuple[dict[Node, Tally], Quality]:
    """Tallies of the reports on a window."""
    table = pa.concat_tables(tables).combine_chunks()
    person, layer, symbol, sign = (table[name].to_numpy() for name in SCHEMA.names if name != "window")
    reports, quality = distinct(Reports(person=person, layer=layer, symbol=symbol, sign=sign))
    found = tally(design, reports)
    return {(layer, window // design.layers[layer].span): one for layer, one in found.items()}, quality


def estimates_table(collection: Collection, tallies: dict[Node, Tally]) -> pa.Table:
    """A row for each series, closed window and answer, whatever has been reported."""
    of = {"level": levels, "change": changes}
    windows, answers = collection.windows, len(collection.names)
    tables = []
    for series in collection.publish:
        found: Estimates = of[series](collection.design, tallies, people=collection.people, windows=windows)
        columns = (found.values, found.variances, found.lows, found.highs)
        value, variance, low, high = (np.reshape(each, (-1,)) for each in columns)
        starts = collection.start + collection.every * np.repeat(np.arange(windows), answers)
        time = pa.timestamp("us", "UTC")
        known = np.isfinite(variance)
        numbers = {
            "value": value,
            "stddev": np.sqrt(variance),
            "ci_low": low,
            "ci_high": high,
        }
        tables.append(
            pa.table(
                {
                    "kind": pa.repeat(pa.scalar(series), len(starts)),
                    "window_start": pa.array(starts).cast(time),
                    "window_end": pa.array(starts + collection.every).cast(time),
                    "answer": pa.array(list(collection.names) * windows, pa.string()),
                    **{name: pa.array(column, mask=~known) for name, column in numbers.items()},
                }
            )
        )
    return pa.concat_tables(tables)


class _Split(beam.DoFn):
    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def process(
        self, payload: bytes
    ) -> Iterator[tuple[tuple[int, int], bytes] | beam.pvalue.TaggedOutput[Literal["quality"], Quality]]:
        parts, unusable = parts_of(self._collection, from_bytes(payload))
        if unusable:
            yield beam.pvalue.TaggedOutput(QUALITY, Quality(unusable=unusable))
        for place, part in parts:
            yield place, to_bytes(part)


class _Count(beam.DoFn):
    def __init__(self, collection: Collection) -> None:
        self._design = collection.design

    def process(
        self, part: tuple[tuple[int, int], Iterable[bytes]]
    ) -> Iterator[tuple[Node, int, bytes] | beam.pvalue.TaggedOutput[Literal["quality"], Quality]]:
        (window, _), payloads = part
        tallies, quality = counted(self._design, window, map(from_bytes, payloads))
        yield beam.pvalue.TaggedOutput(QUALITY, quality)
        for node, one in tallies.items():
            yield node, one.reports, one.sums.astype(np.int64).tobytes()


def _estimated(_: bytes, parts: list[tuple[Node, int, bytes]], collection: Collection) -> bytes:
    tallies: dict[Node, Tally] = {}
    for node, reports, payload in parts:
        none = empty(collection.design, node[0])
        sums = np.frombuffer(payload, dtype=np.int64).reshape(none.sums.shape)
        tallies[node] = tallies.get(node, none) + Tally(reports=reports, sums=sums)
    return to_bytes(estimates_table(collection, tallies))


def _summed_quality(parts: Iterable[Quality]) -> Quality:
    total = Quality()
    for part in parts:
        total += part
    return total
