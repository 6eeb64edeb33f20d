"""Policy `ba`: a window is sampled if the error of repeating exceeds that of a new sample.

A sample gets the budget of the windows before it that were not sampled; after it as many windows lose their budget.

Neighbours: as in privacy.protection; at the end of each window their histograms are at most r apart in L1.
Sensitivity: a distance from published numbers moves by at most r (triangle inequality).
Guarantee: each decision of the windows that the budget is for costs r / b2 (privacy.adaptive.budget).
Source: Kellaris et al., "Differentially Private Event Sequences over Infinite Streams", VLDB 2014 (BA), corrected in
docs/proofs/adaptive.md.
"""

from dataclasses import dataclass
from typing import ClassVar

from privacy.adaptive.base import AdaptiveTerms, Publication, Rule, usual_share
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.deciding import Deciding, DecidingRule
from privacy.adaptive.step import Sampled, error_of_a_sample
from privacy.noise.kinds import NOISE

OF_RHO = 0.15
"""Default share of rho for decisions with Gaussian samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ba(Deciding):
    """Policy `ba` with the settings of a spec; attributes as of `Deciding`."""

    name: ClassVar[str] = "ba"

    def settled(self, terms: AdaptiveTerms) -> Rule:
        usual = usual_share(terms.distances, terms.noise) if NOISE[terms.noise].pure else OF_RHO
        return BaRule(period=terms.period, decisions=usual if self.decisions is None else self.decisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaRule(DecidingRule):
    """`Ba` for one release; attributes as of `DecidingRule`."""

    name: ClassVar[str] = "ba"

    @property
    def units(self) -> int:
        return self.period.among

    @property
    def publication(self) -> Publication:
        return Sampled(self, offset=error_of_a_sample)

    def wanted(self, carry: AdaptiveCarry | None, left: int) -> int:
        if carry is None:
            return 1
        # A sample that took the units of m windows makes the next m - 1 windows lose theirs.
        last, units = carry.spent[-1]
        return min(max(carry.windows - (last + units - 1), 0), self.period.among)
