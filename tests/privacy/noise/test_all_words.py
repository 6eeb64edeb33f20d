"""Exact probabilities of samplers, from all words of a few bits and all paths through a sampler.

The length of words is a parameter of the samplers, and no distribution depends on it. With words of 8 and 12 bits all
tests enumerate all inputs of a table; with words of 1 and 2 bits all inputs of the whole sampler with its rejections,
down to a least probability.
"""

import math
import random
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from privacy.noise.exact.acceptance import accept
from privacy.noise.exact.sampler import Sampler
from privacy.noise.exact.table import Table, make_table
from privacy.noise.exact.words import Lengths
from tests.privacy.noise import oracle
from tests.privacy.noise.oracle import ERROR, LAWS, PAIRS, Oracle, table_of
from tests.privacy.noise.scripted import outcomes, scripted

LENGTHS = Lengths(8, 12)
WORDS = np.arange(1 << 12)


def decimal(x: Fraction) -> Decimal:
    return oracle.DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), PAIRS)
def test_all_words_of_twelve_bits_give_the_outcomes_of_their_uniform_numbers(kind, scale):
    table, truth = table_of(kind, scale, LENGTHS)
    ends = [4096 * truth.below(k) for k in range(-1, len(table.thresholds) + 1)]  # 4096 F(k - 1) at k
    open_ = {min(math.floor(end), 4095) for end in ends[1:]}
    words = WORDS[~np.isin(WORDS, list(open_))]

    def rests(bits, size):
        assert bits == 4
        rest = words[table.direct[words >> 4] < 0] & 15
        assert len(rest) == size
        return rest.astype(np.uint8)

    decided = table.sample((words >> 4).astype(np.uint16), rests)

    # A word is decided unless an F(k) is within it; then no further bits are requested.
    for k, (start, end) in enumerate(pairwise(ends)):
        mine = words[decided == k]
        assert (mine == np.arange(math.ceil(start), min(math.floor(end), 4095))).all()
        assert len(mine) <= end - start <= len(mine) + 2


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), PAIRS)
def test_ties_are_decided_by_further_bits(kind, scale):
    table, truth = table_of(kind, scale, LENGTHS)

    for tie in {int(table.thresholds[0]), 4095}:
        further = [random.getrandbits(12) for _ in range(20)]
        script = [(4, tie & 15)] * bool(table.direct[tie >> 4] < 0) + [(12, word) for word in further]
        k = int(table.sample(np.array([tie >> 4], dtype=np.uint16), scripted(script))[0])

        uniform = tie
        for word in further:
            uniform = uniform << 12 | word
        # A random number is never so close to F(k) that the oracle's error matters.
        assert truth.below(k - 1) - ERROR <= decimal(Fraction(uniform, 1 << 252)) <= truth.below(k) + ERROR


