"""Exact loss of everything that a device sends, over all pairs of changelogs: within the claim, and reached."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from math import comb
from typing import Any

import numpy as np
import pytest

from privacy.local.basis import Basis
from privacy.local.bound import LocalBound, loss_of_all_layers
from privacy.local.candidates import Method, candidates, tree
from privacy.local.chance import WHOLE, Device, Flags, Ints
from privacy.local.client import enrol, report
from privacy.local.design import SHARES, Design, Layer
from privacy.local.kept import device_from_json, device_to_json
from privacy.local.mutation_space import MutationSpace, declared
from privacy.local.signs import Signs, best_signs, draw_patterns
from privacy.local.symbols import Symbols, best_symbols
from privacy.upward import exp_below
from tests.privacy.local.branches import all_answers, distribution, draws_of, played

ONE, TWO = MutationSpace(answers=1), MutationSpace(answers=2)
TWICE = LocalBound(at_most=2)
HADAMARD = Design(
    space=TWO,
    windows=3,
    bound=LocalBound(at_most=1),
    reported="changes",
    basis=Basis(kind="hadamard", answers=2),
    layers=(Layer(span=1, share=SHARES, randomiser=best_signs(1, Fraction(1))),),
    epsilon=1.0,
)


def made(space: MutationSpace, bound: LocalBound, method: Method, windows: int, height: int, delta: float) -> Design:
    shape = {"windows": windows, "height": height, "arity": 2}
    return tree(space, bound, epsilon=1.0, delta=delta, method=method, publish=("level", "change"), **shape)  # type: ignore[arg-type]


def once(name: str) -> Design:
    found = candidates(TWO, LocalBound(at_most=1), windows=2, epsilon=1.0)
    return next(candidate.design for candidate in found if candidate.name == name)


def worst(design: Design, layer: int) -> Fraction:
    """Return the largest ratio of the probabilities of any sent reports, for two people."""
    draws = draws_of(design, layer)
    laws = [distribution(design, layer, draws, answers) for answers in all_answers(design)]
    assert all(sum(law.values()) == 1 for law in laws)
    assert all(law.keys() == laws[0].keys() for law in laws)  # the set of possible reports reveals nothing either
    return max(max(law[code] for law in laws) / min(law[code] for law in laws) for code in laws[0])


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("design", "reached"),
    [
        (made(ONE, TWICE, "signs", 4, 1, 0.0), True),
        (made(ONE, LocalBound(at_most=3), "signs", 6, 1, 0.0), True),
        (made(TWO, LocalBound(at_most=1), "signs", 3, 1, 0.0), True),
        (HADAMARD, True),
        (made(ONE, LocalBound(within=1), "signs", 4, 1, 0.0), True),
        (made(ONE, TWICE, "signs", 4, 2, 0.0), True),
        (made(ONE, TWICE, "mutations", 4, 1, 0.0), True),
        (made(TWO, LocalBound(at_most=1), "mutations", 3, 1, 0.0), True),
        (made(TWO, TWICE, "mutations", 2, 2, 0.0), True),
        (made(declared(2, [(2, 0), (0, 1)]), TWICE, "mutations", 4, 1, 0.0), True),
        (made(ONE, LocalBound(within=1), "mutations", 4, 1, 0.0), True),
        (once("once, a sign"), True),
        (once("once, a symbol"), True),
        # One window: nobody can leave in it, and less is lost than is charged.
        (made(TWO, LocalBound(at_most=1), "signs", 1, 1, 0.0), False),
    ],
    ids=lambda value: f"{value.answers}-{value.reported}-{value.windows}" if isinstance(value, Design) else None,
)
def test_the_loss_over_all_pairs_of_changelogs_is_the_claim(design: Design, reached: bool) -> None:
    claimed = exp_below(Fraction(design.epsilon))

    losses = [worst(design, layer) for layer in range(len(design.layers))]

    assert max(losses) <= claimed
    assert (max(losses) > claimed * Fraction(10**9 - 1, 10**9)) == reached


@pytest.mark.parametrize("windows", [1, 2, 3])
def test_with_a_delta_no_set_of_reports_is_worse_than_it(windows: int) -> None:
    design = made(ONE, TWICE, "mutations", windows, 1, 0.2)
    draws = draws_of(design, 0)
    odds = exp_below(Fraction(design.epsilon))
    laws = [distribution(design, 0, draws, answers) for answers in all_answers(design)]

    worst = max(sum(max(mine[code] - odds * other[code], 0) for code in mine) for mine in laws for other in laws)

    assert worst <= Fraction(design.delta)
    assert worst > Fraction(design.delta) * (Fraction(10**9 - 1, 10**9) if windows == 1 else Fraction(1, 8))


def test_independent_signs_lose_k_epsilon_and_not_the_sum_of_both_sides() -> None:
    """The bound 2 k ln((1 + e^epsilon) / 2) is k epsilon (1 + epsilon / 4), never reached: one side loses less."""
    signs = best_signs(1, Fraction(1))
    up, down = signs.probability(0), signs.probability(1)

    both = (2 * up) ** 2 / (2 * down) ** 2  # two people with two changes each, in four separate windows

    assert float(both) == pytest.approx(np.exp(2.0), rel=1e-12)
    assert float(both) < ((1 + np.e) / 2) ** 4


def test_best_signs_lose_less_for_a_gain_than_independent_ones() -> None:
    """k signs with odds e^(epsilon / k) are one of the distributions among which the best is chosen."""
    for most in (1, 2, 3, 4, 7, 20, 60, 200):
        alone = float(best_signs(1, Fraction(1, most)).gain)
        assert float(best_signs(most, Fraction(1)).gain) > alone * (1 + 1e-9) or most == 1
        assert best_signs(most, Fraction(1)).ratio <= exp_below(Fraction(1))


@pytest.mark.parametrize("most", [2, 5, 60, 61, 150])
def test_means_of_signs_are_those_of_their_patterns(most: int) -> None:
    """Sums over all patterns by number of turned signs, as fractions; and no other threshold is better."""
    best = best_signs(most, Fraction(1))
    weights = [comb(most, i) * best.probability(i) for i in range(most + 1)]

    assert sum(weights) == 1
    assert best.gain == sum(weight * Fraction(most - 2 * i, most) for i, weight in enumerate(weights))
    pairs = [Fraction((most - 2 * i) ** 2 - most, most * (most - 1)) for i in range(most + 1)]
    assert best.together == sum(weight * pair for weight, pair in zip(weights, pairs, strict=True))
    for threshold, likely in enumerate(accumulate(comb(most, i) for i in range(most)), start=1):
        share = likely * exp_below(Fraction(1)) / (likely * exp_below(Fraction(1)) + 2**most - likely)
        if 0 < int(WHOLE * share) < WHOLE - 1:
            assert Signs(most=most, threshold=threshold, parts=int(WHOLE * share)).gain <= best.gain


@dataclass
class Given:
    """Draws given values: the side of a pattern, and its place among those of that side."""

    likely_: bool
    drawn: list[int]

    def likely(self, _: int, size: int) -> Flags:
        return np.full(size, self.likely_)

    def far_below(self, limit: int, size: int) -> list[int]:
        assert (max(self.drawn) < limit, len(self.drawn)) == (True, size)
        return self.drawn

    def below(self, _: int, size: int) -> Ints:
        return np.zeros(size, dtype=np.int64)


def test_more_signs_than_a_number_holds_are_turned_with_exact_odds() -> None:
    """Among the patterns in order of their turned signs, the last one with i and the one after it."""
    signs = Signs(most=101, threshold=51, parts=3 << 60)
    ends = list(accumulate(comb(101, i) for i in range(51)))
    drawn = [0, *(each for end in ends[:-1] for each in (end - 1, end))]

    patterns = draw_patterns(signs, Given(likely_=True, drawn=drawn), len(drawn))

    turned_ = np.bitwise_count(patterns).sum(axis=1).tolist()
    assert turned_ == [0, *(each for i in range(50) for each in (i, i + 1))]
    assert patterns[-1].tolist() == [(1 << 50) - 1, 0]  # while some are left to be turned, a draw of 0 turns the next


@pytest.mark.parametrize("limit", [1 << 70, (1 << 70) - 3, 3 << 68])
def test_integers_below_large_limits_are_bits_that_fit(limit: int) -> None:
    """The source provides as many bits as the limit has; a value that is not below the limit is drawn again."""
    bits, width = limit.bit_length(), (limit.bit_length() + 7) // 8
    wanted = [0, 1, limit - 1, limit // 3]
    too_large = [each for each in (limit, (1 << bits) - 1) if each < 1 << bits]
    stream = b"".join((each << (8 * width - bits)).to_bytes(width, "big") for each in (*too_large, *wanted))
    asked = []

    def source(size: int) -> bytes:
        asked.append(size)
        start = sum(asked[:-1])
        return stream[start : start + size].ljust(size, b"\0")

    assert Device(source).far_below(limit, len(wanted)) == wanted


def test_the_hundredth_change_is_reported_with_the_hundredth_sign() -> None:
    """A person changes in each window; between windows the state goes through JSON.

    None of the last 36 signs is turned with probability at most e / 2^36.
    """
    design = tree(ONE, LocalBound(at_most=100), windows=130, arity=2, height=1, epsilon=1.0)
    device = enrol(design, 1, most_epsilon=1.0)
    expected = [int(device.patterns[0, j // 64] >> np.uint64(j % 64)) & 1 for j in range(100)]
    assert 1 in expected[64:]
    told = []
    for window in range(130):
        device = device_from_json(device_to_json(device), design)
        reports, device = report(design, device, window, np.array([window % 2 - 1]))
        told.append(int(reports.sign[0]) * (1 if window % 2 else -1))
    device = device_from_json(device_to_json(device), design)

    # Nobody is present before the first window, nor at its end: the first change is in the second.
    assert [1 - 2 * each for each in expected] == told[1:101]
    assert (int(device.spent[0]), int(device.used[0])) == (100, 100)
    every = np.array([[2**64 - 1, 2**36 - 1]], dtype=np.uint64)  # a sign without a stored pattern would be the truth
    kept = device_to_json(replace(device, patterns=every))
    assert device_from_json(kept, design).patterns.tolist() == every.tolist()
    with pytest.raises(ValueError, match="patterns"):
        device_from_json({**device_to_json(device), "patterns": 1 << 128}, design)


def test_a_randomiser_that_costs_more_than_the_design_says_is_refused() -> None:
    for epsilon in (1.1, 2.0):
        for randomiser in (best_signs(1, Fraction(epsilon)), best_symbols(7, Fraction(epsilon) / 2)):
            with pytest.raises(ValueError, match="does not cover"):
                Design(
                    space=TWO,
                    windows=3,
                    bound=LocalBound(at_most=1),
                    reported="changes",
                    basis=Basis(kind="bins", answers=2),
                    layers=(Layer(span=1, share=SHARES, randomiser=randomiser),),
                    epsilon=1.0,
                )


ONE_SIGN = Layer(span=1, share=SHARES, randomiser=best_signs(1, Fraction(1)))
HALF = replace(ONE_SIGN, share=SHARES // 2)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"bound": TWICE}, "does not cover"),  # a second sign would not be turned
        ({"bound": LocalBound(within=2)}, "does not cover"),
        ({"layers": (replace(ONE_SIGN, randomiser=best_symbols(6, Fraction(1, 2))),)}, "does not cover"),
        ({"reported": "once", "layers": (replace(ONE_SIGN, randomiser=best_symbols(2, Fraction(1))),)}, "not cover"),
        ({"basis": Basis(kind="hadamard", answers=3)}, "questions: for 3 answers"),
        ({"layers": (HALF,)}, "add up to 65536"),
        ({"layers": (HALF, replace(HALF, span=4))}, "none above windows"),
        ({"layers": (HALF, replace(HALF, span=2, randomiser=best_symbols(7, Fraction(1, 2))))}, "all must have signs"),
        ({"windows": 10**15}, "windows: expected at most 10000000"),
        ({"layers": (HALF, HALF)}, "spans must begin with 1"),
        ({"layers": (replace(ONE_SIGN, span=2),)}, "spans must begin with 1"),
        ({"reported": "once", "layers": (HALF, replace(HALF, span=2))}, "has one layer"),
        ({"delta": 1.0}, "delta: expected a number below 1, not 1"),
        ({"delta": float("nan")}, "delta: expected at least 0, not nan"),
        ({"epsilon": 51.0}, "epsilon: expected at most 50, not 51"),
        ({"epsilon": float("nan")}, "epsilon: expected a number above 0, not nan"),
    ],
)
def test_an_invalid_design_is_refused(change: dict[str, Any], why: str) -> None:
    """A device gets its design from a party that it does not trust."""
    with pytest.raises(ValueError, match=why):
        replace(HADAMARD, **change)


def test_declared_changes_of_single_windows_are_no_symbols_for_longer_nodes() -> None:
    """Consecutive declared changes can lead to a change that is not declared, for which there would be no symbol."""
    with pytest.raises(ValueError, match="does not cover"):
        made(declared(2, [(2, 0), (0, 1)]), TWICE, "mutations", 4, 2, 0.0)


@pytest.mark.parametrize("limit", [3, 7, 16384])
def test_each_integer_below_a_limit_has_as_many_words(limit: int) -> None:
    """All words of two bytes, each once; those beyond the last multiple of the limit are drawn again."""
    words = [np.arange(1 << 16, dtype="<u2").tobytes()]
    drawn = Device(lambda size: words.pop() if words else bytes(size)).below(limit, 1 << 16)

    counts = np.bincount(drawn, minlength=limit)
    counts[0] -= (1 << 16) % limit  # drawn again, and then 0
    assert set(counts.tolist()) == {(1 << 16) // limit}


def test_inverted_odds_cost_as_much_as_the_original_ones() -> None:
    """A device gets its design from a party that it does not trust."""
    with pytest.raises(ValueError, match="must be the likely ones"):
        Signs(most=1, threshold=1, parts=1)
    with pytest.raises(ValueError, match="epsilon is too small"):
        best_signs(2, Fraction(1, 10**30))


DESIGNS = [made(TWO, TWICE, "signs", 4, 2, 0.0), made(TWO, TWICE, "mutations", 4, 2, 0.0), once("once, a sign")]


@pytest.mark.parametrize("design", DESIGNS, ids=["signs", "mutations", "once"])
def test_a_repeated_step_gives_the_same_report_and_no_second_sample(design: Design) -> None:
    """Two reports that contradict each other on one question would prove that nothing has changed.

    Of 500 reports on other windows all are equal with probability at most 2^-100.
    """
    state, rows = enrol(design, 500, most_epsilon=1.0), []
    for window in range(design.windows):
        answers = np.full(500, window % 2)
        (first, kept), (again, _) = report(design, state, window, answers), report(design, state, window, answers)
        rows.append((first.symbol.tolist(), first.sign.tolist()))
        assert (again.person.tolist(), again.symbol.tolist(), again.sign.tolist()) == (first.person.tolist(), *rows[-1])
        for other in (window, window + 2):
            with pytest.raises(ValueError, match=r"each once, in order|must be one of"):
                report(design, kept, other, answers)
        assert kept.key != state.key
        state = kept
    assert rows[0] != rows[1]


def test_answers_that_are_no_integers_are_refused() -> None:
    for answers in (np.array([np.nan]), np.array([0.5]), np.array([2]), np.array([0, 0])):
        with pytest.raises(ValueError, match="answers must be integers"):
            report(HADAMARD, enrol(HADAMARD, 1, most_epsilon=1.0), 0, answers)


def test_the_papers_randomised_response_is_exact_except_for_rounding() -> None:
    """p = (1 - delta) / (m + e^epsilon), and M. Pan's corollaries with their ceilings."""
    best: Symbols = best_symbols(7, Fraction(1), Fraction(1, 10))

    assert float(best.other) == pytest.approx(0.9 / (6 + np.e), rel=1e-15)
    assert best.other + best.spread <= exp_below(Fraction(1)) * best.other + Fraction(1, 10)
    # B / W = 1 with windows halved: c = 2, h = 3 is 6 and not 4.75, h = 10 is 20 and not 11.998, on each side.
    for layers, truth in ((3, 6), (10, 20)):
        assert loss_of_all_layers(LocalBound(within=1), windows=8192, arity=2, layers=layers, epsilon=1.0) == 2 * truth


def test_people_with_and_without_changes_send_equally_many_bytes_at_the_same_times() -> None:
    for design in (made(TWO, TWICE, "signs", 4, 2, 0.0), HADAMARD, made(TWO, TWICE, "mutations", 4, 2, 0.0)):
        for layer in range(len(design.layers)):
            draws = draws_of(design, layer)
            sent = []
            for answers in ([-1] * design.windows, [0, 1, 0, 1][: design.windows]):
                reports = played(design, layer, draws, answers)
                columns = [(each.person, each.layer, each.symbol.dtype, each.sign.dtype) for each in reports]
                sent.append([(p.tolist(), d.tolist(), s.itemsize, t.itemsize) for p, d, s, t in columns])
            assert sent[0] == sent[1]
