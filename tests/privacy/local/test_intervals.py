"""Coverage of intervals is at least as stated: exactly, for few people and many, and where normal intervals fail."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.stats import binom, norm

from privacy.local.basis import Basis, BasisKind, Floats
from privacy.local.bound import LocalBound
from privacy.local.candidates import tree, variances_of
from privacy.local.collector import _nodes, _summed, changes, levels
from privacy.local.design import SHARES, Design, Layer
from privacy.local.intervals import Bounds, Heard, bernstein, of_changes, of_once, shares_of_coins
from privacy.local.mutation_space import MutationSpace, declared
from privacy.local.signs import best_signs
from privacy.local.symbols import best_symbols
from privacy.local.tallies import Tally
from tests.privacy.local.test_collector import of_one_person

ONE = MutationSpace(answers=1)
SLACK = 1e-9


def flat(windows: int, at_most: int, epsilon: float = 1.0, method: str = "signs") -> Design:
    return tree(
        *(ONE, LocalBound(at_most=at_most)),
        **{"windows": windows, "arity": 2, "height": 1, "epsilon": epsilon, "method": method},  # type: ignore[arg-type]
    )


def once(epsilon: float, *, signs: bool, windows: int = 1) -> Design:
    return Design(
        space=ONE,
        windows=windows,
        bound=LocalBound(at_most=1),
        reported="once",
        basis=Basis(kind="bins", answers=1),
        layers=(
            Layer(
                span=1,
                share=SHARES,
                randomiser=best_signs(1, Fraction(epsilon)) if signs else best_symbols(2, Fraction(epsilon)),
            ),
        ),
        epsilon=epsilon,
    )


def summed(people: int, chance: float, others: int, other: float) -> Floats:
    """Return the distribution of a sum of coins of two kinds."""
    first = binom.pmf(np.arange(people + 1), people, chance)
    return np.asarray(np.convolve(first, binom.pmf(np.arange(others + 1), others, other)))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_intervals_of_levels_of_one_report_are_valid_for_any_number_of_people(epsilon: float) -> None:
    """Up to 40 people, and all numbers of them with the answer; normal intervals miss in up to one case of five."""
    symbols, signs, worst = once(epsilon, signs=False), once(epsilon, signs=True), 1.0
    randomiser = symbols.layers[0].randomiser
    p, spread = float(randomiser.other), float(randomiser.spread)  # type: ignore[union-attr]
    gain = float(signs.layers[0].randomiser.gain)  # type: ignore[union-attr]
    for people in (2, 5, 12, 40):
        given = np.arange(people + 1)
        coins = [levels(symbols, _told(symbols, people, one), people=people, windows=1) for one in given]
        turned = [levels(signs, _told(signs, people, 2 * one - people), people=people, windows=1) for one in given]
        assert turned[0].variances[0, 0] == pytest.approx(
            people / (2 * gain) ** 2
        )  # the weight of each report, up or down
        for truth in range(people + 1):
            chances = summed(truth, p + spread, people - truth, p)
            assert chances @ [_holds(one.lows, one.highs, truth) for one in coins] >= 0.95 - SLACK
            normal = [abs(one.values[0, 0] - truth) <= 1.96 * np.sqrt(one.variances[0, 0]) for one in coins]
            worst = min(worst, chances @ normal)
            chances = summed(truth, (1 + gain) / 2, people - truth, (1 - gain) / 2)
            assert chances @ [_holds(one.lows, one.highs, truth) for one in turned] >= 0.95 - SLACK
    assert worst < {0.5: 0.94, 2.0: 0.8, 6.0: 1.0}[epsilon]


def _told(design: Design, reports: int, number: int) -> dict[tuple[int, int], Tally]:
    shape = (1,) if design.basis.kind == "bins" and hasattr(design.layers[0].randomiser, "gain") else (1, 1)
    return {(0, 0): Tally(reports=reports, sums=np.full(shape, number))}


def _holds(low: Floats, high: Floats, truth: float) -> bool:
    return bool(low[0, 0] <= truth <= high[0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_intervals_of_changes_of_one_window_are_valid_for_any_number_of_people(epsilon: float) -> None:
    """Signs and symbols about arrivals in the first window; 6, 30 and, near enough to normal, 20,000 people."""
    signs, symbols = flat(1, 1, epsilon), flat(1, 1, epsilon, "mutations")
    gain = float(signs.layers[0].randomiser.gain)  # type: ignore[union-attr]
    p, spread = (float(getattr(symbols.layers[0].randomiser, name)) for name in ("other", "spread"))
    for people in (6, 30):
        for truth in range(people + 1):
            ups = summed(truth, (1 + gain) / 2, people - truth, 1 / 2)
            half = float(changes(signs, _told(signs, people, 0), people=people, windows=1).highs[0, 0])
            values = (2 * np.arange(people + 1) - people) / gain
            assert ups[np.abs(values - truth) <= half].sum() >= 0.95 - SLACK
    # The symbols: to arrive, to leave, or neither.
    people = 8
    for truth in range(people + 1):
        cells = np.zeros((people + 1, people + 1))
        cells[0, 0] = 1.0
        for person in range(people):
            to = p + spread * (person < truth)
            cells = (1 - to - p) * cells + to * np.roll(cells, 1, axis=0) + p * np.roll(cells, 1, axis=1)
        held = 0.0
        for (to, away), chance in np.ndenumerate(cells):
            if to + away <= people:
                tallied = {(0, 0): Tally(reports=people, sums=np.array([[away], [to]]))}
                found = changes(symbols, tallied, people=people, windows=1)
                held += chance * _holds(found.lows, found.highs, truth)
        assert held >= 0.95 - SLACK
    people = 20_000
    found = changes(signs, _told(signs, people, 0), people=people, windows=1)
    half = float(found.highs[0, 0])
    for truth in (0, people // 2, people):
        ups = summed(truth, (1 + gain) / 2, people - truth, 1 / 2) if truth < people else binom.pmf(
            np.arange(people + 1), people, (1 + gain) / 2
        )  # fmt: skip
        values = (2 * np.arange(len(ups)) - people) / gain
        assert ups[np.abs(values - truth) <= half].sum() >= 0.95 - SLACK
    assert 1.96 < half / np.sqrt(found.variances[0, 0]) < (2.2 if epsilon == 1.0 else 2.8)


@pytest.mark.slow
@pytest.mark.parametrize(("people", "widest"), [(3, 4.5), (60, 3.2), (30_000, 2.2)])
def test_levels_of_signs_that_are_drawn_together_hold(people: int, widest: float) -> None:
    """Two windows and two changes, equal for everybody, so that each person's signs are as correlated as possible."""
    design = flat(2, 2)
    gain = float(design.layers[0].randomiser.gain)  # type: ignore[union-attr]
    for answers in ([0, -1], [0, 0], [-1, 0], [-1, -1]):
        probability, numbers = of_one_person(design, 0, answers)
        steps = np.rint(numbers[:, 1, 0] * gain).astype(int) + 2  # of -2, ..., 2
        one = np.bincount(steps, probability, 5)
        sums, power, left = np.ones(1), one, people
        while left:
            sums = fftconvolve(sums, power) if left & 1 else sums
            power, left = fftconvolve(power, power), left >> 1
        tallied = {(0, node): Tally(reports=people, sums=np.zeros(1, dtype=np.int64)) for node in range(2)}
        found = levels(design, tallied, people=people, windows=2)
        half = float(found.highs[1, 0])
        values = (np.arange(len(sums)) - 2 * people) / gain
        assert sums[np.abs(values - people * (answers[1] == 0)) <= half].sum() >= 0.95 - 1e-7
        assert 1.96 < half / np.sqrt(found.variances[1, 0]) < widest


