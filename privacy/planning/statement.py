"""What a release claims, in words, with everything that the claim rests on.

The one place for it: plans, runs and manifests take their words from here, and a test holds README.md and
docs/design.md to them. What is proved, and for which data, is in docs/proofs/strategies.md#adaptive.
"""

from collections.abc import Sequence

from privacy.counted import time_text
from privacy.noise.kinds import NOISE, Mechanism
from privacy.protection import EVERYTHING, Protection, Span
from privacy.strategies.base import Strategy

ALWAYS = (
    "Nothing in the spec was chosen by looking at these data.",
    "The release runs in one pair of folders and both are kept, so that the noise of each number is sampled once.",
    "Which files are there at which run, and the schemas of Parquet and Avro files, are taken as given: "
    "the same whoever is in the data.",
    "Other releases about the same people add their epsilons and deltas to these.",
    "Whether a run fails, how long it takes and what is on the private side are not covered.",
)
"""What the claim of every release rests on."""

REACTING = "The data may react to what is published."
NOT_REACTING = "The data do not react to what is published"
"""Which of the two holds follows from the noise and the strategies."""


IN_SPAN = (
    "A unit is compared with one that is not there in that time and in the same states before and after it: to do one "
    "thing instead of another in it costs twice epsilon, and what lasts for several such times costs epsilon for each, "
    "with delta (1 + e^epsilon) for two, delta (1 + e^epsilon + e^(2 epsilon)) for three, and so on.",
    "States are those at the ends of windows, as the changelog tells them: a mutation that comes late counts when it "
    "comes, and what was before it lasts until then; where a later one of its entry has counted, it never does.",
    "An entry is there before its first mutation if that has a state before: to be told of for the first time may so "
    "be more than what happens in that time.",
    "A release that protects all mutations of a unit adds twice its epsilon, and delta (1 + e^epsilon).",
)
"""What the claim for a span of time means, beside."""

IN_DISTANCE = (
    "PRESENCE IS NOT HIDDEN: that a unit is there, when, and all of it but these columns is not protected. A unit is "
    "compared with one that is there at the same times and in the same states but for its place, which is as near as "
    "that at all times of a span, and the same before and after it.",
    "Places s times as far from each other are protected with s times epsilon, s rounded up: exp(ceil(d / distance) "
    "epsilon) for places d apart, and what lasts for several such times costs epsilon for each; with delta (1 + "
    "e^epsilon) for two, delta (1 + e^epsilon + e^(2 epsilon)) for three, and so on.",
    "Distances are counted in cells: a place is known as the range that it is in, and what is below or above all of "
    "them is as near as the range at that end.",
    "States are those at the ends of windows, as the changelog tells them: a mutation that comes late counts when it "
    "comes.",
    "A release that protects all that a unit does, ever or in a span, adds twice its epsilon, delta (1 + e^epsilon).",
)
"""What the claim for a distance means, beside."""


def protected(protects: Protection) -> str:
    """What a claim is for.

    >>> protected(Span(14 * 86_400_000_000))
    'the whole release for whatever one privacy unit does in any 14 days'
    """
    return f"the whole release for {extent(protects)}"


def extent(protects: Protection, unit: str = "privacy unit", *, whole: bool = False) -> str:
    """Name the part of a unit's activity that is protected.

    Args:
        unit: name of the privacy unit.
        whole: whether the span is all of the release, so that it need not be named.
    """
    if not isinstance(protects, Span):
        return f"all mutations of one {unit}"
    when = "" if whole else f" in any {time_text(protects.length)}"
    if protects.near:
        near = " and ".join(f"{distance} in {column}" for column, distance in protects.near)
        return f"where one {unit} is{when}, up to {near}"
    return f"whatever one {unit} does{when}"


SPLIT = (
    "The data choose where regions of cells are split, which the budget of each sample pays for too: query {names}. A "
    "number there is a region's, spread evenly over its cells: its standard deviation is that of the noise alone."
)
"""Of samples that are made with a kd-tree."""

GROUPED = (
    "The data choose over which windows numbers are smoothed, which the budget pays for too: query {names}. A standard "
    "deviation there is that of the noise alone."
)
"""Of cells that are smoothed over groups of windows."""


def conditions(
    mechanism: Mechanism,
    parts: Sequence[tuple[str, Strategy]],
    protects: Protection = EVERYTHING,
    split: Sequence[str] = (),
    grouped: Sequence[str] = (),
) -> tuple[str, ...]:
    """What a claim rests on, a sentence each.

    Args:
        parts: the query's name and the strategy of each part that is released.
        protects: what the claim is for.
        split: names of queries whose samples are made with a kd-tree.
        grouped: names of queries that are smoothed over groups of windows.
    """
    always: tuple[str, ...] = ALWAYS
    if isinstance(protects, Span):
        always = (*(IN_DISTANCE if protects.near else IN_SPAN), *ALWAYS)
    if split:
        always = (SPLIT.format(names=", ".join(split)), *always)
    if grouped:
        always = (GROUPED.format(names=", ".join(grouped)), *always)
    unreacting = [f"query {query} ({strategy.variant})" for query, strategy in parts if unproved(mechanism, strategy)]
    if not unreacting:
        return (REACTING, *always)
    names = ", ".join(dict.fromkeys(unreacting))
    return (
        f"{NOT_REACTING}: Gaussian noise that is used in advance, as for {names}, is proved for such data alone.",
        *always,
    )


def unproved(mechanism: Mechanism, strategy: Strategy) -> bool:
    """Whether the claim is proved only for data that do not react to what is published."""
    return strategy.in_advance and not NOISE[mechanism].in_advance
