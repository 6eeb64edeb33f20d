"""The private state of noise is read exactly, or refused."""

import re
from itertools import chain

import numpy as np
import pytest

from privacy.strategies.base import Carry
from transforms.release import noise_state
from transforms.release.noise_state import HeldNoise, state_from_bytes, state_to_bytes

CELLS = 5
GIVEN = {"windows": 9, "columns": [CELLS, CELLS], "plan": "a digest"}


def rows(count: int, kind: type) -> np.ndarray:
    return np.arange(count * CELLS).reshape(count, CELLS).astype(kind) * 3 - 7


PARTS = [
    [
        HeldNoise(
            carry=Carry(
                windows=9 // leaf,
                integers={"noisy.0": rows(3, np.int64), "noisy.1": rows(0, np.int64)},
                floats={"levels": rows(2, np.float64) / 3},
            ),
            leaf=rows(int(9 % leaf > 0), np.int64),
            windows=9 % leaf,
        )
        for _ in range(components)
    ]
    for leaf, components in ((1, 2), (4, 1))
]


def test_a_state_is_read_to_the_last_bit() -> None:
    found = state_from_bytes(state_to_bytes(PARTS, windows=9, plan="a digest"), [1, 4], **GIVEN)

    assert [len(components) for components in found] == [2, 1]
    for held, other in zip(chain(*PARTS), chain(*found), strict=True):
        assert (held.windows, held.carry.windows) == (other.windows, other.carry.windows)
        assert held.leaf.tobytes() == other.leaf.tobytes()
        for name in ("integers", "floats"):
            here, there = getattr(held.carry, name), getattr(other.carry, name)
            assert {k: (v.dtype, v.shape, v.tobytes()) for k, v in here.items()} == {
                k: (v.dtype, v.shape, v.tobytes()) for k, v in there.items()
            }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"windows": 8}, "is not that after 8 windows"),
        ({"plan": "another"}, "was sampled under another plan"),
    ],
)
def test_a_state_of_other_windows_or_another_plan_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        state_from_bytes(state_to_bytes(PARTS, windows=9, plan="a digest"), [1, 4], **{**GIVEN, **change})


def test_a_state_of_another_version_and_a_damaged_one_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = state_to_bytes(PARTS, windows=9, plan="a digest")
    middle = len(payload) // 3
    with pytest.raises(ValueError):  # noqa: PT011 - Arrow's words
        state_from_bytes(payload[:middle] + bytes([payload[middle] ^ 255]) + payload[middle + 1 :], [1, 4], **GIVEN)
    monkeypatch.setattr(noise_state, "VERSION", "0")
    with pytest.raises(ValueError, match="not of this version"):
        state_from_bytes(payload, [1, 4], **GIVEN)
