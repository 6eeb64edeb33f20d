"""Levels and changes from all nodes of a tree over time, by unbiased least squares.

The variance is the least possible if nobody changes. Different people report on the nodes of different layers, so each
layer observes a window independently. With w the inverse of

    1/2 sum_v w_v s_v^2 - sum_windows c s,    s_v being the sum over the windows of v.

One pass up the tree computes for each node a function 1/2 a s^2 - b s of this node's sum; one pass down computes s.
No matrix of nodes by nodes is built, and for a node without reports (w = 0) nothing is divided by w: a sum that the
reports do not determine is NaN.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privacy.local.basis import Floats

SLACK = 1e-9
"""Weights of windows in a sum that differ by at most this are equal: they are rounded means of zeros and ones."""


def node_weights(spans: Sequence[int], precisions: Sequence[Floats], sums: Floats) -> list[Floats]:
    """Return the weight of each node in each estimate, float64 [sums, nodes] for each layer; NaN without an estimate.

    Args:
        spans: spans of layers, in windows; each a multiple of the one before, the first 1.
        precisions: for each layer, float64 [nodes]: inverse variances, 0 for nodes without reports.
        sums: float64 [sums, windows], the weight of each window in each sum.

    >>> ones = np.ones(2)
    >>> [each.round(3).tolist() for each in node_weights([1, 2], [ones, ones[:1]], np.array([[1.0, 0.0]]))]
    [[[0.667, -0.333]], [[0.333]]]
    """
    a, b = [np.asarray(precisions[0], dtype=float)], [np.asarray(sums, dtype=float)]
    told: NDArray[np.bool_] = np.ones(len(sums), dtype=np.bool_)
    for (below, above), precision in zip(pairwise(spans), precisions[1:], strict=True):
        shape = (len(precision), above // below)
        inner = len(precision) * shape[1]
        small, open_ = _inverse(a[-1][:inner].reshape(shape))
        slopes = b[-1][:, :inner].reshape(len(sums), *shape)
        told &= ~_differ(slopes, open_).any(axis=1)
        shares = np.where(open_.any(axis=1, keepdims=True), open_, small)
        shares = shares / shares.sum(axis=1, keepdims=True)
        b.append((slopes * shares).sum(axis=2))
        closed = np.where(open_.any(axis=1), 0.0, 1 / np.maximum(small.sum(axis=1), np.finfo(float).tiny))
        a.append(precision + closed)
    weights: list[Floats] = []
    above_s: Floats | None = None
    for layer in reversed(range(len(spans))):
        small, open_ = _inverse(a[layer])
        s = b[layer] * small
        ratio = _ratio(spans, layer)
        inner = 0 if above_s is None else above_s.shape[1] * ratio
        told &= ~((np.abs(b[layer][:, inner:]) > SLACK) & open_[inner:]).any(axis=1)
        if above_s is not None:
            shape = (above_s.shape[1], ratio)
            widths, opens = small[:inner].reshape(shape), open_[:inner].reshape(shape)
            slopes = b[layer][:, :inner].reshape(len(sums), *shape)
            any_open = opens.any(axis=1)
            push = (above_s - (slopes * widths).sum(axis=2)) / np.where(any_open, 1.0, widths.sum(axis=1))
            push = np.where(any_open, -b[layer + 1], push)
            s[:, :inner] = ((slopes + push[:, :, None]) * widths).reshape(len(sums), inner)
        weights.append(s * precisions[layer])
        above_s = s
    return [np.where(told[:, None], each, np.nan) for each in reversed(weights)]


def level_variances(spans: Sequence[int], variances: Sequence[float], windows: int) -> Floats:
    """Return the variances of all levels, float64 [windows], if all nodes of a layer have the same variance.

    Only the path to each window's end is used.

    Args:
        spans: spans of layers, in windows.
        variances: variance of a node of each layer.
        windows: number of windows.

    >>> level_variances([1, 2], [1.0, 1.0], 3).round(3)
    array([0.667, 0.667, 1.667])
    """
    return _along_paths(spans, variances, windows, np.arange(1, windows + 1), 0.0, all_before=True)


def change_variances(spans: Sequence[int], variances: Sequence[float], windows: int) -> Floats:
    """Return the variances of the changes in all windows, float64 [windows]. Args: as for `level_variances`.

    >>> change_variances([1, 2], [1.0, 1.0], 3).round(3)
    array([0.667, 0.667, 1.   ])
    """
    return _along_paths(spans, variances, windows, np.arange(windows), 1.0, all_before=False)


def _along_paths(
    spans: Sequence[int],
    variances: Sequence[float],
    windows: int,
    windows_before: NDArray[np.int64],
    edge_: float,
    *,
    all_before: bool,
) -> Floats:
    """Return the variance of a sum of all windows before a place, or of none of them, and `edge_` times the next one.

    Each node of a layer that ends before the place is in the sum or not; one node is in it in part.
    """
    total, inside = np.zeros(len(windows_before)), np.ones(len(windows_before), dtype=np.bool_)
    edge = np.full(len(windows_before), edge_)
    a = 1 / variances[0]
    for layer, span in enumerate(spans):
        ratio = _ratio(spans, layer)
        covered = windows // spans[layer + 1] * ratio if layer + 1 < len(spans) else 0
        before = windows_before // span
        under = inside & (before < covered)
        children = before % ratio * all_before
        mixed = (children + edge) / ratio
        total += np.where(under, (children + edge**2 - ratio * mixed**2) / a, 0)
        out = inside & ~under  # at a node that lies in no other
        total += np.where(out, ((before - covered) * all_before + edge**2) / a, 0)
        b = a
        for higher in range(layer + 1, len(spans)):  # the nodes of higher layers that lie in no other lie before it
            b = 1 / variances[higher] + b / _ratio(spans, higher - 1)
            above = windows // spans[higher + 1] * _ratio(spans, higher) if higher + 1 < len(spans) else 0
            total += np.where(out, (windows // spans[higher] - above) * all_before / b, 0)
        inside, edge = under, np.where(under, mixed, edge)
        if layer + 1 < len(spans):
            a = 1 / variances[layer + 1] + a / ratio
    return total


def _ratio(spans: Sequence[int], layer: int) -> int:
    return spans[layer + 1] // spans[layer] if layer + 1 < len(spans) else 1


def _inverse(a: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return 1 / a, 0 where it is infinite; and where it is."""
    open_ = a <= 0
    return np.where(open_, 0.0, 1 / np.where(open_, 1.0, a)), open_


def _differ(slopes: Floats, open_: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether nodes without information would have to be distinguished, bool [sums, parents]."""
    most = np.where(open_, slopes, -np.inf).max(axis=2)
    least = np.where(open_, slopes, np.inf).min(axis=2)
    found: NDArray[np.bool_] = most - least > SLACK
    return found
