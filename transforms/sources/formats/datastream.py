"""Google Datastream's events in Cloud Storage, as JSON lines or Avro; the file name's ending decides."""

from dataclasses import replace
from functools import partial

from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.files.opening import open_stream
from transforms.sources.formats.avro_blocks import types_of
from transforms.sources.formats.datastream_avro import read_avro
from transforms.sources.formats.datastream_events import fields, unwrap
from transforms.sources.formats.envelope_samples import avro_columns, columns_in, states_in
from transforms.sources.formats.envelopes import Unwrapped
from transforms.sources.formats.format import Envelope, FirstRows, Format, JsonRecord, Parts, Split
from transforms.sources.formats.json_columns import parse_paths
from transforms.sources.formats.json_lines import read_json_lines
from transforms.sources.formats.json_samples import columns_of, objects

_AVRO = ".avro"
_TIME, _ORDER, _STATE = "source_timestamp", "sort_keys", "payload"


def _named(source: Source) -> Source:
    """Return the source with the prefix `after.` for columns of states."""
    return replace(source, time=_TIME, before=None, after="after.", order=(_ORDER,))


def _is_lines(path: str) -> bool:
    return not path.endswith(_AVRO)


def _sample(source: Source, path: str) -> FirstRows:
    # The owner is a column of the payload, even in deletions.
    keys = (source.entry,) if source.owner is None else (source.entry, source.owner)
    with open_stream(path, source.kafka) as stream:
        if not _is_lines(path):
            return avro_columns(source, path, types_of(stream), state=_STATE, keys=keys), None
        records = objects(stream)
    return columns_of(states_in(source, path, records, sides={"after": _STATE}, keys=keys, made=(_ORDER,)))


def _read(layout: Layout, split: Split, batch_rows: int) -> Parts:
    if not _is_lines(split.place.file):
        return read_avro(layout, split, batch_rows)
    return read_json_lines(layout, split, batch_rows, unwrap=_unwrap)


def _unwrap(block: bytes, rows: int, layout: Layout) -> Unwrapped:
    return unwrap(parse_paths(block, rows, fields(layout)), layout)


def _claims(record: JsonRecord) -> bool:
    return {"uuid", _STATE, "source_metadata"} <= record.keys()


def _key(record: JsonRecord) -> str | None:
    """Return the one column that Datastream names as the key; None if it does not."""
    metadata = record.get("source_metadata")
    keys = metadata.get("primary_keys") if isinstance(metadata, dict) else None
    return keys[0] if isinstance(keys, list) and len(keys) == 1 and isinstance(keys[0], str) else None


DATASTREAM = Format(
    name="datastream",
    kind="Datastream's JSON lines or Avro",
    sample=_sample,
    read=_read,
    endings=(_AVRO,),
    lines=_is_lines,
    owner="mutation",
    envelope=Envelope(claims=_claims, columns=partial(columns_in, names=(_STATE,)), key=_key),
    own={"time": (_TIME,), "before": (), "after": (_STATE,), "order": (_ORDER,)},
    named=_named,
    orders=(_ORDER,),
    exact=True,
    texts_measured=True,  # decimals of Avro are texts
)
