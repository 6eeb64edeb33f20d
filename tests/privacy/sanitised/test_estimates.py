"""Estimates from sanitised records: unbiased, with intervals of the stated coverage."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.odds import PARTS
from privacy.sanitised.attributes import Category, Curve, Number, Subset
from privacy.sanitised.estimates import element_shares, joint_shares, means, shares
from privacy.sanitised.grid import Grid
from privacy.sanitised.record import Sanitisation

LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
PLAIN = Category.planned("ward", ["a", "b", "c", "d"], missing="d", epsilon=1.0, delta=0.01)
OWN = Category.planned(
    "grade",
    ["1", "2", "3"],
    missing="3",
    epsilon=1.5,
    distances=LINE,
    probabilities=[["0.6", "0.2", "0.2"], ["0.2", "0.5", "0.3"], ["0.2", "0.2", "0.6"]],
)


def table_of(attribute: Category) -> np.ndarray:
    return np.array([[float(cell) for cell in row] for row in attribute.response.mechanism().rows])


@pytest.mark.parametrize("attribute", [PLAIN, OWN], ids=["randomised response", "a table"])
def test_estimates_are_right_on_average_for_each_input(attribute):
    channel = attribute.response.channel()

    assert channel.unbiased(table_of(attribute)) == pytest.approx(np.eye(len(attribute.values)), abs=1e-12)


def test_joint_shares_are_those_of_the_whole_table_of_combinations():
    """The whole table, 12 by 12, is built only here."""
    counts = np.arange(1, 13).reshape(4, 3) ** 2
    scores = np.linalg.inv(np.kron(table_of(PLAIN), table_of(OWN)).T)
    records = counts.sum()

    found = joint_shares(counts, [PLAIN.response.channel(), OWN.response.channel()])

    value = scores @ counts.ravel() / records
    squares = scores**2 @ counts.ravel() / records
    assert found.value.ravel() == pytest.approx(value, abs=1e-10)
    of_a_record = scores**2 @ np.kron(table_of(PLAIN), table_of(OWN)).T - np.eye(12)  # the variance for each input
    variance = np.maximum((squares - value**2) / (records - 1), of_a_record.min(axis=1) / records)
    assert found.stddev.ravel() == pytest.approx(np.sqrt(variance), rel=1e-9)
    assert found.value.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("records", [1, 2, 10, 57, 400])
def test_intervals_of_shares_are_valid_for_any_records(records):
    """Exact: the count is a sum of two binomial numbers, for any number of records that have the value."""
    keep, other = PLAIN.response.keep / PARTS, PLAIN.response.other / PARTS
    counts = np.arange(records + 1)
    # Each count is that of the first value; the values of other records do not matter.
    found = shares(np.stack([counts, records - counts, counts * 0, counts * 0])[:, :1], PLAIN)
    rows = [shares(np.array([c, records - c, 0, 0]), PLAIN) for c in counts]
    low, high = np.array([row.low[0] for row in rows]), np.array([row.high[0] for row in rows])
    assert found.low[0, 0] == low[0]
    assert found.stddev.min() > 0  # also if all outputs are equal

    for having in {0, 1, records // 3, records // 2, records}:
        chance = np.convolve(
            binom.pmf(np.arange(having + 1), having, keep),
            binom.pmf(np.arange(records - having + 1), records - having, other),
        )
        held = (low - 1e-12 <= having / records) & (having / records <= high + 1e-12)
        assert chance[held].sum() >= 0.95
        drawn = binom.pmf(counts, records, other + (keep - other) * having / records)
        assert drawn[held].sum() >= 0.95


def test_joint_intervals_have_the_stated_coverage():
    """Of 500 runs with at least 94 % coverage, 88 % hold except with probability below 1e-7 for each cell."""
    records, runs = 1500, 500
    wards, grades = np.arange(records) % 4, np.arange(records) % 6 // 2
    truth = np.bincount(wards * 3 + grades, minlength=12).reshape(4, 3) / records
    channels = [PLAIN.response.channel(), OWN.response.channel()]

    held = np.zeros((4, 3))
    for _ in range(runs):
        got = PLAIN.sample(wards[:, None])[:, 0] * 3 + OWN.sample(grades[:, None])[:, 0]
        found = joint_shares(np.bincount(got, minlength=12).reshape(4, 3), channels)
        held += (found.low <= truth) & (truth <= found.high)

    assert held.min() / runs > 0.88


def test_elements_and_means_come_back_from_many_records():
    """Each is within 6 of its standard deviations, which are exact: fails with probability below 1e-7."""
    records = 20_000
    sets = Subset.planned("ills", ["x", "y", "z"], at_most=2, epsilon=2.0)
    truth = np.tile([1, 1, 1], (records, 1)) * (np.arange(records) % 2)[:, None]  # two of three elements count
    age = Number.planned("age", Grid.of(low=18, high=98, step=1), missing=None, epsilon=1.0)
    load = Curve.planned(
        "load", ["h0", "h1"], Grid.of(low=0, high=5, step=0.5), missing=None, total=6, metric="mean", epsilon=2.0
    )
    ages = np.arange(records) % 81

    elements = element_shares(sets.sample(truth).sum(axis=0), records, sets)
    of_ages = means(age.grid.values(age.sample(ages[:, None])[:, 0]), age.noise, 1.0)
    of_loads = means(load.grid.values(load.sample(np.tile([10, 10], (records, 1)))), load.noise.noise, 0.5)

    assert np.abs(elements.value - [0.5, 0.5, 0]).max() < 6 * elements.stddev.max()
    assert elements.stddev.max() < 0.02
    assert abs(of_ages.value - (18 + ages.mean())) < 6 * of_ages.stddev
    assert of_ages.stddev == pytest.approx(np.sqrt((2 * 80**2 + 80**2 / 12) / records), rel=0.1)
    assert np.abs(of_loads.value - 3.0).max() < 6 * of_loads.stddev.max()  # 10 of a total of 6
    assert of_loads.stddev == pytest.approx([np.sqrt(2 * 5.0**2 / records)] * 2, rel=0.1)


def test_responses_that_tell_nothing_of_shares_are_refused():
    """The least worst error of many values on a line is reached by a few outputs in the middle."""
    far = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    category = Category.planned("x", [str(n) for n in range(20)], missing="0", epsilon=0.1, distances=far)

    with pytest.raises(ValueError, match="shares cannot be estimated; leave out the distances"):
        category.response.channel()


def test_estimates_without_records_are_refused():
    for nobody in (
        lambda: joint_shares(np.zeros(4, dtype=int), [PLAIN.response.channel()]),
        lambda: means(np.zeros(0), DiscreteLaplace(1.0), 1.0),
        lambda: shares(np.zeros(4, dtype=int), PLAIN),
    ):
        with pytest.raises(ValueError, match="no records"):
            nobody()


@pytest.mark.slow
@pytest.mark.parametrize("records", [2, 5])
def test_intervals_of_a_table_with_few_records_have_nearly_the_stated_coverage(records):
    """Exact, over all outputs. With only the scores' own variance they covered 31 % and 66 %."""
    table = table_of(OWN)
    for having in range(records + 1):
        truth, held = np.array([having / records, 1 - having / records, 0.0]), np.zeros(3)
        for outputs in itertools.product(range(3), repeat=records):
            chance = np.prod([table[0 if number < having else 1, o] for number, o in enumerate(outputs)])
            found = shares(np.bincount(outputs, minlength=3), OWN)
            held += chance * ((found.low <= truth + 1e-12) & (truth - 1e-12 <= found.high))
        assert held.min() > 0.94


