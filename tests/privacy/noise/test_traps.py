"""Inputs at which samplers may fail: extreme words, ties, the far tail, the ends of int64, small sizes."""

import math
import random
from decimal import Decimal
from fractions import Fraction
from itertools import chain, count, repeat

import numpy as np
import pytest

from privacy.noise.exact import acceptance, words
from privacy.noise.exact.acceptance import DOUBT, SERIES, accept, probability
from privacy.noise.exact.sampler import AT_ONCE, LARGEST, make_sampler
from privacy.noise.exact.words import LENGTHS, Lengths, system_words
from tests.privacy.noise import oracle
from tests.privacy.noise.oracle import ERROR, LAWS, PAIRS, Oracle, table_of
from tests.privacy.noise.scripted import scripted


def constant(ones: bool):
    """Return a source of words whose bits are all equal."""
    return lambda bits, size: np.full(size, ((1 << bits) - 1) * ones, dtype=np.uint64)


@pytest.mark.parametrize(("kind", "scale"), PAIRS)
def test_words_without_a_bit_are_zero(kind, scale):
    assert make_sampler(LAWS[kind], scale, words=constant(False)).sample(5).tolist() == [0] * 5


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), PAIRS)
@pytest.mark.parametrize("further", [0, 1, 2**32 - 1])
def test_the_largest_word_reaches_the_tail(kind, scale, further):
    table, truth = table_of(kind, scale)
    last = np.array([4095], dtype=np.uint16)
    script = [(20, 2**20 - 1), (32, 2**32 - 1), (32, further), *[(32, 2**31)] * 3]
    k = int(table.sample(last, scripted(script))[0])
    uniform = 2**64 - 1 << 32 | further

    # None of these 96 bits contains an F(k), unless all are ones.
    assert truth.below(k - 1) <= Decimal(uniform) / 2**96 + ERROR
    assert Decimal(uniform + 1) / 2**96 <= truth.below(k) + ERROR or further == 2**32 - 1
    if scale >= 1:
        assert k > len(table.thresholds) - 1


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 2.5), ("gaussian", 2.5), ("laplace", 30.0), ("gaussian", 1e6)])
def test_a_tie_with_any_threshold_is_decided_by_the_next_bits(kind, scale):
    table, truth = table_of(kind, scale)

    for k in range(0, len(table.thresholds) - 1, 1 + len(table.thresholds) // 20):
        tie = int(table.thresholds[k])
        beyond = math.floor(2**64 * truth.below(k)) - (tie << 32)  # the next 32 bits of F(k)
        for further, expected in ((beyond - 1, k), (beyond + 1, k + 1)):
            if 0 <= further < 2**32 and table.thresholds[k + 1] > tie and (k == 0 or table.thresholds[k - 1] < tie):
                first = np.array([tie >> 20], dtype=np.uint16)
                assert table.sample(first, scripted([(20, tie % 2**20), (32, further)])) == [expected]


@pytest.mark.slow
@pytest.mark.parametrize("sign", [0, 1])
def test_a_sample_beyond_int64_is_given_as_the_end_of_it(sign):
    ones = [(20, 2**20 - 1), *[(32, 2**32 - 1)] * 12, (32, 5)]  # 416 ones: |N| is above 288 scales
    script = [(64, 2**64 - 2 + sign), *ones, (12, 0), (20, 0)]

    sampler = make_sampler(LAWS["laplace"], 2.0**55, words=scripted(script))

    assert sampler.sample(1).tolist() == [-LARGEST if sign else LARGEST]


@pytest.mark.parametrize("kind", LAWS)
def test_all_bits_of_a_place_in_a_late_block_are_kept(kind):
    table = make_sampler(LAWS[kind], 2.0**55).table
    block = int(np.flatnonzero(np.diff(table.thresholds) > 10)[-1]) + 1
    uniform, place = int(table.thresholds[block]) - 5, 2**51 - 1
    assert table.direct[uniform >> 20] < 0
    script = [(64, (uniform >> 20) << 52 | place << 1 | 1), (20, uniform % 2**20), (12, 0)]

    found = make_sampler(LAWS[kind], 2.0**55, words=scripted(script)).sample(1)

    assert found.tolist() == [-(block * 2**51 + place)]


WIDE = [(kind, scale) for kind in LAWS for scale in (32.0, math.nextafter(64, 0), 100.1, 1e6, 0.1 * 2**50, 2.0**55)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scale"), WIDE)
def test_acceptance_ends_exactly_at_the_ratio_of_weights(kind, scale):
    """For random blocks and places, through the whole sampler: the words next to the ratio, and ties with it."""
    sampler = make_sampler(LAWS[kind], scale)
    table, r = sampler.table, sampler.place_bits
    truth = Oracle(kind, scale)
    gaps = np.flatnonzero(np.diff(table.thresholds, prepend=0) > 10)
    for block in gaps[:: len(gaps) // 12].tolist():
        place = random.getrandbits(r) or 1
        uniform, size = int(table.thresholds[block]) - 5, (block << r) + place
        proposed = [(12 + r + 1, (uniform >> 20) << (r + 1) | place << 1)]
        proposed += [(20, uniform % 2**20)] * bool(table.direct[uniform >> 20] < 0)
        ratio = math.floor(2**64 * truth.weight(size) / truth.weight(block << r))
        tie, beyond = divmod(ratio, 2**32)

        def attempt(word, *further, proposed=proposed, block=block):
            quick = word >> 20 < table.ratios[block]
            script = [*proposed, (12, word >> 20), *[(20, word % 2**20)] * (not quick), *further]
            return make_sampler(LAWS[kind], scale, words=scripted(script)).attempt(1).tolist()

        assert attempt(tie - 1) == [size]
        assert tie == 2**32 - 1 or attempt(tie + 1) == []
        if 0 < beyond < 2**32 - 1:
            assert attempt(tie, (32, beyond - 1)) == [size]
            assert attempt(tie, (32, beyond + 1)) == []


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("size", [0, 1, 2, AT_ONCE, AT_ONCE + 1])
@pytest.mark.parametrize("scale", [5e-324, 0.1, 31.9, 32.0, 2.0**55])
def test_any_size_is_filled(kind, size, scale):
    drawn = make_sampler(LAWS[kind], scale).sample(size)

    assert drawn.shape == (size,)
    assert drawn.dtype == np.int64


@pytest.mark.parametrize("kind", LAWS)
def test_a_call_with_another_scale_leaves_the_first_as_it_was(kind):
    """Tables are cached by scale, kind and lengths."""
    given = [17, 1234, 2**14 - 1, 2**13]

    def sample(law, scale, lengths=LENGTHS):
        numbers = chain(given, repeat(0))

        def source(bits, size):
            return np.array([next(numbers) % 2**bits for _ in range(size)], dtype=np.uint64)

        return make_sampler(LAWS[law], scale, lengths=lengths, words=source).sample(3).tolist()

    before = sample(kind, 1000.0)
    others = [sample(law, scale) for law in LAWS for scale in (1.0, 500.0, 1000.5, 31.25)]
    sample(kind, 1000.0, Lengths(8, 12))

    assert sample(kind, 1000.0) == before
    assert before not in others[:1]


def test_the_float_is_within_its_proved_error():
    points = np.concatenate([np.linspace(0, 1, 3001), 2.0 ** -np.arange(1.0, 60)])

    found = probability(points)

    worst = max(
        abs(Decimal(each) - oracle.exponential(x)) for x, each in zip(map(Fraction, points), found, strict=True)
    )
    assert worst < Decimal(2) ** -45
    assert DOUBT == 2.0**-40
    assert len(SERIES) == 11


def test_bits_of_words_are_fair_and_independent_of_each_other():
    """By Hoeffding, a share has an error of t with probability at most 2 exp(-2 n t^2): 1e-7 in total."""
    n = 10_000
    lengths = (1, 12, 16, 33, 64)
    allowed = math.sqrt(math.log(6 * len(lengths) * 64 * 64 / 1e-7) / (2 * n))
    for bits in lengths:
        words = system_words(bits, n).astype(np.uint64)
        assert int(words.max()) < 1 << bits
        signs = 2.0 * ((words[:, None] >> np.arange(bits, dtype=np.uint64)) & np.uint64(1)) - 1
        assert np.abs(signs.mean(axis=0)).max() <= 2 * allowed
        together = signs.T @ signs / n - np.eye(bits)
        assert np.abs(together).max() <= 2 * allowed
        following = signs[1:].T @ signs[:-1] / (n - 1)
        assert np.abs(following).max() <= 2 * allowed * 1.001


@pytest.mark.slow
@pytest.mark.parametrize("error", [-1, 1])
def test_an_error_that_the_float_may_have_decides_nothing(error, monkeypatch):
    """If a probability is next to a word's end, and a float on its other side, further bits decide."""
    scaled = (2**32 * oracle.exponential(Fraction(n, 10**6)) for n in count(1))
    near = ((n, each) for n, each in enumerate(scaled, 1) if abs(each - round(each)) < 2**-11)
    n, exact = next((n, each) for n, each in near if (each > round(each)) == (error < 0))
    monkeypatch.setattr(acceptance, "probability", lambda x: np.exp(-x) + error * 2.0**-42)
    tie, x = math.floor(exact), Fraction(n, 10**6)

    def accepted(word, *further):
        first = np.array([word >> 20], dtype=np.uint16)
        source = scripted([(20, word % 2**20), *further])
        return accept(first, np.array([float(x)]), lambda _: x, lengths=LENGTHS, words=source).tolist()

    beyond = math.floor((exact - tie) * 2**32)
    assert accepted(tie, (32, max(beyond - 2, 0))) == [True]
    assert accepted(tie, (32, min(beyond + 2, 2**32 - 1))) == [False]
    assert accepted(tie - 1) == [True]
    assert accepted(tie + 1) == [False]


@pytest.mark.parametrize("bits", [1, 5, 8, 9, 12, 13, 16])
def test_each_word_has_the_same_number_of_bytes_that_give_it(bits, monkeypatch):
    """All bytes, or pairs of bytes, of the operating system occur once each."""
    size = 1 << (8 if bits <= 8 else 16)
    all_bytes = np.arange(size).astype(f"uint{size.bit_length() - 1}").tobytes()
    monkeypatch.setattr(words, "token_bytes", lambda length: all_bytes if length == len(all_bytes) else b"")

    assert (np.bincount(system_words(bits, size)) == [size >> bits] * (1 << bits)).all()


@pytest.mark.parametrize("bits", [17, 20, 31, 32, 33, 52, 63, 64])
def test_long_words_are_the_first_sampled_bits(bits, monkeypatch):
    sampled = np.frombuffer(random.randbytes(8 * 100), dtype=np.uint32 if bits <= 32 else np.uint64)
    monkeypatch.setattr(words, "token_bytes", lambda length: sampled.tobytes()[:length])

    found = system_words(bits, 50).tolist()

    assert found == [each >> (8 * sampled.itemsize - bits) for each in sampled.tolist()[:50]]


def test_each_word_is_new_from_the_operating_system(monkeypatch):
    """Nothing is stored for a later call, which a forked worker could share."""
    taken = []
    monkeypatch.setattr(words, "token_bytes", lambda size: taken.append(size) or bytes(size))
    for kind in LAWS:
        for scale, each in ((1.0, 2), (1e6, 6)):
            for size in (1, 10):
                taken.clear()
                make_sampler(LAWS[kind], scale).sample(size)
                assert sum(taken) == each * size
