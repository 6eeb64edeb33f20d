"""Interface of policies, which decide when a new sample of a histogram is published.

A histogram here is the level of a query: counts or sums over all its cells at the end of a window. In each window
either a new sample is published (the window is *sampled*), with fresh noise, or the last published numbers are
repeated. Each policy is a separate module, with its proof or its source; `privacy.adaptive.table` lists them.

A policy has two forms. A `Policy` holds the settings of a spec: public parameters, in the measure's units. A `Rule` is
the policy for one release: in grid steps, with the number of windows that the budget is for. Plans store both.

If you choose a policy or its parameters by looking at the data, no accounting covers it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from privacy.adaptive.carry import AdaptiveCarry, Ints
from privacy.adaptive.samples import Sample
from privacy.adaptive.scales import Scales
from privacy.cells.base import Reading, Sketcher
from privacy.checks import Limits, at_least
from privacy.columns import Column
from privacy.noise.kinds import NOISE, Mechanism
from privacy.problems import RuleError

SAMPLED = Column("sampled", bool, "adaptive queries")
"""Column of sampled windows, whose numbers are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Windows that the budget is for; exactly one of the two attributes is given.

    Attributes:
        windows: N, of a release that protects everything that a unit does.
        span: w; protects what a unit does in any w consecutive windows (privacy.protection).

    >>> Period(span=7).among
    7
    """

    windows: int | None = None
    span: int | None = None

    def __post_init__(self) -> None:
        if (self.windows is None) == (self.span is None):
            raise ValueError("give windows (to protect everything) or span (to protect that many windows), not both")
        at_least("span" if self.windows is None else "windows", self.among, 1)

    @property
    def among(self) -> int:
        """Number of windows that the budget is for: N or w."""
        return self.windows or self.span or 0

    @property
    def settings(self) -> dict[str, Any]:
        """The given attribute, for reports."""
        return {"span": self.span} if self.windows is None else {"windows": self.windows}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveTerms:
    """Properties of a release that determine the rule of a policy.

    Attributes:
        period: windows that the budget is for.
        distances: number of values over which distances are added up.
        grid: the measure's units in one grid step.
        noise: noise of samples.
    """

    period: Period
    distances: int = 1
    grid: float = 1.0
    noise: Mechanism = "laplace"


class Policy(Protocol):
    """Interface of a policy with the public parameters of a spec: one field for each key.

    Attributes:
        name: name in specs and tables.
        missing: for each key without a default its purpose, for messages.
        columns: columns that it adds to published tables, in addition to `sampled`.
    """

    name: ClassVar[str]
    missing: ClassVar[Mapping[str, str]]
    columns: ClassVar[tuple[Column, ...]]

    def settled(self, terms: AdaptiveTerms) -> "Rule":
        """Return the rule for a release.

        Raises:
            RuleError: a parameter does not fit the release; the path is its key.
        """
        ...

    def problems(self, cells: int, *, over: bool) -> Iterator[RuleError]:
        """Yield the reasons why it does not suit a query.

        Args:
            cells: number of cells of the query.
            over: whether samples are made with sums over cells.
        """
        ...

    def sentence(self, length: Callable[[int], str]) -> str:
        """Return a sentence that tells readers when numbers are new; empty if all are.

        Args:
            length: returns the length of a number of windows, as people write it.
        """
        ...


class Publication(Protocol):
    """Interface of the ways in which a rule publishes one window after another.

    Attributes:
        repeats: whether windows without a sample repeat the last published numbers.
        premise: further premise of the claim, for queries `{names}`; None without one.
        unsummed: why the error of a sum over cells is unknown; None if it is known.
        kept: number of values that are carried for each cell from run to run.
    """

    repeats: ClassVar[bool]
    premise: ClassVar[str | None]
    unsummed: ClassVar[str | None]
    kept: ClassVar[int]

    def step(
        self,
        scales: Scales,
        over: Sketcher,
        carry: AdaptiveCarry | None,
        level: Ints,
        sample: Sample,
        reading: Reading | None = None,
    ) -> "Stepped":
        """Publish one window. Many steps give the same result as one, with the same noise.

        Args:
            scales: scales of the noise.
            over: makes samples.
            carry: carry of the previous step; None in the first.
            level: exact histogram in grid steps, int64 [cells].
            sample: returns noise.
            reading: reading of the last published numbers; None: computed from the carry.

        Raises:
            ValueError: scales, carry or level belong to another rule or sketcher, or the release has ended.
        """
        ...

    def read(self, over: Sketcher, public: Ints) -> Reading:
        """Return the estimates that `Stepped.public`, int64 [numbers], gives.

        Raises:
            ValueError: the numbers do not fit this publication.
        """
        ...

    def check(self, over: Sketcher, carry: AdaptiveCarry) -> None:
        """Refuse a carry that is broken.

        Raises:
            ValueError: the carry is not complete.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stepped:
    """Result of the step of one window.

    Attributes:
        units: units of the budget that its sample took; 0: it was not sampled.
        public: all that the step makes public, int64 [numbers].
        reading: estimates from these numbers.
        carry: carry for the next step; private.
    """

    units: int
    public: Ints
    reading: Reading
    carry: AdaptiveCarry


