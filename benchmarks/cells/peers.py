"""Ranges and quartiles compared with OpenDP: one window of units in one cell each, whose presence is protected.

OpenDP 0.16 has trees (`make_b_ary_tree` with the branching that it recommends, its noise and calibration,
`make_consistent_b_ary_tree`, `make_quantiles_from_counts`) and quantiles by selection (`make_private_quantile`, Smith
2011, a third of epsilon for each quartile). Ours follow the planner. Variances of ranges are exact; those of OpenDP
come from running its code on each unit vector. Errors of quartiles are measured.
"""

from functools import partial

import numpy as np
import opendp.prelude as dp

from benchmarks.cells.compared import off
from benchmarks.cells.data import Units, made_up, stops
from benchmarks.cells.near import name_of, plan_of, variance
from benchmarks.cells.ours import published
from benchmarks.error.opendp_tree import levels_of, tree_of

RUNS = 300
SHARES = (0.25, 0.5, 0.75)
BRANCHINGS, MOST_TRIED = (2, 3, 4, 6, 8, 12, 16, 24, 32), 256
dp.enable_features("contrib", "honest-but-curious")


def tree_variance(cells: int, branching: int, epsilon: float) -> float:
    """Return the mean variance of all ranges under OpenDP's tree with Laplace noise.

    Args:
        cells: number of cells.
        branching: of the tree.
        epsilon: the budget.
    """
    levels = np.pad(levels_of(cells, branching), ((0, 0), (1, 0)))
    ends = cells + 1
    pairs = ends * float((levels**2).sum()) - float((levels.sum(axis=1) ** 2).sum())
    return pairs / (ends * cells / 2) * _noise_variance(_scale(cells, branching, epsilon))


def _scale(cells: int, branching: int, epsilon: float) -> float:
    return float(tree_of(cells, branching).map(1) / epsilon)


def _noise_variance(scale: float) -> float:
    fall = np.exp(-1 / scale)
    return float(2 * fall / (1 - fall) ** 2)


def ranges() -> str:
    lines = [
        "| cells | OpenDP, branching | RMSE | best branching | RMSE | ours | RMSE | ratio of variances |",
        "|--:|--:|--:|--:|--:|---|--:|---|",
    ]
    for cells in (64, 256, 1024):
        branching = dp.t.choose_branching_factor(cells)
        theirs, plan = tree_variance(cells, branching, 1.0), plan_of(cells, 0)
        ours, best, gain = variance(plan), "- | -", f"{theirs / variance(plan):.2f}"
        if cells <= MOST_TRIED:
            tried = {branching: tree_variance(cells, branching, 1.0) for branching in BRANCHINGS}
            least = min(tried, key=lambda branching: tried[branching])
            best, gain = f"{least} | {tried[least] ** 0.5:.1f}", f"{gain}; {tried[least] / ours:.2f}"
        lines.append(
            f"| {cells:,} | {branching} | {theirs**0.5:.1f} | {best} | {name_of(plan)} | {ours**0.5:.1f} | {gain} |"
        )
    return "\n".join(lines)


def quartiles(units: Units, cells: int = 1024) -> dict[str, list[float]]:
    """Return mean distances from the three quartiles by method."""
    random = np.random.default_rng()
    ours = published(units, plan_of(cells, 0, workload="prefixes"), runs=RUNS, random=random)
    branching = dp.t.choose_branching_factor(cells)
    edges = [float(edge) for edge in ours.edges]
    tree = (
        tree_of(cells, branching)
        >> dp.m.then_laplace(scale=_scale(cells, branching, 1.0))
        >> dp.t.make_consistent_b_ary_tree(branching_factor=branching, TIA=int, TOA=float)
        >> dp.t.make_quantiles_from_counts(edges, list(SHARES), TA=float)
    )
    counts = [int(count) for count in units.counts(cells)]
    theirs = np.array([tree(counts) for _ in range(RUNS)])
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    places = [float(place) for place in units.places]
    found: dict[str, list[float]] = {"ours": [], "OpenDP, tree": [], "OpenDP, selection": []}
    for at, share in enumerate(SHARES):
        found["ours"].append(off(ours.quantile(share).value, units, share))
        found["OpenDP, tree"].append(off(theirs[:, at], units, share))
        selection = partial(dp.m.make_private_quantile, *space, dp.max_divergence(), edges[1:-1], share)
        scale = dp.binary_search_param(selection, d_in=1, d_out=1 / len(SHARES), T=float)
        chosen = selection(scale)
        found["OpenDP, selection"].append(off(np.array([chosen(places) for _ in range(RUNS)]), units, share))
    return found


def quartile_table() -> str:
    lines = [
        "| units | n | method | error of the first quartile | of the median | of the third |",
        "|---|--:|---|--:|--:|--:|",
    ]
    for units in (stops(28), *made_up()[:2]):
        for name, errors in quartiles(units).items():
            cellwise = " | ".join(f"{error:.3g} {units.unit}".rstrip() for error in errors)
            lines.append(f"| {units.name} | {len(units.places):,} | {name} | {cellwise} |")
    return "\n".join(lines)


def tables() -> str:
    return f"{ranges()}\n\n{quartile_table()}"
