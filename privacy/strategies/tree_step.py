"""The step of a tree: noisy nodes and published numbers of the windows that closed now, from a carry of a few rows.

What is carried of each layer are *noisy places*: the sum of the noisy nodes before a place, of those that have not
ended with the leaves that they have so far. A number from boundary b to t is a path of nodes
(privacy.strategies.tree_covers), so a sum of differences of noisy places. What the leaves contribute to these
telescopes to the exact number, and noise remains of the nodes on the path alone: A x + W0 z. A node is the difference
of two neighbouring places once it has ended. The noisy level at the start, where it is released, stands below all
places of the top layer, so that a level is a path that begins nowhere.

    noisy.<layer>     int64, at the places of Layering.kept
    refined.<layer>   float64, sums of the nodes' corrections before a place (privacy.strategies.tree_refine): up to the
                      last complete node for bottom_up, as far as noise is sampled for least_squares

No exact sum is carried: an open node has its noise from its first window on. Sums of integers wrap where they leave 64
bits, and so do their differences, back to what they are. Sums of corrections grow node by node from the first one on.
So no bit depends on the steps in which the windows came.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from privacy.series import BEFORE_ALL, Ints, Series
from privacy.strategies.base import Carry, Floats, Nodes, Sample, Stepped, before_each
from privacy.strategies.choice import Refine
from privacy.strategies.tree_covers import Runs, cover_runs, walk_runs
from privacy.strategies.tree_layering import Layering, joined
from privacy.strategies.tree_refine import Numbers, least_squares, node_variances

INITIAL = Nodes(layer=np.array([0]), begin=np.array([BEFORE_ALL]), end=np.array([0]))
"""The level at the start, as a node."""


@dataclass(frozen=True, slots=True)
class Places(Generic[Numbers]):
    """Sums of nodes before some places of a layer: `at` [places], increasing, and `sums` [places, cells]."""

    at: Ints
    sums: Numbers

    def before(self, places: Ints) -> Numbers:
        return self.sums[np.minimum(np.searchsorted(self.at, places), len(self.at) - 1)]

    def between(self, first: int, last: int) -> Numbers:
        """The nodes first, ..., last - 1 themselves, neighbours."""
        values: Numbers = np.diff(self.before(np.arange(first, last + 1)), axis=0)
        return values

    def extended(self, values: Numbers) -> "Places[Numbers]":
        """With the nodes that come after the last place."""
        last = len(self.at) - 1
        sums = np.concatenate([self.sums, values])
        np.cumsum(sums[last:], axis=0, out=sums[last:])
        return Places(np.append(self.at, self.at[-1] + 1 + np.arange(len(values))), sums)


def step(
    layering: Layering,
    refine: Refine,
    carry: Carry | None,
    leaves: Ints,
    *,
    with_initial: bool,
    series: Sequence[Series],
    sample: Sample,
) -> Stepped:
    """`Strategy.step` of a forest; `with_initial` says whether the level at the start is released."""
    start = 0 if carry is None else carry.windows
    initial, leaves = (leaves[: int(with_initial)], leaves[1:]) if carry is None else (leaves[:0], leaves)
    stop = start + len(leaves)
    since = before_each(leaves)

    fresh = [layering.nodes(i, layering.sampled(i, start), layering.sampled(i, stop)) for i in range(layering.layers)]
    noise = sample(joined([INITIAL, *fresh] if len(initial) else fresh))
    head, *by_layer = np.split(noise, np.cumsum([len(initial), *(len(nodes.end) for nodes in fresh[:-1])]))
    head = initial + head
    noisy, refined = _places(layering, refine, carry, series, leaves.shape[1])
    if len(head):
        noisy[-1].sums[0] = head[0]
    noisy = [places.extended(noise) for places, noise in zip(noisy, by_layer, strict=True)]

    asked = [ranges(one, start, stop) for one in series]
    runs = [paths(layering, begins, ends, stop) for begins, ends in asked]
    sums = [
        since[ends - start] - since[np.maximum(begins - start, 0)] + _along(path, noisy, one)
        for one, path, (begins, ends) in zip(series, runs, asked, strict=True)
    ]
    for layer, places in enumerate(noisy):  # from here on they hold the leaves that came now
        np.add(places.sums, since[np.clip(places.at * layering.span(layer), start, stop) - start], out=places.sums)

    if refine == "bottom_up":
        refined = _refined_upward(layering, noisy, refined, start, stop)
    elif refine == "least_squares":
        corrections = least_squares(by_layer, layering.branching)
        refined = [places.extended(found) for places, found in zip(refined, corrections, strict=True)]
    numbers = [total.astype(np.float64) for total in sums]
    if refined:
        numbers = [n + _along(path, refined, one) for n, path, one in zip(numbers, runs, series, strict=True)]

    ended = layering.completed(start, stop)
    values = [p.between(layering.complete(i, start), layering.complete(i, stop)) for i, p in enumerate(noisy)]
    nodes = np.concatenate([head, np.concatenate(values)[np.lexsort((ended.layer, ended.end))]])
    carry = _carry(layering, noisy, refined, refine=refine, windows=stop, series=series)
    return nodes, tuple(numbers), carry


def carried(layering: Layering, refine: Refine, windows: int, series: Sequence[Series]) -> int:
    """How many rows the carry has, each a number a cell."""
    kept = [layering.kept(layer, windows, series) for layer in range(layering.layers)]
    return sum(map(len, kept)) + sum(map(len, _with_corrections(layering, refine, kept, windows)))


def _places(
    layering: Layering, refine: Refine, carry: Carry | None, series: Sequence[Series], cells: int
) -> tuple[list[Places[Ints]], list[Places[Floats]]]:
    """Noisy and refined places as the last step left them; refined ones only where there are corrections."""
    if carry is None:
        none, places = np.zeros(1, dtype=np.int64), range(layering.layers)
        return (
            [Places(none, np.zeros((1, cells), dtype=np.int64)) for _ in places],
            [Places(none, np.zeros((1, cells))) for _ in places if refine in ("bottom_up", "least_squares")],
        )
    kept = [layering.kept(layer, carry.windows, series) for layer in range(layering.layers)]
    noisy = [Places(at, carry.integers[f"noisy.{layer}"]) for layer, at in enumerate(kept)]
    refined = [
        Places(at, carry.floats[f"refined.{layer}"])
        for layer, at in enumerate(_with_corrections(layering, refine, kept, carry.windows))
    ]
    return noisy, refined


def _carry(
    layering: Layering,
    noisy: Sequence[Places[Ints]],
    refined: Sequence[Places[Floats]],
    *,
    refine: Refine,
    windows: int,
    series: Sequence[Series],
) -> Carry:
    kept = [layering.kept(layer, windows, series) for layer in range(layering.layers)]
    corrected = _with_corrections(layering, refine, kept, windows)
    return Carry(
        windows=windows,
        integers={f"noisy.{i}": places.before(at) for i, (places, at) in enumerate(zip(noisy, kept, strict=True))},
        floats={f"refined.{i}": p.before(at) for i, (p, at) in enumerate(zip(refined, corrected, strict=True))},
    )


def _with_corrections(layering: Layering, refine: Refine, kept: Sequence[Ints], windows: int) -> list[Ints]:
    """The places of each layer before which all nodes have their corrections."""
    if refine == "least_squares":
        return list(kept)
    if refine == "bottom_up":
        return [at[at <= layering.complete(layer, windows)] for layer, at in enumerate(kept)]
    return []


def _refined_upward(
    layering: Layering, noisy: Sequence[Places[Ints]], refined: Sequence[Places[Floats]], start: int, stop: int
) -> list[Places[Floats]]:
    """With the corrections of the nodes that are complete now, from those of their children."""
    variances = node_variances(layering.branching, layering.layers)
    found: list[Places[Floats]] = []
    for layer, places in enumerate(refined):
        first, last = layering.complete(layer, start), layering.complete(layer, stop)
        if layer == 0:
            found.append(places.extended(np.zeros((last - first, places.sums.shape[1]))))
            continue
        families = np.arange(first, last + 1) * layering.branching
        relations = noisy[layer].between(first, last) - np.diff(noisy[layer - 1].before(families), axis=0)
        below = np.diff(found[-1].before(families), axis=0)
        found.append(places.extended((1 - variances[layer]) * (below - relations)))
    return found


def ranges(series: Series, start: int, stop: int) -> tuple[Ints, Ints]:
    """Where the numbers that end after one boundary and by another begin and end; a level begins at the start."""
    earlier = len(series.ends(start))
    return np.maximum(series.begins(stop)[earlier:], 0), series.ends(stop)[earlier:]


def paths(layering: Layering, begins: Ints, ends: Ints, windows: int) -> Runs:
    """Covers of ranges, or walks where nodes are used before they are complete but are not refined."""
    if layering.ahead == "family":
        nodes = layering.sizes(layering.roots_end(windows))
        return walk_runs(begins, ends, branching=layering.branching, nodes=nodes)
    return cover_runs(begins, ends, branching=layering.branching, height=layering.layers)


def _along(runs: Runs, layers: Sequence[Places[Numbers]], series: Series) -> Numbers:
    """Sums along paths, [numbers, cells]; a level's begins below the first place of the top layer."""
    total: Numbers = np.zeros_like(layers[0].sums, shape=(runs.first.shape[2], layers[0].sums.shape[1]))
    for layer, (places, first, last) in enumerate(zip(layers, runs.first, runs.last, strict=True)):
        for side in (0, 1):
            if series.kind == "level" and layer == len(layers) - 1 and side == 0:
                total += places.before(last[side])
            elif (first[side] != last[side]).any():
                total += places.before(last[side]) - places.before(first[side])
    return total
