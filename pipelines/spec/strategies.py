"""The shape of `strategy:` in a spec: which sums get noise, and how numbers are made from them.

A word alone leaves all that it could settle to the planner: `tree`. Settings fix some of it: `{tree: {branching: 16}}`.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from pipelines.spec.errors import not_one_of, show, wrong
from pipelines.spec.fields import EITHER, SETTINGS, WORD, Section
from privacy.strategies.choice import NAMES, Choice, Form, Name, Refine

ENDLESS_FORMS: tuple[Form, ...] = ("window",)
"""Forms that need no last window: each change fades from the sums after it."""

_WITH_SETTINGS = ("tree", "factorised")


class TreeSection(Section):
    """What the spec fixes of a tree; the planner takes the best for the rest."""

    branching: Annotated[int, Field(ge=2, le=1024)] | None = None
    height: Annotated[int, Field(ge=1, le=40)] | None = None
    refine: Refine | None = None


class StrategySection(Section):
    """A strategy with settings: exactly one of these."""

    tree: TreeSection | None = None
    factorised: Form | None = None

    def choice(self) -> Choice:
        """What it leaves to the planner."""
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
        if word not in NAMES:
            raise wrong(not_one_of(word, NAMES))
        if word not in _WITH_SETTINGS:
            raise wrong(f"{word} takes no settings; write strategy: {word}")
        if settings is None:
            raise wrong(f"the settings are missing; write strategy: {word} to leave them to the planner")
        return word if settings == {} else value
    if not isinstance(value, str):
        raise wrong(f"expected one of {', '.join(NAMES)}, not {show(value)}")
    if value not in NAMES:
        raise wrong(not_one_of(value, NAMES))
    return value


Strategy = Annotated[
    Annotated[Name, WORD] | Annotated[StrategySection, SETTINGS],
    EITHER,
    BeforeValidator(_strategy),
]