@pytest.mark.parametrize(("noise", "tight"), [(DiscreteLaplace(0.6), 1.0), (DiscreteLaplace(80.0), 0.9501)])
@pytest.mark.parametrize("records", [1, 2, 5, 40])
def test_the_half_width_of_a_mean_has_exactly_the_stated_coverage(noise, tight, records):
    """By the exact distribution of the sum of the noise of all records. Coarse grids round the width up to a step."""
    steps = np.arange(-(2**14), 2**14)
    ratio = np.exp(-1 / noise.scale)
    transform = np.fft.fft(np.fft.ifftshift((1 - ratio) / (1 + ratio) * ratio ** np.abs(steps)))
    chance = np.fft.fftshift(np.fft.ifft(transform**records).real)

    half = means(np.zeros(records), noise, 0.25).high * records / 0.25

    held = chance[np.abs(steps) <= noise.half_width(records)].sum()
    assert 0.95 <= held < max(tight, 0.9502 + chance.max() * 2)
    assert half >= noise.half_width(records)


@pytest.mark.parametrize("records", [1, 2, 5])
def test_means_of_few_records_are_in_their_intervals(records):
    """Of 4,000 runs 200 may miss, and more than 290 do with probability below 1e-9. Normal ones miss 25 % and 10 %."""
    age = Number.planned("age", Grid.of(low=18, high=98, step=1), missing=None, epsilon=1.0)
    codes = np.tile(np.array([[0], [80], [40], [7], [8]])[:records], (1, 4000))

    found = means(age.grid.values(age.sample(codes)), age.noise, 1.0)

    truth = 18 + codes.mean(axis=0)
    assert ((found.low > truth + 1e-9) | (truth - 1e-9 > found.high)).sum() <= 290
    assert found.stddev.min() >= np.sqrt(age.noise.variance / records)


