"""Strategies: which sums get noise, and how published numbers are computed from the noisy sums.

A strategy is a linear map C from leaf sums (the initial level and the windows, one column for each cell) to nodes, each
with independent noise, and for each series a linear map W back with W C = A, where A defines the numbers of the series:

    published = W (C x + z) = A x + W z

so each published number is the exact number plus noise that depends on no data, and is a function of noisy nodes alone.
W may use a node that is not complete yet: until then only A x + W z is published, and the node itself once it is
complete. Everything that is ever published is a function of C x + z, so it costs what C x + z costs
(privacy.planning.sensitivity).

Publication proceeds in steps. A step takes the leaves that closed now and the carry of the previous step, and returns
noisy nodes, numbers and the next carry. Each strategy decides when it samples the noise of a node: this noise is one
row, used wherever the node is used, and carried until no later number uses it. Many steps give the same result as one
step, bit by bit.

The claim holds for a changelog that reacts to published numbers, with one exception: if numbers use Gaussian noise of
nodes that are not complete, it holds only for a changelog that does not react (docs/proofs/strategies.md#adaptive).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.series import Ints, Series
from privacy.states import States
from privacy.touched import Touched

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Nodes, each given by its layer and the boundaries between which its windows lie.

    The initial level, if it is released as a node, begins at series.BEFORE_ALL and ends at 0.

    Attributes:
        layer: int64 [nodes], 0 for leaves.
        begin, end: int64 [nodes], boundaries.
    """

    layer: Ints
    begin: Ints
    end: Ints

    def of(self, rows: NDArray[np.bool_]) -> "Nodes":
        """Return the nodes that a mask bool [nodes] selects."""
        return Nodes(layer=self.layer[rows], begin=self.begin[rows], end=self.end[rows])


SampleNodes = Callable[[Nodes], Ints]
"""Fresh noise for nodes, int64 [nodes, cells]. A strategy requests each node once; the caller supplies the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """Private state that a step leaves for the next one: only what later numbers need.

    Attributes:
        windows: number of closed windows, in leaves of the strategy.
        integers, floats: arrays [rows, cells] by names of the strategy; the number of rows follows from `windows`.
    """

    windows: int
    integers: Mapping[str, Ints]
    floats: Mapping[str, Floats]


StepResult = tuple[Ints, tuple[Floats, ...], Carry]
"""Noisy nodes int64 [nodes, cells], numbers float64 [numbers, cells] of each series, and the carry."""


def before_each(leaves: Ints) -> Ints:
    """Return the sums of the rows before each boundary, [1 + rows, cells], for leaves [rows, cells]."""
    sums: Ints = np.concatenate([np.zeros_like(leaves, shape=(1, leaves.shape[1])), np.cumsum(leaves, axis=0)])
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Bounds, other than norms, for how far one unit moves the nodes of a strategy.

    Attributes:
        nodes: number of nodes that change; 1 if the strategy is not sparse, since all its nodes are charged as one.
        coordinates: largest number of values that differ between neighbours, over all cells and components.
        rounding: largest distance of rounded nodes from exact ones between neighbours, in L2 and normalised units.
    """

    nodes: int
    coordinates: int
    rounding: float = 0.0


def within(windows: int, horizon: int | None) -> int:
    """Return a number of windows, which the horizon includes; None: without an end.

    Raises:
        ValueError: they are more than the horizon.
    """
    if horizon is not None and windows > horizon:
        raise ValueError(f"{windows} windows are more than the horizon of {horizon}")
    return windows


def of_one_width(strategy: "Strategy") -> bool:
    """Return whether all nodes of a strategy have noise of one width."""
    none = np.zeros(0, dtype=np.int64)
    return strategy.stretch(Nodes(layer=none, begin=none, end=none)) is None


