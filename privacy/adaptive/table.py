"""Table of policies. A new policy is a module in this package and an entry here; the spec's model has all their keys.

fixed     sampled at a fixed interval
dsft      sampled if its distance from the last published numbers exceeds a threshold, at most C times
dsat      as dsft, with a threshold that is adjusted so that samples are spread over all windows
bd, ba    sampled if the error of repeating exceeds that of a new sample; a sample gets half of the budget that
          remains (bd), or that of the windows before it that were not sampled (ba)
pegasus   always sampled, and each cell smoothed over windows in which it hardly changed
"""

from privacy.adaptive.ba import Ba, BaRule
from privacy.adaptive.base import Policy, Rule
from privacy.adaptive.bd import Bd, BdRule
from privacy.adaptive.dsat import Dsat, DsatRule
from privacy.adaptive.dsft import Dsft, DsftRule
from privacy.adaptive.fixed import Fixed, FixedRule
from privacy.adaptive.pegasus import Pegasus, PegasusRule

_TABLE: tuple[tuple[type[Policy], type[Rule]], ...] = (
    (Fixed, FixedRule),
    (Dsft, DsftRule),
    (Dsat, DsatRule),
    (Bd, BdRule),
    (Ba, BaRule),
    (Pegasus, PegasusRule),
)

POLICIES: dict[str, type[Policy]] = {policy.name: policy for policy, _ in _TABLE}
"""Policies by their names in specs and plans."""

RULES: dict[str, type[Rule]] = {rule.name: rule for _, rule in _TABLE}
