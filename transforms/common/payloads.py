"""Several byte strings as one, for runners that move or store a single value."""

from collections.abc import Sequence

import pyarrow as pa

from transforms.common.ipc import from_bytes, to_bytes


def pack(parts: Sequence[bytes]) -> bytes:
    """Return several payloads as one.

    >>> unpack(pack([b"a", b""]))
    [b'a', b'']
    """
    return to_bytes(pa.table({"part": pa.array(parts, type=pa.large_binary())}))


def unpack(payload: bytes) -> list[bytes]:
    """Return the payloads of `pack`."""
    return [part.as_py() for part in from_bytes(payload)["part"]]
