"""Cost of adaptive publication, computed exactly from the decisions of `step`: at most epsilon, and not much less."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from privacy.adaptive.ba import BaRule
from privacy.adaptive.base import Period, Rule
from privacy.adaptive.bd import BdRule
from privacy.adaptive.budget import scales_for, spent
from privacy.adaptive.dsat import DsatRule, Gains
from privacy.adaptive.dsft import DsftRule
from privacy.adaptive.scales import Scales
from tests.privacy.adaptive.runs import log_chance, played

EPSILON, R = 1.0, 2
FAR = 1000
"""Many times the scale of any noise here, so that only tails count, where losses are largest."""

Answers = list[tuple[bool, int, int]]
"""By window: whether it is sampled, its distance beyond the offset, and the distance of neighbours."""
BELOW, ABOVE = (False, FAR, R), (True, -FAR, R)


START: Answers = [(True, 0, 0), *[(False, 0, 0)] * 20]
"""Windows before the span, which do not differ."""

CASES: dict[str, tuple[float, Rule, Answers]] = {
    "dsft": (
        0.999,
        DsftRule(period=Period(windows=30), decisions=0.5, samples=3, threshold=10_000),
        [ABOVE, *[BELOW] * 12, ABOVE, ABOVE, BELOW, BELOW],
    ),
    "dsat": (
        0.999,
        DsatRule(period=Period(windows=30), decisions=0.5, samples=3, gains=Gains()),
        [ABOVE, *[BELOW] * 12, ABOVE, ABOVE, BELOW, BELOW],
    ),
    "dsft of a span": (
        0.999,
        DsftRule(period=Period(span=20), decisions=0.5, samples=2, threshold=10_000),
        [*START, *[*[BELOW] * 9, ABOVE] * 2],
    ),
    "dsat of a span": (
        0.999,
        DsatRule(period=Period(span=20), decisions=0.5, samples=2, gains=Gains()),
        [*START, *[*[BELOW] * 9, ABOVE] * 2],
    ),
    "bd of a span": (
        0.96,  # halves do not add up to 1
        BdRule(period=Period(span=8), decisions=0.2),
        [*START, *[ABOVE] * 5, *[BELOW] * 3],
    ),
    "ba": (0.92, BaRule(period=Period(windows=8), decisions=0.4), [ABOVE, *[BELOW] * 6, ABOVE]),
    "ba of a span": (0.97, BaRule(period=Period(span=8), decisions=0.4), [*START, *[BELOW] * 7, ABOVE]),
}
"""By name: the least share of epsilon that is really lost, the policy, and a run with that loss."""


def loss(adaptive: Rule, scales: Scales, answers: Answers, *, resampled: bool = True, samples: bool = True) -> float:
    """Return ln of the ratio of the probabilities of a publication for two neighbours."""
    one, other, flags, values = played(adaptive, scales, answers)
    assert np.abs(one - other).max() == R
    chances = [
        log_chance(adaptive, scales, stream, flags, values, resampled=resampled, samples=samples)
        for stream in (one, other)
    ]
    return chances[0] - chances[1]


@pytest.mark.parametrize("case", CASES)
def test_the_cost_is_exactly_the_stated_one(case: str) -> None:
    least, adaptive, answers = CASES[case]
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)

    assert spent(adaptive, scales) <= EPSILON
    assert least * EPSILON < loss(adaptive, scales, answers) <= EPSILON + 1e-9


RUN_BY_RUN = {
    "dsft": [ABOVE, *[BELOW] * 12, ABOVE, *[BELOW] * 12, ABOVE],
    "dsft of a span": CASES["dsft of a span"][2],
    "dsat of a span": CASES["dsat of a span"][2],
    "ba of a span": [*START, *[BELOW] * 7, ABOVE],
}
"""By name of a case: a run in which each run of AboveThreshold, or each decision, has its largest loss."""


@pytest.mark.slow
@pytest.mark.parametrize("case", RUN_BY_RUN)
def test_with_gaussian_samples_each_run_of_decisions_loses_its_part_of_rho(case: str) -> None:
    """A run that loses e is e^2 / 2-zCDP, which is the best known bound: a smaller loss would waste noise."""
    _, adaptive, _ = CASES[case]
    rho, share = 0.125, adaptive.decisions or 0
    scales = scales_for(adaptive, noise="gaussian", budget=rho, sensitivity=R)
    answers = RUN_BY_RUN[case]

    runs, _ = adaptive.runs(fresh=True) or (adaptive.period.among, 1)
    each = loss(adaptive, scales, answers, samples=False) / runs
    assert (0.8 if adaptive.name == "ba" else 0.99) * share * rho < runs * each**2 / 2 <= share * rho * (1 + 1e-9)
    for noise in ("threshold", "test"):
        if getattr(scales, noise) is not None:
            half = replace(scales, **{noise: getattr(scales, noise) / 2})
            assert runs * (loss(adaptive, half, answers, samples=False) / runs) ** 2 / 2 > 1.05 * share * rho


def test_gaussian_samples_spend_the_rest_of_rho() -> None:
    """The Renyi divergence of each sample, computed from the probabilities of discrete Gaussian noise."""
    adaptive = CASES["dsft of a span"][1]
    scales = scales_for(adaptive, noise="gaussian", budget=0.02, sensitivity=R)
    for noise, least in ((scales, 0.999), (replace(scales, whole=scales.whole / 2), 3.9995)):
        scale, n = noise.sample(1).scale, np.arange(-2000, 2001)
        lost = (n + R) ** 2 - n**2
        for order in (1.5, 2.0, 10.0):
            log_mean = logsumexp(-(n**2) / (2 * scale**2) + (order - 1) * lost / (2 * scale**2))
            divergence = (log_mean - logsumexp(-(n**2) / (2 * scale**2))) / (order - 1)
            assert least < divergence / (order * 0.01 / 2) < least + 0.0011


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["threshold", "test", "whole"])
@pytest.mark.parametrize("case", ["dsft", "dsat", "dsft of a span", "dsat of a span"])
def test_half_of_any_noise_is_too_little(case: str, noise: str) -> None:
    _, adaptive, answers = CASES[case]
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)

    assert loss(adaptive, replace(scales, **{noise: getattr(scales, noise) / 2}), answers) > 1.05 * EPSILON


def test_a_threshold_whose_noise_is_never_sampled_again_costs_more_in_a_span() -> None:
    """Answers before the span reveal the noise; then each answer in the span has a cost."""
    adaptive = DsftRule(period=Period(span=20), decisions=0.9, samples=1, threshold=10_000)
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=R)
    pinned = [(False, 60, 0), (False, 60, 0), (True, 60, 0), *[(False, 0, 0)] * 19]
    answers = [(True, 0, 0), *[(False, 0, 0)] * 19, *pinned * 8, *[BELOW] * 20]

    assert loss(adaptive, scales, answers) <= EPSILON
    assert loss(adaptive, scales, answers, resampled=False) > 1.5 * EPSILON
