"""Debezium's change events as JSON lines, in files or topics."""

from dataclasses import replace
from functools import partial

from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.files.opening import open_stream
from transforms.sources.formats.debezium_events import FINEST, LOG_POSITION, TOMBSTONE, UNITS, fields, unwrap
from transforms.sources.formats.envelope_samples import columns_in, inner, states_in
from transforms.sources.formats.envelopes import Unwrapped
from transforms.sources.formats.format import Envelope, FirstRows, Format, JsonRecord
from transforms.sources.formats.json_columns import parse_paths
from transforms.sources.formats.json_lines import read_json_lines
from transforms.sources.formats.json_samples import columns_of, objects

_SIDES = {"before": "before", "after": "after"}


def _named(source: Source) -> Source:
    """Return the source with the prefixes `before.` and `after.` for columns of states."""
    time, order = source.time or FINEST, source.order or (LOG_POSITION,)
    return replace(source, time=time, before="before.", after="after.", order=order)


def _sample(source: Source, path: str) -> FirstRows:
    with open_stream(path, source.kafka) as stream:
        records = objects(stream)
    return columns_of(states_in(source, path, records, sides=_SIDES, keys=(source.entry,), made=(LOG_POSITION,)))


def _unwrap(block: bytes, rows: int, layout: Layout) -> Unwrapped:
    return unwrap(parse_paths(block, rows, fields(layout)), layout)


def _claims(record: JsonRecord) -> bool:
    return {"op", "source"} <= inner(record).keys()


DEBEZIUM = Format(
    name="debezium",
    kind="Debezium's JSON lines",
    sample=_sample,
    read=partial(read_json_lines, unwrap=_unwrap, tombstone=TOMBSTONE),
    lines=lambda _: True,
    owner="states",
    topics=True,
    envelope=Envelope(claims=_claims, columns=partial(columns_in, names=("after", "before"))),
    own={"time": tuple(f"source.{unit}" for unit in UNITS), "before": ("before",), "after": ("after",)},
    named=_named,
    orders=(LOG_POSITION,),
    decimals=", or set the connector's decimal.handling.mode to string or double",
)
