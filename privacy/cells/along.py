"""A strategy over the cells of one axis: what every kind can do. privacy.cells.product multiplies several."""

from typing import Any, ClassVar, Protocol

from privacy.cells.averages import Workload
from privacy.cells.corners import Corner
from privacy.cells.sums import Floats, Ints


class Along(Protocol):
    """A strategy for one axis, or for all at once (Quadtree); the last dimension of arrays runs along it."""

    kind: ClassVar[str]
    """Of all strategies of its class."""

    blocks: ClassVar[bool]
    """Whether its rows fall into sets that share no cell, which bounds for a span of time ask for."""

    @property
    def cells(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def filled(self) -> int:
        """In how many nodes a cell is, at most."""
        ...

    @property
    def name(self) -> str:
        """In the spec's words."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """What was chosen, for plans: JSON values."""
        ...

    def least_precisions(self) -> Floats:
        """Of each cell, [cells]: S^T S with these taken from its diagonal has no eigenvalue below 0."""
        ...

    def ranges(self) -> tuple[Ints, Ints]:
        """The cells of each node: the first, and one past the last."""
        ...

    def layer(self) -> Ints:
        """The layer of each node, [nodes]."""
        ...

    def of_nodes(self) -> Ints:
        """The weight of each node, [nodes]."""
        ...

    def corners(self, power: int, apart: int | None = None) -> tuple[Corner, ...]:
        """Of two cells, at most so far apart; None: any two (privacy.cells.corners)."""
        ...

    def spread(self, values: Ints) -> Ints:
        """S: [.., cells] to [.., nodes]."""
        ...

    def gather(self, nodes: Floats) -> Floats:
        """(S^T S)^-1 S^T: [.., nodes] to [.., cells]."""
        ...

    def solve(self, queries: Floats) -> Floats:
        """(S^T S)^-1: [.., cells] to [.., cells]."""
        ...

    def variances(self) -> Floats:
        """Of each cell, [cells], where the noise of a node has variance 1."""
        ...

    def average(self, workload: Workload) -> float:
        """The mean variance of the queries of a workload."""
        ...