class Rule(Protocol):
    """Interface of a policy for one release, with all values that its budget depends on. All of it is public.

    Attributes:
        name: name of the policy.
        pure: whether its guarantee is proved only for Laplace samples.
    """

    name: ClassVar[str]
    pure: ClassVar[bool]

    @property
    def period(self) -> Period:
        """Windows that the budget is for."""
        ...

    @property
    def decisions(self) -> float | None:
        """Share of the budget, epsilon or rho, for decisions; the rest is for samples. None: there are no decisions."""
        ...

    @property
    def units(self) -> int:
        """Number of units of the budget of samples; at most this many are spent in any `period.among` windows."""
        ...

    @property
    def fewest(self) -> int:
        """Smallest number of units that a sample takes."""
        ...

    @property
    def publication(self) -> Publication:
        """How windows are published."""
        ...

    def runs(self, *, fresh: bool) -> tuple[int, int] | None:
        """Return the number of AboveThreshold runs in which neighbours differ, and of answers 'above' in each.

        None if there is no noisy threshold.

        Args:
            fresh: whether a run ends with its first answer 'above'.
        """
        ...

    def wanted(self, carry: AdaptiveCarry | None, left: int) -> int:
        """Return the number of units that a sample of the next window should take: a function of public values.

        Args:
            carry: carry of the previous step; None before the first window.
            left: units left in the windows that the budget is for.
        """
        ...

    def settings(self, grid: float, noise: Mechanism) -> dict[str, Any]:
        """Return parameters for reports.

        Args:
            grid: the measure's units in one grid step.
            noise: noise of samples.
        """
        ...


def usual_share(distances: int, noise: Mechanism) -> float:
    """Return the default share of the budget for decisions, which does not depend on the data.

    A distance over many cells has the uncertainty of the published noise, about sqrt(cells) times that of one cell. A
    noise of decisions far below it is useless: the more cells, the less budget decisions need. With Gaussian samples it
    is a share of rho: a standard deviation grows only with the root of what is taken from its budget, so decisions get
    more if there are few cells. benchmarks/adaptive compares.

    Args:
        distances: number of values over which distances are added up.
        noise: noise of samples.

    >>> usual_share(1, "laplace"), usual_share(49, "laplace"), usual_share(1, "gaussian")
    (0.25, 0.1, 0.4)
    """
    return 1 / ((3 if NOISE[noise].pure else 1.5) + math.sqrt(distances))


THRESHOLD = Limits(0, 1e30)
"""Limits of a threshold in a spec, far below the largest number of grid steps."""


def check_samples(samples: int, period: Period) -> None:
    """Refuse a number of samples that the period cannot have.

    Raises:
        RuleError: fewer or more than the period can have.
    """
    # The first window is always sampled, so with one sample for everything there would be no decisions.
    least = 2 if period.span is None else 1
    at_least("samples", samples, least)
    if samples > period.among:
        raise RuleError(f"expected at most the number of windows, {period.among}, not {samples}", "samples")


def runs_of_samples(samples: int, period: Period, *, fresh: bool) -> tuple[int, int]:
    """Return `Rule.runs` of a rule that takes at most `samples` samples, all of the same size.

    The first window of a release is sampled without a decision; in a span it may lie before the span.

    Args:
        samples: largest number of samples.
        period: windows that the budget is for.
        fresh: whether a run ends with its first answer 'above'.
    """
    answers = samples if period.span is not None else samples - 1
    return (answers, 1) if fresh else (1, answers)
