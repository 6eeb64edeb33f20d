"""Exact errors of sums and differences of one series on a report: those that `answer` computes from the covariance.

Rows of marginals and ranges are sums over the cells of their query, so their errors follow from the same covariance.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pipelines.pages.numbers import Floats, Numbers
from pipelines.published.release import Published
from pipelines.published.sums import sum_errors, why_unknown, why_wrong
from pipelines.report.parts import Dated, ReportPart
from pipelines.spec.durations import MONTH
from transforms.common.dates import DAY
from transforms.release.marginal_tables import weights_over_cells

EARLIER = (DAY, 7 * DAY)
"""Distances to earlier windows with which the last one is compared, besides the window before and a year before."""

YEAR = 364 * DAY
"""A year before, on the same day of the week; for windows of months it is twelve months."""


@dataclass(frozen=True)
class OwnIntervals:
    """Errors of a series if nothing but the interval of each number is known."""

    numbers: Numbers
    release: Dated

    known = of_all_cells = False

    @property
    def others(self) -> tuple[int, ...]:
        """Places of the earlier numbers with which the last one is compared; of levels also the first one."""
        first = [0] if self.numbers.series.kind == "level" and len(self.numbers.value) > 1 else []
        return tuple(dict.fromkeys([*earlier(self.numbers, self.release), *first]))

    def half(self, weights: Floats, other: int | None) -> float:
        """Return that the half width of a sum is unknown."""
        return math.nan


@dataclass(frozen=True)
class ExactErrors:
    """Half widths of 95 % intervals of weighted sums of the numbers of one series.

    Attributes:
        found: Half widths that were computed before, by the weights of cells: of `others`, or of the last number alone.
    """

    part: ReportPart
    numbers: Numbers
    release: Published
    found: dict[object, Floats] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether the covariance of the numbers is known."""
        origin = self.part.origin
        if not self.part.rows or origin.discovers:
            return False
        return why_unknown(origin, self.numbers.series, self.release.plan) is None

    @property
    def of_all_cells(self) -> bool:
        """Whether the sum of all numbers of a window has a meaning and a known error."""
        ones = np.ones(self.part.query.cells)
        whole = not self.part.of and self.part.query.cells > 1 and self.known
        return whole and why_wrong(self.part.origin, self.release.plan, ones) is None

    @cached_property
    def others(self) -> tuple[int, ...]:
        """Places of the earlier numbers with which the last one is compared, if they are published."""
        return earlier(self.numbers, self.release)

    def half(self, weights: Floats, other: int | None) -> float:
        """Return the half width of a sum at the last window; not a number if it is unknown.

        Unless the noise of cells is shared, it depends on the number of cells alone, so one computation is enough.

        Args:
            weights: Weight of each number of a window, [numbers of the part].
            other: Place of the earlier number whose sum is subtracted, one of `others`; None: nothing is subtracted.
        """
        origin, series, plan = self.part.origin, self.numbers.series, self.release.plan
        of_cells = weights_over_cells(weights, origin, self.part.rows)
        place = next(at for at, one in enumerate(plan.demands) if one.name == origin.name)
        shared = plan.of_series(place, series).together
        key = (of_cells.tobytes() if shared else int(np.count_nonzero(of_cells)), other is None)
        if key not in self.found:
            repeated, last = self.numbers.repeated, len(self.numbers.value) - 1
            _, self.found[key] = sum_errors(
                *(origin, series, plan, of_cells),
                wanted=np.full(1 if other is None else len(self.others), last),
                others=None if other is None else np.array(self.others),
                sampled=[] if repeated is None else (~repeated).tolist(),
            )
        return float(self.found[key][0 if other is None else self.others.index(other)])


SeriesErrors = ExactErrors | OwnIntervals


def earlier(numbers: Numbers, release: Dated) -> tuple[int, ...]:
    """Return the places of the earlier numbers of a series with which the last one is compared."""
    every = release.bounds.every
    step, year = numbers.series.every * every, 12 * MONTH if every % MONTH == 0 else YEAR
    far = [length // step for length in (*EARLIER, year) if length % step == 0]
    last = len(numbers.value) - 1
    return tuple(last - back for back in dict.fromkeys([1, *far]) if 0 < back <= last)
