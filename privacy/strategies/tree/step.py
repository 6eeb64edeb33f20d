"""Step of a tree: noisy nodes and published numbers of the windows that closed now, from a carry of a few rows.

For each layer the carry holds *noisy places*: the sum of the noisy nodes before a place. A node that has not ended
counts with the leaves that it has so far. A number from boundary b to t is a path of nodes
(privacy.strategies.tree.covers), so it is a sum of differences of noisy places. The contributions of the leaves
telescope to the exact number, and only the noise of the nodes on the path remains: A x + W0 z. A node is the difference
of two adjacent places once it has ended. The noisy initial level, if it is released, is below all places of the top
layer, so that a level is a path without a beginning.

    noisy.<layer>     int64, at the places of Layering.kept
    refined.<layer>   float64, sums of the nodes' corrections before a place (privacy.strategies.tree.refine): up to the
                      last complete node for bottom_up, up to the last sampled node for least_squares

The carry holds no exact sum: an open node has its noise from its first window on. Sums of integers may wrap beyond 64
bits, and their differences wrap back to the correct values. Sums of corrections grow node by node from the first one.
So no bit depends on the steps in which the windows arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from privacy.series import BEFORE_ALL, Ints, Series
from privacy.strategies.base import Carry, Floats, Nodes, SampleNodes, StepResult, before_each
from privacy.strategies.choice import Refine
from privacy.strategies.tree.covers import Runs, cover_runs, walk_runs
from privacy.strategies.tree.layering import Layering, joined
from privacy.strategies.tree.refine import Numbers, least_squares, node_variances

INITIAL = Nodes(layer=np.array([0]), begin=np.array([BEFORE_ALL]), end=np.array([0]))
"""The initial level, as a node."""


@dataclass(frozen=True, slots=True)
class Places(Generic[Numbers]):
    """Sums of nodes before some places of a layer: `at` [places], increasing, and `sums` [places, cells]."""

    at: Ints
    sums: Numbers

    def before(self, places: Ints) -> Numbers:
        """Return the sum of nodes before each place, [places, cells], for places int64 [places]."""
        return self.sums[np.minimum(np.searchsorted(self.at, places), len(self.at) - 1)]

    def between(self, first: int, last: int) -> Numbers:
        """Return the values of nodes first, ..., last - 1, at adjacent places."""
        values: Numbers = np.diff(self.before(np.arange(first, last + 1)), axis=0)
        return values

    def extended(self, values: Numbers) -> "Places[Numbers]":
        """Return the places extended by the nodes after the last place, [nodes, cells]."""
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
    sample: SampleNodes,
) -> StepResult:
    """Return the result of `Strategy.step` for a forest.

    Args:
        layering: positions of the nodes.
        refine: how numbers are estimated from nodes.
        carry: carry of the previous step; None in the first step, where row 0 of `leaves` is the initial level.
        leaves: int64 [rows, cells].
        with_initial: whether the initial level is released.
        series: the published series.
        sample: returns fresh noise for nodes.
    """
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
    for layer, places in enumerate(noisy):  # from here on they include the new leaves
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
    """Return the number of rows of the carry, each with one number for each cell.

    Args:
        layering: positions of the nodes.
        refine: how numbers are estimated from nodes.
        windows: number of closed windows.
        series: the published series.
    """
    kept = [layering.kept(layer, windows, series) for layer in range(layering.layers)]
    return sum(map(len, kept)) + sum(map(len, _with_corrections(layering, refine, kept, windows)))


def _places(
    layering: Layering, refine: Refine, carry: Carry | None, series: Sequence[Series], cells: int
) -> tuple[list[Places[Ints]], list[Places[Floats]]]:
    """Return the noisy and refined places of the previous step; refined ones only if there are corrections."""
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
    """Return the places of each layer before which all nodes have their corrections."""
    if refine == "least_squares":
        return list(kept)
    if refine == "bottom_up":
        return [at[at <= layering.complete(layer, windows)] for layer, at in enumerate(kept)]
    return []


def _refined_upward(
    layering: Layering, noisy: Sequence[Places[Ints]], refined: Sequence[Places[Floats]], start: int, stop: int
) -> list[Places[Floats]]:
    """Return the places with the corrections of the nodes that are complete now, from those of their children."""
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
    """Return the boundaries [numbers] of the numbers that end after `start` and by `stop`; a level begins at 0.

    Args:
        series: the series of the numbers.
        start: numbers that end by this boundary are left out.
        stop: numbers that end by this boundary are included.
    """
    earlier = len(series.ends(start))
    return np.maximum(series.begins(stop)[earlier:], 0), series.ends(stop)[earlier:]


def paths(layering: Layering, begins: Ints, ends: Ints, windows: int) -> Runs:
    """Return covers of ranges, or walks if nodes are used before they are complete but are not refined.

    Args:
        layering: positions of the nodes.
        begins, ends: int64 [ranges], boundaries.
        windows: number of closed windows.
    """
    if layering.ahead == "family":
        nodes = layering.sizes(layering.roots_end(windows))
        return walk_runs(begins, ends, branching=layering.branching, nodes=nodes)
    return cover_runs(begins, ends, branching=layering.branching, height=layering.layers)


def _along(runs: Runs, layers: Sequence[Places[Numbers]], series: Series) -> Numbers:
    """Return the sums along paths, [numbers, cells]; a level begins below the first place of the top layer."""
    total: Numbers = np.zeros_like(layers[0].sums, shape=(runs.first.shape[2], layers[0].sums.shape[1]))
    for layer, (places, first, last) in enumerate(zip(layers, runs.first, runs.last, strict=True)):
        for side in (0, 1):
            if series.kind == "level" and layer == len(layers) - 1 and side == 0:
                total += places.before(last[side])
            elif (first[side] != last[side]).any():
                total += places.before(last[side]) - places.before(first[side])
    return total
