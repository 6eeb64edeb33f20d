"""Each threshold of a table equals, bit by bit, the one computed by another method."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from privacy.noise.exact.bounds import cumulative, exponential, series
from privacy.noise.exact.table import Table, make_table
from privacy.noise.exact.words import Lengths
from tests.privacy.noise import oracle
from tests.privacy.noise.oracle import ERROR, LAWS, PAIRS, Oracle, table_of


def wrong_thresholds(table: Table, truth: Oracle) -> list[int]:
    """Return the k at which a threshold is not floor(2^long F(k)), or the numbers of thresholds differ."""
    size = 1 << table.lengths.long
    wrong = []
    for k, threshold in enumerate(table.thresholds.tolist()):
        scaled = size * truth.below(k)
        # Only 1 is so close to a multiple of 2^-long that the oracle's error would matter.
        assert abs(scaled - round(scaled)) > 2 * size * ERROR or scaled > size - 1
        if threshold != min(math.floor(scaled), size - 1):
            wrong.append(k)
    ends = table.thresholds[-1] == size - 1 and (len(table.thresholds) == 1 or table.thresholds[-2] < size - 1)
    return wrong if ends else [*wrong, len(table.thresholds)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), PAIRS)
def test_thresholds_are_right_to_the_last_bit(kind, scale):
    assert wrong_thresholds(*table_of(kind, scale)) == []


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [Lengths(2, 3), Lengths(8, 12), Lengths(12, 20)])
@pytest.mark.parametrize(("kind", "scale"), PAIRS[::3])
def test_thresholds_of_other_lengths_are_right(kind, scale, lengths):
    assert wrong_thresholds(*table_of(kind, scale, lengths)) == []


@pytest.mark.parametrize("change", [-1, 1])
def test_a_threshold_with_an_error_of_one_would_be_found(change):
    table, truth = table_of("gaussian", 30.0)
    thresholds = table.thresholds.copy()
    thresholds[17] += change

    assert wrong_thresholds(replace(table, thresholds=thresholds), truth) == [17]


@pytest.mark.parametrize(("kind", "scale"), PAIRS)
def test_short_words_decide_what_all_words_that_begin_so_decide(kind, scale):
    table, _ = table_of(kind, scale)
    starts = np.arange(1 << 12, dtype=np.int64) << 20
    first = np.searchsorted(table.thresholds, starts, side="left")
    decided = table.direct >= 0

    # The threshold of what is decided is beyond the last word that begins so, and the one before it below the first.
    assert (table.direct[decided] == first[decided]).all()
    assert (table.thresholds[first[decided]] >= starts[decided] + (1 << 20)).all()
    assert (table.thresholds[first[~decided]] < starts[~decided] + (1 << 20)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), PAIRS)
def test_ratios_are_below_what_a_block_accepts(kind, scale):
    table, truth = table_of(kind, scale)

    for k, ratio in enumerate(table.ratios[:-1].tolist()):
        exact = 4096 * truth.weight(k + 1) / truth.weight(k)
        assert exact - 1 - 4096 * ERROR < ratio <= exact
    assert table.ratios[-1] == 0


def alternating(x: Fraction) -> tuple[Fraction, Fraction]:
    """Return bounds of exp(-x) for x <= 5: consecutive partial sums of the alternating series, once terms decrease."""
    terms = [Fraction(1)]
    while len(terms) < 6 or abs(terms[-1]) > Fraction(1, 2**80):
        terms.append(-terms[-1] * x / len(terms))
    *_, one, other = accumulate(terms)
    return min(one, other), max(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.5, 0.75, 1.0, 1.25])
def test_thresholds_are_those_of_fractions(kind, scale):
    """Without decimals: all in fractions, up to the point where the distribution function is 1 - 2^-12."""
    table = make_table(LAWS[kind](scale), folded=True, lengths=Lengths(6, 12))
    law = LAWS[kind](scale)
    step = law.linear + law.square

    def power(bounds, n):
        return bounds[0] ** n, bounds[1] ** n

    # exp(-step) to the power of n, or n^2.
    weights = [
        power(alternating(step), n if kind == "laplace" else n * n) for n in range(40 if kind == "laplace" else 12)
    ]
    sums = [list(accumulate((weight[end] for weight in weights[1:]), initial=Fraction(1, 2))) for end in (0, 1)]
    beyond = weights[-1][1] * 40  # ratios of weights are below 40 / 41
    for k, threshold in enumerate(table.thresholds.tolist()):
        least, most = sums[0][k] / (sums[1][-1] + beyond), sums[1][k] / sums[0][-1]
        assert math.floor(4096 * least) == math.floor(4096 * most) == threshold


@pytest.mark.parametrize("bits", [3, 32, 72, 300])
@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 2**51), Fraction(1, 3), Fraction(0.1), 1, 2, Fraction(255, 8), 71, 300]
)
def test_bounds_of_exponentials_enclose_them(x, bits):
    lower, upper = exponential(Fraction(x), bits)
    exact = oracle.exponential(Fraction(x)) * 2**bits

    assert lower - 2**bits * ERROR <= exact <= upper + 2**bits * ERROR
    assert upper - lower <= 2


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), [pair for pair in PAIRS if pair[1] < 32])
def test_bounds_of_distribution_functions_enclose_them(kind, scale):
    found = cumulative(LAWS[kind](scale), folded=True, bits=40, margin=30)
    truth = Oracle(kind, scale)

    for k, (lower, upper) in enumerate(zip(found.lower, found.upper, strict=True)):
        assert lower <= 2**70 * (truth.below(k) + ERROR)
        assert upper >= 2**70 * (truth.below(k) - ERROR)
        assert upper - lower < 2**16
    assert found.lower[-1] >= 2**70 - 2**31


@pytest.mark.parametrize("bits", [0, 1, 2, 5, 20])
def test_bounds_of_the_series_enclose_the_terms_that_it_leaves_out(bits):
    """With few bits the terms that are left out are larger than what the rounding of the others adds."""
    for y in (Fraction(place, 64) for place in range(64)):
        lower, upper = series(y, bits)
        exact = oracle.DIGITS.divide(Decimal(2**bits), oracle.exponential(y))

        assert lower - oracle.ERROR <= exact <= upper + oracle.ERROR
