"""Noise that two runs of an audit share, so that nothing that they publish may differ."""

import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution
from privacy.planning.linear_part import LinearPart
from privacy.series import Family, Ints
from privacy.strategies.base import Nodes
from transforms.release import discovered_chunk, linear_chunk, noise

NoiseNode = tuple[int, Family, int, int, int, int, int]
"""Query, family, part, component, layer, begin, end."""

NO_PART: tuple[int, Family, int] = (-1, "net", 0)
"""For noise of what the data decide."""

REACH = 2**20
"""Size of the noise that both runs share."""


def wide(thresholds: Mapping[int, int]) -> dict[int, int]:
    """Return a size of the noise of keys, by query, with which some are found and some are not."""
    return {query: max(REACH, 2 * threshold) for query, threshold in thresholds.items()}


HIDDEN = -(2**45)
"""Noise of keys that must not be found."""


@dataclass(slots=True)
class SharedNoise:
    """Noise of a node whenever it is asked for, less what a second release must make up for.

    Noise of keys that are found depends on the text of the key, so it is the same for any other keys.

    Attributes:
        less: What to subtract from the noise of nodes, by node, int64 [columns].
        universe: For each query that finds keys the texts of all keys; `less` has their cells as columns.
        hidden: For each query that finds keys those that must not be found.
        reach: Size of the noise of found keys, by query.
        salt: Number on which all noise depends.
        asked: All nodes that got noise.
        drawn: How often each node of each key got noise.
        wrong: What is wrong with requests for noise of keys.
    """

    less: dict[NoiseNode, Ints] = field(default_factory=dict)
    universe: Mapping[int, pa.Array] = field(default_factory=dict)
    hidden: Mapping[int, Collection[str]] = field(default_factory=dict)
    reach: Mapping[int, int] = field(default_factory=dict)
    salt: int = 7
    asked: set[NoiseNode] = field(default_factory=set)
    drawn: Counter[tuple[NoiseNode, str]] = field(default_factory=Counter)
    wrong: dict[str, None] = field(default_factory=dict)
    _now: threading.local = field(default_factory=threading.local)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the release step use this noise. Only a process that publishes nothing may do this."""
        kept = linear_chunk.step, discovered_chunk.step, discovered_chunk.layers, noise.sample_noise
        step, found, layers, _ = kept

        def stepped(released: LinearPart, held: Any, leaves: Ints) -> Any:
            keys = self.universe.get(released.query)
            with self._of(released, None if keys is None else keys.to_pylist()):
                return step(released, held, leaves)

        def found_stepped(parts: Any, held: Any, leaves: Any) -> Any:
            with self._of(parts[0], held.keys.to_pylist()):
                self._now.finds = True
                return found(parts, held, leaves)

        def layered(parts: Any) -> Any:
            for one in layers(parts):
                self._now.part = one[0]
                yield one

        linear_chunk.step, discovered_chunk.step, noise.sample_noise = stepped, found_stepped, self.sample
        discovered_chunk.layers = layered
        try:
            yield
        finally:
            linear_chunk.step, discovered_chunk.step, discovered_chunk.layers, noise.sample_noise = kept

    @contextmanager
    def _of(self, part: LinearPart, keys: list[str] | None) -> Iterator[None]:
        self._now.part, self._now.keys, self._now.finds = part, keys, False
        try:
            yield
        finally:
            self._now.part = self._now.keys = None

    def sample(
        self, distribution: NoiseDistribution | PrivateChoice, nodes: Nodes, *, component: int, cells: int
    ) -> Ints:
        """Return the noise of nodes, int64 [nodes, cells]."""
        part, keys = getattr(self._now, "part", None), getattr(self._now, "keys", None)
        of = NO_PART if part is None else name_of(part)
        names = zip(nodes.layer.tolist(), nodes.begin.tolist(), nodes.end.tolist(), strict=True)
        found = np.zeros((len(nodes.end), cells), dtype=np.int64)
        if part is not None and keys is not None and self._now.finds:
            self._check(part, distribution, component, keys, cells)
        for row, name in enumerate(names):
            node = (*of, component, *name)
            self.asked.add(node)
            if keys is None or not keys or cells % len(keys):
                found[row] = _numbers(self.salt, node, REACH, cells)
                found[row] -= self.less.get(node, 0)
            else:
                found[row] = self._of_keys(node, keys, cells // len(keys))
        scores = getattr(distribution, "scores", None)  # of a choice among as many places
        return found if scores is None else found % len(scores)

    def _of_keys(self, node: NoiseNode, keys: list[str], each: int) -> Ints:
        """Return the noise of the cells of keys in one node."""
        query, reach = node[0], self.reach.get(node[0], REACH)
        hidden = self.hidden.get(query, ())
        noisy = np.array([[HIDDEN] * each if k in hidden else _numbers(self.salt, node, reach, each, k) for k in keys])
        if node in self.less:
            place = {key: at for at, key in enumerate(self.universe[query].to_pylist())}
            noisy -= self.less[node].reshape(-1, each)[[place[key] for key in keys]]
        if self._now.finds:
            self.drawn.update((node, key) for key in keys)
        return noisy.ravel()

    def _check(self, part: LinearPart, distribution: Any, component: int, keys: list[str], cells: int) -> None:
        if distribution != part.noise[component]:
            self.wrong[f"noise of keys is {distribution}, and the plan has {part.noise[component]}"] = None
        if keys and cells % len(keys):
            self.wrong["keys share noise"] = None


@lru_cache(2**16)
def _numbers(salt: int, node: NoiseNode, reach: int, size: int, key: str = "") -> Ints:
    """Return numbers that depend on a node and a key alone, int64 [size]."""
    named = (*node, *([key] if key else []))
    seed = [salt, *(2 + crc32(part.encode()) % 2**31 if isinstance(part, str) else 2 + part for part in named)]
    return np.random.default_rng(seed).integers(-reach, reach, size)


def name_of(part: LinearPart) -> tuple[int, Family, int]:
    """Return the query, the family and a number of a part."""
    return part.query, part.family, hash(tuple(part.series)) % 2**31
