"""Settings of the comparison of errors: one count in one cell, published after each window."""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One point of the comparison; its error is the root mean square over all published numbers.

    Attributes:
        windows: number of windows.
        changes: largest number of changes of an entry (k), its insertion included. None if `span` bounds it.
        span: largest time from the first change of an entry to its last (B), in windows. None if `changes` bounds it.
        epsilon, delta: the budget of all numbers together.
        width: of sliding windows, in windows, one after every window. None for levels: the number of entries at
            each window's end, including those from before the start.
    """

    windows: int = 1024
    changes: int | None = 4
    span: int | None = None
    epsilon: float = 1.0
    delta: float = 1e-9
    width: int | None = None

    @property
    def initial_level(self) -> int:
        """1 if the level at the start is one more leaf."""
        return int(self.width is None)

    @property
    def leaves(self) -> int:
        """Length of the released stream: the windows, and the initial level if it is a leaf."""
        return self.windows + self.initial_level

    @property
    def touched(self) -> int:
        """Number of leaves that an entry can change: a time of B meets B + 1 windows, and the initial level before."""
        if self.changes is not None:
            return min(self.changes, self.leaves)
        assert self.span is not None
        return min(self.span + 1 + self.initial_level, self.leaves)


@lru_cache
def sigma(epsilon: float, delta: float) -> float:
    """Return the least standard deviation of Gaussian noise at sensitivity 1 for a budget (Balle, Wang 2018).

    >>> round(sigma(1.0, 1e-6), 4)
    4.2247
    """
    from dp_accounting import gaussian_mechanism

    return float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta))
