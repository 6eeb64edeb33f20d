"""Steps of adaptive publication: many steps equal one, distances are exact, the controller spreads samples."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from privacy.adaptive.ba import BaRule
from privacy.adaptive.base import AdaptiveTerms, Period
from privacy.adaptive.budget import scales_for, spent
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.dsat import RESERVE, Dsat, DsatRule, Gains
from privacy.adaptive.dsft import DsftRule
from privacy.adaptive.fixed import FixedRule
from privacy.adaptive.scales import Scales
from privacy.adaptive.step import CHUNK, distance
from privacy.noise.distributions import DiscreteLaplace
from privacy.planning.document import CODEC
from tests.privacy.adaptive.runs import offset, step
from tests.privacy.adaptive.test_spending import POLICIES

LENGTH, CELLS = 40, 3
SPAN = Period(span=5)


class Played:
    """Noise from a list, in the order of the requests."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(8)

    def __call__(self, distribution: DiscreteLaplace, size: int) -> np.ndarray:
        return np.rint(self.rng.laplace(scale=distribution.scale, size=size)).astype(np.int64)


def levels(length: int = LENGTH) -> np.ndarray:
    return np.random.default_rng(9).integers(-60, 60, (length, CELLS)).cumsum(axis=0)


@pytest.mark.parametrize("name", POLICIES)
def test_many_steps_equal_one_step(name: str) -> None:
    adaptive = POLICIES[name]
    scales = scales_for(adaptive, budget=1.0, sensitivity=1)
    once = step(adaptive, scales, None, levels(), Played())
    noise, carry, parts = Played(), None, []
    for rows in np.split(levels(), [1, 2, 9, 10, 25]):
        flags, values, carry = step(adaptive, scales, carry, rows, noise)
        parts.append((flags, values))
        kept = json.loads(json.dumps(CODEC.write(carry)))
        carry = CODEC.read(AdaptiveCarry, kept, published=carry.published)

    assert carry is not None
    assert np.concatenate([flags for flags, _ in parts]).tolist() == once[0].tolist()
    assert np.concatenate([values for _, values in parts]).tolist() == once[1].tolist()
    assert CODEC.write(carry) == CODEC.write(once[2])
    assert carry.published.tolist() == once[2].published.tolist()
    assert 1 < once[0].sum() < LENGTH


def test_a_carry_contains_only_the_last_window() -> None:
    adaptive = POLICIES["dsat, span"]
    _, _, carry = step(adaptive, scales_for(adaptive, budget=4.0, sensitivity=1), None, levels(), Played())

    assert carry.published.base is None
    assert len(carry.spent) <= 3


def test_a_written_carry_is_read_back() -> None:
    for adaptive in POLICIES.values():
        scales = scales_for(adaptive, budget=0.7, sensitivity=5)
        assert CODEC.read(type(adaptive), json.loads(json.dumps(CODEC.write(adaptive)))) == adaptive
        assert CODEC.read(Scales, json.loads(json.dumps(CODEC.write(scales)))) == scales


def test_all_of_epsilon_is_used() -> None:
    for adaptive, epsilon in itertools.product(POLICIES.values(), (0.1, 1.0, 3.0)):
        assert epsilon * (1 - 1e-12) < spent(adaptive, scales_for(adaptive, budget=epsilon, sensitivity=7)) <= epsilon


@pytest.mark.parametrize("decisions", [1e-300, 1 - 1e-16])
def test_noise_too_large_to_be_sampled_is_refused(decisions: float) -> None:
    """Also if floats cannot represent the scale."""
    with pytest.raises(ValueError, match="needs noise beyond"):
        scales_for(BaRule(period=Period(span=7), decisions=decisions), budget=1e-10, sensitivity=1)


def test_the_split_between_threshold_and_distances_is_the_best() -> None:
    """The sum of both variances is the least, compared with other splits of the same epsilon."""
    adaptive = DsftRule(period=Period(windows=100), decisions=0.5, samples=11, threshold=0)
    scales = scales_for(adaptive, budget=2.0, sensitivity=1)

    def wide(share: float) -> float:
        return DiscreteLaplace(1 / share).variance + DiscreteLaplace(20 / (1 - share)).variance

    best = min(wide(share) for share in np.linspace(0.01, 0.99, 99))
    assert scales.threshold is not None
    assert scales.test is not None
    ours = DiscreteLaplace(scales.threshold).variance + DiscreteLaplace(scales.test).variance
    assert ours <= best


def test_a_distance_moves_by_no_more_than_the_histogram_does() -> None:
    """Also if the histogram itself wraps at the ends of 64 bits, as sums of bounded values can."""
    rng = np.random.default_rng(10)
    ends = np.array([-(2**63), -(2**63) + 3, -(2**45), -5, 0, 5, 2**45, 2**45 + 2, 2**63 - 4, 2**63 - 1])
    for _ in range(300):
        x, published = rng.choice(ends, 6), rng.choice(ends, 6)
        change = rng.integers(-3, 4, 6)
        assert abs(distance(x, published) - distance(x + change, published)) <= np.abs(change).sum()


def test_a_distance_is_exact_over_more_cells_than_a_chunk_and_beyond_64_bits() -> None:
    cells = 2 * CHUNK + 5
    far, near = np.full(cells, 2**45), np.full(cells, -(2**45) + 1)

    assert distance(far, near) == cells * (2**46 - 1)
    assert distance(far * 2**17, -far * 2**17) == cells * 2**46
    assert distance(far * 2**17, far * 2**17 - 2) == 2 * cells


