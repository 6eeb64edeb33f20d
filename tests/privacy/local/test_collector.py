"""Estimates: unbiased and with the stated variance, by enumeration and by simulation."""

from fractions import Fraction
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest

from privacy.local.basis import Basis, Floats, transformed
from privacy.local.bound import LocalBound
from privacy.local.candidates import CandidateDesign, Method, candidates, tree, variances_of
from privacy.local.client import Reports, enrol, report
from privacy.local.collector import changes, levels
from privacy.local.design import SHARES, Design, Layer
from privacy.local.mutation_space import MutationSpace, declared
from privacy.local.signs import best_signs
from privacy.local.symbols import Symbols, best_symbols
from privacy.local.tallies import Tally, empty, tally
from tests.privacy.local.branches import Draws, draws_of, outcomes, played

TWO, THREE = MutationSpace(answers=2), MutationSpace(answers=3)
TWICE = LocalBound(at_most=2)


def flat(space: MutationSpace, bound: LocalBound, windows: int, method: Method = "signs") -> Design:
    """Return a design with a report in every window."""
    return tree(space, bound, windows=windows, arity=2, height=1, epsilon=1.0, method=method)


def of_one_person(design: Design, layer: int, answers: list[int]) -> tuple[Floats, Floats]:
    """Return the probability of each combination of draws, and the levels [windows, answers] from its reports."""
    draws: Draws = draws_of(design, layer)
    heads, weights = outcomes(draws)
    sent = played(design, layer, draws, answers)
    numbers = np.zeros((len(heads), design.windows, design.answers))
    for branch in range(len(heads)):
        tallies = {}
        for window, reports in enumerate(sent):
            mine = slice(branch, branch + 1)
            one = Reports(
                design="",
                **{name: getattr(reports, name)[mine] for name in ("person", "layer", "symbol", "sign")},
            )
            for number, found in tally(design, one).items():
                tallies[number, window // design.layers[number].span] = found
        for number in range(len(design.layers)):
            for node in range(design.nodes(number)):
                tallies.setdefault((number, node), Tally(reports=1, sums=empty(design, number).sums))
        numbers[branch] = levels(design, tallies, people=1, windows=design.windows).values
    return np.array([float(weight) for weight in weights])[heads], numbers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "answers"),
    [
        (flat(TWO, TWICE, 3), [0, 0, 1]),
        (flat(THREE, LocalBound(at_most=1), 2), [-1, 2]),
        (flat(TWO, TWICE, 2, method="mutations"), [1, 0]),
        (flat(declared(2, [(2, 0), (0, 1)]), TWICE, 2, method="mutations"), [0, 1]),
    ],
)
def test_levels_are_unbiased_and_vary_as_stated(design: Design, answers: list[int]) -> None:
    probability, numbers = of_one_person(design, 0, answers)
    truth = (np.array(answers)[:, None] == np.arange(design.answers)).astype(float)

    mean = np.einsum("b,bwa->wa", probability, numbers)
    variance = np.einsum("b,bwa->wa", probability, (numbers - mean) ** 2)

    np.testing.assert_allclose(mean, truth, atol=1e-9)
    if design.layers[0].randomiser == best_signs(design.bound.changed(1, design.windows), Fraction(1)):
        stated = variances_of(design, "level")
        assert (variance <= stated[:, None] * (1 + 1e-9)).all()
        first = design.basis.variance / float(best_signs(design.layers[0].randomiser.most, Fraction(1)).gain) ** 2  # type: ignore[union-attr]
        np.testing.assert_allclose(variance[0], first - truth[0] ** 2, rtol=1e-9)


def covariance(space: MutationSpace, randomiser: Symbols, tallied: np.ndarray) -> Floats:
    """Return the covariance of the estimated changes of all answers, float64 [answers, answers].

    The diagonal equals the variances of `changes`. Its size is that of the answers, never that of the symbols.

    Args:
        space: the answers and their possible changes.
        randomiser: randomised response over the symbols.
        tallied: tally of the symbols of every person, int64 [symbols].
    """
    p, spread, n = float(randomiser.other), float(randomiser.spread), int(tallied.sum())
    before, after = space.ends(np.arange(1, space.count))
    away, to = space.degrees()

    def moved(weights: Floats) -> Floats:
        """Return M diag(weights) M^T, from the symbols that are changes."""
        square = np.zeros((space.answers + 1, space.answers + 1))
        np.add.at(square, (before, before), weights)
        np.add.at(square, (after, after), weights)
        np.add.at(square, (before, after), -weights)
        np.add.at(square, (after, before), -weights)
        return square[:-1, :-1]

    observed = tallied[1:].astype(float)
    least = space.answers + 1
    change = (np.bincount(after, observed, least) - np.bincount(before, observed, least))[:-1]
    degree = (to - away).astype(float)
    spun = (
        moved(observed)
        - p * (np.outer(degree, change) + np.outer(change, degree))
        + p**2 * n * np.outer(degree, degree)
    )
    return spun / spread**2 - moved((observed - p * n) / spread)


