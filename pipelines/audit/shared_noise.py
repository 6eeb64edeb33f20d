"""Noise that two runs of an audit share, so that nothing that they publish may differ."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution
from privacy.planning.linear_part import LinearPart
from privacy.series import Family, Ints
from privacy.strategies.base import Nodes
from transforms.release import linear_chunk, noise

NoiseNode = tuple[int, Family, int, int, int, int, int]
"""Query, family, part, component, layer, begin, end."""

NO_PART: tuple[int, Family, int] = (-1, "net", 0)
"""For noise of what the data decide."""

REACH = 2**20
"""Size of the noise that both runs share."""


@dataclass(slots=True)
class SharedNoise:
    """Noise of a node whenever it is asked for, less what a second release must make up for.

    Attributes:
        less: What to subtract from the noise of nodes, by node, int64 [columns].
        asked: All nodes that got noise.
    """

    less: dict[NoiseNode, Ints] = field(default_factory=dict)
    asked: set[NoiseNode] = field(default_factory=set)
    _part: threading.local = field(default_factory=threading.local)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the release step use this noise. Only a process that publishes nothing may do this."""
        step, sample = linear_chunk.step, noise.sample_noise

        def stepped(released: LinearPart, held: Any, leaves: Ints) -> Any:
            self._part.now = name_of(released)
            try:
                return step(released, held, leaves)
            finally:
                self._part.now = NO_PART

        linear_chunk.step, noise.sample_noise = stepped, self.sample
        try:
            yield
        finally:
            linear_chunk.step, noise.sample_noise = step, sample

    def sample(
        self, distribution: NoiseDistribution | PrivateChoice, nodes: Nodes, *, component: int, cells: int
    ) -> Ints:
        """Return the noise of nodes, int64 [nodes, cells]."""
        of = getattr(self._part, "now", NO_PART)
        names = zip(nodes.layer.tolist(), nodes.begin.tolist(), nodes.end.tolist(), strict=True)
        found = np.zeros((len(nodes.end), cells), dtype=np.int64)
        for row, name in enumerate(names):
            node = (*of, component, *name)
            self.asked.add(node)
            seed = [7, *(2 + abs(hash(part)) % 2**31 if isinstance(part, str) else 2 + part for part in node)]
            found[row] = np.random.default_rng(seed).integers(-REACH, REACH, cells)
            if node in self.less:
                found[row] -= self.less[node]
        scores = getattr(distribution, "scores", None)  # of a choice among as many places
        return found if scores is None else found % len(scores)


def name_of(part: LinearPart) -> tuple[int, Family, int]:
    """Return the query, the family and a number of a part."""
    return part.query, part.family, hash(tuple(part.series)) % 2**31
