"""Parts of queries, of which a plan consists, each with its own noise.

A query is released in one or several parts. A `Draft` has no noise yet; calibration turns it into a `Part`, which a
plan stores. The planner, the statement, the release step, tables and reports use this interface, and never a part's
class. The two kinds of parts are privacy.planning.linear_part and privacy.planning.adaptive_part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from privacy.accounting.composition import Measurement
from privacy.answers.in_time import NoiseInTime
from privacy.cells.base import Along
from privacy.columns import Column
from privacy.measure import Measure
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.demand import Demand
from privacy.planning.promise import Promise
from privacy.series import Family, Ints, Series
from privacy.strategies.base import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Results of calibration for one part.

    Attributes:
        mechanism: the kind of noise.
        scale: scale in normalised units (privacy.accounting.accounting.Calibration).
        share: share of the budget.
        delta: the part's share of the release's delta, for which paper accounting states its epsilon.
    """

    mechanism: Mechanism
    scale: float
    share: float
    delta: float


class Draft(Protocol):
    """Interface of a part whose noise is not calibrated yet."""

    @property
    def query(self) -> int:
        """The query's place among the demands."""
        ...

    def measurement(self, weight: float) -> Measurement:
        """Return the measurement by which the part is charged."""
        ...

    def calibrated(self, noise: Calibrated) -> "Part":
        """Return the part with its noise.

        Raises:
            ValueError: the noise would be too large for its grid.
        """
        ...


class Part(Protocol):
    """Interface of one part of one query, with its noise. All of it is public.

    Attributes are read-only: parts are frozen dataclasses, which privacy.planning.document writes and reads.
    """

    @property
    def query(self) -> int:
        """The query's place among the demands."""
        ...

    @property
    def family(self) -> Family:
        """The family of leaf sums that it uses."""
        ...

    @property
    def series(self) -> tuple[Series, ...]:
        """The series that it publishes, in windows."""
        ...

    @property
    def share(self) -> float:
        """Share of the budget, in `Plan.share_unit`."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns that it adds to published tables."""
        ...

    @property
    def together(self) -> bool:
        """Whether it processes all cells of a window at once."""
        ...

    @property
    def delta(self) -> float:
        """Delta that it adds to that of the noise: the probability that keys are found in which a unit is alone."""
        ...

    @property
    def decides(self) -> bool:
        """Whether decisions that look at the data have separate noise."""
        ...

    def conditions(self, name: str, mechanism: Mechanism) -> tuple[tuple[str, str], ...]:
        """Return further premises of the claim: sentences with `{names}`, each with a name to insert."""
        ...

    def measurement(self, weight: float) -> Measurement:
        """Return the measurement by which the part is charged."""
        ...

    def so_far(self, demand: Demand, promise: Promise, windows: int, weight: float) -> Measurement | None:
        """Return its cost if the release stops permanently after `windows` windows; None: nothing yet.

        Args:
            demand: demand of its query.
            promise: promise of the release.
            windows: number of closed windows.
            weight: its share of the budget.
        """
        ...

    def scale(self, measure: Measure) -> float:
        """Return the scale of its noise in normalised units, rounded down: the least over a measure's components."""
        ...

    def variance(self, measure: Measure, windows: int) -> tuple[float, int]:
        """Return the sum of the variances of its numbers in normalised units, and the number of these numbers.

        Numbers whose variance depends on the data are left out.
        """
        ...

    def movement(self, measure: Measure) -> tuple[tuple[float, float] | None, float]:
        """Return how far one unit moves its nodes, in L1 and L2, and a node's deviation, in normalised units.

        The norms are None if the data decide which numbers are published; the noise is then that of the first sample.
        """
        ...

    @property
    def unsummed(self) -> str | None:
        """Why the error of a sum over cells is unknown; None if it is known."""
        ...

    def sum_errors(
        self, series: Series, query: Floats, wanted: Ints, others: Ints | None, sampled: Sequence[bool]
    ) -> Floats:
        """Return standard deviations and half widths of sums over cells, float64 [2, numbers], in grid steps.

        Args:
            series: series of the numbers.
            query: weight of each cell, float64 [cells].
            wanted: places of the numbers, int64 [numbers].
            others: places of the numbers that are subtracted, int64 [numbers]; None: nothing is subtracted.
            sampled: whether each window was sampled, if the data decide; NaN for the others.
        """
        ...

    @property
    def along(self) -> Sequence[Along] | None:
        """Strategies over cells along the axes, if `unsummed` is None; None if each cell has its own noise."""
        ...

    def noise_in_time(self, series: Series, numbers: int, sampled: Sequence[bool]) -> list[NoiseInTime | None]:
        """Return for each number the noise of a node, and its weights on the nodes in time; None if it is unknown.

        Args:
            series: series of the numbers, of a measure with one component.
            numbers: how many there are.
            sampled: as for `sum_errors`.
        """
        ...

    def total_errors(self, series: Series, numbers: int, cells: int, sampled: Sequence[bool]) -> Floats | None:
        """Return the half widths of the sums of all cells, float64 [numbers], in grid steps; None if unknown.

        Args:
            series: series of the numbers.
            numbers: how many there are.
            cells: number of cells, each with its own noise.
            sampled: as for `sum_errors`.
        """
        ...

    def deviations(self, measure: Measure, series: Series, windows: int) -> Floats | None:
        """Return the standard deviation of each number, float64 [numbers], in the measure's units; None if unknown.

        Args:
            measure: measure of the query, a count or sum.
            series: series of the numbers.
            windows: number of closed windows.
        """
        ...

    def describe(self, demand: Demand, unit: str) -> dict[str, Any] | None:
        """Return the part for reports if it is the only way to release its query; otherwise None."""
        ...

    def refuse(self, demand: Demand, mechanism: Mechanism, accounting: Accounting) -> None:
        """Refuse a demand or settings of a plan that the part does not fit.

        Args:
            demand: demand of its query.
            mechanism: kind of noise of the plan.
            accounting: composition of the plan.

        Raises:
            ValueError: the part does not fit the demand, or the noise and accounting of its plan.
        """
        ...
