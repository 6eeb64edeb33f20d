"""The collector's part of a local release: from reports to unbiased numbers of people, with variances.

It reads only public data. Reports of a node are tallied as they arrive; tallies add up, in any order. A node's estimate
is scaled from the people who have reported on it to all people: an absent report counts as if it were like those that
arrived, so absence must not depend on the answers. Layers and turns are drawn at random, so if no report is absent the
estimate is unbiased.

    change of a node    signs      (people / reports) basis.decoded(sums) / gain
                        symbols    (people / reports) M P^-1 O, O the tally of symbols, P their probabilities, M the
                                   effect of each on the answers
    level, change       from all nodes together by least squares (privacy.local.least_squares), or what is reported once

**Variances.** For symbols on one layer without absent reports, M (P^-1 diag(O) P^-T - diag(P^-1 O)) M^T is an unbiased
estimate of the exact covariance M (P^-1 diag(P N) P^-T - diag(N)) M^T, N being the true numbers of symbols: linear in
N. (The paper's appendix C mixes proportions and counts and treats people as draws from one distribution.) P^-1 is
(I - p 1 1^T) / (q - p), so no matrix of symbols is built. If people are in several layers or reports are absent, the
second term is left out, which covers the drawing of people too. For signs it is at most
people^2 / reports * basis.variance / gain^2 for each node, for any answers, times the square of the node's weight; the
correlation of one person's signs, usually smaller, is part of the intervals only (docs/proofs/local.md,
privacy.local.intervals).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacy.local.basis import Floats
from privacy.local.chance import Ints
from privacy.local.design import Design
from privacy.local.intervals import Heard, of_changes
from privacy.local.least_squares import node_weights
from privacy.local.once import changes_once, levels_once
from privacy.local.tallies import ByAnswer, Tally, around

MOST_WEIGHTS = 1 << 22
"""Largest number of weights of nodes in numbers that are processed together."""


def levels(design: Design, tallies: Mapping[tuple[int, int], Tally], *, people: int, windows: int) -> ByAnswer:
    """Return estimates at the ends of the first `windows` windows, [windows, answers].

    Args:
        design: the design of the release.
        tallies: tallies by layer and node.
        people: number of people who are enrolled.
        windows: number of closed windows.
    """
    if design.reported == "once":
        return levels_once(design, tallies, people, windows)
    return _of_nodes(design, tallies, people, windows, np.tri(windows))


def changes(design: Design, tallies: Mapping[tuple[int, int], Tally], *, people: int, windows: int) -> ByAnswer:
    """Return estimates of the changes in each of the first `windows` windows, [windows, answers].

    Args: as for `levels`.
    """
    if design.reported == "once":
        return changes_once(design, tallies, people, windows)
    return _of_nodes(design, tallies, people, windows, np.eye(windows))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes:
    """Closed nodes of a layer, [nodes] and [nodes, answers]; zeros for nodes without reports.

    Attributes:
        counted: for symbols, float64 [nodes, 2, answers], unbiased estimates of how many of those who report have
            arrived at an answer, and have left it.
    """

    reports: Ints
    values: Floats
    variances: Floats
    counted: Floats


def _of_nodes(
    design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int, sums: Floats
) -> ByAnswer:
    """Return sums of windows, [sums, windows], from all closed nodes, by least squares."""
    layers = [_nodes(design, layer, tallies, people, windows) for layer in range(len(design.layers))]
    whole = people == sum(int(each.reports.min()) for each in layers if len(each.reports))
    precisions = [
        each.reports / layer.randomiser.variance_of_change(design.basis, design.space)
        for each, layer in zip(layers, design.layers, strict=True)
    ]
    spans = [layer.span for layer in design.layers]
    rows = max(1, MOST_WEIGHTS // sum(len(each.reports) for each in layers))
    parts = [
        _summed(design, layers, node_weights(spans, precisions, sums[start : start + rows]), people, whole=whole)
        for start in range(0, len(sums), rows)
    ]
    return ByAnswer(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in ByAnswer.__slots__},
    )


def _summed(design: Design, layers: list[_Nodes], weights: list[Floats], people: int, *, whole: bool) -> ByAnswer:
    unknown = np.isnan(weights[0][:, 0])
    weights = [np.nan_to_num(each) for each in weights]
    pairs = list(zip(weights, layers, strict=True))
    values = np.sum([weight @ each.values for weight, each in pairs], axis=0)
    variances = np.sum([weight**2 @ each.variances for weight, each in pairs], axis=0)
    scaled = [weight * (people / np.maximum(each.reports, 1)) for weight, each in pairs]
    sizes = [np.abs(each) for each in scaled]
    heard = Heard(
        nodes=_by_layer([(each > 0).sum(axis=1) for each in sizes]),
        weight=_by_layer([each.max(axis=1, initial=0) for each in sizes]),
        squares=_by_layer([each**2 @ layer.reports for each, layer in zip(scaled, layers, strict=True)]),
        sway=_by_layer([_sway(each) for each in scaled]),
        even=_by_layer([((each == 0) | (each == each.max(axis=1, initial=0)[:, None])).all(axis=1) for each in scaled]),
        people=_by_layer([np.full(len(values), each.reports.max(initial=1)) for each in layers]),
        whole=whole,
    )
    counted = np.stack(
        [np.einsum("sn,nka->ska", each**2, layer.counted) for each, layer in zip(scaled, layers, strict=True)], axis=2
    )
    bounds = of_changes(design, heard, people, counted[:, 0], counted[:, 1])
    values[unknown], variances[unknown] = np.nan, np.inf
    return around(values, variances, bounds)


def _nodes(design: Design, layer: int, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int) -> _Nodes:
    count, answers = windows // design.layers[layer].span, design.answers
    randomiser = design.layers[layer].randomiser
    reports = np.zeros(count, dtype=np.int64)
    values, variances, counted = np.zeros((count, answers)), np.zeros((count, answers)), np.zeros((count, 2, answers))
    for node in range(count):
        tallied = tallies.get((layer, node))
        if tallied is None or tallied.reports == 0:
            continue
        reports[node] = n = tallied.reports
        values[node], variances[node] = randomiser.change(tallied.sums, n, people, design.basis, design.space)
        counted[node] = randomiser.moved(tallied.sums, n, design.space)
    return _Nodes(reports=reports, values=values, variances=variances, counted=counted)


def _sway(weights: Floats) -> Floats:
    """Return the largest absolute value of an alternating sum of some of the weights of a row."""
    ends_up, ends_down = np.zeros(len(weights)), np.zeros(len(weights))  # also sums that begin with the opposite sign
    for weight in weights.T:
        ends_up, ends_down = np.maximum(ends_up, ends_down + weight), np.maximum(ends_down, ends_up - weight)
    return np.maximum(ends_up, ends_down)


def _by_layer(columns: list[Any]) -> Any:
    return np.stack(columns, axis=1)
