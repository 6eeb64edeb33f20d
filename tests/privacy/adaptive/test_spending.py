"""Every rule keeps its budget, checked by an accountant that sees only which windows were sampled."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from privacy.adaptive.ba import BaRule
from privacy.adaptive.base import Period, Rule
from privacy.adaptive.bd import BdRule
from privacy.adaptive.budget import scales_for
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.dsat import DsatRule, Gains
from privacy.adaptive.dsft import DsftRule
from privacy.adaptive.fixed import FixedRule, Spread
from privacy.adaptive.scales import Scales
from privacy.noise.distributions import DiscreteLaplace
from tests.privacy.adaptive.runs import CERTAIN, Chosen, step

EPSILON, R, LENGTH = 1.0, 3, 40


def spread(among: int, *weights: float) -> Spread:
    """Return samples with units in these proportions, and the whole budget in the worst run of consecutive ones."""
    runs = [[(start + step) % len(weights) for step in range(among)] for start in range(len(weights))]
    most = max(sum(weights[place] for place in run) for run in runs)
    return Spread(weights=weights, units=tuple(math.floor(w / most * 2**32) for w in weights), least=1.0)


POLICIES = {
    "fixed": FixedRule(period=Period(windows=LENGTH), interval=7),
    "fixed, span": FixedRule(period=Period(span=10), interval=4),
    "fixed, weights": FixedRule(
        period=Period(windows=LENGTH), interval=7, spread=spread(6, 5.0, 1.0, 2.0, 3.0, 1.0, 4.0)
    ),
    "fixed, weights, span": FixedRule(period=Period(span=10), interval=4, spread=spread(3, 2.0, 7.0, 1.0, 1.5)),
    "dsft": DsftRule(period=Period(windows=LENGTH), decisions=0.3, samples=6, threshold=50),
    "dsft, span": DsftRule(period=Period(span=10), decisions=0.3, samples=3, threshold=50),
    "dsat": DsatRule(period=Period(windows=LENGTH), decisions=0.3, samples=6, gains=Gains()),
    "dsat, span": DsatRule(period=Period(span=10), decisions=0.3, samples=3, gains=Gains()),
    "bd": BdRule(period=Period(windows=LENGTH), decisions=0.3),
    "bd, span": BdRule(period=Period(span=10), decisions=0.3),
    "ba": BaRule(period=Period(windows=LENGTH), decisions=0.3),
    "ba, span": BaRule(period=Period(span=10), decisions=0.3),
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


def seen(adaptive: Rule, scales: Scales, wish: Wish) -> tuple[list[bool], list[list[str | float]]]:
    """Return which windows are sampled under given decisions, and which noise was sampled for each window."""
    flags, asked = [], []
    carry: AdaptiveCarry | None = None
    for window in range(LENGTH):
        noise = Chosen(scales, nu=CERTAIN if wish(window) else -CERTAIN)
        found, _, carry = step(adaptive, scales, carry, np.array([[100]]), noise)
        flags.append(bool(found[0]))
        asked.append(noise.asked)
    return flags, asked


def expected(adaptive: Rule, flags: Sequence[bool]) -> list[tuple[bool, Fraction | None]]:
    """Return by window, from flags: whether there was a decision, and the share of the samples' budget."""
    among = adaptive.period.among
    taken: list[Fraction] = []
    found: list[tuple[bool, Fraction | None]] = []
    skipped, nullified = 0, 0
    for window, flag in enumerate(flags):
        left = 1 - sum(taken[max(0, window - among + 1) :], Fraction(0))
        if adaptive.name in ("dsft", "dsat"):
            share = Fraction(1, adaptive.samples)
            forced = adaptive.period.windows is not None and left / share >= adaptive.period.windows - window
            asked = left > 0 and window > 0 and not forced
        elif adaptive.name == "fixed":
            share, asked = Fraction(1, -(-among // adaptive.interval)), False
            if adaptive.spread is not None:
                parts = adaptive.spread.units
                share = Fraction(parts[window // adaptive.interval % len(parts)], 2**32)
        elif adaptive.name == "bd":
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


@pytest.mark.few(83)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("name", POLICIES)
def test_no_windows_together_spend_more_than_the_budget(name: str, wish: str, noise: str) -> None:
    """In rho, a run of AboveThreshold that loses e, or a sample D / sigma = e, costs e^2 / 2."""
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
    among = adaptive.period.among
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
    if wish == "always" and adaptive.name in ("fixed", "dsft", "dsat"):
        assert most > 0.99 * EPSILON


def decisions(
    scales: Scales, asked: Sequence[list[str | float]], flags: Sequence[bool], start: int, stop: int
) -> list[Fraction]:
    """Return the loss of decisions for neighbours that differ from `start` to `stop`, by run."""
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


@pytest.mark.parametrize("name", [name for name, adaptive in POLICIES.items() if adaptive.runs(fresh=False)])
def test_a_threshold_lasts_until_a_sample_in_a_span_and_without_end_for_everything(name: str) -> None:
    adaptive = POLICIES[name]
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)
    flags, asked = seen(adaptive, scales, WISHES["in pairs"])

    fresh, expected = True, []
    for flag, noise in zip(flags, asked, strict=True):
        if "test" in noise:
            expected.append(fresh)
            fresh = flag and adaptive.period.span is not None
    assert ["threshold" in noise for noise in asked if "test" in noise] == expected
    assert sum(expected) == (1 if adaptive.period.span is None else 11)


def test_unused_samples_are_taken_at_the_end() -> None:
    adaptive = POLICIES["dsft"]
    flags, _ = seen(adaptive, scales_for(adaptive, budget=EPSILON, sensitivity=R), WISHES["never"])

    assert [window for window, flag in enumerate(flags) if flag] == [0, 35, 36, 37, 38, 39]


def test_a_fixed_interval_makes_no_decisions() -> None:
    adaptive = POLICIES["fixed"]
    flags, _ = seen(adaptive, scales_for(adaptive, budget=EPSILON, sensitivity=R), WISHES["never"])

    assert [window for window, flag in enumerate(flags) if flag] == [0, 7, 14, 21, 28, 35]


def test_noise_of_samples_is_sampled_for_each_cell() -> None:
    """The requested noise is added: one number for each cell."""
    adaptive = FixedRule(period=Period(windows=2), interval=2)
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)
    asked: list[tuple[DiscreteLaplace, int]] = []

    def sample(distribution: DiscreteLaplace, size: int) -> np.ndarray:
        asked.append((distribution, size))
        return np.arange(size, dtype=np.int64)

    _, values, _ = step(adaptive, scales, None, np.full((2, 5), 100), sample)

    assert asked == [(DiscreteLaplace(3.0), 5)]
    assert values.tolist() == [[100, 101, 102, 103, 104]] * 2
