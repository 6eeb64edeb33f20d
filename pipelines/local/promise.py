"""The promise of a design to each person, its conditions, and what devices send: in words, for plans and pages."""

from typing import Any

from pipelines.spec.durations import duration_text
from privacy.counted import counted
from privacy.local.design import SHARES, Design
from privacy.upward import shown

CONDITIONS = (
    "Each device reports once on each window that its draws name, and sends the same report again if sending fails.",
    "Whether a device reports does not depend on its person's answers.",
    "A person has one device, or the losses of all of them add up; so do those of other surveys of the same people.",
    "Nothing in the spec was chosen by looking at these answers.",
)


def statement(design: Design) -> str:
    """Return the claim in words."""
    return (
        f"({shown(design.epsilon)}, {shown(design.delta)})-differential privacy of all that a device ever sends: "
        "for any answers and any number of changes, the collector, and anyone else who sees the reports, could have "
        "seen them with nearly the same probability if the person had answered anything else or nothing."
    )


def in_the_open(design: Design, people: int) -> str | None:
    """Return how many people's answers are expected to be sent without noise, in words; None if almost none are."""
    revealed = design.delta * people
    if revealed <= 0.01:
        return None
    return (
        f"with delta {shown(design.delta)} and {counted(people, 'person')}, {revealed:.3g} of them have a report in "
        "the open, on average"
    )


def sent(design: Design, every: int) -> list[dict[str, Any]]:
    """Return for each layer which share of people sends which reports.

    Args:
        design: The design.
        every: Length of a window, in microseconds.
    """
    return [
        {
            "people": layer.share / SHARES,
            "every": None if design.reported == "once" else duration_text(layer.span * every),
            "of_a_person": 1 if design.reported == "once" else design.nodes(number),
            "can_differ": design.differing(layer),
            **layer.randomiser.describe(),
        }
        for number, layer in enumerate(design.layers)
    ]


def share_text(share: float) -> str:
    """Return a share of the people in words.

    >>> share_text(1.0), share_text(0.125)
    ('all people', '12.5 % of people')
    """
    return "all people" if share == 1 else f"{100 * share:.1f} % of people"


def how(report: dict[str, Any]) -> str:
    """Return how a report of `sent` is randomised, in words."""
    if report["randomiser"] == "symbols":
        truth = f"the truth with probability {report['truth']:.3g}, each other one with {report['other']:.3g}"
        return f"each one of {report['symbols']:,} values, {truth}"
    if report["signs"] == 1:
        return f"a sign, with a mean of {report['gain']:.3f} if it carries information"
    return f"signs, with a mean of {report['gain']:.3f} if they carry information: {report['signs']} drawn together"
