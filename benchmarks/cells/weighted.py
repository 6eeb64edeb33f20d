"""What weighted sums of cells gain beside weighted trees, and how far off the least they are.

The table is that of docs/decisions/over-cells.md.
Exact: the mean variance of all ranges times what a strategy costs (`privacy.cells.fitting.cost`), of the mixed strategy
that is found (privacy.cells.mixing), as a share of that of the weighted tree which is taken where there is none.
"""

from benchmarks.cells.over_cells import lower_bound
from privacy.cells.choice import CellChoice
from privacy.cells.fitting import cost, strategies
from privacy.cells.mixed import Mixed
from privacy.cells.space import Axis

CELLS, CHANGES = (22, 102, 256, 512, 1024), (1, 4)
POWERS = {"Laplace": 1, "Gaussian": 2}
CHOICE = CellChoice(name="optimised", workload="ranges")


def beside_tree(cells: int, power: int, changes: int) -> str:
    """As a share of the weighted tree's cost, or what is better.

    >>> float(beside_tree(64, 2, 1)) < 0.9, beside_tree(22, 1, 1)
    (True, 'each cell by itself is better')
    """
    space = (Axis(cells=cells, ordered=True),)
    (best,) = strategies(space, CHOICE, power=power, changes=changes)
    (tree,) = strategies(space, CHOICE, power=power, changes=changes, blocks=True)  # mixed strategies have none
    (each,) = strategies(space, CellChoice(name="each", workload="ranges"), power=power, changes=changes)
    mixed, layers, alone = (cost(one, power=power, changes=changes) for one in (best, tree, each))
    if alone < min(mixed, layers):
        return "each cell by itself is better"
    return f"{mixed / layers:.2f}" if isinstance(best.axes[0], Mixed) else "tree is better"


def over_bound(cells: int) -> float:
    """How many times the lower bound for Gaussian noise and one change the strategy has that is taken."""
    (best,) = strategies((Axis(cells=cells, ordered=True),), CHOICE, power=2, changes=1)
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