def test_intervals_become_normal_ones_and_absence_makes_them_wider() -> None:
    for method in ("signs", "mutations"):
        design = flat(4, 2, method=method)

        def width(people: int, reports: int, design: Design = design, last: int | None = None) -> float:
            shape = (1,) if isinstance(design.layers[0].randomiser, type(best_signs(1, Fraction(1)))) else (2, 1)
            sums = np.zeros(shape, dtype=np.int64)
            if shape == (2, 1):
                sums += int(reports * float(design.layers[0].randomiser.other))  # type: ignore[union-attr]
            nodes = [reports, reports, reports, reports if last is None else last]
            tallied = {(0, node): Tally(reports=n, sums=sums) for node, n in enumerate(nodes)}
            found = levels(design, tallied, people=people, windows=4)
            return float((found.highs - found.values)[3, 0])

        deviation = np.sqrt(np.square(width(10**9, 10**9)) / norm.ppf(0.975) ** 2)
        assert width(10**9, 10**9) / deviation == pytest.approx(norm.ppf(0.975), rel=0.03)
        assert width(10**9, 10**9 - 1) > width(10**9, 10**9)
        assert width(1000, 1000, last=500) > width(1000, 1000)
        # If somebody is absent once, it is unknown who has reported on what: signs of one person may add up.
        assert method != "signs" or width(10**9, 10**9, last=10**9 - 1) > 1.1 * width(10**9, 10**9)


