"""What the error is asked for: one count, in one cell, published again and again."""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One point of the comparison; its error is the root mean square over all numbers that are published.

    Attributes:
        windows: how many.
        changes: most changes of an entry (k); its insertion is one. None if `span` bounds it.
        span: the changes of an entry lie within so many windows' time of its first (B). None if `changes` bounds it.
        epsilon, delta: the budget of everything together.
        width: of sliding windows, in windows, one after every window. None for levels: all entries that there are
            at each window's end, those from before the start included.
    """

    windows: int = 1024
    changes: int | None = 4
    span: int | None = None
    epsilon: float = 1.0
    delta: float = 1e-9
    width: int | None = None

    @property
    def initial_level(self) -> int:
        """1 if the level at the start is one more number that is needed."""
        return int(self.width is None)

    @property
    def leaves(self) -> int:
        """Length of the stream that is released: the initial level, where there is one, and the windows."""
        return self.windows + self.initial_level

    @property
    def touched(self) -> int:
        """Leaves that an entry can change: a time of B meets B + 1 windows; the initial level lies before them."""
        if self.changes is not None:
            return min(self.changes, self.leaves)
        assert self.span is not None
        return min(self.span + 1 + self.initial_level, self.leaves)


@lru_cache
def sigma(epsilon: float, delta: float) -> float:
    """Standard deviation of Gaussian noise at sensitivity 1, the least for this budget (Balle, Wang 2018).

    >>> round(sigma(1.0, 1e-6), 4)
    4.2247
    """
    from dp_accounting import gaussian_mechanism

    return float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta))
