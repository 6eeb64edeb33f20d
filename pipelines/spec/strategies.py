"""The shape of `strategy:` in a spec: which sums get noise, and how numbers are made from them.

A word alone leaves all that it could settle to the planner: `tree`. Settings fix some of it: `{tree: {branching: 16}}`.
"""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.spec.errors import refuse, wrong
from pipelines.spec.fields import EITHER, SETTINGS, WORD, Length, Number, Section
from pipelines.spec.words import not_one_of, show
from privacy.adaptive.choice import AdaptiveChoice
from privacy.adaptive.policy import NEEDS, Gains, Policy, Smooth
from privacy.strategies.choice import NAMES, Choice, Form, Name, Refine, check_weights

ENDLESS_FORMS: tuple[Form, ...] = ("window",)
"""Forms that need no last window: each change fades from the sums after it."""

_WITH_SETTINGS = ("tree", "factorised", "direct", "adaptive")


def _weights(weights: list[float]) -> list[float]:
    try:
        check_weights(weights)
    except ValueError as error:
        raise wrong(str(error).removeprefix("weights: ")) from None
    return weights


class TreeSection(Section):
    """What the spec fixes of a tree; the planner takes the best for the rest."""

    branching: Annotated[int, Field(ge=2, le=1024)] | None = None
    height: Annotated[int, Field(ge=1, le=40)] | None = None
    refine: Refine | None = None


class DirectSection(Section):
    """How much the windows matter, where levels are released by themselves."""

    weights: Annotated[list[Number], AfterValidator(_weights)]


class GainsSection(Section):
    """How strongly dsat steers."""

    proportional: Annotated[Number, Field(ge=0, le=1000)] = 1.0
    integral: Annotated[Number, Field(ge=0, le=1000)] = 0.1
    dead_band: Annotated[Number, Field(ge=0, le=1000)] = 1.0


class AdaptiveSection(Section):
    """When levels are published anew, decided by looking at the data: a policy with its public parameters."""

    policy: Policy
    samples: Annotated[int, Field(ge=1)] | None = None
    threshold: Annotated[Number, Field(ge=0, le=1e30)] | None = None
    decisions: Annotated[Number, Field(gt=0, lt=1)] | None = None
    gains: GainsSection | None = None
    interval: Length | None = None
    weights: Annotated[list[Number], AfterValidator(_weights)] | None = None
    smooth: Smooth | None = None

    @model_validator(mode="before")
    @classmethod
    def _word(cls, raw: Any) -> Any:
        return {"policy": raw} if isinstance(raw, str) else raw

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = ("samples", "threshold", "decisions", "gains", "interval")
        needs = NEEDS[self.policy]
        unknown = [name for name in names if getattr(self, name) is not None and name not in needs]
        lacking = [name for name in _MEANT if name in needs and getattr(self, name) is None]
        unknown += ["smooth"] if self.smooth is not None and self.policy != "pegasus" else []
        unknown += ["weights"] if self.weights is not None and self.policy != "fixed" else []
        refuse(((name,), f"policy {self.policy} has none; remove it") for name in unknown)
        refuse(((), f"{name}: missing; {_MEANT[name]}") for name in lacking)
        return self

    def choice(self, every: int) -> AdaptiveChoice:
        """What it leaves to the release, with windows of so many microseconds."""
        return AdaptiveChoice(
            policy=self.policy,
            samples=self.samples,
            threshold=self.threshold,
            decisions=self.decisions,
            gains=None if self.gains is None else Gains(**self.gains.model_dump()),
            interval=None if self.interval is None else self.interval // every,
            weights=tuple(float(weight) for weight in self.weights or ()),
            smooth="mean" if self.smooth is None else self.smooth,
        )


_MEANT = {
    "samples": "how many windows may be published anew, of all or in any span; add samples: 20",
    "threshold": "so much further than the noise of a sample, over all cells (of pegasus: so much in all a cell may "
    "deviate from its mean in a group of windows); add threshold: 100",
    "interval": "from one sample to the next; add interval: 7d",
}


class StrategySection(Section):
    """A strategy with settings: exactly one of these."""

    tree: TreeSection | None = None
    factorised: Form | None = None
    direct: DirectSection | None = None
    adaptive: AdaptiveSection | None = None

    def choice(self) -> Choice:
        """What it leaves to the planner."""
        if self.direct is not None:
            return Choice(name="direct", weights=tuple(float(weight) for weight in self.direct.weights))
        if self.tree is None:
            return Choice(name="factorised", form=self.factorised)
        return Choice(name="tree", branching=self.tree.branching, height=self.tree.height, refine=self.tree.refine)


def _strategy(value: Any) -> Any:
    """Refuse what is neither a word nor one strategy with its settings."""
    if isinstance(value, dict):
        if len(value) != 1:
            raise wrong(
                "expected one strategy; write strategy: tree, or {tree: {branching: 16}}, or {factorised: leaky}"
            )
        ((word, settings),) = value.items()
        if word not in (*NAMES, "adaptive"):
            raise wrong(not_one_of(word, (*NAMES, "adaptive")))
        if word not in _WITH_SETTINGS:
            raise wrong(f"{word} takes no settings; write strategy: {word}")
        if settings is None:
            raise wrong(f"the settings are missing; write strategy: {_bare(word)}")
        return word if settings == {} and word != "adaptive" else value
    if not isinstance(value, str):
        raise wrong(f"expected one of {', '.join(NAMES)}, not {show(value)}")
    if value == "adaptive":
        raise wrong(f"adaptive needs a policy; write strategy: {_bare(value)}")
    if value not in NAMES:
        raise wrong(not_one_of(value, NAMES))
    return value


def _bare(word: str) -> str:
    return "{adaptive: {policy: dsat, samples: 20}}" if word == "adaptive" else f"{word} to leave them to the planner"


Strategy = Annotated[
    Annotated[Name, WORD] | Annotated[StrategySection, SETTINGS],
    EITHER,
    BeforeValidator(_strategy),
]