def test_differences_of_levels_that_are_reported_once_hold() -> None:
    """Two windows of 40 people each: all pairs of numbers with the answer, by both kinds of intervals."""
    for epsilon in (1.0, 6.0):
        design = once(epsilon, signs=False, windows=2)
        randomiser = design.layers[0].randomiser
        p, spread = float(randomiser.other), float(randomiser.spread)  # type: ignore[union-attr]
        level, _ = variances_of(design, "level")
        assert variances_of(design, "change").tolist() == [level, 2 * level]  # nobody is there before
        n = 12
        found = {
            (a, b): changes(
                design,
                {(0, w): Tally(reports=n, sums=np.array([[given]])) for w, given in enumerate((a, b))},
                people=2 * n,
                windows=2,
            )
            for a in range(n + 1)
            for b in range(n + 1)
        }
        # Too few to be near normal: for each of the two an interval that misses half as often.
        (low, *_), (*_, high) = shares_of_coins(np.array([3, 9]), np.array([n, n]), randomiser, 0.025)  # type: ignore[arg-type]
        assert found[9, 3].lows[1, 0] == pytest.approx(2 * n * (low - high))
        assert found[9, 3].variances[1, 0] == pytest.approx(
            found[3, 9].variances[0, 0] + found[9, 3].variances[0, 0]
        )  # whose first windows are levels
        # Everyone has one answer in each window, so the windows of reports do not matter.
        for before, after in ((0, 0), (0, 1), (1, 0), (1, 1)):
            first, then = (binom.pmf(np.arange(n + 1), n, p + spread * each) for each in (before, after))
            truth = 2 * n * (after - before)
            held = sum(
                first[a] * then[b] * (each.lows[1, 0] <= truth <= each.highs[1, 0]) for (a, b), each in found.items()
            )
            assert held >= 0.95 - SLACK


@pytest.mark.parametrize("people", [2, 7])
def test_intervals_of_coins_that_are_not_alike_hold(people: int) -> None:
    """Coins with all kinds of odds and one mean, also if it is nearly all or nearly none of them."""
    randomiser = best_symbols(2, Fraction(20))
    p, spread = float(randomiser.other), float(randomiser.spread)
    low, high = shares_of_coins(np.arange(people + 1), np.full(people + 1, people), randomiser)
    for missing in (1e-4, 0.01, 0.0251, 0.02525, 0.05, 0.5):
        for uneven in (True, False):  # one coin may differ alone, or all have the same odds
            off = np.full(people, missing / people)
            if uneven:
                off = np.array([missing, *[0.0] * (people - 1)])
            for chances, mean in ((1 - off, people - missing), (off, missing)):
                pmf = np.ones(1)
                for chance in chances:
                    pmf = np.convolve(pmf, [1 - chance, chance])
                share = (mean / people - p) / spread
                assert pmf[(low <= share) & (share <= high)].sum() >= 0.95 - SLACK
                # Neither end alone misses more than its half.
                assert max(pmf[share < low].sum(), pmf[share > high].sum()) <= 0.025 + SLACK


def test_bernsteins_inequality_has_its_textbook_form() -> None:
    """A sum of variance v with summands up to M exceeds t with probability at most exp(-t^2 / (2 (v + M t / 3)))."""
    for variance, block, failure in ((100.0, 3.0, 0.025), (1.0, 40.0, 0.005), (1e6, 0.0, 0.0225)):
        t = float(bernstein(np.array(variance), np.array(block), failure))
        assert np.exp(-(t**2) / (2 * (variance + block * t / 3))) == pytest.approx(failure, rel=1e-12)


