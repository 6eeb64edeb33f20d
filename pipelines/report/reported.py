"""The result of `slackwater report`."""

from dataclasses import dataclass, field
from typing import Any

from privacy.counted import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A page of published numbers.

    Attributes:
        release: Name of the release.
        file: Path of the page.
        signals: For each series of numbers the size of its noise, compared with the numbers.
        warnings: Numbers that are mostly noise.
        until: End of the last published window; None for sanitised records.
        standing_out: Numbers that stand out by more than the noise; empty for sanitised records.
        records: Number of sanitised records; None for a release of sums.
    """

    release: str
    file: str
    signals: tuple[dict[str, Any], ...] = field(repr=False)
    warnings: tuple[str, ...]
    until: str | None = None
    standing_out: tuple[str, ...] = ()
    records: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater report --json`."""
        document = {"release": self.release, "file": self.file, "signals": [*self.signals]}
        if self.records is None:
            return {**document, "until": self.until, "standing_out": [*self.standing_out]}
        return {**document, "records": self.records, "warnings": [*self.warnings]}

    def text(self) -> str:
        """Return the text that `slackwater report` prints."""
        what = f"all that is published up to {self.until}"
        if self.records is not None:
            what = f"estimates from {counted(self.records, 'sanitised record')}"
        standing = [f"  stands out: {one}" for one in self.standing_out]
        warnings = [f"  warning: {one}" for one in self.warnings]
        return "\n".join([f"{self.release}: {what}, as a page in {self.file}", *standing, *warnings])
