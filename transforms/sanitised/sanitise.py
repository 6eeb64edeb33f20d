"""Sanitise records one by one: each gets separate noise, and only the named columns are output.

    in    bytes: records as Arrow IPC streams, with a column that names each
    out   bytes: the same number of records (each name once), sanitised, as Arrow IPC streams

A record must be sanitised **only once**: a second output has new noise, and the mean of many outputs reveals the truth.
So a name counts once in a pipeline, and the noise is followed by a reshuffle: later steps see one sample, even if a
runner repeats a step. Another run of the pipeline samples again. `slackwater sanitise` keeps its output and does not
sanitise a record again; in your own pipeline, write the output first, let all later steps read the written files, and
never run it twice over the same people.

The number of records and the set of names are treated as public. The content of a record affects only the record's
noisy values.
"""

from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows

from privacy.counted import counted
from privacy.noise.odds import Integers
from privacy.sanitised.record import Sanitisation
from transforms.common.hashing import unit_hash
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.kinds import one_chunk, to_key
from transforms.sanitised.columns import CONVERSIONS, SEPARATOR, source_columns, to_codes, to_columns

SHARDS = 16

AT_ONCE = 1 << 22
"""Codes that are processed together: a set has one for each element, and a few arrays of them are held in memory."""


class Sanitise(beam.PTransform):
    """Transform from records to sanitised records.

    Neighbours differ in the content of one record. Guarantee: the differential privacy of each record that
    `privacy.sanitised` states for `record`. Source: docs/proofs/sanitised.md.

    Args:
        record: How records are sanitised.
        entry: Column that names a record; it is not output.
        separator: Text between the elements of a set that is a text.
    """

    def __init__(self, record: Sanitisation, *, entry: str, separator: str = SEPARATOR) -> None:
        super().__init__()
        self._record = record
        self._entry = entry
        self._separator = separator

    def expand(self, records: beam.PCollection[bytes]) -> beam.PCollection[bytes]:
        return (
            records
            | "ByName" >> beam.FlatMap(_by_name, self._record, self._entry, self._separator)
            | "AllTimes" >> beam.WindowInto(GlobalWindows())  # in windows of time a name would count once per window
            | "MeetNames" >> beam.GroupByKey()
            | "Sample" >> beam.Map(_sampled, self._record, self._separator).with_output_types(bytes)
            | "OneSample" >> beam.Reshuffle()
        )


def sanitised(records: pa.Table, record: Sanitisation, *, separator: str = SEPARATOR) -> pa.Table:
    """Return the same number of records, each with separate noise. A second call samples again (see above).

    Args:
        records: Records, one for each name.
        record: How they are sanitised.
        separator: Text between the elements of a set that is a text.

    >>> from privacy.sanitised.attributes import Category
    >>> ward = Category.planned("ward", ["a", "b", "other"], missing="other", epsilon=40.0)
    >>> people = pa.table({"who": [1, 2, 3], "ward": ["b", None, "z"]})
    >>> sanitised(people, Sanitisation(attributes=(ward,))).to_pydict()
    {'ward': ['b', 'other', 'other']}
    """
    return pa.concat_tables(
        [_noisy(_coded(part, record, separator), record, separator) for part in _parts(records, record)]
    )


def _parts(table: pa.Table, record: Sanitisation) -> Iterator[pa.Table]:
    """Yield the rows in slices, at least one."""
    rows = max(1, AT_ONCE // sum(attribute.width for attribute in record.attributes))
    return (table.slice(start, rows) for start in range(0, max(table.num_rows, 1), rows))


def _coded(records: pa.Table, record: Sanitisation, separator: str) -> list[Integers]:
    """Return the codes of each attribute, int64 [records, width]; a record's codes depend on its values and types."""
    return [
        to_codes([one_chunk(records[name]) for name in attribute.columns], attribute, separator)
        for attribute in record.attributes
    ]


def _noisy(codes: Sequence[Integers], record: Sanitisation, separator: str) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for attribute, exact in zip(record.attributes, codes, strict=True):
        columns |= to_columns(attribute.sample(exact), attribute, separator)
    return pa.table(columns)


def first_of_each(names: pa.Array, known: pa.Array | None = None) -> np.ndarray:
    """Return the first row of each name that is not known, int64 [n], increasing.

    >>> first_of_each(pa.array(["b", "a", "b", "c"]), pa.array(["c"])).tolist()
    [0, 1]
    """
    rows = pa.table({"name": names, "row": pa.array(np.arange(len(names)))})
    if known is not None and len(known):
        rows = rows.filter(pc.invert(pc.is_in(names, value_set=known)))
    first = rows.group_by("name", use_threads=False).aggregate([("row", "min")])["row_min"]
    return np.sort(first.to_numpy())


def names_of(records: pa.Table, entry: str) -> pa.Array:
    """Return the names of records.

    Raises:
        ValueError: A record has no name; the message holds no name.
    """
    names, _ = to_key(one_chunk(records[entry]), "string")
    if names.null_count:
        raise ValueError(
            f"column {entry!r}: {counted(names.null_count, 'record')} without a name, which could be sanitised twice"
        )
    return names


def _by_name(payload: bytes, record: Sanitisation, entry: str, separator: str) -> Iterator[tuple[int, bytes]]:
    """Yield names and codes, so that batches can be combined although the types of their columns differ."""
    table = from_bytes(payload).select([*dict.fromkeys([entry, *source_columns(record)])])
    names = names_of(table, entry)
    coded = {"name": names.cast(pa.large_string())}
    for attribute, codes in zip(record.attributes, _coded(table, record, separator), strict=True):
        flat = pa.array(codes.ravel()).cast(CONVERSIONS[type(attribute)].kept)
        coded[f"codes {attribute.name}"] = pa.FixedSizeListArray.from_arrays(flat, attribute.width)
    table, shard = pa.table(coded), unit_hash(names) % np.uint64(SHARDS)
    for one in np.unique(shard).tolist():
        yield int(one), to_bytes(table.filter(pa.array(shard == one)))


def _sampled(part: tuple[int, Iterable[bytes]], record: Sanitisation, separator: str) -> bytes:
    _, payloads = part
    table = pa.concat_tables([from_bytes(payload) for payload in payloads])
    once = table.take(pa.array(first_of_each(one_chunk(table["name"]))))
    return to_bytes(
        pa.concat_tables([_noisy(_codes_of(one, record), record, separator) for one in _parts(once, record)])
    )


def _codes_of(coded: pa.Table, record: Sanitisation) -> list[Integers]:
    """Return the codes that `_by_name` has written."""
    columns = [(one_chunk(coded[f"codes {attribute.name}"]), attribute.width) for attribute in record.attributes]
    return [column.flatten().to_numpy().reshape(-1, width).astype(np.int64) for column, width in columns]
