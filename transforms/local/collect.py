"""Collection of reports: from reports to estimates, on any runner.

    in    bytes: reports as Arrow IPC streams (report_tables.SCHEMA), in any batches and any order
    out   bytes: one table of estimates; and under QUALITY the numbers of counted and left-out reports

Reports of one window and one block of people meet at one worker, where each person counts once; from there on tallies
add up. Nothing is sampled: a repeated step gives its earlier result.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import apache_beam as beam
import numpy as np
import pyarrow as pa

from privacy.local.candidates import LocalSeries
from privacy.local.client import Reports
from privacy.local.collector import changes, levels
from privacy.local.design import Design
from privacy.local.document import mark
from privacy.local.signatures import SECRET
from privacy.local.tallies import ByAnswer, Tally, empty, tally
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.kinds import to_mask
from transforms.common.several import Collections
from transforms.common.sinks import read_bytes
from transforms.local.distinct import Quality, distinct
from transforms.local.read import DEAD, FILE
from transforms.local.report_tables import NUMBERS, SCHEMA, authentic, of_design, usable

BLOCK = 1 << 20
"""People whose reports on a window one worker holds at a time."""

QUALITY = "quality"

LayerNode = tuple[int, int]
"""Layer and number of a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Collected and published facts; all are public.

    Attributes:
        design: Design of the survey.
        people: Number of people, including those who never report.
        names: Names of the answers.
        publish: Series to publish.
        start: Start of the first window, in microseconds since the epoch.
        every: Length of a window in microseconds.
        windows: Number of windows that have closed.
        secret: File with the collector's secret, which every worker reads; None if reports are not signed.
    """

    design: Design
    people: int
    names: tuple[str, ...]
    publish: tuple[LocalSeries, ...]
    start: int
    every: int
    windows: int
    secret: str | None = None


class Collect(beam.PTransform):
    """Transform from reports to estimates and their quality: `{"estimates": bytes, "quality": Quality}`."""

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
        quality = (split[QUALITY], counted[QUALITY]) | "Both" >> beam.Flatten() | "Sum" >> beam.CombineGlobally(summed)
        return {"estimates": estimates, QUALITY: quality}


def parts_of(collection: Collection, table: pa.Table) -> tuple[list[tuple[tuple[int, int], pa.Table]], Quality]:
    """Return the reports of closed windows by window and block of people, and the number of other rows."""
    metadata = table.schema.metadata or {}
    file, dead = metadata.get(FILE, b"").decode(), int(metadata.get(DEAD, 0))
    quality: Quality = Counter({("unusable", file): dead} if dead else {})
    for reason, judge in _judges(collection):
        fits = judge(table)
        if not fits.all():
            quality[reason, file] += len(fits) - int(fits.sum())
            table = table.filter(pa.array(fits))
    table = table.select(NUMBERS).cast(pa.schema([SCHEMA.field(name) for name in NUMBERS]))
    window, block = table["window"].to_numpy().astype(np.int64), table["person"].to_numpy() // BLOCK
    key = window * (collection.people // BLOCK + 1) + block
    found = []
    keys = np.unique(key).tolist()
    for one in keys:
        place = divmod(one, collection.people // BLOCK + 1)
        if place[0] < collection.windows:
            part = table if len(keys) == 1 else table.filter(pa.array(key == one))
            found.append((place, part.drop_columns("window")))
    return found, quality


def _judges(collection: Collection) -> Iterator[tuple[str, Callable[[pa.Table], np.ndarray]]]:
    """Yield reasons to leave rows out, with a test of which rows remain; each test sees the rows that remain so far."""
    design = collection.design
    yield "other_design", lambda table: of_design(table, mark(design))
    yield (
        "unusable",
        lambda table: to_mask(table["design"].is_valid()) & usable(design, table, people=collection.people),
    )
    if collection.secret is not None:
        secret = secret_of(read_bytes(collection.secret))
        yield "unsigned", lambda table: authentic(secret, design, table)


def secret_of(content: bytes) -> bytes:
    """Return the collector's secret from its file: 32 bytes in hexadecimal.

    Raises:
        ValueError: The file holds something else.
    """
    try:
        secret = bytes.fromhex(content.decode().strip())
    except ValueError:
        secret = b""
    if len(secret) != SECRET:
        raise ValueError(f"expected {SECRET} bytes in hexadecimal, such as `openssl rand -hex {SECRET}` writes")
    return secret


def counted(design: Design, window: int, tables: Iterable[pa.Table]) -> tuple[dict[LayerNode, Tally], Quality]:
    """Return tallies of the reports on a window, and the quality of the reports.

    Args:
        design: Design of the survey.
        window: Number of the window.
        tables: Reports on this window.
    """
    table = pa.concat_tables(tables).combine_chunks()
    person, layer, symbol, sign = (table[name].to_numpy() for name in NUMBERS if name != "window")
    reports, quality = distinct(Reports(person=person, layer=layer, symbol=symbol, sign=sign, design=mark(design)))
    found = tally(design, reports)
    return {(layer, window // design.layers[layer].span): one for layer, one in found.items()}, quality


def estimates_table(collection: Collection, tallies: dict[LayerNode, Tally]) -> pa.Table:
    """Return a row for each series, closed window and answer; the set of rows does not depend on the reports."""
    of = {"level": levels, "change": changes}
    windows, answers = collection.windows, len(collection.names)
    tables = []
    for series in collection.publish:
        found: ByAnswer = of[series](collection.design, tallies, people=collection.people, windows=windows)
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


def summed(parts: Iterable[Mapping[tuple[str, str], int]]) -> Quality:
    """Return the sum of all counts; runners pass plain dictionaries."""
    total: Quality = Counter()
    for part in parts:
        total.update(part)
    return total


class _Split(beam.DoFn):
    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def process(
        self, payload: bytes
    ) -> Iterator[tuple[tuple[int, int], bytes] | beam.pvalue.TaggedOutput[Literal["quality"], Quality]]:
        parts, quality = parts_of(self._collection, from_bytes(payload))
        if quality:
            yield beam.pvalue.TaggedOutput(QUALITY, quality)
        for place, part in parts:
            yield place, to_bytes(part)


class _Count(beam.DoFn):
    def __init__(self, collection: Collection) -> None:
        self._design = collection.design

    def process(
        self, part: tuple[tuple[int, int], Iterable[bytes]]
    ) -> Iterator[tuple[LayerNode, int, bytes] | beam.pvalue.TaggedOutput[Literal["quality"], Quality]]:
        (window, _), payloads = part
        tallies, quality = counted(self._design, window, map(from_bytes, payloads))
        yield beam.pvalue.TaggedOutput(QUALITY, quality)
        for node, one in tallies.items():
            yield node, one.reports, one.sums.astype(np.int64).tobytes()


def _estimated(_: bytes, parts: list[tuple[LayerNode, int, bytes]], collection: Collection) -> bytes:
    tallies: dict[LayerNode, Tally] = {}
    for node, reports, payload in parts:
        none = empty(collection.design, node[0])
        sums = np.frombuffer(payload, dtype=np.int64).reshape(none.sums.shape)
        tallies[node] = tallies.get(node, none) + Tally(reports=reports, sums=sums)
    return to_bytes(estimates_table(collection, tallies))
