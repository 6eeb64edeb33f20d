"""Releases with another promise: for each sanitised record, or for each device of a survey.

Their epsilons are not added to the epsilon of a release of sums. Neighbours of a release of sums differ in whether a
unit is in the data. Here neighbours differ in what a record or a device holds, and its presence is known. The total
cost for one person is stated in words (`TOGETHER`), for neighbours in which other data replace all data of one unit. A
release of sums then costs (2 epsilon, (1 + e^epsilon) delta), since the unit's data are removed and the other data are
added. Each record and each device of the unit costs its (epsilon, delta). All noise is independent, so these add up.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipelines.published.others import OTHERS
from pipelines.store.same_data import SameData, patterns_of
from privacy.planning.statement import protected
from privacy.protection import Protection
from privacy.upward import shown
from transforms.common.source import Source

APART = "They protect what a record or a device holds, not its presence, so the sums above do not include them."

TOGETHER = (
    "If other data replace all data of one person in this release, in some of those records and on some of those "
    "devices, the cost is the sum of 2 epsilon of this release, epsilon of each of the records and epsilon of each of "
    "the devices. Only this release protects whether a person is in the data at all."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPromise:
    """A release that protects each record, or each device.

    Attributes:
        so_far: Number of sanitised records; None if it is unknown.
    """

    release: str
    of_each: Literal["record", "device"]
    epsilon: float
    delta: float
    so_far: int | None

    def document(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "of_each": self.of_each,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "records": self.so_far,
        }

    def text(self) -> str:
        if self.of_each == "device":
            known = "once its devices report"
        else:
            known = "number so far unknown" if self.so_far is None else f"{self.so_far:,} sanitised so far"
        budget = f"epsilon {shown(self.epsilon)}, delta {shown(self.delta)}"
        return f"  {self.release}: {budget} for each {self.of_each}, {known}"


def other_promises(path: Path, source: Source) -> tuple[list[OtherPromise], tuple[str, ...]]:
    """Find such releases with specs in the folder of a spec: records in files of its source, and all surveys.

    Returns:
        The releases, and the paths of specs that cannot be read.
    """
    same = SameData(patterns_of(source))
    found, unread = list[OtherPromise](), set[str]()
    for entry in OTHERS.values():
        promises, not_read = entry.function("ledger", "other_promises")(path, same)
        found += promises
        unread |= {*not_read}
    return sorted(found, key=lambda promise: promise.release), tuple(sorted(unread | same.unlisted))


def text_of(promises: list[OtherPromise], unread: tuple[str, ...], protects: Protection) -> list[str]:
    """Return the lines of text about such releases; empty without such releases.

    Args:
        promises: The releases.
        unread: Paths of specs that cannot be read.
        protects: What the release of sums protects.
    """
    missing = [f"Other promises cannot be read: {', '.join(unread)}."] if unread else []
    if not promises:
        return missing
    told = TOGETHER
    if protects.span is not None:
        hidden = "is not protected" if protects.span.near else "all the time is not protected"
        told = (
            f"The budget of this release covers {protected(protects)}, and nothing more: other data in place of all "
            f"data of one person may cost many times its epsilon, and a person's presence in the data {hidden}. "
            "Epsilon of each of the person's records and devices is added to that cost."
        )
    listed = ["Other promises about possibly the same people:", *(each.text() for each in promises)]
    return [*listed, *missing, f"{APART} {told}"]
