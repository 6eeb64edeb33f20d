"""`slackwater ledger` of a survey, and its line in the ledger of a release of sums next to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.common.value import Value
from pipelines.ledger.apart import OtherPromise
from pipelines.local.spec import load_local
from pipelines.spec.other_specs import other_specs
from pipelines.store.same_data import SameData
from privacy.counted import counted
from privacy.upward import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesLedger(Value):
    """Cost of a survey for each device. Only the device knows what it has spent so far; it is never more than this.

    Attributes:
        release: Name of the survey.
        epsilon, delta: Privacy parameters of each device.
        people: Number of devices.
        windows: Number of windows of the survey.
    """

    release: str
    epsilon: float
    delta: float
    people: int
    windows: int

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater ledger --json`."""
        return {
            "release": self.release,
            "of_each": "device",
            "total": {"epsilon": self.epsilon, "delta": self.delta},
            "people": self.people,
            "windows": self.windows,
        }

    def text(self) -> str:
        """Return the text that `slackwater ledger` prints."""
        return (
            f"{self.release}: a survey of {counted(self.people, 'device')}\n"
            f"epsilon {shown(self.epsilon)}, delta {shown(self.delta)} for each device, of everything it sends in "
            f"{counted(self.windows, 'window')}; the devices enforce it.\n"
            "Epsilons of other surveys of the same people, and of several devices of one person, add up with it."
        )


def ledger(path: str) -> DevicesLedger:
    """Return the cost of a survey for each device."""
    spec = load_local(path)
    return DevicesLedger(
        release=spec.release, epsilon=spec.epsilon, delta=spec.delta, people=spec.people, windows=spec.windows
    )


def other_promises(path: Path, _: SameData) -> tuple[list[OtherPromise], Sequence[str]]:
    """Find surveys whose specs lie in the folder of a spec. Devices hold their data, so all may be of the same people.

    Returns:
        Their promises, and the paths of specs that cannot be read.
    """
    surveys, unread = other_specs(path, "devices", load_local)
    found = [
        OtherPromise(release=survey.release, of_each="device", epsilon=survey.epsilon, delta=survey.delta, so_far=None)
        for survey in surveys
    ]
    return found, unread
