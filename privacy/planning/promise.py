"""What a release promises: whom it protects, from what, over which windows, and the bound that is enforced for it."""

from dataclasses import dataclass, replace

from privacy.constraint import AtOnce, Constraint, Within, parts
from privacy.protection import EVERYTHING, Protection, Span
from privacy.strategies.touched import Touched, touched

MISMATCH = (
    "a span of time is bounded by what a unit is at once, and everything that it ever does by its changes: give AtOnce "
    "with a Span, and another constraint without"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The terms that noise is calibrated to. Made once, and one argument of everything that plans.

    Attributes:
        constraint: contribution bound that is enforced on each privacy unit.
        window: length of a window, in microseconds.
        windows: number of windows; None if the release has no end.
        owner: whether a unit may own several entries.
        protects: everything that a unit ever does, or what it does in a span of time; a span needs the constraint
            `AtOnce`.
        slack: windows may have unequal lengths: m consecutive windows last at least m * window - slack.

    Raises:
        ValueError: the constraint does not bound what is protected.
    """

    constraint: Constraint
    window: int
    windows: int | None
    owner: bool
    protects: Protection = EVERYTHING
    slack: int = 0

    def __post_init__(self) -> None:
        if self.span is None:
            return
        if not isinstance(self.constraint, AtOnce):
            raise ValueError(MISMATCH)
        if self.constraint.block is not None and self.constraint.block < self.span.length + self.slack:
            raise ValueError("a block in which changes are counted is at least as long as the span")
        if self.constraint.changes is not None and self.span.near:
            raise ValueError("at_most: units that are near each other may use up their changes at different times")

    @property
    def span(self) -> Span | None:
        """The span of time that is protected; None if everything is."""
        return self.protects if isinstance(self.protects, Span) else None

    @property
    def boundaries(self) -> int | None:
        """Number of consecutive ends of windows at which neighbours differ; None if everything is protected."""
        return None if self.span is None else self.span.boundaries(self.window, self.slack)

    @property
    def touched(self) -> tuple[Touched, ...]:
        """The windows that an entry can move, for each part of a constraint on changes."""
        return tuple(touched(part, self.window, self.slack) for part in parts(self.constraint))

    @property
    def counts_changes(self) -> bool:
        """Whether the number of a unit's changes is bounded, for ever or in blocks of time."""
        return not isinstance(self.constraint, AtOnce) or self.constraint.changes is not None

    @property
    def counts_windows(self) -> bool:
        """Whether noise is scaled to how many windows some time touches, and so to how short they may be."""
        return self.span is not None or (
            not isinstance(self.constraint, AtOnce) and any(isinstance(part, Within) for part in parts(self.constraint))
        )

    def in_leaves(self, windows: int) -> "Promise":
        """The same promise, with `windows` windows merged into each.

        >>> from privacy.constraint import AtMost
        >>> Promise(constraint=AtMost(4), window=10, windows=9, owner=False).in_leaves(2).window
        20
        """
        return replace(
            self, window=self.window * windows, windows=None if self.windows is None else self.windows // windows
        )
