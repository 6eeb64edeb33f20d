"""The part of a release that looks at the data over time: one query's levels, published anew or repeated.

Its claim is pure epsilon, whatever the data do: privacy.adaptive.scales. It is composed with the other parts as one
measurement of so much epsilon.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from privacy.accounting.composition import Measurement
from privacy.adaptive.carry import offered
from privacy.adaptive.choice import AdaptiveChoice
from privacy.adaptive.policy import Adaptive
from privacy.adaptive.scales import Scales, scales_for, spent
from privacy.constraint import AtOnce, Constraint, Within, parts
from privacy.measure import Measure
from privacy.protection import Protection, Span
from privacy.upward import above, below


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptivePart:
    """How the levels of one query are published. All of it is public.

    Attributes:
        query: the query's place among the demands.
        share: its epsilon, rounded up.
    """

    query: int
    adaptive: Adaptive
    scales: Scales
    share: float

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell in the first window, which is sampled whatever the data, in grid steps."""
        return math.sqrt(self.scales.sample(offered(self.adaptive, None)).variance)


def adaptive_of(
    choice: AdaptiveChoice, *, cells: int, measure: Measure, protects: Protection, window: int, windows: int | None
) -> Adaptive:
    """The policy for a release.

    Raises:
        ValueError: everything is protected and the release has no end, or a parameter does not fit.
    """
    span = protects.boundaries(window) if isinstance(protects, Span) else None
    if span is None and windows is None:
        raise ValueError("adaptive publication needs an end of the schedule, or a span that is protected")
    # Levels at the ends of windows: those of the release, and not that at its start.
    return choice.settled(
        windows=windows if span is None else None, span=span, cells=cells, grid=measure.components[0].grid
    )


def one_measurement(weight: float) -> Measurement:
    """A part that costs one epsilon at a scale of 1."""
    return Measurement(l1=1.0, l2=1.0, nodes=1, node_l1=1.0, node_l2=1.0, coordinates=1, weight=weight)


def calibrated(query: int, adaptive: Adaptive, *, scale: float, sensitivity: int) -> AdaptivePart:
    """The part whose epsilon is 1 / scale.

    Args:
        sensitivity: of all cells at any one time, in grid steps.
    """
    scales = scales_for(adaptive, epsilon=below(1 / Fraction(scale)), sensitivity=sensitivity)
    return AdaptivePart(query=query, adaptive=adaptive, scales=scales, share=above(spent(adaptive, scales)))


def scale_of(part: AdaptivePart) -> float:
    """What `one_measurement` would have as a scale, for what the part costs; rounded down."""
    return below(1 / spent(part.adaptive, part.scales))


def at_once(measure: Measure, constraint: Constraint, *, owner: bool) -> int:
    """The largest L1 norm of what one unit is at any one time, in grid steps, of a measure with one component.

    >>> from privacy.constraint import AtMost
    >>> at_once(Measure(kind="count"), AtMost(4), owner=False), at_once(Measure(kind="count"), AtMost(4, 2), owner=True)
    (1, 2)
    """
    (component,) = measure.components
    return component.largest * (_entries(constraint) if owner else 1)


def _entries(constraint: Constraint) -> int:
    """Of an owner, at once."""
    if isinstance(constraint, AtOnce):
        if constraint.changes is not None:
            raise ValueError("adaptive publication needs no bound of changes in a span; remove at_most")
        return constraint.entries
    most = 0
    for part in parts(constraint):
        if isinstance(part, Within):
            raise ValueError("a time span does not bound an owner's entries; use at_most")
        most = max(most, part.changes if part.entries is None else min(part.changes, part.entries))
    return most
