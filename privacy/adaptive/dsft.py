"""Policy `dsft`: a window is sampled if its distance from the last published numbers exceeds a threshold.

At most C windows are sampled, of all windows or in any span. The offset is floor + threshold.

Neighbours: as in privacy.protection; at the end of each window their histograms are at most r apart in L1.
Sensitivity: a distance from published numbers moves by at most r (triangle inequality).
Guarantee: AboveThreshold once with C - 1 answers 'above' for everything with Laplace samples, restarted after each
sample otherwise (privacy.adaptive.budget; docs/proofs/adaptive.md).
Source: Li et al., "Differentially Private Histogram Publication for Dynamic Datasets", CIKM 2015 (DSFT), corrected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privacy.adaptive.base import THRESHOLD, AdaptiveTerms, Publication, Rule, usual_share
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.deciding import SAMPLES, CountingRule, Deciding
from privacy.adaptive.scales import Scales
from privacy.adaptive.step import Sampled
from privacy.checks import at_least
from privacy.noise.kinds import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class Dsft(Deciding):
    """Policy `dsft` with the settings of a spec.

    Attributes:
        samples: largest number of samples among all windows, or in any span.
        threshold: threshold in the measure's units, summed over all cells.
    """

    name: ClassVar[str] = "dsft"
    missing: ClassVar[Mapping[str, str]] = {
        "samples": SAMPLES,
        "threshold": "distance beyond the noise of a sample, over all cells; add threshold: 100",
    }

    samples: int
    threshold: float

    def __post_init__(self) -> None:
        THRESHOLD.check("threshold", self.threshold)

    def settled(self, terms: AdaptiveTerms) -> Rule:
        return DsftRule(
            period=terms.period,
            decisions=usual_share(terms.distances, terms.noise) if self.decisions is None else self.decisions,
            samples=self.samples,
            threshold=round(self.threshold / terms.grid),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DsftRule(CountingRule):
    """`Dsft` for one release.

    Attributes:
        threshold: grid steps; a window is sampled if its L1 distance from the last published numbers, beyond what the
            noise of a sample accounts for, exceeds this.

    >>> from privacy.adaptive.base import Period
    >>> DsftRule(period=Period(windows=365), decisions=0.2, samples=20, threshold=500).units
    20
    """

    name: ClassVar[str] = "dsft"

    threshold: int

    def __post_init__(self) -> None:
        CountingRule.__post_init__(self)
        at_least("threshold", self.threshold, 0)

    @property
    def publication(self) -> Publication:
        return Sampled(self, offset=self.offset, undecided=self.undecided)

    def offset(self, scales: Scales, carry: AdaptiveCarry, floor: float, root: float) -> int:
        """Return the value with which a distance is compared, in grid steps: a function of public values.

        Args:
            scales: scales of the noise.
            carry: carry of the previous step.
            floor: mean L1 norm of the noise of the last sample, in grid steps.
            root: square root of the squared L2 norm of that noise, if the noise of a node has variance 1.
        """
        return round(floor) + self.threshold

    def settings(self, grid: float, noise: Mechanism) -> dict[str, Any]:
        of_samples = {"samples": self.samples, "threshold": self.threshold * grid}
        return {**self.period.settings, **of_samples, "decisions": self.decisions}
