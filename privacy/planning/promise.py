"""Promise of a release: the protected units and activity, the windows, and the enforced bound."""

from dataclasses import dataclass, replace

from privacy.constraint import Constraint, alone
from privacy.planning.constraint_rules import constraint_problems
from privacy.planning.query_rules import near_changes
from privacy.problems import enforce, placed
from privacy.protection import EVERYTHING, Protection, Span
from privacy.touched import Touched


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Terms that noise is calibrated to. Made once, and an argument of all planning functions.

    Attributes:
        constraint: contribution bound that is enforced on each privacy unit.
        window: length of a window, in microseconds.
        windows: number of windows; None if the release has no end.
        owner: whether a unit may own several entries.
        protects: everything that a unit ever does, or what it does in a span of time; a span needs the constraint
            `AtOnce`.
        slack: windows may have unequal lengths: m consecutive windows last at least m * window - slack.

    Raises:
        ValueError: the constraint does not bound the contribution of a unit under this protection.
    """

    constraint: Constraint
    window: int
    windows: int | None
    owner: bool
    protects: Protection = EVERYTHING
    slack: int = 0

    def __post_init__(self) -> None:
        with placed("privacy", "constraint"):
            enforce(constraint_problems(self.constraint, owner=self.owner, span=self.span is not None))
        at_once = self.constraint.at_once
        if self.span is None or at_once is None:
            return
        if at_once.block is not None and at_once.block < self.span.length + self.slack:
            raise ValueError("a block in which changes are counted is at least as long as the span")
        if self.span.near:
            enforce(near_changes(counted=at_once.changes is not None))

    @property
    def span(self) -> Span | None:
        """The span of time that is protected; None if everything is."""
        return self.protects.span

    @property
    def boundaries(self) -> int | None:
        """Number of consecutive ends of windows at which neighbours differ; None if everything is protected."""
        return None if self.span is None else self.span.boundaries(self.window, self.slack)

    @property
    def touched(self) -> tuple[Touched, ...]:
        """The windows that an entry can move, for each part of a constraint on changes."""
        return tuple(part.touched(self.window, self.slack) for part in self.constraint.parts)

    @property
    def counts_changes(self) -> bool:
        """Whether the number of a unit's changes is bounded, in total or in blocks of time."""
        return self.constraint.at_once is None or self.constraint.at_once.changes is not None

    @property
    def counts_windows(self) -> bool:
        """Whether noise depends on the number of windows that a time touches, and so on their least length."""
        if self.constraint.at_once is not None:
            return self.span is not None
        return any(part.span is not None for part in self.constraint.parts)

    @property
    def near(self) -> bool:
        """Whether only the place of a unit is protected."""
        return self.span is not None and bool(self.span.near)

    @property
    def alone(self) -> bool:
        """Whether at most one entry of a unit can be in a query at a time."""
        return not self.owner or alone(self.constraint)

    @property
    def renewed(self) -> bool:
        """Whether the changes of a unit are bounded in blocks of time, after which a deferred change takes effect."""
        return self.span is not None and self.counts_changes

    def in_leaves(self, windows: int) -> "Promise":
        """Return the same promise, with `windows` windows merged into each.

        >>> from privacy.constraint import AtMost
        >>> Promise(constraint=AtMost(4), window=10, windows=9, owner=False).in_leaves(2).window
        20
        """
        return replace(
            self, window=self.window * windows, windows=None if self.windows is None else self.windows // windows
        )