EXPONENTS = [Fraction(0), Fraction(1, 2**50), *(Fraction(n, 37) for n in range(1, 38)), Fraction(7, 2), Fraction(1, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("x", EXPONENTS, ids=str)
def test_all_words_of_twelve_bits_accept_with_exactly_this_probability(x):
    exact = 4096 * oracle.exponential(x)
    tie = min(math.floor(exact), 4095)
    words = np.delete(WORDS, tie)

    def rests(bits, size):
        assert (bits, size) == (4, 4095) or x > 1
        return (words & 15).astype(np.uint8) if bits == 4 else np.zeros(size, dtype=np.uint16)

    def accepted(words, source):
        first = (words >> 4).astype(np.uint16)
        return accept(first, np.full(len(words), float(x)), lambda _: x, lengths=LENGTHS, words=source)

    # A word that does not contain the probability is decided, and without further bits if the float is used.
    assert (accepted(words, rests) == (words < tie)).all()
    for further in (0, 1, random.getrandbits(12), 4094, 4095):
        uniform = tie * 4096 + further
        if x and not uniform <= 4096 * exact < uniform + 1:
            source = scripted([(4, tie & 15), (12, further)])
            assert accepted(np.array([tie]), source)[0] == (uniform < 4096 * exact)


TINY = Lengths(1, 2)

WHOLE = [(kind, blocks, r) for kind in LAWS for blocks, r in ((0.25, 0), (1.0, 0), (0.3, 1), (1.1, 2))]
"""Kinds, scales in blocks, and bits of the place in a block."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "blocks", "r"), WHOLE)
def test_all_ways_through_the_sampler_add_up_to_the_distribution(kind, blocks, r):
    table = make_table(LAWS[kind](blocks), folded=r == 0, lengths=TINY)
    truth = Oracle(kind, blocks * 2**r)

    found: dict[object, Fraction] = defaultdict(Fraction)
    for outcome, mass in outcomes(lambda words: int(Sampler(table, r, words).sample(1)[0]), Fraction(1, 2**12)):
        found[outcome] += mass
    left = found.pop(None)

    assert sum(found.values()) == 1 - left
    assert left < (Fraction(3, 5) if r else Fraction(1, 50))  # rejected attempts start again
    for n in {*found, *range(-6, 7)}:
        assert decimal(found[n]) <= truth.probability(n) + ERROR
        assert truth.probability(n) - ERROR <= decimal(found[n] + left)
    for n in range(-3, 4):
        assert float(found[n] / (1 - left)) == pytest.approx(float(truth.probability(n)), abs=0.07 if r else 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "blocks", "r"), [each for each in WHOLE if each[2]])
def test_all_ways_through_one_attempt_are_in_proportion_to_the_weights(kind, blocks, r):
    """An attempt ends soon, so the words that are not enumerated have a small probability."""
    table = make_table(LAWS[kind](blocks), folded=False, lengths=TINY)
    truth = Oracle(kind, blocks * 2**r)
    start = Oracle(kind, blocks, folded=False).below(0)  # the probability of the block of 0

    found: dict[object, Fraction] = defaultdict(Fraction)
    for outcome, mass in outcomes(
        lambda words: tuple(Sampler(table, r, words).attempt(1).tolist()), Fraction(1, 2**13)
    ):
        found[outcome] += mass
    left = found.pop(None)

    assert left < Fraction(1, 12)
    for n in range(-8, 9):
        exact = start / 2 ** (r + 1) * truth.weight(abs(n))
        assert decimal(found[(n,)]) <= exact + ERROR
        assert exact - ERROR <= decimal(found[(n,)] + left)


BLOCKS_AND_PLACES = (0, Fraction(1, 2)), (1, Fraction(1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAWS)
def test_all_ways_to_two_samples_of_a_table_make_them_independent(kind):
    """A word that two samples share changes no sample's own distribution, but their joint one."""
    table, truth = make_table(LAWS[kind](1.0), folded=True, lengths=TINY), Oracle(kind, 1.0)

    found: dict[object, Fraction] = defaultdict(Fraction)
    for outcome, mass in outcomes(lambda words: tuple(Sampler(table, 0, words).sample(2).tolist()), Fraction(1, 2**14)):
        found[outcome] += mass
    left = found.pop(None)

    assert left < Fraction(1, 10)
    for one, other in product(range(-3, 4), repeat=2):
        exact = truth.probability(one) * truth.probability(other)
        assert decimal(found[one, other]) <= exact + ERROR
        assert exact - ERROR <= decimal(found[one, other] + left)


def test_all_ways_through_two_attempts_accept_independently(monkeypatch):
    """Both attempts have given words for block, place and sign, so that all others are for the acceptance."""
    table = make_table(LAWS["gaussian"](1.5), folded=False, lengths=TINY)
    chances = [oracle.exponential(table.law.square * t * (2 * block + t)) for block, t in BLOCKS_AND_PLACES]
    monkeypatch.setattr(Table, "sample", lambda *_: np.array([block for block, _ in BLOCKS_AND_PLACES]))

    def run(words):
        def source(bits, size):
            return np.full(size, 0b010, dtype=np.uint8) if bits == TINY.short + 2 else words(bits, size)

        return tuple(np.isin([1, 3], Sampler(table, 1, source).attempt(2)).tolist())

    found: dict[object, Fraction] = defaultdict(Fraction)
    for outcome, mass in outcomes(run, Fraction(1, 2**14)):
        found[outcome] += mass
    left = found.pop(None)

    assert left < Fraction(1, 10)
    for one, other in product((False, True), repeat=2):
        exact = (chances[0] if one else 1 - chances[0]) * (chances[1] if other else 1 - chances[1])
        assert decimal(found[one, other]) <= exact + ERROR
        assert exact - ERROR <= decimal(found[one, other] + left)