def test_half_widths_are_those_of_the_two_theorems() -> None:
    """2 % on each side: what Berry and Esseen leave of it, by the least variance; or Bernstein's, with the sampling."""
    sizes = {"variance": 4e6, "least": 1e6, "block": 5.0, "swing": 9e6}
    one = Bounds(**{name: np.array(size) for name, size in sizes.items()}, failure=0.04)

    t = float(one.bernstein())
    assert np.exp(-(t**2) / (2 * (13e6 + 5 * t / 3))) == pytest.approx(0.02, rel=1e-12)
    assert float(one.normal()) == pytest.approx(2000 * norm.isf(0.02 - 0.56 * 5 / 1000))
    both = one + replace(one, block=np.array(2.0), swing=np.array(1e6))
    assert (both.variance, both.least, both.block, both.failure) == (8e6, 2e6, 5.0, 0.04)
    assert float(both.swing) == pytest.approx((3000 + 1000) ** 2)  # their correlation is unknown


@pytest.mark.parametrize(("kind", "answers"), [(None, 1), (None, 3), ("bins", 1), ("bins", 3), ("hadamard", 3)])
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_bounds_of_answers_reported_once_cover_the_effect_of_a_report(
    kind: BasisKind | None, answers: int, epsilon: float
) -> None:
    """From the probabilities of one report, for any answer. 40 of 100 people report in a window, then all."""
    space, basis = MutationSpace(answers=answers), Basis(kind=kind or "bins", answers=answers)
    signs, symbols = best_signs(1, Fraction(epsilon)), best_symbols(answers + 1, Fraction(epsilon))
    layer = Layer(span=1, share=SHARES, randomiser=signs if kind else symbols)
    design = replace(once(epsilon, signs=False), space=space, basis=basis, layers=(layer,))
    noises, values = [], np.array([(given - float(symbols.other)) / float(symbols.spread) for given in (0, 1)])
    for answer in (0, answers):  # it is answer 0, or none
        chance = float(symbols.other + symbols.spread * (answer == 0))
        chances = np.array([1 - chance, chance])
        if kind:
            gain, questions = float(signs.gain), np.arange(basis.questions)
            told = np.concatenate([np.eye(basis.questions), -np.eye(basis.questions)]).astype(np.int64)
            values = basis.share + basis.decoded(told)[:, 0] / 2 / gain
            right = gain * basis.signs(questions, np.array(answer))
            chances = np.concatenate([1 + right, 1 - right]) / 2 / basis.questions
        assert chances @ values == pytest.approx(float(answer == 0), abs=1e-12)
        noises.append(chances @ (values - (answer == 0)) ** 2)
    farthest = max(abs(value - mean) for value in values for mean in (0, 1))

    bounds = of_once(design, np.array([40, 100]), 100)

    for row, weight in enumerate((2.5, 1.0)):
        assert bounds.least[row, 0] == pytest.approx(100 * weight * min(noises))
        for share in np.linspace(0, 1, 21):  # share of people who have the answer; some of them are drawn
            both = share * noises[0] + (1 - share) * noises[1] + share * (1 - share)
            assert bounds.variance[row, 0] >= 100 * weight * both * (1 - 1e-12)
        assert bounds.variance[row, 0] <= 100 * weight * (max(noises) + 1)
        assert bounds.block[row, 0] >= weight * farthest
    assert bounds.swing[:, 0] == pytest.approx([100**2 / 40 / 4, 0])


def test_noise_of_two_layers_adds_up_in_deviations_and_not_in_variances() -> None:
    """The correlation of the reports in one layer and in the other is unknown."""
    design = tree(ONE, LocalBound(at_most=1), windows=3, arity=2, height=2, epsilon=1.0)
    heard = Heard(
        nodes=np.array([[1, 1]]),
        weight=np.array([[4.0, 2.0]]),
        squares=np.array([[16.0 * 25, 4.0 * 50]]),
        sway=np.array([[4.0, 2.0]]),
        even=np.array([[True, True]]),
        people=np.array([[25, 50]]),
        whole=True,
    )

    bounds = of_changes(design, heard, 75, np.zeros((1, 0, 1)), np.zeros((1, 0, 1)))

    assert bounds.swing[0, 0] == pytest.approx((np.sqrt(400) + np.sqrt(200)) ** 2)
    each = [design.basis.variance / float(layer.randomiser.gain) ** 2 for layer in design.layers]  # type: ignore[union-attr]
    assert bounds.variance[0, 0] == pytest.approx(400 * each[0] + 200 * each[1])
    assert bounds.least[0, 0] == pytest.approx(400 * (each[0] - 1) + 200 * (each[1] - 1))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("even", [True, False])
