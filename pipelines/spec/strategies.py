"""The shape of `strategy:` in a spec: which sums get noise, and how published numbers are computed from them.

A name alone, such as `tree`, leaves its settings to the planner. Settings fix some: `{tree: {branching: 16}}`.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from pipelines.spec.errors import refuse, refused, wrong
from pipelines.spec.fields import EITHER, SETTINGS, WORD, FiniteNumber, Length, Section, one_of
from pipelines.spec.words import not_one_of
from privacy.adaptive.base import THRESHOLD, Policy
from privacy.adaptive.dsat import GAIN, Gains
from privacy.adaptive.pegasus import Smooth
from privacy.adaptive.table import POLICIES
from privacy.checks import PROPORTION
from privacy.strategies.choice import BRANCHING, HEIGHT, Choice, FilterForm, Refine
from privacy.strategies.table import OFFERS


class TreeSection(Section):
    """Settings of a tree; the planner chooses the best value for each that is left out."""

    branching: Annotated[int, BRANCHING] | None = None
    height: Annotated[int, HEIGHT] | None = None
    refine: Refine | None = None


class DirectSection(Section):
    """Weights of the windows, if each level gets its own noise."""

    weights: list[FiniteNumber]


class GainsSection(Section):
    """Gains of the controller of policy dsat."""

    proportional: Annotated[FiniteNumber, GAIN] = 1.0
    integral: Annotated[FiniteNumber, GAIN] = 0.1
    dead_band: Annotated[FiniteNumber, GAIN] = 1.0


class AdaptiveSection(Section):
    """A policy that decides from the data when to publish a new level, with the keys of all policies."""

    policy: Annotated[str, BeforeValidator(one_of(POLICIES))]
    samples: int | None = None
    threshold: Annotated[FiniteNumber, THRESHOLD] | None = None
    decisions: Annotated[FiniteNumber, PROPORTION] | None = None
    gains: GainsSection | None = None
    interval: Length | None = None
    weights: Annotated[list[FiniteNumber], Field(min_length=1)] | None = None
    smooth: Smooth | None = None

    @model_validator(mode="before")
    @classmethod
    def _word(cls, raw: Any) -> Any:
        return {"policy": raw} if isinstance(raw, str) else raw

    @model_validator(mode="after")
    def _check(self) -> Self:
        policy, given = POLICIES[self.policy], self._given()
        known = {field.name for field in fields(policy)}  # type: ignore[arg-type]
        unknown = [name for name in given if name not in known]
        refuse(((name,), f"policy {self.policy} does not have this key; remove it") for name in unknown)
        refuse(((), f"{name}: missing; {what}") for name, what in policy.missing.items() if name not in given)
        with refused():
            self.choice(every=1)
        return self

    def _given(self) -> dict[str, Any]:
        return {
            name: value
            for name in type(self).model_fields
            if (value := getattr(self, name)) is not None and name != "policy"
        }

    def choice(self, every: int) -> Policy:
        """Return the policy with its settings.

        Args:
            every: Length of a window, in microseconds.
        """
        read: dict[str, Callable[[Any], Any]] = {
            "gains": lambda gains: Gains(**gains.model_dump()),
            "interval": lambda interval: max(interval // every, 1),
            "weights": lambda weights: tuple(map(float, weights)),
        }
        given = {name: read.get(name, _itself)(value) for name, value in self._given().items()}
        return POLICIES[self.policy](**given)


def _itself(value: Any) -> Any:
    return value


class StrategySection(Section):
    """A strategy with settings: exactly one of these keys."""

    tree: TreeSection | None = None
    factorised: FilterForm | None = None
    direct: DirectSection | None = None
    adaptive: AdaptiveSection | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        with refused("tree" if self.direct is None else "direct"):
            self.choice()
        return self

    def choice(self) -> Choice:
        """Return the settings that the section fixes for the planner."""
        if self.adaptive is not None:
            return Choice()
        if self.direct is not None:
            return Choice(name="direct", weights=tuple(float(weight) for weight in self.direct.weights))
        if self.tree is None:
            return Choice(name="factorised", form=self.factorised)
        return Choice(name="tree", branching=self.tree.branching, height=self.tree.height, refine=self.tree.refine)


def _strategy(value: Any) -> Any:
    """Refuse a value that is neither the name of a strategy nor one strategy with its settings."""
    names = ("auto", *OFFERS)
    if isinstance(value, dict):
        if len(value) != 1:
            raise wrong(
                "expected one strategy; write strategy: tree, or {tree: {branching: 16}}, or {factorised: leaky}"
            )
        ((word, settings),) = value.items()
        if word not in (*names, "adaptive"):
            raise wrong(not_one_of(word, (*names, "adaptive")))
        if word not in StrategySection.model_fields:
            raise wrong(f"{word} takes no settings; write strategy: {word}")
        if settings is None:
            raise wrong(f"the settings are missing; write strategy: {_bare(word)}")
        return word if settings == {} and word != "adaptive" else value
    if value == "adaptive":
        raise wrong(f"adaptive needs a policy; write strategy: {_bare(value)}")
    return one_of(names)(value)


def _bare(word: str) -> str:
    return "{adaptive: {policy: dsat, samples: 20}}" if word == "adaptive" else f"{word} to leave them to the planner"


GivenStrategy = Annotated[
    Annotated[str, WORD] | Annotated[StrategySection, SETTINGS],
    EITHER,
    BeforeValidator(_strategy),
]


def choice_of(strategy: GivenStrategy) -> Choice:
    """Return the settings that a strategy fixes for the planner; none if levels are published adaptively."""
    return Choice(name=strategy) if isinstance(strategy, str) else strategy.choice()


def adaptive_in(strategy: GivenStrategy) -> AdaptiveSection | None:
    """Return how levels are published adaptively; None if the strategy publishes all windows."""
    return None if isinstance(strategy, str) else strategy.adaptive
