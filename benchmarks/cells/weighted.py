"""Gain of weighted sums of cells compared with weighted trees, and their distance from the lower bound.

The table is in docs/decisions/over-cells.md. Its numbers are exact: the cost (`privacy.cells.fitting.cost`) of the
mixed strategy that is found (privacy.cells.mixing), divided by that of the weighted tree.
"""

from benchmarks.cells.over_cells import lower_bound
from privacy.cells.choice import CellChoice
from privacy.cells.fitting import cost
from privacy.cells.mixed import Mixed
from privacy.cells.offer import CellTerms
from privacy.cells.space import Axis
from privacy.cells.table import strategies

CELLS, CHANGES = (22, 102, 256, 512, 1024), (1, 4)
POWERS = {"Laplace": 1, "Gaussian": 2}
CHOICE = CellChoice(name="optimised", workload="ranges")


def beside_tree(cells: int, power: int, changes: int) -> str:
    """Return the cost as a share of the weighted tree's cost, or name the better strategy.

    Args:
        cells: number of cells.
        power: 1 for L1 norms (Laplace), 2 for L2 norms (Gaussian).
        changes: largest number of changes of an entry.

    >>> float(beside_tree(64, 2, 1)) < 0.9, beside_tree(22, 1, 1)
    (True, 'separate cells are better')
    """
    space = (Axis(cells=cells, ordered=True),)
    (best,) = strategies(CellTerms(space=space, choice=CHOICE, power=power, changes=changes))
    (tree,) = strategies(
        CellTerms(space=space, choice=CHOICE, power=power, changes=changes, blocks=True)
    )  # mixed strategies have no blocks
    (each,) = strategies(
        CellTerms(space=space, choice=CellChoice(name="each", workload="ranges"), power=power, changes=changes)
    )
    mixed, layers, alone = (cost(one, power=power, changes=changes) for one in (best, tree, each))
    if alone < min(mixed, layers):
        return "separate cells are better"
    return f"{mixed / layers:.2f}" if isinstance(best.axes[0], Mixed) else "tree is better"


def over_bound(cells: int) -> float:
    """Return the cost of the chosen strategy divided by the lower bound, for Gaussian noise and one change."""
    space = (Axis(cells=cells, ordered=True),)
    (best,) = strategies(CellTerms(space=space, choice=CHOICE, power=2, changes=1))
    return cost(best, power=2, changes=1) / lower_bound(cells)


def table() -> str:
    columns = [f"{noise}, {changes} change{'s' * (changes > 1)}" for noise in POWERS for changes in CHANGES]
    lines = [
        f"| cells | {' | '.join(columns)} | Gaussian, 1 change, over the lower bound |",
        "|--:|" + "---|" * len(columns) + "--:|",
    ]
    for cells in CELLS:
        told = [beside_tree(cells, power, changes) for power in POWERS.values() for changes in CHANGES]
        lines.append(f"| {cells:,} | {' | '.join(told)} | {over_bound(cells):.2f} |")
    return "\n".join(lines)
