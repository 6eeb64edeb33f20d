"""Drop root's right to read and write every file, for tests of refused access."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_LIBC = ctypes.CDLL(None, use_errno=True)
_VERSION = 0x20080522
_OVERRIDING = 0b110
"""The capabilities to write, and to read and list, regardless of a folder's mode."""


@contextmanager
def plain_rights() -> Iterator[None]:
    """Apply folders' modes to this thread, as they apply to any user except root."""
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
