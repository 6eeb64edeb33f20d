"""Signatures of reports: a message authentication code for each, HMAC-SHA256 (RFC 2104), cut to 128 bits.

The collector has one secret. A device's key follows from the secret, the design and the device's number, and only that
device gets it when it is enrolled. So a device can sign only its own reports, and without the secret or a key nobody
can sign any. Reports stay public: a signature reveals no key and fits no other report. It follows from the report,
which has been randomised, so it reveals nothing more about the answers.

The collector computes two codes for each report, one report at a time, in about three microseconds.

>>> from privacy.local.bound import LocalBound
>>> from privacy.local.client import enrol, report
>>> from privacy.local.mutation_space import MutationSpace
>>> from privacy.local.candidates import tree
>>> design = tree(MutationSpace(answers=2), LocalBound(at_most=3), windows=52, arity=2, height=1, epsilon=1.0)
>>> key = device_key(bytes(SECRET), design, 7)
>>> sent, _ = report(design, enrol(design, 1, most_epsilon=1.0), 0, np.array([1]))
>>> signed = [sent.layer, sent.symbol, sent.sign]
>>> signatures(bytes(SECRET), design, np.array([7]), np.array([0]), *signed) == sign(key, sent, window=0)
True
"""

import hmac
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from privacy.local.client import Reports
from privacy.local.design import Design
from privacy.local.document import digest

SECRET = 32
"""Number of bytes of the collector's secret."""

SIGNATURE = 16
"""Number of bytes of a signature, which is written in hexadecimal."""

Wholes = NDArray[np.integer]

_SIGNED = np.dtype([("window", ">u4"), ("layer", "u1"), ("symbol", ">u4"), ("sign", "i1")])
"""The bytes that a code authenticates: ten, the most significant first."""


def device_key(secret: bytes, design: Design, person: int) -> bytes:
    """Return the key of one device: HMAC-SHA256 of the digest of the design and, in 8 bytes, the device's number.

    Args:
        secret: the collector's secret.
        design: the design in which the device is enrolled.
        person: number of the device.
    """
    (key,) = _keys(secret, design, [person])
    return key


def sign(key: bytes, reports: Reports, *, window: int) -> list[str]:
    """Return the signature of each of a device's reports on a window, in hexadecimal.

    Args:
        key: key of the device.
        reports: reports of the device.
        window: number of the window, from 0.
    """
    windows = np.full(len(reports.sign), window)
    return [_signature(key, row) for row in _rows(windows, reports.layer, reports.symbol, reports.sign)]


def signatures(
    secret: bytes,
    design: Design,
    person: Wholes,
    window: Wholes,
    layer: Wholes,
    symbol: Wholes,
    sign: Wholes,
) -> list[str]:
    """Return the valid signature of each report, in hexadecimal.

    Args:
        secret: the collector's secret.
        design: the design of the reports.
        person, window, layer, symbol, sign: columns [reports], as in `Reports`.
    """
    keys, rows = _keys(secret, design, person.tolist()), _rows(window, layer, symbol, sign)
    return [_signature(key, row) for key, row in zip(keys, rows, strict=True)]


def _keys(secret: bytes, design: Design, people: Iterable[int]) -> Iterator[bytes]:
    if len(secret) != SECRET:
        raise ValueError(f"secret: expected {SECRET} bytes, not {len(secret)}")
    prefix = bytes.fromhex(digest(design))
    return (_code(secret, prefix + person.to_bytes(8, "big")) for person in people)


def _rows(window: Wholes, layer: Wholes, symbol: Wholes, sign: Wholes) -> list[bytes]:
    rows = np.empty(len(window), dtype=_SIGNED)
    for name, column in zip(_SIGNED.names or (), (window, layer, symbol, sign), strict=True):
        rows[name] = column
    packed, size = rows.tobytes(), _SIGNED.itemsize
    return [packed[start : start + size] for start in range(0, len(packed), size)]


def _signature(key: bytes, row: bytes) -> str:
    return _code(key, row)[:SIGNATURE].hex()


def _code(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
