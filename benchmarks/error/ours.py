"""Slackwater's errors as the planner computes them, for each strategy and for its choice."""

from dataclasses import dataclass
from functools import lru_cache

from benchmarks.error.setting import Setting, sigma
from privacy.constraint import AtMost, Within
from privacy.measure import Measure
from privacy.noise.kinds import Mechanism
from privacy.planning.costed import Option
from privacy.planning.demand import Demand
from privacy.planning.planner import PlanningTask, certified, options
from privacy.planning.promise import Promise
from privacy.series import Series

MECHANISMS: tuple[Mechanism, ...] = ("gaussian", "laplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to release, with its root mean square error.

    Attributes:
        strategy: the strategy's name in a spec.
        detail: form, shape or refinement; may be empty.
        mechanism: of the noise.
        rmse: root mean square error.
    """

    strategy: str
    detail: str
    mechanism: Mechanism
    rmse: float


def ways(setting: Setting) -> list[Way]:
    """Return the best strategy of each kind with each mechanism, the least error first."""
    found = [
        Way(
            strategy=option.name,
            detail=_detail(option),
            mechanism=mechanism,
            rmse=option.error * _node(setting, mechanism),
        )
        for mechanism in MECHANISMS
        for option in _options(setting.windows, setting.changes, setting.span, setting.width, mechanism)
    ]
    return sorted(found, key=lambda way: way.rmse)


def rmse(setting: Setting, strategy: str) -> float | None:
    """Return the least error of a strategy, or of all for `auto`; None if the strategy is not available."""
    return next((way.rmse for way in ways(setting) if strategy in ("auto", way.strategy)), None)


def _node(setting: Setting, mechanism: Mechanism) -> float:
    """Return the factor from an option's error, which is for a unit of budget, to the error at the setting's budget."""
    return sigma(setting.epsilon, setting.delta) if mechanism == "gaussian" else 1 / setting.epsilon


@lru_cache
def _options(
    windows: int, changes: int | None, span: int | None, width: int | None, mechanism: Mechanism
) -> tuple[Option, ...]:
    series = Series(kind="level") if width is None else Series(kind="sliding", width=width)
    assert changes is not None or span is not None
    question = PlanningTask(
        promise=Promise(
            constraint=AtMost(changes) if changes is not None else Within(span or 0),
            window=1,
            windows=windows,
            owner=False,
        ),
        demand=Demand(
            name="error", measure=Measure(kind="count", fine=mechanism == "gaussian"), cells=1, series=(series,)
        ),
        mechanism=mechanism,
    )
    return tuple(certified(option, question) for option in options(question))  # as a plan does


def _detail(option: Option) -> str:
    return ", ".join(
        f"{key} {value}".replace("_", " ")
        for part in option.parts
        for key, value in part.strategy.parameters.items()
        if key in ("form", "branching", "height", "refine")
    )
