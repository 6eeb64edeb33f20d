"""Adaptive part of a release: one query's levels, sampled again or repeated as the data decide.

The claim holds for any data (privacy.adaptive.budget). The part is composed with the other parts as one measurement, of
its epsilon, or of its rho if samples have Gaussian noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacy.accounting.composition import Measurement
from privacy.adaptive.base import SAMPLED, AdaptiveTerms, Policy, Rule
from privacy.adaptive.budget import scales_for, spent
from privacy.adaptive.scales import Scales
from privacy.adaptive.spending import offered, units_of
from privacy.adaptive.step import check_scales
from privacy.adaptive.table import POLICIES
from privacy.answers.in_time import ONE_NODE, NoiseInTime
from privacy.answers.of_parts import spreads_of_nodes
from privacy.answers.sums import over_cells
from privacy.cells.base import Along, Sketcher
from privacy.cells.offer import CellTerms
from privacy.cells.sums import Floats
from privacy.cells.table import sketcher
from privacy.columns import Column
from privacy.estimates import CONFIDENCE
from privacy.measure import Measure
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.adaptive_rules import not_at_once, period_of
from privacy.planning.demand import Demand
from privacy.planning.part import Calibrated
from privacy.planning.promise import Promise
from privacy.problems import enforce
from privacy.series import Family, Ints, Series
from privacy.upward import above, below

_LEVEL = Series(kind="level")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveDraft:
    """Part of a query before its noise is calibrated.

    Attributes:
        query: the query's place among the demands.
        rule: decides which windows are sampled.
        over: makes samples.
        sensitivity: largest L1 distance between neighbours' histograms at any one time, in grid steps.
    """

    query: int
    rule: Rule
    over: Sketcher
    sensitivity: int

    @classmethod
    def of(cls, query: int, demand: Demand, policy: Policy, promise: Promise, mechanism: Mechanism) -> "AdaptiveDraft":
        """Return the draft of a query.

        Args:
            query: its place among the demands.
            demand: demand of the query, on the grid of its noise.
            policy: policy of the demand.
            promise: promise of the release.
            mechanism: noise of samples.

        Raises:
            ValueError: a parameter does not fit the release, or histograms of neighbours are not that close.
        """
        wanted = CellTerms(space=demand.axes, choice=demand.over, power=NOISE[mechanism].power, changes=1, blocks=True)
        over = sketcher(wanted, demand.cells)
        grid = demand.measure.components[0].grid
        terms = AdaptiveTerms(period=period_of(promise), distances=over.decided, grid=grid, noise=mechanism)
        sensitivity = at_once(demand.measure, promise, demand.cells)
        return cls(query=query, rule=policy.settled(terms), over=over, sensitivity=sensitivity)

    def measurement(self, weight: float) -> Measurement:
        return one_measurement(weight)

    def calibrated(self, noise: Calibrated) -> "AdaptivePart":
        """Return the part with an epsilon of 1 / scale, or a rho of 1 / (2 scale^2)."""
        budget = NOISE[noise.mechanism].budget_at(noise.scale)
        scales = scales_for(
            self.rule, noise=noise.mechanism, budget=budget, sensitivity=self.sensitivity, over=self.over
        )
        share = above(spent(self.rule, scales))
        return AdaptivePart(query=self.query, rule=self.rule, scales=scales, share=share, over=self.over)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptivePart:
    """Adaptive publication of the levels of one query. All of it is public.

    Attributes:
        query: the query's place among the demands.
        rule: decides which windows are sampled.
        scales: scales of the noise.
        share: its epsilon or rho, rounded up.
        over: makes samples.

    Raises:
        ValueError: the noise belongs to another rule or sketcher, and so may be too small.
    """

    query: int
    rule: Rule
    scales: Scales
    share: float
    over: Sketcher

    def __post_init__(self) -> None:
        check_scales(self.rule, self.scales, self.over)

    @property
    def family(self) -> Family:
        return "net"

    @property
    def series(self) -> tuple[Series, ...]:
        return (_LEVEL,)

    @property
    def together(self) -> bool:
        return True

    @property
    def delta(self) -> float:
        return 0.0

    @property
    def decides(self) -> bool:
        return self.rule.decisions is not None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns that it adds to published tables."""
        return (SAMPLED, *POLICIES[self.rule.name].columns, *self.over.columns)

    @property
    def unsummed(self) -> str | None:
        """Why the error of a sum over cells is unknown; None if it is known."""
        return self.rule.publication.unsummed or self.over.unsummed

    def sum_errors(
        self, series: Series, query: Floats, wanted: Ints, others: Ints | None, sampled: Sequence[bool]
    ) -> Floats:
        """Return standard deviations and half widths of sums over cells; NaN for repeated windows (`Part.sum_errors`).

        The number of budget units that a sample took follows from which windows were sampled, which is public
        (privacy.adaptive.spending). Different samples have independent noise.
        """
        units = units_of(self.rule, sampled)
        noise = {one: self.scales.sample(one) for one in set(units) if one}
        of_cells = over_cells(query, self.over.linear)
        return spreads_of_nodes([noise.get(one) for one in units], of_cells, wanted, others)

    @property
    def along(self) -> Sequence[Along] | None:
        return None if self.over.linear is None else self.over.linear.axes

    def noise_in_time(self, series: Series, numbers: int, sampled: Sequence[bool]) -> list[NoiseInTime | None]:
        """Return the noise of the sample of each window, which is one node; None for repeated windows."""
        units = units_of(self.rule, sampled)
        return [(self.scales.sample(one), ONE_NODE) if one else None for one in units]

    def total_errors(self, series: Series, numbers: int, cells: int, sampled: Sequence[bool]) -> Floats | None:
        if self.unsummed:
            return None
        units = units_of(self.rule, sampled)
        halves = {one: self.scales.sample(one).half_width(cells, CONFIDENCE) if one else np.nan for one in set(units)}
        return np.array([halves[one] for one in units])

    def deviations(self, measure: Measure, series: Series, windows: int) -> Floats | None:
        return None

    def conditions(self, name: str, mechanism: Mechanism) -> tuple[tuple[str, str], ...]:
        """Return the premise that the sketcher adds, if the data choose more than windows."""
        found = (self.rule.publication.premise, self.over.premise)
        return tuple((one, name) for one in found if one is not None)

    def measurement(self, weight: float) -> Measurement:
        return one_measurement(weight)

    def so_far(self, demand: Demand, promise: Promise, windows: int, weight: float) -> Measurement | None:
        """Return all of it from the first window on: budget that decisions did not use is spent as well."""
        return self.measurement(weight) if windows else None

    def scale(self, measure: Measure) -> float:
        """Return the scale that `one_measurement` needs for the cost of the part; rounded down."""
        return below(1 / NOISE[self.scales.noise].ratio_of(spent(self.rule, self.scales)))

    def variance(self, measure: Measure, windows: int) -> tuple[float, int]:
        """Return the variance of a cell in the first sample: other errors depend on the data."""
        return (self.deviation / measure.components[0].largest) ** 2, 1

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell in the first window, which is always sampled, in grid steps.

        With sums over cells it is the root mean square over the queries that the cells are for.
        """
        return math.sqrt(self.scales.sample(offered(self.rule, None)).variance) * self.over.typical_deviation()

    def movement(self, measure: Measure) -> tuple[tuple[float, float] | None, float]:
        return None, self.deviation / measure.components[0].largest

    def describe(self, demand: Demand, unit: str) -> dict[str, Any] | None:
        """Return the only way to release the query. Its error depends on the data, except that of a sampled window."""
        grid, settings = demand.measure.components[0].grid, self.over.settings
        of = {"of": self.over.of or demand.over.workload} if settings else {}
        return {
            "strategy": f"adaptive {self.rule.name}",
            "parameters": {**self.rule.settings(grid, self.scales.noise), **settings},
            "mechanism": self.scales.sample(1).name,
            "chosen": True,
            "why": "the spec says so",
            "carried": {"numbers": self.rule.publication.kept, "bounded": True},
            "paper_epsilon": None,
            "share": {unit: self.share},
            "families": [],
            "numbers": [
                {"kind": "level", **of, "rmse": None, "stddev_first": self.deviation * grid, "stddev_last": None}
            ],
        }

    def refuse(self, demand: Demand, mechanism: Mechanism, accounting: Accounting) -> None:
        """Refuse a demand or settings of a plan that the part does not fit (`Part.refuse`).

        Raises:
            ValueError: the query is not adaptive, or the noise or accounting is another.
        """
        if demand.adaptive is None:
            raise ValueError("expected only for a query that is published adaptively")
        if self.scales.noise != mechanism or accounting not in NOISE[mechanism].adaptively:
            raise ValueError(f"mechanism: {mechanism}, but an adaptive part has noise of another mechanism")


def one_measurement(weight: float) -> Measurement:
    """Return a measurement that costs one epsilon at a scale of 1, or half a rho."""
    return Measurement(l1=1.0, l2=1.0, nodes=1, node_l1=1.0, node_l2=1.0, coordinates=1, weight=weight)


def at_once(measure: Measure, promise: Promise, cells: int = 1) -> int:
    """Return the L1 distance between neighbours' histograms at any one time: a unit's largest size, in grid steps.

    Neighbours differ in one unit, which at each moment is present in at most one of them. This distance is the
    sensitivity of a sample.

    Args:
        measure: a measure with one component.
        promise: promise of the release.
        cells: number of cells of the query, for units that count once in each.

    Raises:
        RuleError: a unit may be present in both neighbours, or neighbours may differ beyond the protected time.

    >>> from privacy.constraint import AtMost
    >>> promise = Promise(constraint=AtMost(4, entries=2), window=1, windows=9, owner=True)
    >>> at_once(Measure(kind="count"), promise)
    2
    """
    enforce(not_at_once(near=promise.near, renewed=promise.renewed))
    (component,) = measure.components
    entries = entries_at_once(promise)
    return component.largest * (min(entries, cells) if measure.distinct else entries)


def entries_at_once(promise: Promise) -> int:
    """Return the largest number of entries of a unit that count at any one time."""
    constraint = promise.constraint
    if not promise.owner:
        return 1
    if constraint.at_once is not None:
        return constraint.at_once.entries
    return max(part.together() for part in constraint.parts)
