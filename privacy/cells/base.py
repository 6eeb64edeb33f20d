"""Interfaces of strategies over cells, and of sketchers, which make samples of a histogram.

`Along` is a strategy over the cells of one axis, or of all axes at once; privacy.cells.product multiplies several.
`Sketcher` makes samples of an adaptively published histogram: such a product, or regions that depend on the data.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.corners import Corner
from privacy.cells.sums import Floats, Ints
from privacy.columns import Column

MEAN_SIZE = math.sqrt(2 / math.pi)
"""Mean absolute value of a normal variable of variance 1; least squares over many samples is nearly normal."""

ENOUGH = 2.0**62
"""Estimates are rounded within these limits; larger values are noise."""

Pick = Callable[[Ints], int]
"""Chooses one of several places, privately, by their scores."""

FreshNoise = Callable[[int], Ints]
"""Returns fresh noise for a number of sums, int64 [sums]."""


class Matrix(Protocol):
    """Matrix S of a strategy, nodes by cells: the number and weights of its nodes, and the norms of its columns."""

    @property
    def nodes(self) -> int: ...

    @property
    def filled(self) -> int:
        """Largest number of nodes that one cell is in."""
        ...

    @property
    def heaviest(self) -> int:
        """Largest weight of a cell in a node."""
        ...

    def least_precisions(self) -> Floats:
        """Values of each cell, float64 [cells]: S^T S minus their diagonal matrix has no eigenvalue below 0."""
        ...

    def layer(self) -> Ints:
        """Return the layer of each node, int64 [nodes]."""
        ...

    def of_nodes(self) -> Ints:
        """Return the weight of each node, int64 [nodes]."""
        ...

    def corners(self, power: int, apart: int | None = None) -> tuple[Corner, ...]:
        """Return the corners (privacy.cells.corners) of two cells, at most `apart` from each other; None: any two."""
        ...


class Along(Protocol):
    """Strategy for one axis, or for several axes at once; the last dimension of arrays runs along it."""

    def __hash__(self) -> int: ...

    kind: ClassVar[str]
    """Name of the class in documents."""

    blocks: ClassVar[bool]
    """Whether its rows fall into sets that share no cell, which the bounds for a span of time require."""

    @property
    def trivial(self) -> bool:
        """Whether each cell is one node, all with the same weight."""
        ...

    @property
    def matrix(self) -> Matrix: ...

    @property
    def cells(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of each axis that it covers."""
        ...

    @property
    def name(self) -> str:
        """Name in the spec's words."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """Chosen parameters, as JSON values of a plan."""
        ...

    def boxes(self) -> list[tuple[Ints, Ints]]:
        """Return, for each axis, the first cell of each node and the cell after its last one, int64 [nodes] each."""
        ...

    def spread(self, values: Ints) -> Ints:
        """Return S times values: int64 [.., cells] to [.., nodes]."""
        ...

    def gather(self, nodes: Floats) -> Floats:
        """Return (S^T S)^-1 S^T times nodes: float64 [.., nodes] to [.., cells]."""
        ...

    def solve(self, queries: Floats) -> Floats:
        """Return (S^T S)^-1 times queries: float64 [.., cells] to [.., cells]."""
        ...

    def variances(self) -> Floats:
        """Return the variance of each cell, float64 [cells], if the noise of a node has variance 1."""
        ...

    def average(self, workload: Workload) -> float:
        """Return the mean variance of the queries of a workload, if the noise of a node has variance 1."""
        ...


def as_it_is(level: Ints) -> Ints:
    """Return the cells [cells] themselves as the sums that distances are measured between."""
    return level


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reading:
    """Estimates from the sketch of one sample, in grid steps, if the noise of a node has variance 1.

    Attributes:
        cells: estimate of each cell, float64 [cells].
        deviations: standard deviation of the noise in each cell, float64 [cells]; None if all are 1.
        spread: number of cells, or windows, over which each estimate was spread, [cells]; None if none was spread.
        near: sums that distances are measured from, whole grid steps; empty if there are no distances.
        sums: turns a histogram [cells] into the sums that are compared with `near`.
        mean_norm: mean L1 norm of the noise in `near`.
        root: square root of the squared L2 norm of that noise.
    """

    cells: Ints | Floats
    deviations: Floats | None = None
    spread: Ints | None = None
    near: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sums: Callable[[Ints], Ints] = as_it_is
    mean_norm: float = 0.0
    root: float = 0.0


def whole(values: Floats) -> Ints:
    """Return estimates [cells] in whole grid steps, int64."""
    return np.rint(np.clip(values, -ENOUGH, ENOUGH)).astype(np.int64)


class Linear(Protocol):
    """Linear strategy S over all cells of a query, as intervals of sums over cells need it."""

    @property
    def axes(self) -> Sequence[Along] | None:
        """Strategies along the axes; None if each cell is a node."""
        ...

    def spread(self, values: Ints) -> Ints:
        """Return S times values: int64 [.., cells] to [.., nodes]."""
        ...

    def solve(self, queries: Floats) -> Floats:
        """Return (S^T S)^-1 times queries: float64 [.., cells] to [.., cells]."""
        ...

    def variances(self) -> Floats:
        """Return the variance of each cell, float64 [cells], if the noise of a node has variance 1."""
        ...


class Sketcher(Protocol):
    """Interface of the ways to make samples of a histogram.

    A sample publishes its sketch: noisy sums, and places that were chosen privately.

    Attributes:
        alone: whether each cell is one noisy number, so that its noise is that of a node.
        columns: columns that samples add to published tables.
        premise: further premise of a claim, for queries `{names}`; None without one.
        unsummed: why the error of a sum over cells is unknown; None if it is known.
        sentence: how numbers were made, for readers; empty if there is nothing to say.
        of: the quantity whose typical deviation is stated; empty: what cells are for.
    """

    alone: ClassVar[bool]
    columns: ClassVar[tuple[Column, ...]]
    premise: ClassVar[str | None]
    unsummed: ClassVar[str | None]
    sentence: ClassVar[str]
    of: ClassVar[str]

    kind: ClassVar[str]
    """Name of the class in documents."""

    @property
    def cells(self) -> int: ...

    @property
    def rounds(self) -> int:
        """Number of private choices that a cell takes part in."""
        ...

    @property
    def share(self) -> float:
        """Share of a sample's budget for private choices; 0 without any."""
        ...

    @property
    def decided(self) -> int:
        """Largest number of sums over which distances are added up."""
        ...

    @property
    def linear(self) -> "Linear | None":
        """Linear strategy that cells are gathered with; None if the error of a cell's estimate is unknown."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """Chosen parameters, as members of a plan's JSON for people."""
        ...

    def column(self, power: int) -> int:
        """Return how far noisy sums move, in L1 (power 1) or squared L2 (power 2), if a histogram moves by 1.

        This is the sensitivity of a sketch to a change of 1 in one cell, in units of that change.
        """
        ...

    def sketch(self, level: Ints, pick: Pick, noise: FreshNoise) -> Ints:
        """Return the sketch that a sample publishes of a histogram.

        Args:
            level: the exact histogram in grid steps, int64 [cells].
            pick: chooses places privately.
            noise: returns fresh noise.
        """
        ...

    def read(self, sketch: Ints) -> Reading:
        """Return the estimates that a sketch, int64 [sums], gives.

        Raises:
            ValueError: the sketch was made by another sketcher.
        """
        ...

    def typical_deviation(self) -> float:
        """Return the root mean square of the standard deviations of published numbers, if a node's is 1."""
        ...
