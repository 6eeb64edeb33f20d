"""Samples of a histogram, made with a sketcher of privacy.cells.table.

Cells, and the values for decisions, are computed from public numbers alone: post-processing. Distances are measured
between integers: cells, or sums over disjoint sets of cells, which are no further apart than the cells. The numbers
that they are measured from are public, so neighbours' distances differ by at most r, as for cells. For the cost of a
sample see privacy.adaptive.budget.
"""

from collections.abc import Callable

from privacy.adaptive.carry import Ints
from privacy.adaptive.scales import Scales
from privacy.cells.base import Sketcher
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution

Sample = Callable[[NoiseDistribution | PrivateChoice, int], Ints]
"""Returns fresh independent samples of a distribution, int64 [samples]; the caller provides their source."""


def sketched(over: Sketcher, scales: Scales, level: Ints, units: int, sample: Sample) -> Ints:
    """Return the public numbers of a sample that takes `units` units of the budget, int64 [numbers].

    Args:
        over: makes samples.
        scales: scales of the noise, calibrated for `over`.
        level: exact histogram in grid steps, int64 [cells].
        units: units of the budget.
        sample: returns noise.

    Raises:
        ValueError: the sketcher makes private choices, but the scales are for none.
    """
    noise = scales.sample(units)

    def pick(scores: Ints) -> int:
        return int(sample(PrivateChoice(scores, scales.split(units)), 1)[0])

    return over.sketch(level, pick, lambda size: sample(noise, size))
