"""A device's draws have the stated probabilities, and each worker has a separate stream."""

import subprocess
import sys
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from privacy.local.chance import WHOLE, Device
from privacy.local.signs import Signs, draw_patterns

FALSE_ALARM = 1e-7
"""False-alarm probability of each statistic; there are nine."""

DRAWS = 400_000


def fits(observed: np.ndarray, probabilities: np.ndarray) -> bool:
    """Return whether Pearson's statistic is below its quantile; all expected counts are above 1,000."""
    expected = probabilities * observed.sum()
    assert expected.min() > 1000
    statistic = ((observed - expected) ** 2 / expected).sum()
    return bool(statistic < chi2.isf(FALSE_ALARM, len(observed) - 1))


@pytest.mark.parametrize("limit", [2, 3, 100, 16_385, 3 << 60])
def test_integers_below_a_limit_are_uniform(limit: int) -> None:
    """The limits need words of all widths, and one limit rejects a quarter of all words."""
    drawn = Device().below(limit, DRAWS)
    cells = min(limit, 100)

    counts = np.bincount((drawn.astype(object) * cells // limit).astype(int), minlength=cells)

    borders = [-(-limit * cell // cells) for cell in range(cells + 1)]
    assert 0 <= drawn.min() <= drawn.max() < limit
    assert fits(counts, np.diff(np.array(borders, dtype=object)).astype(float) / limit)


def test_coins_have_the_probability_of_their_parts() -> None:
    for parts in (WHOLE // 100, WHOLE // 3, WHOLE - WHOLE // 50):
        heads = int(Device().likely(parts, DRAWS).sum())
        assert fits(np.array([heads, DRAWS - heads]), np.array([parts, WHOLE - parts]) / WHOLE)


def test_patterns_have_the_probabilities_of_their_signs() -> None:
    signs = Signs(most=4, threshold=2, parts=WHOLE // 2)

    drawn = np.bincount(draw_patterns(signs, Device(), DRAWS)[:, 0].astype(np.int64), minlength=16)

    turned = [bin(pattern).count("1") for pattern in range(16)]
    assert sum(comb(4, i) * signs.probability(i) for i in range(5)) == 1
    assert fits(drawn, np.array([float(signs.probability(i)) for i in turned]))


FORKED = """
from multiprocessing import get_context
from privacy.local.chance import Device

def drawn(_):
    return Device().below(1 << 16, 64).tobytes().hex()

with get_context("fork").Pool(2) as pool:
    print(*pool.map(drawn, range(8), chunksize=1))
"""


def test_forked_workers_share_no_stream() -> None:
    """The fork is in a separate process, since a process with the threads of other tests must not fork."""
    said = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)

    assert len(said.stdout.split()) == len({*said.stdout.split()}) == 8  # two alike: 28 pairs, 2^-1024 each