def test_bounds_of_signs_on_several_nodes_are_those_of_the_proof(whole: bool, even: bool) -> None:
    """Two changes of a person on four nodes, each with a weight of at most 2; 30 people of 100 are in the layer."""
    design = flat(4, 2)
    signs = design.layers[0].randomiser
    gain, together = float(signs.gain), float(signs.together)  # type: ignore[union-attr]
    heard = Heard(
        nodes=np.array([[4]]),
        weight=np.array([[2.0]]),
        squares=np.array([[5000.0]]),
        sway=np.array([[3.0]]),
        even=np.array([[even]]),
        people=np.array([[30]]),
        whole=whole,
    )

    bounds = of_changes(design, heard, 100, np.zeros((1, 0, 1)), np.zeros((1, 0, 1)))

    # Squares of weights of reports on changes: two of each of these people. Sums of one person's weights: 3, or, if
    # different people have reported on each node, two times 2.
    picked, sums = (2 * 30 * 4, 30 * 9) if whole else (2 * 100 * 4, 100 * 16)
    noise = 5000 / gain**2
    expected = noise if even and whole else noise + sums * together / gain**2
    assert bounds.variance[0, 0] == pytest.approx(expected)
    assert bounds.least[0, 0] == pytest.approx(noise - picked * together / gain**2 - sums)
    assert bounds.block[0, 0] == pytest.approx(2 * 2 * (1 / gain + 1))
    assert bounds.swing[0, 0] == pytest.approx(
        0 if whole else 4 * 5000
    )  # with all people present, in one layer, nobody is drawn


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_bounds_of_symbols_cover_the_effect_of_their_reports(epsilon: float) -> None:
    """One node with all people present: variances from the probabilities of a report, for any changes."""
    design = tree(
        *(MutationSpace(answers=2), LocalBound(at_most=1)),
        **{"windows": 1, "arity": 2, "height": 1, "epsilon": epsilon, "method": "mutations"},  # type: ignore[arg-type]
    )
    p, spread = (float(getattr(design.layers[0].randomiser, name)) for name in ("other", "spread"))
    people, many = 4000, 4000.0
    heard = Heard(
        nodes=np.array([[1]]),
        weight=np.array([[1.0]]),
        squares=np.array([[many]]),
        sway=np.array([[1.0]]),
        even=np.array([[True]]),
        people=np.array([[people]]),
        whole=True,
    )
    # Of 2 symbols that lead to an answer, and 2 that lead away, each comes with p, the true one with p + spread.
    none = 4 * p / spread**2
    comes = (4 * p + spread - spread**2) / spread**2

    for come in (0.0, 500.0, 4000.0):
        told = np.full((1, 1, 2), come)
        bounds = of_changes(design, heard, people, told, np.zeros((1, 1, 2)))
        true = (many - come) * none + come * comes
        most = many * max(none, comes)
        assert bounds.least[0, 0] <= true <= bounds.variance[0, 0] * (1 + 1e-12)
        assert bounds.variance[0, 0] <= most * (1 + 1e-12)
        assert bounds.variance[0, 0] - true <= 0.25 * true or come == 0.0
        assert bounds.block[0, 0] == pytest.approx((1 + spread) / spread)
        assert bounds.swing[0, 0] == 0.0
    assert bounds.least[0, 0] == pytest.approx(many * min(none, comes))


@pytest.mark.parametrize("whole", [True, False])
def test_bounds_of_symbols_on_several_nodes_are_those_of_the_proof(whole: bool) -> None:
    """As for signs above, for an answer that three others can become: an arrival has less variance than no change.

    The numbers of arrivals and departures follow from reports by Bernstein's inequality: 0.5 % of the 5 %.
    """
    space = declared(3, [(1, 0), (2, 0), (3, 0)])
    design = tree(
        *(space, LocalBound(at_most=2)),
        **{"windows": 4, "arity": 2, "height": 1, "epsilon": 1.0, "method": "mutations"},  # type: ignore[arg-type]
    )
    p, spread = (float(getattr(design.layers[0].randomiser, name)) for name in ("other", "spread"))
    numbers = {"nodes": 4, "weight": 2.0, "squares": 5e5, "sway": 3.0, "even": False, "people": 30_000}
    heard = Heard(**{name: np.array([[number]]) for name, number in numbers.items()}, whole=whole)
    arrived, left = (np.array([[[one, 0.0, 0.0]]]) for one in (20.0, 30.0))

    bounds = of_changes(design, heard, 100_000, arrived, left)

    none = (3 * p - (3 * p) ** 2) / spread**2
    comes, goes = ((3 * p + spread - (3 * p + one) ** 2) / spread**2 for one in (spread, -spread))
    picked = 2 * 30_000 * 2.0**2 if whole else 5e5
    assert comes < none < goes
    assert bounds.least[0, 0] == pytest.approx(5e5 * none - picked * (none - comes))
    if not whole:  # effect of two changes of one person, if it is random who has reported on which node
        comes, goes = comes + 2, goes + 2
    told = 20 * (comes - none) + 30 * (goes - none)
    apart = max(abs(comes - none), goes - none) / spread
    extra = float(bounds.variance[0, 0]) - 5e5 * none
    v, largest = (2 * apart) ** 2 * 5e5 * (3 * p + spread), 2 * 2.0**2 * apart
    t = extra - told
    assert extra < picked * (goes - none)
    assert np.exp(-(t**2) / (2 * (v + largest * t / 3))) == pytest.approx(0.005)
    assert bounds.failure == pytest.approx(0.045)
    assert bounds.block[0, 0] == pytest.approx(2 * (1 + 3 * p + spread) / spread)
    assert bounds.swing[0, 0] == pytest.approx(0 if whole else 4 * 5e5)


