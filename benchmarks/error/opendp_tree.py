"""Errors of OpenDP's consistent b-ary tree, as one release of all windows.

OpenDP provides the shape (`choose_branching_factor`, Qardaji, Yang, Li 2013), the least-squares estimates
(`make_consistent_b_ary_tree`, Hay et al. 2010), the noise and its calibration. Its estimates are linear in the noise,
so their variance is exact: OpenDP's code runs on each unit vector.

An entry changes at most k leaves by 1 each, which is k h in L1 and sqrt(k h) in L2 over a tree of h layers. OpenDP's
stability map states the first. For L2 we use the second, which is smaller than its sqrt(k) h and favours OpenDP.
OpenDP's estimates need the last window; released window by window, their noise would have to be sampled in advance.
"""

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from benchmarks.error.setting import Setting

Mechanism = Literal["laplace", "gaussian"]

dp.enable_features("contrib", "honest-but-curious")


def rmse(setting: Setting, mechanism: Mechanism) -> float:
    """Return the root mean square error of levels, or of sliding sums."""
    branching = dp.t.choose_branching_factor(setting.leaves)
    squares = terms(setting.leaves, branching, setting.initial_level, setting.width)
    return deviation(setting, branching, mechanism) * math.sqrt(squares)


def best(setting: Setting) -> float:
    return min(rmse(setting, "laplace"), rmse(setting, "gaussian"))


def deviation(setting: Setting, branching: int, mechanism: Mechanism) -> float:
    """Return the standard deviation of a node's noise.

    Args:
        setting: of the release.
        branching: of the tree.
        mechanism: the kind of noise.
    """
    whole = dp.atom_domain(T=int)
    if mechanism == "laplace":
        charged = tree_of(setting.leaves, branching).map(setting.touched)
        space: Any = (dp.vector_domain(whole), dp.l1_distance(T=int))
        scale = dp.binary_search_param(
            lambda b: space >> dp.m.then_laplace(scale=b), d_in=charged, d_out=setting.epsilon, T=float
        )
        # Discrete noise, q = exp(-1 / scale): 2 q / (1 - q)^2.
        return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
    layers = tree_of(setting.leaves, branching).map(1)
    space = (dp.vector_domain(whole), dp.l2_distance(T=float))
    scale = dp.binary_search_param(
        lambda b: dp.c.make_fix_delta(
            dp.c.make_zCDP_to_approxDP(space >> dp.m.then_gaussian(scale=b)), delta=setting.delta
        ),
        d_in=math.sqrt(setting.touched * layers),
        d_out=(setting.epsilon, setting.delta),
        T=float,
    )
    return float(scale)


def terms(leaves: int, branching: int, initial_level: int, width: int | None) -> float:
    """Return the mean over published numbers of the sum of squares of a number's weights of nodes.

    Args:
        leaves: length of the stream.
        branching: of the tree.
        initial_level: 1 if the first leaf is the level at the start, which is not published.
        width: of sliding windows; None for levels.
    """
    level = levels_of(leaves, branching)
    if width is None:
        return float((level[:, initial_level:] ** 2).sum(axis=0).mean())
    before = np.pad(level, ((0, 0), (1, 0)))
    return float(((before[:, width:] - before[:, :-width]) ** 2).sum(axis=0).mean())


@lru_cache(maxsize=2)
def levels_of(leaves: int, branching: int) -> NDArray[np.float64]:
    """Return weights [nodes, leaves] of each node's noise in the level after each leaf."""
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching, TIA=int, TOA=float)
    nodes = len(tree_of(leaves, branching)([0] * leaves))
    rows = np.empty((nodes, leaves))
    unit = [0] * nodes
    for node in range(nodes):
        unit[node] = 1
        rows[node] = consistent(unit)
        unit[node] = 0
    return np.cumsum(rows, axis=1)


@lru_cache
def tree_of(leaves: int, branching: int) -> Any:
    space = (dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int))
    return dp.t.make_b_ary_tree(*space, leaf_count=leaves, branching_factor=branching)