@pytest.mark.slow
def test_steering_spreads_samples_over_all_windows() -> None:
    """For any distances of histograms: no threshold is given. Only the data are random here, with a fixed seed."""
    for scale in (1, 1000, 1_000_000):
        rng = np.random.default_rng(11)
        stream = (rng.normal(0, scale, (600, 4)).cumsum(axis=0) * 100).astype(np.int64)
        adaptive = DsatRule(period=Period(windows=600), decisions=0.2, samples=60, gains=Gains())
        scales = scales_for(adaptive, budget=200.0, sensitivity=1)
        flags, _, _ = step(adaptive, scales, None, stream, lambda distribution, size: np.zeros(size, dtype=np.int64))

        late = np.abs(flags.cumsum()[200:] - 0.1 * np.arange(201, 601))
        assert late.max() < 8
        assert flags.sum() == 60


def test_the_last_samples_of_a_span_have_a_higher_threshold_and_not_those_of_everything() -> None:
    """By ten scales of a distance's noise times ln(4/3), if one of two samples is used; by nothing if none is."""
    (old, new), found = (replace(POLICIES["dsat, span"], samples=2, reserve=reserve) for reserve in (0.0, RESERVE)), []
    scales = scales_for(old, budget=1.0, sensitivity=1)
    for used in ((), ((3, 1),)):
        carry = AdaptiveCarry(windows=5, published=np.zeros(1, dtype=np.int64), spent=used, rho=None, memory=(0.0, 0.0))
        found.append(offset(new, scales, carry, units=1, cells=1) - offset(old, scales, carry, units=1, cells=1))

    assert scales.test is not None
    assert found == [0, pytest.approx(10 * scales.test * math.log(4 / 3), abs=1)]
    policy = Dsat(samples=2)
    assert policy.settled(AdaptiveTerms(period=Period(span=10))).reserve == RESERVE
    assert policy.settled(AdaptiveTerms(period=Period(windows=10))).reserve == 0


def test_a_threshold_is_not_lowered_to_where_only_noise_triggers_samples() -> None:
    adaptive = DsatRule(period=Period(span=50), decisions=0.2, samples=10, gains=Gains())
    scales = scales_for(adaptive, budget=1.0, sensitivity=1)
    quiet = np.full((300, 4), 1000)
    flags, _, _ = step(adaptive, scales, None, quiet, lambda distribution, size: np.full(size, 1))

    assert flags.tolist() == [True, *[False] * 299]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Period(), "give windows"),
        (lambda: Period(windows=5, span=5), "give windows"),
        (lambda: Period(span=0), "span: expected at least 1, not 0"),
        (lambda: BaRule(period=SPAN, decisions=1.0), "decisions: expected a number below 1"),
        (lambda: DsftRule(period=SPAN, samples=6, decisions=0.5, threshold=1), "samples: expected at most"),
        (
            lambda: DsftRule(period=Period(windows=5), samples=1, decisions=0.5, threshold=1),
            "samples: expected at least 2, not 1",
        ),
        (lambda: DsftRule(period=SPAN, samples=1, decisions=0.5, threshold=-1), "threshold: expected at least 0"),
        (lambda: FixedRule(period=SPAN, interval=0), "interval: expected at least 1"),
        (lambda: DsatRule(period=Period(windows=5), samples=2, decisions=0.5, reserve=1.0), "is for a span"),
    ],
)
def test_wrong_parameters_are_refused(made: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made()


def test_wrong_steps_are_refused() -> None:
    adaptive = FixedRule(period=Period(windows=LENGTH), interval=7)
    scales = scales_for(adaptive, budget=1.0, sensitivity=1)
    other = scales_for(POLICIES["dsft"], budget=1.0, sensitivity=1)
    _, _, carry = step(adaptive, scales, None, levels(), Played())

    with pytest.raises(ValueError, match="41 windows, but the release ends after 40"):
        step(adaptive, scales, carry, levels(1), Played())
    longer = FixedRule(period=Period(span=LENGTH), interval=7)
    with pytest.raises(ValueError, match="a sample: not of 2 cells"):
        step(longer, scales, carry, levels(1)[:, :2].copy(), Played())
    with pytest.raises(ValueError, match="for another policy than fixed"):
        step(adaptive, other, None, levels(), Played())
    with pytest.raises(ValueError, match="expected int64"):
        step(adaptive, scales, None, levels().astype(float), Played())
    with pytest.raises(ValueError, match="needs noise beyond"):
        scales_for(adaptive, budget=1e-20, sensitivity=1)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"spent": [[3, 1], [3, 1]]}, "spent: expected windows that have closed, in order"),
        ({"spent": [[40, 1]]}, "spent: expected windows that have closed, in order"),
        ({"spent": [[3, 0]]}, "spent: expected windows that have closed, in order, each with its units"),
        ({"rho": 0.5}, "rho: expected an integer"),
        ({"more": 1}, "more: unknown"),
    ],
)
def test_a_broken_carry_is_refused(broken: dict, said: str) -> None:
    adaptive = POLICIES["dsft"]
    _, _, carry = step(adaptive, scales_for(adaptive, budget=1.0, sensitivity=1), None, levels(), Played())

    with pytest.raises(ValueError, match=said):
        CODEC.read(AdaptiveCarry, {**CODEC.write(carry), **broken}, published=carry.published)
