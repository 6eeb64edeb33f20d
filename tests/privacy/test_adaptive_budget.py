"""Adaptive publication held to its budget by an accountant that sees which windows were sampled, and nothing else."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.policy import Adaptive, Gains, Spread
from privacy.adaptive.scales import Scales, scales_for
from privacy.adaptive.step import step
from privacy.noise.distributions import DiscreteLaplace
from tests.privacy.adaptive_runs import CERTAIN, Chosen

EPSILON, R, LENGTH = 1.0, 3, 40


def spread(among: int, *weights: float) -> Spread:
    """Samples that take in proportion to these, and all of the budget in the worst run of so many in a row."""
    runs = [[(start + step) % len(weights) for step in range(among)] for start in range(len(weights))]
    most = max(sum(weights[place] for place in run) for run in runs)
    return Spread(weights=weights, units=tuple(math.floor(w / most * 2**32) for w in weights), least=1.0)


POLICIES = {
    "fixed": Adaptive(policy="fixed", windows=LENGTH, interval=7),
    "fixed, span": Adaptive(policy="fixed", span=10, interval=4),
    "fixed, weights": Adaptive(
        policy="fixed", windows=LENGTH, interval=7, spread=spread(6, 5.0, 1.0, 2.0, 3.0, 1.0, 4.0)
    ),
    "fixed, weights, span": Adaptive(policy="fixed", span=10, interval=4, spread=spread(3, 2.0, 7.0, 1.0, 1.5)),
    "dsft": Adaptive(policy="dsft", windows=LENGTH, decisions=0.3, samples=6, threshold=50),
    "dsft, span": Adaptive(policy="dsft", span=10, decisions=0.3, samples=3, threshold=50),
    "dsat": Adaptive(policy="dsat", windows=LENGTH, decisions=0.3, samples=6, gains=Gains()),
    "dsat, span": Adaptive(policy="dsat", span=10, decisions=0.3, samples=3, gains=Gains()),
    "bd": Adaptive(policy="bd", windows=LENGTH, decisions=0.3),
    "bd, span": Adaptive(policy="bd", span=10, decisions=0.3),
    "ba": Adaptive(policy="ba", windows=LENGTH, decisions=0.3),
    "ba, span": Adaptive(policy="ba", span=10, decisions=0.3),
}

Wish = Callable[[int], bool]


def random(seed: int) -> Wish:
    wished = np.random.default_rng(seed).random(LENGTH) < 0.3
    return lambda window: bool(wished[window])


WISHES: dict[str, Wish] = {
    "always": lambda window: True,
    "never": lambda window: False,
    "late": lambda window: window >= 25,
    "in pairs": lambda window: window % 10 in (8, 9, 0),
    **{f"random {seed}": random(seed) for seed in range(8)},
}


def seen(adaptive: Adaptive, scales: Scales, wish: Wish) -> tuple[list[bool], list[list[str | float]]]:
    """Which windows are sampled where decisions go as they are wished, and what noise was sampled for each window."""
    flags, asked = [], []
    carry: AdaptiveCarry | None = None
    for window in range(LENGTH):
        noise = Chosen(scales, nu=CERTAIN if wish(window) else -CERTAIN)
        found, _, carry = step(adaptive, scales, carry, np.array([[100]]), noise)
        flags.append(bool(found[0]))
        asked.append(noise.asked)
    return flags, asked


def expected(adaptive: Adaptive, flags: Sequence[bool]) -> list[tuple[bool, Fraction | None]]:
    """By window, from flags: whether the data were asked, and the share of all samples' budget that was taken."""
    among = adaptive.windows or adaptive.span or 0
    taken: list[Fraction] = []
    found: list[tuple[bool, Fraction | None]] = []
    skipped, nullified = 0, 0
    for window, flag in enumerate(flags):
        left = 1 - sum(taken[max(0, window - among + 1) :], Fraction(0))
        if adaptive.samples is not None:
            share = Fraction(1, adaptive.samples)
            forced = adaptive.windows is not None and left / share >= adaptive.windows - window
            asked = left > 0 and window > 0 and not forced
        elif adaptive.interval is not None:
            share, asked = Fraction(1, -(-among // adaptive.interval)), False
            if adaptive.spread is not None:
                parts = adaptive.spread.units
                share = Fraction(parts[window // adaptive.interval % len(parts)], 2**32)
        elif adaptive.policy == "bd":
            share = Fraction(int(left * 2**19), 2**20)  # halves of 2^20 units
            asked = window > 0 and share > 0
        else:
            asked = window > 0 and nullified == 0
            share = Fraction(min(skipped + 1, among), among)
            if nullified:
                nullified -= 1
            elif flag:
                nullified, skipped = round(share * among) - 1, 0
            else:
                skipped += 1
        taken.append(share if flag else Fraction(0))
        found.append((asked, share if flag else None))
    return found


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("name", POLICIES)
def test_no_windows_together_spend_more_than_the_budget(name: str, wish: str, noise: str) -> None:
    """Epsilon, or rho: there a run of AboveThreshold that loses e, or a sample D / sigma = e, costs e^2 / 2."""
    adaptive = POLICIES[name]
    power = 1 if noise == "laplace" else 2
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)
    if noise == "gaussian":
        scales = scales_for(adaptive, noise="gaussian", budget=EPSILON / 2, sensitivity=R)
    flags, asked = seen(adaptive, scales, WISHES[wish])
    account = expected(adaptive, flags)

    assert [("test" in noise, [r for r in noise if not isinstance(r, str)]) for noise in asked] == [
        (tested, [] if share is None else [pytest.approx(scales.whole / float(share) ** (1 / power), rel=1e-5)])
        for tested, share in account
    ]
    among = adaptive.windows or adaptive.span or 0
    most = Fraction(0)
    for start in range(LENGTH - among + 1):
        found = asked[start : start + among]
        samples = sum(
            ((R / Fraction(scale)) ** power for each in found for scale in each if not isinstance(scale, str)),
            Fraction(0),
        )
        runs = decisions(scales, asked, flags, start, start + among)
        most = max(most, samples + sum(run**power for run in runs))
    assert most <= EPSILON
    if wish == "always" and adaptive.policy in ("fixed", "dsft", "dsat"):
        assert most > 0.99 * EPSILON


def decisions(
    scales: Scales, asked: Sequence[list[str | float]], flags: Sequence[bool], start: int, stop: int
) -> list[Fraction]:
    """What decisions lose for neighbours that differ from `start` to `stop`: run by run of the threshold's noise."""
    if scales.test is None:
        return []
    tested = [window for window, noise in enumerate(asked) if "test" in noise]
    if scales.threshold is None:
        return [R / Fraction(scales.test)] * sum(start <= window < stop for window in tested)
    begun = [window for window, noise in enumerate(asked) if "threshold" in noise]
    lost = []
    for first, after in zip(begun, [*begun[1:], len(flags)], strict=True):
        run = [window for window in tested if first <= window < after]
        if any(start <= window < stop for window in run):
            above = [window for window in run if flags[window]]
            told = sum(2 if start <= window < stop else 1 for window in above)
            lost.append(R / Fraction(scales.threshold) + told * R / Fraction(scales.test))
    return lost


@pytest.mark.parametrize("name", [name for name, adaptive in POLICIES.items() if adaptive.sparse_vector])
def test_a_threshold_lasts_until_a_sample_in_a_span_and_for_ever_in_everything(name: str) -> None:
    adaptive = POLICIES[name]
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)
    flags, asked = seen(adaptive, scales, WISHES["in pairs"])

    fresh, expected = True, []
    for flag, noise in zip(flags, asked, strict=True):
        if "test" in noise:
            expected.append(fresh)
            fresh = flag and adaptive.span is not None
    assert ["threshold" in noise for noise in asked if "test" in noise] == expected
    assert sum(expected) == (1 if adaptive.span is None else 11)


def test_samples_that_nobody_asked_for_are_used_at_the_end() -> None:
    adaptive = POLICIES["dsft"]
    flags, _ = seen(adaptive, scales_for(adaptive, budget=EPSILON, sensitivity=R), WISHES["never"])

    assert [window for window, flag in enumerate(flags) if flag] == [0, 35, 36, 37, 38, 39]


def test_a_fixed_rhythm_asks_nobody() -> None:
    adaptive = POLICIES["fixed"]
    flags, _ = seen(adaptive, scales_for(adaptive, budget=EPSILON, sensitivity=R), WISHES["never"])

    assert [window for window, flag in enumerate(flags) if flag] == [0, 7, 14, 21, 28, 35]


def test_noise_of_samples_is_sampled_for_each_cell() -> None:
    """Whatever is added is what was asked for: one number a cell."""
    adaptive = Adaptive(policy="fixed", windows=2, interval=2)
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)
    asked: list[tuple[DiscreteLaplace, int]] = []

    def sample(distribution: DiscreteLaplace, size: int) -> np.ndarray:
        asked.append((distribution, size))
        return np.arange(size, dtype=np.int64)

    _, values, _ = step(adaptive, scales, None, np.full((2, 5), 100), sample)

    assert asked == [(DiscreteLaplace(3.0), 5)]
    assert values.tolist() == [[100, 101, 102, 103, 104]] * 2
