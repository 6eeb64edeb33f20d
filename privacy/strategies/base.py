"""The strategies: which sums get noise, and how published numbers are made from them.

A strategy is a linear map C from leaf sums (the opening and the windows, one column a cell) to nodes, each with an
independent draw of noise, and for each series a linear map W back with W C = A, where A is what the series asks for:

    published = W (C x + z) = A x + W z

so that what is published is the exact number plus noise that depends on no data, and is a function of noisy nodes
alone. A node that is not complete yet has its noise drawn in advance: W may use it, since only A x + W z is told, and
the node itself once it is complete. Together all that is ever told is a function of C x + z, so its loss is that of
C x + z (privacy.planning.sensitivity).

The claim holds for a changelog that reacts to what was published, but for draws in advance with Gaussian noise: there
it is for one that does not react (docs/proofs/strategies.md#adaptive).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.exact import Json
from privacy.series import Ints, Series

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes that are told for some closed windows, in the order of their completion: (end, layer).

    The opening, where it is released as a node, comes first; it begins at series.BEFORE_ALL and ends at 0. More
    windows only append nodes.

    Attributes:
        layer: [nodes], 0 for leaves.
        begin, end: [nodes], boundaries.
    """

    layer: Ints
    begin: Ints
    end: Ints


class Strategy(Protocol):
    """What every strategy offers; `windows` is always how many have closed, `cells` any number of columns."""

    kind: ClassVar[str]
    """Of all strategies of its class; see privacy.strategies.table."""

    @property
    def name(self) -> str:
        """`disjoint`, `tree`, `sliding` or `factorised`."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """What was chosen, for plans: JSON values."""
        ...

    @property
    def in_advance(self) -> bool:
        """Whether numbers use noise of nodes that are not complete yet."""
        ...

    def to_json(self, *, exactly: bool) -> Json:
        """The strategy as a document that `from_json` of its class reads back.

        Args:
            exactly: whether all that noise is calibrated to is in it, whatever a later version would compute; else
                what its description needs.
        """
        ...

    def draws(self, windows: int) -> int:
        """Rows of noise that are needed: one for each told node, then one for each that is drawn in advance."""
        ...

    def nodes(self, windows: int) -> Nodes:
        """Which nodes are told."""
        ...

    def advance(self, carry: Any, leaves: Ints) -> tuple[Ints, Any]:
        """Exact values of the nodes that these leaves complete.

        Args:
            carry: what an earlier call gave back; None at first, when row 0 of `leaves` is the opening.
            leaves: [rows, cells].

        Returns:
            [nodes, cells] in the order of `nodes`, and the carry.
        """
        ...

    def publish(self, series: Series, leaves: Ints, noise: Ints) -> Floats:
        """A x + W z: the numbers of a series, [numbers, cells]. Everything is in steps of a leaf sum.

        Args:
            leaves: [1 + windows, cells], row 0 the opening.
            noise: [draws, cells].
        """
        ...

    def variances(self, series: Series, windows: int) -> Floats:
        """[numbers]: the sum of squares of each row of W: how often the variance of one node is in a number."""
        ...

    def weights(self, series: Series, windows: int) -> list[Floats]:
        """For each number the sizes of the non-zero entries of its row of W, in any order."""
        ...
