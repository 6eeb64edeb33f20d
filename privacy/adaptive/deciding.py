"""The common part of policies by which the data decide whether a window is sampled or the last numbers are repeated."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from privacy.adaptive.base import Period, check_samples, runs_of_samples
from privacy.adaptive.carry import AdaptiveCarry
from privacy.checks import proportion
from privacy.columns import Column
from privacy.noise.kinds import Mechanism
from privacy.problems import RuleError

SAMPLES = "number of windows that may be sampled, of all or in any span; add samples: 20"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """Part of such policies (privacy.adaptive.base.Policy).

    Attributes:
        decisions: share of the query's budget for decisions; None: the default.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    missing: ClassVar[Mapping[str, str]] = {}
    decisions: float | None = None

    def problems(self, cells: int, *, over: bool) -> Iterator[RuleError]:
        return iter(())

    def sentence(self, length: Callable[[int], str]) -> str:
        return "The data decide, privately, which windows get new numbers; the other windows repeat them."


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingRule:
    """Part of the rules of such policies (privacy.adaptive.base.Rule).

    Attributes:
        decisions: share of the budget, epsilon or rho, for decisions; the rest is for samples.
    """

    pure: ClassVar[bool] = False
    fewest: ClassVar[int] = 1
    period: Period
    decisions: float

    def __post_init__(self) -> None:
        proportion("decisions", self.decisions)

    def runs(self, *, fresh: bool) -> tuple[int, int] | None:
        return None

    def settings(self, grid: float, noise: Mechanism) -> dict[str, Any]:
        return {**self.period.settings, "decisions": self.decisions}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingRule(DecidingRule):
    """Part of the rules of policies with a largest number of samples of one size.

    Attributes:
        samples: C, the largest number of sampled windows, of N or of any w.
    """

    samples: int

    def __post_init__(self) -> None:
        DecidingRule.__post_init__(self)  # a dataclass with slots has no `super()`
        check_samples(self.samples, self.period)

    @property
    def units(self) -> int:
        return self.samples

    @property
    def undecided(self) -> Callable[[AdaptiveCarry], bool]:
        """`Sampled.undecided` of the rule.

        The last windows of a release with an end are always sampled, as many as samples are left: these samples would
        otherwise remain unused.
        """
        return partial(_undecided, self.samples, self.period)

    def runs(self, *, fresh: bool) -> tuple[int, int] | None:
        return runs_of_samples(self.samples, self.period, fresh=fresh)

    def wanted(self, carry: AdaptiveCarry | None, left: int) -> int:
        return 1


def _undecided(samples: int, period: Period, carry: AdaptiveCarry) -> bool:
    return period.windows is None or samples - len(carry.spent) < period.windows - carry.windows
