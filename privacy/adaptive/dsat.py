"""Policy `dsat`: as `dsft`, with a threshold that is adjusted so that samples are spread over all windows.

Neighbours, sensitivity and guarantee: those of privacy.adaptive.dsft. The adjustment reads only public numbers.
Source: Li et al., "Differentially Private Histogram Publication for Dynamic Datasets", CIKM 2015 (DSAT), corrected.

The offset is floor + margin + unit * sinh(u), u >= 0.

`floor` is the mean L1 norm of a sample's noise. `margin` is the value that the noise of a distance alone exceeds so
rarely that it requests a quarter of the samples. The offset never goes below their sum: a sample that noise requests
gains nothing, and would be missing when the data change. So fewer windows are sampled than possible if little changes.
In a span the last samples have a higher threshold: the margin increases by b2 * reserve * ln((1 + 1 / left) / (1 + 1 /
samples)), almost nothing while many are left. `unit` is about the standard deviation of a noisy distance. sinh is
linear at 0 and exponential beyond, so the adjustment needs to know neither the size of histograms nor their speed.

It is controlled by e, the number of samples ahead of schedule (`samples` of the period's windows, evenly), outside a
dead band: u = proportional * e + integral * (sum of e over the windows, divided by the windows for one sample). A
positive e raises the threshold. This is a PI controller: the derivative of e is a single sample, and noise. Within the
dead band nothing changes; the paper's error |E - delta| / delta is 1 if the controller is exactly on its target, so it
never settles.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from privacy.adaptive.base import AdaptiveTerms, Publication, Rule, usual_share
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.deciding import SAMPLES, CountingRule, Deciding
from privacy.adaptive.scales import Scales
from privacy.adaptive.spending import unspent
from privacy.adaptive.step import Sampled
from privacy.checks import Limits
from privacy.noise.kinds import Mechanism

FARTHEST = 60.0
"""Largest u: sinh of it, 2^85, exceeds any distance."""

LONGEST = 1000.0
"""Largest sum of the integral term, in samples times the time that one is to last."""

RESERVE = 10.0
"""Default reserve of new releases; for the reason see docs/decisions/adaptive-thresholds.md."""


GAIN = Limits(0, 1000)
"""Limits of each gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """Gains of the controller of the threshold.

    Attributes:
        proportional: gain for each sample ahead of schedule.
        integral: gain for a sample ahead of schedule for as long as one sample is to last.
        dead_band: smaller numbers of samples ahead of schedule or behind are ignored.
    """

    proportional: float = 1.0
    integral: float = 0.1
    dead_band: float = 1.0

    def __post_init__(self) -> None:
        GAIN.check("gains.proportional", self.proportional)
        GAIN.check("gains.integral", self.integral)
        GAIN.check("gains.dead_band", self.dead_band)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dsat(Deciding):
    """Policy `dsat` with the settings of a spec.

    Attributes:
        samples: largest number of samples among all windows, or in any span.
        gains: gains of the controller.
    """

    name: ClassVar[str] = "dsat"
    missing: ClassVar[Mapping[str, str]] = {"samples": SAMPLES}

    samples: int
    gains: Gains = field(default_factory=Gains)

    def settled(self, terms: AdaptiveTerms) -> Rule:
        return DsatRule(
            period=terms.period,
            decisions=usual_share(terms.distances, terms.noise) if self.decisions is None else self.decisions,
            samples=self.samples,
            gains=self.gains,
            reserve=RESERVE if terms.period.windows is None else 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DsatRule(CountingRule):
    """`Dsat` for one release.

    Attributes:
        gains: gains of the controller.
        reserve: in a span, how much its last samples raise the threshold.
    """

    name: ClassVar[str] = "dsat"

    gains: Gains = field(default_factory=Gains)
    reserve: float = 0.0

    def __post_init__(self) -> None:
        CountingRule.__post_init__(self)
        if not 0 <= self.reserve <= 1000 or (self.reserve and self.period.span is None):
            raise ValueError(f"reserve={self.reserve} must lie between 0 and 1000, and is for a span")

    @property
    def publication(self) -> Publication:
        return Sampled(self, offset=self.offset, undecided=self.undecided, memory=self.remembered)

    @property
    def pace(self) -> float:
        """Number of samples for each window, if they are spread evenly."""
        return self.samples / self.period.among

    def remembered(self, carry: AdaptiveCarry | None, sampled: bool) -> tuple[float, ...]:
        """Return the number of samples ahead of schedule, and the sum of the controlled errors so far."""
        last, past = (0.0, 0.0) if carry is None else carry.memory
        most, bound = float(self.samples), LONGEST * self.period.among / self.samples
        ahead = min(max(last + sampled - self.pace, -most), most)
        return ahead, min(max(past + beyond(ahead, self.gains.dead_band), -bound), bound)

    def offset(self, scales: Scales, carry: AdaptiveCarry, floor: float, root: float) -> int:
        """Return the value with which a distance is compared, in grid steps: a function of public values.

        Args:
            scales: scales of the noise.
            carry: carry of the previous step.
            floor: mean L1 norm of the noise of the last sample, in grid steps.
            root: square root of the squared L2 norm of that noise, if the noise of a node has variance 1.
        """
        ahead, so_far = carry.memory
        b1, b2 = scales.threshold or 0, scales.test or 0
        margin = b2 * math.log(2 / self.pace)
        if self.reserve:
            left = max(unspent(self, carry), 1)
            margin += b2 * self.reserve * math.log((1 + 1 / left) / (1 + 1 / self.samples))
        unit = b1 + b2 + scales.sample(1).scale * root
        u = self.gains.proportional * beyond(ahead, self.gains.dead_band)
        u += self.gains.integral * so_far * self.pace
        return round(floor + margin + unit * math.sinh(min(max(u, 0.0), FARTHEST)))

    def settings(self, grid: float, noise: Mechanism) -> dict[str, Any]:
        return {**self.period.settings, "samples": self.samples, "decisions": self.decisions}


def beyond(number: float, band: float) -> float:
    """Return how far a number is outside a dead band around 0, with its sign.

    >>> beyond(2.5, 1.0), beyond(-0.5, 1.0), beyond(-3.0, 1.0)
    (1.5, 0.0, -2.0)
    """
    return max(number - band, 0.0) + min(number + band, 0.0)