class Strategy(Protocol):
    """Interface of all strategies; `windows` is always the number of closed windows, `cells` any number of columns."""

    kind: ClassVar[str]
    """Kind of all strategies of this class, as in documents (privacy.strategies.table)."""

    sparse: ClassVar[bool]
    """Whether a change moves few nodes: only then is an L1 norm useful, and can each node be charged separately."""

    of_levels: ClassVar[bool]
    """Whether each node is a level: a unit that changes once and stays moves all later ones."""

    @property
    def summed_levels(self) -> bool:
        """Whether the noise of each level is the sum of the noise of some nodes, each with the weight 1."""
        ...

    certifiable: ClassVar[bool]
    """Whether `closely` makes a norm smaller, for states in one cell."""

    def __hash__(self) -> int:
        """Strategies are values, so they are hashable."""
        ...

    @property
    def name(self) -> str:
        """`disjoint`, `tree`, `sliding` or `factorised`."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """Chosen parameters, as JSON values of a plan."""
        ...

    @property
    def windows(self) -> int | None:
        """Horizon, in leaves; None if the release has no end."""
        ...

    @property
    def variant(self) -> str:
        """Variant among strategies of the same name, other than by numbers, in the spec's words; empty if only one."""
        ...

    def node_name(self, series: Sequence[Series]) -> str:
        """Return a name that separates its nodes from those of the query's other parts; empty if it needs none."""
        ...

    @property
    def in_advance(self) -> bool:
        """Whether numbers use noise of nodes that are not complete yet."""
        ...

    def settled(self) -> "Strategy":
        """Return the strategy with all numbers written out that a later version might compute otherwise."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether the size of the carry stays bounded however long the release runs."""
        ...

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        """Return the nodes that are published once `windows` windows have closed, ordered by end, then by layer.

        Args:
            windows: number of closed windows.
            since: leaves out the nodes that were published when `since` windows had closed; None: all nodes, beginning
                with the initial level.
        """
        ...

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: SampleNodes) -> StepResult:
        """Return the nodes and numbers that end with these leaves, in steps of a leaf sum, and the next carry.

        Args:
            carry: carry of the previous step; None in the first step, where row 0 of `leaves` is the initial level.
            leaves: int64 [rows, cells].
            series: the published series, equal in all steps.
            sample: returns fresh noise for nodes.
        """
        ...

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        """Return the number of rows of the carry after `windows` windows; each row has one number for each cell."""
        ...

    def stretch(self, nodes: Nodes) -> Floats | None:
        """Return how many times as wide as the part's noise the noise of each node is, float64 [nodes].

        None if all nodes have the part's noise. A strategy whose nodes differ publishes each node as a number, in
        order; its norms are then in widths of their noise.
        """
        ...

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        """Return the sum of squares of each row of W, float64 [numbers]: a number's variance in units of one node's.

        If nodes have noise of several widths, this is approximate: the variance of a wider node, in units of the
        part's.

        Args:
            series: the series of the numbers.
            windows: numbers that end by this boundary are included.
            since: numbers that end by this boundary are left out.
        """
        ...

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        """Return the sizes of the non-zero entries of the row of W of each number, in any order.

        Args:
            series, windows, since: select the numbers, as in `variances`.
        """
        ...

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        """Number of leaves in a node of each layer if the nodes are layers of disjoint windows; otherwise empty.

        Only such nodes can count entered and left entries.
        """
        ...

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        """Return a bound for the nodes that one entry moves: their L1 norm or squared L2 norm, as `states` are.

        Neighbours differ in one entry. The result depends on the protection only by r and D in `states` and by m in
        `leaves`. If the strategy is not sparse, the norm is L2.

        Args:
            states: sizes of an entry's states, in normalised units.
            leaves: leaves that the entry can move.
            closely: whether the computation may take longer, if the strategy is `certifiable`.
        """
        ...

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        """Return `norm` for entries of 1, 2, ..., `changes` changes at any leaves.

        Args:
            states: sizes of an entry's states, in normalised units.
            changes: the largest number of changes.
            closely: as in `norm`.
        """
        ...

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        """Return the bounds of a unit's effect on nodes that norms do not state.

        Args:
            leaves: leaves that one entry can move.
            cells: number of cells of the query, or of nodes of its strategy over cells: columns.
            each: largest number of columns that one state is in; 1 for cells.
            largest: grid steps in one normalised unit, for each component.
            shared: whether several entries of an owner share these changes, so that some move one leaf together.
        """
        ...

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        """Return the norm for two trajectories of one unit that differ at consecutive boundaries.

        At each differing boundary, one of the two trajectories has no state (privacy.protection.Span).

        Args:
            states: sizes of their difference (privacy.states), in normalised units.
            boundaries: largest number of consecutive boundaries at which the trajectories differ.
        """
        ...

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        """Return the bounds of such a unit's effect on nodes that norms do not state.

        Args:
            boundaries: largest number of consecutive boundaries at which the trajectories differ.
            cells, each, largest: as in `moved`.
            entries: largest number of entries that the unit has at one time.
        """
        ...

    def so_far(self, leaves: int) -> "Strategy | None":
        """Return the strategy of all nodes that numbers may use when `leaves` leaves have closed; None if no node.

        Everything published by then is a function of these nodes (privacy.planning.spent).
        """
        ...
