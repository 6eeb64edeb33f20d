"""The memory benchmark compares like with like, at a size that takes no time."""

import pytest

from benchmarks.memory import at_once, ours
from benchmarks.memory.setting import NAMES


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NAMES)
def test_nodes_made_by_window_equal_nodes_made_at_once_and_the_carry_does_not_grow(name: str) -> None:
    found = ours.run(name, cells=5, windows=600)

    # The factorisation rounds each node to a step, 2^-24 of a count.
    assert found.checksum == pytest.approx(at_once.run(name, cells=5, windows=600).checksum, rel=1e-6)
    assert found.checksum > 0
    after_first, half, end = found.carries
    assert after_first <= half
    assert end <= 1.5 * half
