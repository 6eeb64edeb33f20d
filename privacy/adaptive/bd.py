"""Policy `bd`: a window is sampled if the error of repeating exceeds that of a new sample.

A sample gets half of the budget that remains.

Neighbours: as in privacy.protection; at the end of each window their histograms are at most r apart in L1.
Sensitivity: a distance from published numbers moves by at most r (triangle inequality).
Guarantee: each decision of the windows that the budget is for costs r / b2 (privacy.adaptive.budget).
Source: Kellaris et al., "Differentially Private Event Sequences over Infinite Streams", VLDB 2014 (BD), corrected in
docs/proofs/adaptive.md.
"""

from dataclasses import dataclass
from typing import ClassVar

from privacy.adaptive.base import AdaptiveTerms, Publication, Rule
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.deciding import Deciding, DecidingRule
from privacy.adaptive.step import Sampled, error_of_a_sample

FINEST = 1 << 20
"""Number of units of the budget of samples, so that halving ends and is exact."""

DECISIONS = 0.5
"""Default share of the budget for decisions: that of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bd(Deciding):
    """Policy `bd` with the settings of a spec; attributes as of `Deciding`."""

    name: ClassVar[str] = "bd"

    def settled(self, terms: AdaptiveTerms) -> Rule:
        return BdRule(period=terms.period, decisions=DECISIONS if self.decisions is None else self.decisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class BdRule(DecidingRule):
    """`Bd` for one release; attributes as of `DecidingRule`."""

    name: ClassVar[str] = "bd"
    units: ClassVar[int] = FINEST

    @property
    def publication(self) -> Publication:
        return Sampled(self, offset=error_of_a_sample)

    def wanted(self, carry: AdaptiveCarry | None, left: int) -> int:
        return left // 2
