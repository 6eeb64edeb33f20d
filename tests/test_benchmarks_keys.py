"""The benchmark of found keys compares published levels with the counts that it drew."""

import numpy as np

from benchmarks.keys.__main__ import planned, run


def test_errors_of_found_keys_are_those_of_their_noise() -> None:
    plan = planned(4)
    part = plan.discovered_of(0)
    assert part is not None

    found = run(plan, 1_000_000, 5_000, np.random.default_rng(3))

    assert 0 < found.keys < found.there <= 5_000
    deviation = part.deviations(plan.demands[0].measure, part.series[0], 4).max()
    assert 0.5 * deviation < found.listed < 8 * deviation
    assert found.missed < 2 * part.found(plan.demands[0], plan.promise)["entries_95"]
