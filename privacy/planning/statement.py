"""Statement of a release: its claim in words, with all conditions of the claim.

Plans, runs and manifests take their words only from here, and a test compares README.md and docs/design.md with them.
For the proofs, and the data for which they hold, see docs/proofs/strategies.md#adaptive.
"""

from collections.abc import Sequence

from privacy.counted import time_text
from privacy.noise.kinds import NOISE, Mechanism
from privacy.protection import EVERYTHING, Protection
from privacy.strategies.base import Strategy

ALWAYS = (
    "Nothing in the spec was chosen by looking at these data.",
    "The release runs in one pair of folders and both are kept, so that the noise of each number is sampled once.",
    "The set of files at each run, and the schemas of Parquet and Avro files, are assumed not to depend on who is in "
    "the data.",
    "Other releases about the same people add their epsilons and deltas to these.",
    "Not covered: whether a run fails, how long it takes, and everything on the private side.",
)
"""Conditions of the claim of every release."""

REACTING = "The data may react to what is published."
NOT_REACTING = "The data do not react to what is published"
"""Which of the two holds follows from the noise and the strategies."""

GROWN = " with delta (1 + e^epsilon) for two, delta (1 + e^epsilon + e^(2 epsilon)) for three, and so on"
"""How delta grows with a difference that lasts for several spans."""

IN_SPAN = (
    "A unit is compared with the same unit that is absent during that time and has the same states before and after "
    "it: a difference between two activities in that time costs twice epsilon, and a difference that lasts for several "
    f"such times costs epsilon for each,{GROWN}.",
    "States are those at the ends of windows, as the changelog reports them: a late mutation counts when it arrives, "
    "and the state before it lasts until then; if a later mutation of its entry has already counted, it never counts.",
    "An entry is present before its first mutation if that mutation has a previous state: the first report of an entry "
    "may therefore be more than activity in that time.",
    "A release that protects all mutations of a unit adds twice its epsilon, and delta (1 + e^epsilon).",
)
"""Further conditions and consequences of a claim for a span of time."""

IN_DISTANCE = (
    "PRESENCE IS NOT HIDDEN: that a unit is present, when, and all its values except these columns are not protected. "
    "A unit is compared with one that is present at the same times and in the same states except for its place, which "
    "is within that distance at all times of a span, and the same before and after it.",
    "Places s times as far from each other are protected with s times epsilon, s rounded up: exp(ceil(d / distance) "
    f"epsilon) for places d apart, and a difference that lasts for several such times costs epsilon for each;{GROWN}.",
    "Distances are counted in cells: a place counts as its range, and values below or above all ranges are as near as "
    "the range at that end.",
    "States are those at the ends of windows, as the changelog reports them: a late mutation counts when it arrives.",
    "A release that protects all that a unit does, ever or in a span, adds twice its epsilon, delta (1 + e^epsilon).",
)
"""Further conditions and consequences of a claim for a distance."""


def protected(protects: Protection) -> str:
    """Return what a claim protects, in words.

    >>> from privacy.protection import Span
    >>> protected(Span(14 * 86_400_000_000))
    'the whole release for everything that one privacy unit does in any 14 days'
    """
    return f"the whole release for {extent(protects)}"


def extent(protects: Protection, unit: str = "privacy unit", *, whole: bool = False) -> str:
    """Return the protected part of a unit's activity, in words.

    Args:
        protects: the protection.
        unit: name of the privacy unit.
        whole: whether the span is all of the release, so that it need not be named.
    """
    span = protects.span
    if span is None:
        return f"all mutations of one {unit}"
    when = "" if whole else f" in any {time_text(span.length)}"
    if span.near:
        near = " and ".join(f"{distance} in {column}" for column, distance in span.near)
        return f"where one {unit} is{when}, up to {near}"
    return f"everything that one {unit} does{when}"


UNPROVED = f"{NOT_REACTING}: Gaussian noise that is used in advance, as for {{names}}, is proved for such data alone."
"""Premise of parts whose claim is proved only for data that do not react to published numbers."""

UNPROVED_KEYS = f"{NOT_REACTING}: the discovery of keys with weighted noise, as for {{names}}, is proved for such data."
"""Same premise, of parts that find keys."""


def conditions(
    premises: Sequence[tuple[str, str]], protects: Protection = EVERYTHING, *, delta: float = 0.0
) -> tuple[str, ...]:
    """Return the conditions of a claim, a sentence each.

    Args:
        premises: premises of parts: a sentence with `{names}`, and a name to insert.
        protects: the protection that is claimed.
        delta: delta of the claim; if it is 0, no sentence says how it grows.
    """
    always: tuple[str, ...] = ALWAYS
    if protects.span is not None:
        of_span = IN_DISTANCE if protects.span.near else IN_SPAN
        grows = of_span if delta else [one.replace(f",{GROWN}", "").replace(f";{GROWN}", "") for one in of_span]
        always = (*grows, *ALWAYS)
    named: dict[str, dict[str, None]] = {}
    for sentence, name in premises:
        named.setdefault(sentence, {})[name] = None
    found = {sentence: sentence.format(names=", ".join(names)) for sentence, names in named.items()}
    reacting = tuple(found.pop(premise) for premise in (UNPROVED, UNPROVED_KEYS) if premise in found)
    return (*(reacting or (REACTING,)), *found.values(), *always)


def unproved(mechanism: Mechanism, strategy: Strategy) -> bool:
    """Return whether the claim is proved only for data that do not react to published numbers."""
    return strategy.in_advance and not NOISE[mechanism].in_advance
