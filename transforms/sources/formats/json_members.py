"""Members of JSON lines as texts of JSON, of any type: they decide whether a state exists, and form its digest.

DuckDB reads each line alone, so that a member has one meaning next to any others.
"""

import threading
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.kinds import one_chunk
from transforms.sources.formats.envelopes import FieldPath

_LOCAL = threading.local()


def texts(lines: pa.Array, paths: Sequence[FieldPath]) -> list[pa.Array]:
    """Return for each path its value in each line, objects and lists as JSON; null if it is missing or null.

    Args:
        lines: Objects in which numbers are in quotes (json_text.py), so that their digits do not change.
        paths: Paths to read.

    Raises:
        pa.ArrowInvalid: A line is not JSON.
    """
    if not paths:
        return []
    if not hasattr(_LOCAL, "connection"):
        _LOCAL.connection = duckdb.connect(":memory:", config={"threads": 1})
    _LOCAL.connection.register("lines", pa.table({"line": lines}))
    try:
        asked = ", ".join(f"'{_pointer(path)}'" for path in paths)
        found = _LOCAL.connection.sql(f"SELECT json_extract_string(line, [{asked}]) FROM lines").to_arrow_table()
    except duckdb.Error as error:
        raise pa.ArrowInvalid(type(error).__name__) from None  # its message can quote a value
    finally:
        _LOCAL.connection.unregister("lines")
    values = pc.list_flatten(one_chunk(found.column(0)))
    return [values.take(pa.array(range(place, len(values), len(paths)))) for place in range(len(paths))]


def _pointer(path: FieldPath) -> str:
    """Return a path in the notation of RFC 6901, as a text in SQL."""
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path).replace("'", "''")
