"""A published tree: OpenDP's b-ary tree with its consistency, as one release of all windows.

What is OpenDP's: the shape (`choose_branching_factor`, Qardaji, Yang, Li 2013), the least-squares estimates
(`make_consistent_b_ary_tree`, Hay et al. 2010), the noise and its calibration. Its estimates are linear in the noise,
so that their variance is exact: OpenDP's own code is run on each unit vector.

An entry changes at most k leaves by 1 each, which is k h in L1 and sqrt(k h) in L2 over a tree of h layers. The first
is what OpenDP's stability map says; the second is less than its sqrt(k) h, and granted. OpenDP's estimates wait for the
last window; released window by window, their noise would have to be sampled in advance.
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
    """Root mean square error of levels, or of sliding sums."""
    branching = dp.t.choose_branching_factor(setting.leaves)
    squares = terms(setting.leaves, branching, setting.initial_level, setting.width)
    return deviation(setting, branching, mechanism) * math.sqrt(squares)


def best(setting: Setting) -> float:
    return min(rmse(setting, "laplace"), rmse(setting, "gaussian"))


def deviation(setting: Setting, branching: int, mechanism: Mechanism) -> float:
    """Standard deviation of a node's noise."""
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
    """Mean over the published numbers of the sum of squares of a number's weights."""
    level = levels_of(leaves, branching)
    if width is None:
        return float((level[:, initial_level:] ** 2).sum(axis=0).mean())
    before = np.pad(level, ((0, 0), (1, 0)))
    return float(((before[:, width:] - before[:, :-width]) ** 2).sum(axis=0).mean())


@lru_cache(maxsize=2)
def levels_of(leaves: int, branching: int) -> NDArray[np.float64]:
    """[nodes, leaves]: how much of each node's noise the level after each leaf holds."""
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
