"""What a release claims, in words, with everything that the claim rests on.

The one place for it: plans, runs and manifests take their words from here, and a test holds README.md and
docs/design.md to them. What is proved, and for which data, is in docs/proofs/strategies.md#adaptive.
"""

from collections.abc import Sequence

from privacy.accounting.composition import Mechanism
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


def conditions(mechanism: Mechanism, parts: Sequence[tuple[str, Strategy]]) -> tuple[str, ...]:
    """What a claim rests on, a sentence each.

    Args:
        parts: the query's name and the strategy of each part that is released.
    """
    unreacting = [f"query {query} ({strategy.variant})" for query, strategy in parts if unproved(mechanism, strategy)]
    if not unreacting:
        return (REACTING, *ALWAYS)
    names = ", ".join(dict.fromkeys(unreacting))
    return (
        f"{NOT_REACTING}: Gaussian noise that is used in advance, as for {names}, is proved for such data alone.",
        *ALWAYS,
    )


def unproved(mechanism: Mechanism, strategy: Strategy) -> bool:
    """Whether the claim is proved only for data that do not react to what is published."""
    return mechanism == "gaussian" and strategy.in_advance
