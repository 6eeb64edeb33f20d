"""L1 norms and squared L2 norms of the nodes of a tree that one entry moves.

Let X_0, X_1, ... be the entry's states at the ends of windows and z_i = X_i - X_{i-1} its leaf sums. G(a, b) is the
inner product of the strategy's columns a and b: for a tree or sliding windows the number of nodes that contain both
leaves. It never grows as b moves away from a. Then (pairing, docs/proofs/strategies.md#pairing) each change costs at
most D^2 G(a, a), and the first one r^2 G(a, a) if the entry had no state before:

    ||C z||^2 <= (r^2 + (m - 1) D^2) max G(a, a)     an entry that appears, m changes                           (1)
    ||C z||^2 <= m D^2 max G(a, a)                   one present at the start, which is not published           (2)

If the initial level is a node, an entry that was present at the start costs r^2 there and (2) for the rest. A layer of
a tree is a disjoint release with longer windows, so (1) and (2) hold for each layer with the number m of nodes that the
entry touches there, and so they do for L1. One component in one cell moves on a line: the norm is convex in the
values, so the worst entry jumps between the ends of the interval, and a node is non-zero only if it holds an odd number
of its jumps: h M(m), with h the length of the interval and M the most odd nodes (privacy.strategies.tree.odd_nodes;
#trees).
The smallest of the bounds is taken, in exact arithmetic.
"""

from dataclasses import dataclass
from fractions import Fraction

from privacy.states import States
from privacy.strategies.tree.odd_nodes import layer_sizes, most_odd, most_odd_within
from privacy.touched import Touched


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Complete nodes on windows.

    Attributes:
        branching: children of a node.
        layers: number of layers.
        windows: number of windows; None if the release has no end.
        initial: whether the initial level is a node.
    """

    branching: int
    layers: int
    windows: int | None
    initial: bool

    @property
    def leaves(self) -> tuple[int, ...]:
        """Number of leaves in one node of each layer that has nodes."""
        sizes = layer_sizes(self.branching, self.layers, self.windows)
        return tuple(self.branching**layer for layer, size in enumerate(sizes) if size > 0)

    def touched(self, leaves: Touched) -> list[Touched]:
        """Return the touched nodes of each layer that has nodes, without the node of the initial level."""
        sizes = layer_sizes(self.branching, self.layers, self.windows)
        return [leaves.nodes(self.branching**layer, size) for layer, size in enumerate(sizes) if size > 0]


def norm(forest: Forest, states: States, leaves: Touched, *, most: int = 1) -> Fraction:
    """Return the L1 or squared L2 norm of the nodes that one entry moves.

    Neighbours differ in one entry. The result bounds the sensitivity of all nodes together, in normalised units.

    Args:
        forest: the nodes.
        states: sizes of the entry's states in that norm.
        leaves: leaves that the entry can move.
        most: the largest number of changes that the caller will request, so that they are counted once.

    Source: docs/proofs/strategies.md#pairing and #trees.
    """
    layers = forest.touched(leaves)
    initial = states.radius if forest.initial else Fraction(0)
    appearing = len(layers) * states.radius + sum(t.appearing - 1 for t in layers) * states.diameter
    present = initial + sum(t.present for t in layers) * states.diameter
    by_layer = max(appearing, present)
    if not states.hulls:
        return by_layer
    line = sum(states.hulls, Fraction(0))
    if leaves.in_a_row:
        within = most_odd_within(
            layers[0].appearing, branching=forest.branching, height=forest.layers, windows=forest.windows
        )
        jumping = line * within + initial
    else:
        odd = most_odd(
            max(most, leaves.appearing), branching=forest.branching, height=forest.layers, windows=forest.windows
        )
        # If it is not published as the initial level, its complement begins without a state and has one change less.
        jumping = line * odd[min(leaves.appearing, len(odd) - 1)]
        if forest.initial:
            jumping = max(jumping, initial + line * odd[min(leaves.present, len(odd) - 1)])
    return min(by_layer, jumping)


def nodes(forest: Forest, leaves: Touched) -> int:
    """Return the number of nodes that one entry can move, including the node of the initial level."""
    layers = forest.touched(leaves)
    return max(sum(t.appearing for t in layers), sum(t.present for t in layers) + int(forest.initial))
