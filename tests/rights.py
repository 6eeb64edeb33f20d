"""Rights that tests do without: whoever is root reads and writes everything, also where they must be refused."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_LIBC = ctypes.CDLL(None, use_errno=True)
_VERSION = 0x20080522
_OVERRIDING = 0b110
"""The capabilities to write, and to read and list, whatever a folder's mode says."""


@contextmanager
def plain_rights() -> Iterator[None]:
    """For this thread a folder's mode counts, as for anybody who is not root."""
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    before, plain = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    _demand(_LIBC.capget(header, before) == 0)
    plain[:] = before[:]
    plain[0] &= ~_OVERRIDING
    _demand(_LIBC.capset(header, plain) == 0)
    try:
        yield
    finally:
        _demand(_LIBC.capset(header, before) == 0)


def _demand(done: bool) -> None:
    if not done:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
