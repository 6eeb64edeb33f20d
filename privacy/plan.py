"""The plan of a release: how much noise each family of nodes gets, and the loss of it all. Made without data.

Each query's weight is its share of the budget; a query that releases several families of nodes splits its share evenly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy import disjoint
from privacy.accounting import (
    Accounting,
    Law,
    Loss,
    Measurement,
    calibrate,
    paper_epsilon,
)
from privacy.constraint import Constraint
from privacy.disjoint import Kind
from privacy.measure import Measure
from privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from privacy.sensitivity import Family, Horizon, Sensitivity, of_events, of_net


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one query asks of the plan.

    Attributes:
        name: the query's.
        measure: what is added up.
        cells: in how many cells.
        kinds: which numbers are published.
        weight: share of the budget, relative to the other queries.
    """

    name: str
    measure: Measure
    cells: int
    kinds: tuple[Kind, ...]
    weight: float = 1.0

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of nodes that the kinds need."""
        return tuple(dict.fromkeys(disjoint.family_of(kind) for kind in self.kinds))

    @property
    def opening(self) -> bool:
        """Whether the level at start is released."""
        return "level" in self.kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One family of nodes of one query, with its noise.

    Attributes:
        query: the query's place among the demands.
        sensitivity: in normalised units.
        noise: the law of the noise of each component, in grid steps.
        share: of the loss; `Plan.share_unit` says in what.
        paper_epsilon: what the paper's composition would state for this noise.
    """

    query: int
    family: Family
    sensitivity: Sensitivity
    noise: tuple[Mechanism, ...]
    share: float
    paper_epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that is fixed before data is read; the guarantee is `sentence`.

    It holds for sums that were bounded by `constraint`, over windows of length `window`, at most `windows` of them.
    """

    constraint: Constraint
    window: int
    windows: int | None
    demands: tuple[Demand, ...]
    released: tuple[Released, ...]
    mechanism: Law
    accounting: Accounting
    loss: Loss
    share_unit: str
    sentence: str

    def of(self, query: int, family: Family) -> Released:
        return next(r for r in self.released if r.query == query and r.family == family)


def make_plan(
    demands: Sequence[Demand],
    *,
    constraint: Constraint,
    window: int,
    windows: int | None,
    owner: bool,
    budget: Loss,
    mechanism: Law,
    accounting: Accounting,
) -> Plan:
    """Calibrate the noise of a disjoint release.

    Args:
        demands: one for each query.
        constraint: what is enforced on each privacy unit.
        window: length in microseconds.
        windows: how many, or None if the release has no end.
        owner: whether a unit may own several entries.
        budget, mechanism, accounting: see privacy.accounting.

    Raises:
        ValueError: a budget, law and accounting that do not fit together, or a query without any sensitivity.
    """
    families = [(place, family) for place, demand in enumerate(demands) for family in demand.families]
    sensitivities = []
    for place, family in families:
        demand = demands[place]
        horizon = Horizon(window=window, windows=windows, opening=family == "net" and demand.opening)
        components = demand.measure.components
        if family == "net":
            sensitivity = of_net(
                components=components,
                cells=demand.cells,
                constraint=constraint,
                horizon=horizon,
                owner=owner,
            )
        else:
            sensitivity = of_events(
                family,
                components=components,
                cells=demand.cells,
                constraint=constraint,
                horizon=horizon,
                owner=owner,
            )
        sensitivities.append(sensitivity)
    measurements = [
        Measurement(
            l1=s.l1,
            l2=s.l2,
            nodes=s.nodes,
            node_l1=s.node_l1,
            node_l2=s.node_l2,
            coordinates=s.coordinates,
            weight=demands[place].weight / len(demands[place].families),
        )
        for (place, _), s in zip(families, sensitivities, strict=True)
    ]
    total = math.fsum(m.weight for m in measurements)
    steps = min(c.largest for demand in demands for c in demand.measure.components)
    calibration = calibrate(measurements, budget=budget, mechanism=mechanism, accounting=accounting, steps=steps)
    paper = [
        paper_epsilon([m], [scale], mechanism=mechanism, delta=budget.delta * m.weight / total)
        for m, scale in zip(measurements, calibration.scales, strict=True)
    ]
    law = DiscreteLaplace if mechanism == "laplace" else DiscreteGaussian
    released = tuple(
        Released(
            query=place,
            family=family,
            sensitivity=sensitivity,
            noise=tuple(law(math.nextafter(scale * c.largest, math.inf)) for c in demands[place].measure.components),
            share=share,
            paper_epsilon=stated,
        )
        for (place, family), sensitivity, scale, share, stated in zip(
            families, sensitivities, calibration.scales, calibration.shares, paper, strict=True
        )
    )
    return Plan(
        constraint=constraint,
        window=window,
        windows=windows,
        demands=tuple(demands),
        released=released,
        mechanism=mechanism,
        accounting=accounting,
        loss=calibration.loss,
        share_unit=calibration.unit,
        sentence=calibration.sentence,
    )


def stddev(plan: Plan, query: int, kind: Kind, windows: int) -> NDArray[np.float64]:
    """Exact standard deviation of each window's published number, [windows]; of the sum for ratios' numerators.

    Only for counts and sums, whose error does not depend on the data.
    """
    demand = plan.demands[query]
    noise = plan.of(query, disjoint.family_of(kind)).noise
    if len(noise) > 1:
        raise ValueError("the error of a ratio depends on the data")
    variance = noise[0].variance * demand.measure.components[0].grid ** 2
    deviations: NDArray[np.float64] = np.sqrt(disjoint.terms(kind, windows) * variance)
    return deviations