@pytest.mark.parametrize("space", [TWO, declared(2, [(2, 0), (2, 1), (0, 1), (1, 2)])], ids=["all", "declared"])
def test_the_covariance_of_mutations_is_exact_and_the_papers_is_not(space: MutationSpace) -> None:
    """Some of 300 people change; each term of the truth comes from the probabilities of one person's report."""
    randomiser = best_symbols(space.count, Fraction(1))
    p, spread = float(randomiser.other), float(randomiser.spread)
    true = np.array([300 - 3 * (space.count - 1), *[3] * (space.count - 1)])
    matrix = np.full((space.count, space.count), p) + spread * np.eye(space.count)
    means = np.zeros((2, space.count))
    before, after = space.ends(np.arange(1, space.count))
    for answer in range(2):
        means[answer, 1:] = (after == answer).astype(float) - (before == answer)
    decoder = means @ np.linalg.inv(matrix)
    exact = sum(
        n * decoder @ (np.diag(row) - np.outer(row, row)) @ decoder.T for n, row in zip(true, matrix, strict=True)
    )
    expected = matrix @ true  # the covariance is linear in the tally, so the covariance at the mean is the mean

    def estimated(tallied: Floats) -> Floats:
        return covariance(space, randomiser, tallied)

    np.testing.assert_allclose(estimated(expected), exact, rtol=1e-9)
    for tallied in (expected, expected / 300):  # equation 55 as printed, for counts or for shares
        paper = decoder @ (np.diag(tallied) - np.outer(tallied, tallied)) @ decoder.T / 300
        assert abs(paper[0, 0]) < exact[0, 0] / 100

    # The published variances are its diagonal, also for a sample instead of a mean.
    drawn = np.random.default_rng().multinomial(300, expected / 300)
    design = tree(space, LocalBound(at_most=1), windows=1, arity=2, height=1, epsilon=1.0, method="mutations")
    symbols = np.repeat(np.arange(space.count), drawn)
    reports = Reports(
        person=np.arange(300),
        layer=np.zeros(300, dtype=np.uint8),
        symbol=symbols.astype(np.uint32),
        sign=np.ones(300, dtype=np.int8),
        design="",
    )
    found = changes(design, {(0, 0): tally(design, reports)[0]}, people=300, windows=1)
    np.testing.assert_allclose(found.variances[0], np.diag(covariance(space, randomiser, drawn)).clip(0), rtol=1e-9)


PEOPLE = 40_000


