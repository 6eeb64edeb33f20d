"""What the functions give back: frozen, with the command's text for people and its JSON document for the rest."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a release will cost, and how far off its numbers will be.

    Attributes:
        epsilon, delta: of all that the release ever publishes, together.
        statement: the claim in words.
        conditions: what the claim rests on.
        warnings: what is doubtful about the spec's choices.
        document: all of it, as `slackwater plan --json` prints it.
        text: for people, also what `print` shows.
    """

    release: str
    epsilon: float
    delta: float
    statement: str
    conditions: tuple[str, ...]
    warnings: tuple[str, ...]
    document: dict[str, Any] = field(repr=False)
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run has published.

    Attributes:
        windows: how many are published now that were not before; 0 if nothing was due.
        public: the folder that may be given away.
        files: those of this epoch, nodes and estimates.
        document: all of it, as `slackwater run --json` prints it.
        text: for people, also what `print` shows.
    """

    release: str
    windows: int
    public: str
    files: tuple[str, ...] = field(repr=False)
    document: dict[str, Any] = field(repr=False)
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The mechanism against the truth. NOT FOR RELEASE: it is exact knowledge about people, `text` too.

    Attributes:
        windows: how many have closed; 0 if there is nothing to evaluate.
        warnings: where numbers are useless, or nothing matched. Of specs that are compared, `release`, `windows` and
            `warnings` are those of the first.
        document: all of it, as `slackwater evaluate --json` prints it.
        text: for the data controller, also what `print` shows.
    """

    release: str
    windows: int
    warnings: tuple[str, ...] = field(repr=False)
    document: dict[str, Any] = field(repr=False)
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A synthetic changelog.

    Attributes:
        spec: the path of the copy that reads it.
        rows: of the changelog.
        windows: that are over at `until`.
        until: for `evaluate` and `run`.
        text: for people, also what `print` shows.
    """

    spec: str
    rows: int
    windows: int
    until: datetime
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text