def test_counted_changes_are_used_in_the_bounds() -> None:
    """4,000 reports, as if 500 had arrived at an answer and 200 had left it, times the square of the weight."""
    space = declared(3, [(1, 0), (2, 0), (3, 0)])  # so that arrivals and departures add different amounts
    design = tree(
        *(space, LocalBound(at_most=1)),
        **{"windows": 1, "arity": 2, "height": 1, "epsilon": 5.0, "method": "mutations"},  # type: ignore[arg-type]
    )
    p, spread = (float(getattr(design.layers[0].randomiser, name)) for name in ("other", "spread"))
    reports, people = 4000, 8000
    by_chance = p * reports * np.stack(space.degrees())
    tallied = np.rint(by_chance + spread * np.array([[200], [500]])).astype(np.int64)

    found = changes(design, {(0, 0): Tally(reports=reports, sums=tallied)}, people=people, windows=1)

    left, arrived = (4 * (tallied - by_chance) / spread)[:, None, :]
    heard = Heard(
        nodes=np.array([[1]]),
        weight=np.array([[2.0]]),
        squares=np.array([[4.0 * reports]]),
        sway=np.array([[2.0]]),
        even=np.array([[True]]),
        people=np.array([[reports]]),
        whole=False,
    )
    bounds = of_changes(design, heard, people, arrived[None], left[None])
    assert arrived[0, 0] == pytest.approx(4 * 500, rel=0.01)
    np.testing.assert_allclose((found.highs - found.values)[0], bounds.half_widths()[0])


def test_the_kinds_of_reports_follow_from_their_weights() -> None:
    """A sum of nodes with weights of both signs, of all people: as by hand, and as wide with its sign turned."""
    design, people = flat(4, 2), 10_000
    tallied = {(0, node): Tally(reports=people, sums=np.zeros(1, dtype=np.int64)) for node in range(4)}
    layer, weights = _nodes(design, 0, tallied, people, 4), np.array([[-2.0, 1.0, 1.0, 1.0], [2.0, -1.0, -1.0, -1.0]])
    heard = Heard(
        nodes=np.array([[4]]),
        weight=np.array([[2.0]]),
        squares=np.array([[7.0 * people]]),
        sway=np.array([[3.0]]),  # a person who arrives in the first and leaves in the second
        even=np.array([[False]]),
        people=np.array([[people]]),
        whole=True,
    )

    found = _summed(design, [layer], [weights], people, whole=True)

    half = of_changes(design, heard, people, np.zeros((1, 0, 1)), np.zeros((1, 0, 1))).half_widths()
    np.testing.assert_allclose(found.highs - found.values, np.repeat(half, 2, axis=0))


def test_answers_that_show_no_noise_have_that_of_their_odds() -> None:
    """None of nine people has given an answer: with the odds of either kind it would not vary less."""
    design = once(1.0, signs=False)
    p, spread = (float(getattr(design.layers[0].randomiser, name)) for name in ("other", "spread"))

    found = levels(design, _told(design, 9, 0), people=90, windows=1)

    least = 9 * min(p * (1 - p), (p + spread) * (1 - p - spread))
    assert found.variances[0, 0] == pytest.approx(10**2 * least / spread**2)
