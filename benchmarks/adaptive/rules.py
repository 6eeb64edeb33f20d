"""Policies by their names, run over a stream."""

import numpy as np

from benchmarks.adaptive.streams import Ints
from privacy.adaptive.base import AdaptiveTerms, Period, Rule
from privacy.adaptive.budget import scales_for
from privacy.adaptive.table import POLICIES
from privacy.cells.each import Each
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution


def settled(name: str, stream: Ints, span: int | None, **parameters: object) -> Rule:
    """Return the rule of a policy that protects all windows of a stream, or any `span` windows.

    Args:
        name: of the policy.
        stream: histograms, [windows, cells].
        span: protected span in windows; None: everything is protected.
        **parameters: of the policy, in grid steps.
    """
    windows, cells = stream.shape
    period = Period(windows=windows) if span is None else Period(span=span)
    return POLICIES[name](**parameters).settled(AdaptiveTerms(period=period, distances=cells))


def published(rule: Rule, stream: Ints, epsilon: float) -> np.ndarray:
    """Return published numbers [windows, cells] of a stream, if one unit is in one cell.

    Args:
        rule: of the policy.
        stream: exact histograms, [windows, cells].
        epsilon: the budget.
    """
    scales, over, carry = scales_for(rule, budget=epsilon, sensitivity=1), Each(cells=stream.shape[1]), None
    values = []
    for level in stream:
        found = rule.publication.step(scales, over, carry, level, _sample)
        carry = found.carry
        values.append(found.reading.cells)
    return np.array(values)


def _sample(distribution: NoiseDistribution | PrivateChoice, size: int) -> Ints:
    return distribution.noise(size)