# Attributes refuse mechanisms that do not have their claimed cost.


def test_a_claim_that_does_not_hold_is_refused_for_each_kind():
    grid = Grid.of(low=0, high=10, step=1)
    age = Number.planned("age", grid, missing=None, epsilon=1.0)
    ill = Subset.planned("ill", ["x", "y"], at_most=None, epsilon=1.0)
    load = Curve.planned("load", ["a", "b"], grid, missing=None, total=None, metric="max", epsilon=1.0)
    for made, change in (
        (age, {"scale": age.scale / 2}),
        (age, {"epsilon": 0.99}),
        (PLAIN, {"epsilon": 0.99}),
        (PLAIN, {"delta": 0.001}),
        (OWN, {"epsilon": 0.5}),
        (ill, {"epsilon": 0.99}),
        (load, {"epsilon": 0.99}),
    ):
        assert replace(made) == made
        with pytest.raises(ValueError, match=r"too small|costs more"):
            replace(made, **change)


def test_errors_about_own_tables_state_their_cost():
    with pytest.raises(
        ValueError, match=r"rows 1 and 0 differ .* least delta is 0\.499975, .* least epsilon is 1\.0986"
    ):
        Category.planned("x", ["a", "b"], missing="a", epsilon=0.0001, probabilities=[["3/4", "1/4"], ["1/4", "3/4"]])


def test_a_record_costs_the_sum_of_its_attributes():
    record = Sanitisation(attributes=(PLAIN, OWN))

    assert (record.epsilon, record.delta) == (2.5, 0.01)
    assert {attribute.name for attribute in record.attributes} == {"ward", "grade"}


def test_no_column_is_sanitised_twice():
    grid = Grid.of(low=0, high=10, step=1)
    age = Number.planned("age", grid, missing=None, epsilon=1.0)
    curve = Curve.planned("x", ["age", "b"], grid, missing=None, total=None, metric="max", epsilon=1.0)

    with pytest.raises(ValueError, match="a column is sanitised twice"):
        Sanitisation(attributes=(age, curve))


@pytest.mark.parametrize(
    ("low", "high", "step", "why"),
    [
        (0, 1, 0.3, "does not lead from min=0 to max=1 in whole steps"),
        (1, 1, 1, "must be less than max"),
        (0, 2**31, 1, "take a larger step"),
        (1e9, 1e9 + 1, 0.3, "in whole steps"),
        (0, 1e300, 1e-300, "take a larger step"),
    ],
)
def test_a_grid_that_does_not_fit_its_range_is_refused(low, high, step, why):
    with pytest.raises(ValueError, match=why):
        Grid.of(low=low, high=high, step=step)


def test_noise_that_cannot_be_sampled_is_refused_before_there_are_records():
    grid = Grid.of(low=0, high=2**30, step=1)

    with pytest.raises(ValueError, match=r"age: noise of more than 2\^55 steps"):
        Number.planned("age", grid, missing=None, epsilon=1e-9)


@pytest.mark.slow
def test_errors_are_above_the_lower_bounds_for_all_kinds():
    grid = Grid.of(low=0, high=10, step=1)
    for epsilon, delta in itertools.product((0.2, 1.0, 5.0), (0.0, 0.01)):
        curve = {"missing": None, "total": None, "epsilon": epsilon, "delta": delta}
        for attribute in (
            Number.planned("a", grid, missing=None, epsilon=epsilon, delta=delta),
            Category.planned("b", ["x", "y", "z"], missing="x", epsilon=epsilon, delta=delta),
            Category.planned("c", ["x", "y", "z"], missing="x", epsilon=epsilon, delta=delta, distances=LINE),
            Subset.planned("d", ["x", "y", "z"], at_most=2, epsilon=epsilon, delta=delta),
            *(Curve.planned("e", ["p", "q"], grid, metric=metric, **curve) for metric in ("total", "mean", "max")),
        ):
            assert attribute.error >= attribute.lower_bound > 0