def simulated(design: Design, truth: np.ndarray, absent: float = 0.0) -> dict[tuple[int, int], Tally]:
    """Return reports of people whose answers are columns of [windows, people]; some of them never sent."""
    people, tallies = enrol(design, truth.shape[1], most_epsilon=8.0), {}
    for window, answers in enumerate(truth):
        reports, people = report(design, people, window, answers)
        keep = np.random.default_rng().random(len(reports.person)) >= absent
        kept = Reports(
            design="",
            person=reports.person[keep],
            layer=reports.layer[keep],
            symbol=reports.symbol[keep],
            sign=reports.sign[keep],
        )
        for layer, found in tally(design, kept).items():
            tallies[layer, window // design.layers[layer].span] = found
    return tallies


def best(candidate: str, space: MutationSpace, windows: int) -> Design:
    found: list[CandidateDesign] = candidates(space, TWICE, windows=windows, epsilon=4.0)
    return next(each.design for each in found if each.name.startswith(candidate))


@pytest.mark.slow
@pytest.mark.parametrize("absent", [0.0, 0.3])
@pytest.mark.parametrize(
    "name", ["signs", "signs, tree", "mutations", "mutations, tree", "once, a sign", "once, a symbol"]
)
def test_intervals_cover_the_truth(name: str, absent: float) -> None:
    """40,000 people, 12 numbers a time: half widths of 6.1 deviations fail with probability 12 * 1.1e-9.

    Their widths are at most those of the plan, and not much less, as people are present.
    """
    windows = 4
    design = best(name, THREE, windows)
    came = np.random.default_rng().integers(0, windows, PEOPLE)
    answer = np.random.default_rng().choice(3, PEOPLE, p=(0.5, 0.3, 0.2))
    later = np.arange(PEOPLE) % 5 == 0
    truth = np.array([np.where(came <= w, np.where(later & (w == 3), 2, answer), -1) for w in range(windows)])
    expected = np.array([np.bincount(row + 1, minlength=4)[1:] for row in truth])

    found = levels(design, simulated(design, truth, absent), people=PEOPLE, windows=windows)

    z = (found.values - expected) / np.sqrt(found.variances)
    assert (np.abs(z) < 6.1).all()
    planned = PEOPLE * variances_of(design, "level").mean() / (1 - absent)
    assert 0.3 < found.variances.mean() / planned < 1.3


def test_a_thousand_answers_take_no_matrix_of_that_size() -> None:
    basis = Basis(kind="hadamard", answers=1000)
    design = Design(
        space=MutationSpace(answers=1000),
        windows=1,
        bound=TWICE,
        reported="changes",
        basis=basis,
        layers=(Layer(span=1, share=SHARES, randomiser=best_signs(1, Fraction(8))),),
        epsilon=8.0,
    )
    answers = np.random.default_rng().permutation(np.repeat(np.arange(1000), 20))
    reports, _ = report(design, enrol(design, len(answers), most_epsilon=8.0), 0, answers)

    found = changes(design, {(0, 0): tally(design, reports)[0]}, people=len(answers), windows=1)

    # 1,000 numbers within 6.4 deviations: all but with probability 1000 * 1.6e-10.
    assert (np.abs(found.values[0] - 20) < 6.4 * np.sqrt(found.variances[0])).all()
    error = np.sqrt(np.mean((found.values[0] - 20) ** 2))
    assert error / sqrt(found.variances[0, 0]) == pytest.approx(1, abs=0.2)
    assert NormalDist().cdf(-6.4) * 2 * 1000 < 1e-6
    mutations = best_symbols(MutationSpace(answers=1000).count, Fraction(8))
    assert mutations.count == 1_001_001  # a tally of which is two rows of 1,000


def test_the_fast_transform_is_the_product_with_a_hadamard_matrix() -> None:
    order = 16
    matrix = [[(-1) ** bin(a & b).count("1") for a in range(order)] for b in range(order)]
    numbers = np.random.default_rng().integers(-9, 9, (3, order))

    assert transformed(numbers).tolist() == (numbers @ np.array(matrix)).tolist()


def test_ten_answers_vary_as_the_papers_and_their_corrections_say() -> None:
    """Variances per person and window without a change, for epsilon = 1 a report."""
    gain = float(best_signs(1, Fraction(1)).gain)
    paper = best_symbols(11 * 11, Fraction(1))
    p, spread = float(paper.other), float(paper.spread)
    planned = {each.name: each.variances["level"][0] for each in candidates(
        MutationSpace(answers=10), LocalBound(at_most=1), windows=1, epsilon=1.0
    )}  # fmt: skip

    assert 20 * p / spread**2 == pytest.approx(831, abs=0.7)
    assert planned["mutations"] == pytest.approx(763.6, abs=0.1)
    assert Basis(kind="bins", answers=10).variance / gain**2 == pytest.approx(46.8, abs=0.1)
    assert planned["signs"] == pytest.approx(16.5, abs=0.1)


def test_a_node_without_reports_has_no_estimate() -> None:
    design = tree(TWO, TWICE, windows=3, arity=2, height=1, epsilon=1.0)
    reported = {(0, 0): Tally(reports=5, sums=np.array([3, 2])), (0, 2): Tally(reports=5, sums=np.array([0, 0]))}

    found = levels(design, reported, people=5, windows=3)

    assert np.isfinite(found.values).all(axis=1).tolist() == [True, False, False]
    assert np.isinf(found.variances).all(axis=1).tolist() == [False, True, True]


def test_a_window_without_reports_has_no_estimate() -> None:
    design = best("once, a symbol", THREE, 4)
    reported = {(0, 1): Tally(reports=5, sums=np.zeros_like(empty(design, 0).sums))}

    for found in (levels(design, reported, people=5, windows=2), changes(design, reported, people=5, windows=2)):
        assert np.isnan([found.values[0], found.lows[0], found.highs[0]]).all()


def test_few_reports_without_any_noise_in_them_are_not_taken_for_exact() -> None:
    for name in ("mutations, tree", "once, a symbol"):
        design = best(name, THREE, 4)
        silent = {(0, node): Tally(reports=9, sums=empty(design, 0).sums) for node in range(4)}

        found = changes(design, silent, people=40, windows=4)

        assert (found.variances > 0).all(), name


def test_absence_is_part_of_the_variance_of_mutations() -> None:
    """Half of 100 people have arrived and half of all report: at an epsilon of 40, only the sampling is uncertain."""
    design = tree(TWO, LocalBound(at_most=1), windows=1, arity=2, height=1, epsilon=40.0, method="mutations")
    reported = {(0, 0): Tally(reports=50, sums=np.array([[0, 0], [25, 0]]))}

    found = changes(design, reported, people=100, windows=1)

    assert found.values[0, 0] == pytest.approx(50)
    assert found.variances[0, 0] >= 100**2 / 50 * (1 - 50 / 100) * 25 / 99  # of samples without replacement
