"""Kernels of `benchmarks/cells` agree with enumeration of small sets and of their neighbours."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import factors, medians, points, small, widths
from benchmarks.cells.data import Units
from benchmarks.cells.near import plan_of

Places = tuple[int, ...]


def neighbours(places: Places, *, top: int, reach: int) -> Iterator[Places]:
    """Yield all sets with one place moved."""
    for at, place in enumerate(places):
        for new in range(max(0, place - reach), min(top, place + reach) + 1):
            yield tuple(sorted((*places[:at], new, *places[at + 1 :])))


@pytest.mark.parametrize(("top", "reach", "units"), [(4, 1, 3), (5, 2, 3), (4, 2, 4), (3, 3, 4), (6, 2, 2), (7, 3, 1)])
def test_smooth_sensitivities_equal_those_by_enumeration(top: int, reach: int, units: int) -> None:
    sets = list(itertools.combinations_with_replacement(range(top + 1), units))
    near = {one: set(neighbours(one, top=top, reach=reach)) for one in sets}
    middle = medians.rank(units) - 1
    local = {one: max(abs(one[middle] - other[middle]) for other in near[one]) for one in sets}
    for one in sets:
        away, shell, distance = {one: 0}, {one}, 0
        while shell:
            distance += 1
            shell = {other for place in shell for other in near[place] if other not in away}
            away |= dict.fromkeys(shell, distance)
        for beta in (0.05, 0.4, 1.5):
            expected = max(math.exp(-beta * distance) * local[other] for other, distance in away.items())
            found = medians.smooth_sensitivity(np.array(one, dtype=float), low=0, high=top, reach=reach, beta=beta)
            assert found == pytest.approx(expected), (one, beta)


def loss(log_density, *, shift: float, stretch: float) -> float:
    """Return the largest privacy loss over outputs between a noise and the same noise, shifted and stretched.

    Args:
        log_density: of the noise.
        shift: in scales.
        stretch: logarithm of the ratio of scales.
    """
    z = np.concatenate([-np.geomspace(1e-6, 1e9, 100_000), np.geomspace(1e-6, 1e9, 100_000)])
    other = log_density((z - shift) * math.exp(-stretch)) - stretch
    return float(np.abs(log_density(z) - other).max())


def test_noise_of_smooth_sensitivities_costs_epsilon_and_the_printed_noise_a_third() -> None:
    epsilon = 0.3
    student = lambda z: -2 * np.log1p(z**2 / 3)  # noqa: E731
    cauchy = lambda z: -np.log1p(z**2)  # noqa: E731
    s = epsilon / 2 * math.sqrt(3) / 2
    ours = [loss(student, shift=a * s, stretch=b * epsilon / 6) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    assert max(ours) <= epsilon
    assert loss(student, shift=s, stretch=0) == pytest.approx(epsilon / 2, rel=0.01)
    assert loss(student, shift=0, stretch=epsilon / 6) == pytest.approx(epsilon / 2, rel=0.01)
    sixth = epsilon / 6
    printed = [loss(cauchy, shift=a * sixth, stretch=b * sixth) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    assert max(printed) <= epsilon / 3


def test_sorted_points_of_neighbours_are_no_further_apart_than_the_move() -> None:
    for one in itertools.combinations_with_replacement(range(6), 3):
        for other in neighbours(one, top=5, reach=2):
            assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= 2


def test_published_points_are_in_order_and_groups_keep_their_mean() -> None:
    random = np.random.default_rng(2)
    places = random.uniform(0, 1, 103)
    found = points.published(places, reach=0.1, epsilon=1.0, group=5, random=random)
    assert len(found) == 103
    assert (np.diff(found) >= 0).all()
    quiet = points.published(places, reach=1e-12, epsilon=1.0, group=5, random=random)
    assert quiet[100:] == pytest.approx(np.sort(places)[100:].mean())
    assert quiet.sum() == pytest.approx(places.sum())


def test_ranges_of_few_cells_are_charged_as_the_planner_charges_them() -> None:
    for apart in (1, 2, 4):
        charged = plan_of(5, apart, name="prefix").parts[0].sensitivity.l1
        assert charged == small.sensitivity(small.prefixes(5), apart)
    assert plan_of(4, 0, name="each").parts[0].sensitivity.l1 == small.sensitivity(small.each(4), None) == 1
    found = small.variances(small.prefixes(8), apart=1, total=True)
    assert {span: value for span, value in found.items() if 1 in span or 8 in span} == {
        **{(1, last): 2.0 for last in range(1, 8)},
        **{(first, 8): 2.0 for first in range(2, 9)},
        (1, 8): 0.0,
    }
    assert all(value == 4 for span, value in found.items() if 1 not in span and 8 not in span)


def test_the_tables_of_fang_and_chang_are_reproduced() -> None:
    """Table 3 has the largest variance of ranges of one to four cells; table 2 is the best binary strategy."""
    direct, sums = small.variances(small.each(4), apart=3), small.variances(small.prefixes(4).T, apart=1)

    def largest(found: small.Variances) -> list[float]:
        return [max(value for (a, b), value in found.items() if b - a == cells) for cells in range(4)]

    assert (largest(direct), largest(sums)) == ([8, 16, 24, 32], [4, 4, 4, 2])
    least, second, strategy = small.of_all_binary()
    assert least == sum(sums.values()) == 32 < second - 40
    assert strategy.tolist() == [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]


def test_a_width_chosen_from_the_data_distinguishes_neighbours() -> None:
    """The choice has no noise, so it can differ for two sets that differ in one unit's place."""
    low, high = np.array([0.0, 2.0]), np.array([1.3, 5.1])
    spread = np.linspace(0.0, 7.9, 20)
    sets = [Units("", np.sort(np.append(spread, moved)), 0.0, 8.0) for moved in np.linspace(0.0, 7.9, 40)]
    assert len({widths.chosen_by_looking(units, 8.0, low, high) for units in sets}) > 1
    assert len({widths.cells_for(len(units.places), 8.0) for units in sets}) == 1


def test_the_page_on_sums_has_the_factors_of_the_script() -> None:
    """One row of the table, for both kinds of noise: the others follow in the same way."""
    key = "`marginals: [[], [region]]`"
    page = (Path(__file__).parents[1] / "docs/how-to/sums-over-cells.md").read_text()
    (stated,) = [line.split(" | ")[3:] for line in page.splitlines() if f"| {key} | 1 |" in line]

    assert factors.row(key, 1) == f"| {key} | 1 | {' | '.join(stated)}"
