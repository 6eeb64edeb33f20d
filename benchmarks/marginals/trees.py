"""Weights of the levels of hierarchies compared with equal ones, certified ones, and a bound for any strategy.

One window and one change. The error is half the mean variance of the leaves plus half that of the levels above, each
level equally (privacy.cells.hierarchy), for a norm of 1 of an entry.

*Equal*: the same share of the budget for each level, with least squares over all levels, as TopDown of the US Census
with equal shares. *Best weights*: for Gaussian noise the error is convex in the squared weights x and homogeneous of
degree -1, so no weights are better than the error times (1 - gap), as in privacy.cells.balance. *Any strategy*: no
unbiased mechanism with Gaussian noise has less error than (sum of the singular values of W)^2 / leaves, W the
workload (Li, Miklau, "Optimal error of query sets under the differentially-private matrix mechanism", ICDT 2013). On
vectors of sum 0 within each node of the deepest inner level W^T W is a constant; on the others it has one row for each
of these nodes.
"""

import math

import numpy as np

from benchmarks.marginals.compared import tracts
from privacy.cells.hierarchy import hierarchy
from privacy.cells.nested import Children, error
from privacy.cells.sums import Floats

STEPS, DIFFERENCE = 200, 1e-5
"""Multiplicative steps to the best weights, and the relative step of numerical derivatives."""


def table() -> str:
    """Return the error of each way as a multiple of ours; for any strategy the multiple that nothing is below."""
    lines = ["| tree | nodes of each level | noise | equal | best weights | any strategy | leaves alone |"]
    lines.append("|---|---|---|--:|--:|--:|--:|")
    for name, children in _trees().items():
        counts = [sum(children[0]), *map(len, children)]
        for mechanism, power in (("gaussian", 2), ("laplace", 1)):
            ours = _cost(children, np.array(hierarchy(children, power, 1).weights, dtype=float) ** 2, power)
            equal = _cost(children, np.ones(len(counts)), power) / ours
            leaves = np.array([1.0, *np.full(len(counts) - 1, 1e-12)])
            alone = _cost(children, leaves, 2) / ours  # the norm is 1 for any power
            least = (
                "  |  " if power == 1 else f"{_certified(children) / ours:.4f} | {any_strategy(children) / ours:.3f}"
            )
            sizes = ", ".join(f"{count:,}" for count in counts)
            lines.append(f"| {name} | {sizes} | {mechanism} | {equal:.3f} | {least} | {alone:,.1f} |")
    return "\n".join(lines)


def _trees() -> dict[str, Children]:
    (places,) = tracts().axes
    counties = tuple(np.diff(np.concatenate([[0], np.cumsum(places.children[1])])).tolist())
    return {
        "states, counties, tracts": places.children,
        "states, counties": (counties, (len(counties),)),
        "regular: 10 x 10 x 10": ((10,) * 100, (10,) * 10, (10,)),
    }


def _cost(children: Children, squares: Floats, power: int) -> float:
    norm = float((squares ** (power / 2)).sum()) ** (2 // power)
    return norm * error(children, tuple(squares.tolist()))


def _certified(children: Children) -> float:
    """Return a bound below the error of all weights of levels, Gaussian noise: the best weights less their gap."""
    squares, bound = np.ones(len(children) + 1), 0.0
    for _ in range(STEPS):
        squares = squares / squares.sum()
        now = error(children, tuple(squares.tolist()))
        rise = np.empty(len(squares))
        for place in range(len(squares)):
            step = DIFFERENCE * squares[place] * (np.arange(len(squares)) == place)
            above, below = (error(children, tuple((squares + sign * step).tolist())) for sign in (1, -1))
            rise[place] = (below - above) / (2 * step[place] * now)
        bound = max(bound, now * (2 - float(rise.max())))
        squares = squares * np.sqrt(rise)
        if rise.max() < 1 + 1e-4:
            break
    return bound


def any_strategy(children: Children) -> float:
    """Return the least error of any unbiased mechanism with Gaussian noise that this bound allows."""
    sizes = np.array(children[0], dtype=float)
    leaves, layers = float(sizes.sum()), len(children)
    shares = [0.5 / leaves, *(0.5 / layers / len(layer) for layer in children)]
    whole = np.zeros((len(sizes), len(sizes)))
    above = np.arange(len(sizes))
    for layer, share in zip(children[1:], shares[2:], strict=True):
        above = np.repeat(np.arange(len(layer)), layer)[above]
        whole += share * (above[:, None] == above)
    whole *= np.sqrt(np.outer(sizes, sizes))
    whole[np.diag_indices(len(sizes))] += shares[0] + shares[1] * sizes
    roots = np.sqrt(np.linalg.eigvalsh(whole)).sum() + math.sqrt(shares[0]) * (leaves - len(sizes))
    return float(roots**2 / leaves)
