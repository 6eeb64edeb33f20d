"""Members of JSON lines as texts of JSON, whatever stands there: what says whether a state exists, and what it is.

Everything comes from DuckDB, line by line, so that a member reads the same beside any others.
"""

import threading
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.kinds import one_chunk
from transforms.sources.formats.envelopes import Path

_LOCAL = threading.local()


def texts(lines: pa.Array, paths: Sequence[Path]) -> list[pa.Array]:
    """For each path what stands there in each line, objects and lists as JSON; null where nothing or null does.

    Args:
        lines: objects, in which numbers are in quotes (json_text.py): so their digits stay as they are.

    Raises:
        pa.ArrowInvalid: a line that is not JSON.
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
        raise pa.ArrowInvalid(type(error).__name__) from None  # its message may quote a value
    finally:
        _LOCAL.connection.unregister("lines")
    values = pc.list_flatten(one_chunk(found.column(0)))
    return [values.take(pa.array(range(place, len(values), len(paths)))) for place in range(len(paths))]


def _pointer(path: Path) -> str:
    """A path as RFC 6901 writes it, in a text of SQL."""
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path).replace("'", "''")
