"""The strategies: which sums get noise, and how published numbers are made from them.

A strategy is a linear map C from leaf sums (the initial level and the windows, one column a cell) to nodes, each with
independent noise, and for each series a linear map W back with W C = A, where A is what the series asks for:

    published = W (C x + z) = A x + W z

so that what is published is the exact number plus noise that depends on no data, and is a function of noisy nodes
alone. W may use a node that is not complete yet: only A x + W z is published then, and the node itself once it is
complete. Together all that is ever published is a function of C x + z, so it costs what C x + z costs
(privacy.planning.sensitivity).

Publishing goes by steps: from the leaves that closed now, and what an earlier step carried over, to noisy nodes,
numbers and what the next step needs. When a node's noise is sampled is the strategy's own choice: it is one row, used
wherever the node is, and carried as long as something later uses it. Many steps give what one gives, to the last bit.

The claim holds for a changelog that reacts to what was published, but where numbers use Gaussian noise of nodes that
are not complete: there it is for one that does not react (docs/proofs/strategies.md#adaptive).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.series import Ints, Series
from privacy.states import States
from privacy.strategies.touched import Touched

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Nodes by what they are: their layer and the windows between two boundaries.

    The initial level, where it is released as a node, begins at series.BEFORE_ALL and ends at 0.

    Attributes:
        layer: [nodes], 0 for leaves.
        begin, end: [nodes], boundaries.
    """

    layer: Ints
    begin: Ints
    end: Ints

    def of(self, rows: NDArray[np.bool_]) -> "Nodes":
        """Some of them."""
        return Nodes(layer=self.layer[rows], begin=self.begin[rows], end=self.end[rows])


Sample = Callable[[Nodes], Ints]
"""Fresh noise for nodes, [nodes, cells]. Each node is asked for once; where noise comes from is not the strategy's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """What a step leaves for the next one: what later numbers need, and no more. Private.

    Attributes:
        windows: how many have closed, leaves of the strategy.
        integers, floats: by a name of the strategy's own, [rows, cells]; how many rows follows from `windows`.
    """

    windows: int
    integers: Mapping[str, Ints]
    floats: Mapping[str, Floats]


Stepped = tuple[Ints, tuple[Floats, ...], Carry]
"""Noisy nodes [nodes, cells], the numbers of each series [numbers, cells], and the carry."""


def before_each(leaves: Ints) -> Ints:
    """Sums of the rows before each boundary, [1 + rows, cells]."""
    sums: Ints = np.concatenate([np.zeros_like(leaves, shape=(1, leaves.shape[1])), np.cumsum(leaves, axis=0)])
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a unit can move of a strategy's nodes, beside their norms.

    Attributes:
        nodes: how many; 1 where the strategy is not sparse, since they are then charged as one.
        coordinates: numbers that differ at most between neighbours, over all cells and components.
        rounding: how far rounded nodes can be from exact ones between neighbours, in L2 and normalised units.
    """

    nodes: int
    coordinates: int
    rounding: float = 0.0


def of_one_width(strategy: "Strategy") -> bool:
    """Whether all its nodes have noise of one width."""
    none = np.zeros(0, dtype=np.int64)
    return strategy.stretch(Nodes(layer=none, begin=none, end=none)) is None


class Strategy(Protocol):
    """What every strategy offers; `windows` is always how many have closed, `cells` any number of columns."""

    kind: ClassVar[str]
    """Of all strategies of its class; see privacy.strategies.table."""

    sparse: ClassVar[bool]
    """Whether a change moves few nodes: only then is an L1 norm of use, and can each node be charged alone."""

    certifiable: ClassVar[bool]
    """Whether `closely` makes a norm smaller, for states in one cell."""

    def __hash__(self) -> int:
        """Strategies are values."""
        ...

    @property
    def name(self) -> str:
        """`disjoint`, `tree`, `sliding` or `factorised`."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """What was chosen, for plans: JSON values."""
        ...

    @property
    def windows(self) -> int | None:
        """The horizon, in leaves; None without end."""
        ...

    @property
    def variant(self) -> str:
        """How it differs from others of its name but for numbers, in the spec's words; empty if nothing does."""
        ...

    def node_name(self, series: Sequence[Series]) -> str:
        """A name for its nodes beside those of a query's other parts, which publish other series; empty without need.

        Args:
            series: what is published from it, in windows.
        """
        ...

    @property
    def in_advance(self) -> bool:
        """Whether numbers use noise of nodes that are not complete yet."""
        ...

    def settled(self) -> "Strategy":
        """The strategy with all numbers written out that a later version might compute otherwise."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether the carry stays of one size however long the release goes on."""
        ...

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        """Which nodes are published by then, in the order of their ends, then layers.

        Args:
            since: not those that were published when so many windows had closed; None: all, the initial level first.
        """
        ...

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: Sample) -> Stepped:
        """Nodes and numbers that end with these leaves. Everything is in steps of a leaf sum.

        Args:
            carry: what the step before left; None in the first, where row 0 of `leaves` is the initial level.
            leaves: [rows, cells].
            series: what is published, the same in all steps.
            sample: noise for nodes.
        """
        ...

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        """How many rows the carry has after so many windows: numbers for each cell."""
        ...

    def stretch(self, nodes: Nodes) -> Floats | None:
        """How many times as wide as the part's the noise of each of these nodes is; None where all have the part's.

        A strategy whose nodes differ publishes each as a number, in order; norms are then in widths of their noise.
        """
        ...

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        """[numbers]: the sum of squares of each row of W: how often the variance of one node is in a number.

        Where nodes have noise of several widths, very nearly: of a wider one, that is its variance in the part's.

        Of the numbers that end after `since` windows and by `windows`.
        """
        ...

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        """For each of these numbers the sizes of the non-zero entries of its row of W, in any order."""
        ...

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        """If its nodes are layers of disjoint windows, how many leaves a node of each has; else empty.

        Only such nodes can count what entered and left.
        """
        ...

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        """A bound for one entry's nodes: their L1 norm or squared L2 norm, as `states` are.

        Nothing else of what is protected is asked: r and D are in `states`, m in `leaves`. Where the strategy is not
        sparse, the norm is L2.

        Args:
            leaves: those that the entry can move.
            closely: whether it may take longer, where `certifiable`.
        """
        ...

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        """The same for entries of 1, 2, ..., `changes` changes, wherever these lie."""
        ...

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        """What else a unit can move.

        Args:
            leaves: those that one entry can move.
            cells: of the query, or nodes of its strategy over cells: columns.
            each: in how many of them one state is, at most; 1 for cells.
            largest: steps in one normalised unit, for each component.
            shared: whether several entries of an owner share these changes, so that some move one leaf together.
        """
        ...

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        """The same norm for one unit's trajectories that are apart at so many boundaries in a row, at most.

        At each of them one of the two is none (privacy.protection.Span).

        Args:
            states: sizes of their difference (privacy.states).
        """
        ...

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        """What else such a unit can move, of at most `entries` entries at once."""
        ...

    def so_far(self, leaves: int) -> "Strategy | None":
        """The strategy of all nodes that numbers may use when so many leaves have closed; None if there are none.

        What was published by then is a function of these nodes (privacy.planning.spent).
        """
        ...
