"""Sensitivities of strategies over few cells, and exact variances of each range, by enumeration.

Fang and Chang's tables 1 to 3 (section 5.1), and what they found by exhaustive checking. Units are on an axis of d
cells. Neighbours differ in the place of one unit by at most `apart` cells (d - 1 for any two places), or in one unit's
presence. The sensitivity is the largest L1 distance of two columns over all pairs; Laplace noise has the variance
2 (sensitivity / epsilon)^2; a range is estimated by least squares.

Table 3 lists the largest variance of ranges of one, two, three and four cells, 8, 16, 24, 32 and 4, 4, 4, 2. Sums from
a cell to the last have a source at 0 there: a unit may also come, in the first cell. Ranges that end with the last cell
hold the noise of one sum, variance 2. If only places are protected, the number of all units is the same for neighbours,
so it is known exactly.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Variances = dict[tuple[int, int], float]


def each(cells: int) -> Floats:
    return np.eye(cells)


def binary_tree(cells: int) -> Floats:
    """Return the nodes [nodes, cells] of a complete binary tree, from single cells to the root."""
    layers = [
        np.repeat(np.eye(cells // size), size, axis=1) for size in (2**layer for layer in range(cells.bit_length()))
    ]
    return np.vstack(layers)


def prefixes(cells: int) -> Floats:
    return np.tril(np.ones((cells, cells)))


def sensitivity(strategy: Floats, apart: int | None) -> float:
    """Return the L1 sensitivity of a strategy [rows, cells] over all pairs of neighbours.

    Args:
        strategy: weights of cells in each published sum.
        apart: distance in cells between the places of neighbours. None: neighbours differ in a unit's presence.

    >>> [sensitivity(strategy(8), 7) for strategy in (each, binary_tree, prefixes)]
    [2.0, 6.0, 7.0]
    >>> [sensitivity(strategy(8), 1) for strategy in (each, binary_tree, prefixes)]
    [2.0, 6.0, 1.0]
    """
    cells = strategy.shape[1]
    if apart is None:
        return float(np.abs(strategy).sum(axis=0).max())
    pairs = [(a, b) for a in range(cells) for b in range(cells) if abs(a - b) <= apart]
    return float(max(np.abs(strategy[:, a] - strategy[:, b]).sum() for a, b in pairs))


def variances(strategy: Floats, *, apart: int | None, epsilon: float = 1.0, total: bool = False) -> Variances:
    """Return the variance of each range (first cell, last cell), counted from 1.

    Args:
        strategy: weights of cells in each published sum, [rows, cells].
        apart: as in `sensitivity`.
        epsilon: the budget.
        total: whether the number of all units is known exactly, as it is if presence is not protected.

    >>> found = variances(prefixes(4), apart=1, total=True)
    >>> found[2, 3], found[1, 3], found[2, 4], found[1, 4]
    (4.0, 2.0, 2.0, 0.0)
    """
    cells = strategy.shape[1]
    noise = 2 * (sensitivity(strategy, apart) / epsilon) ** 2
    free = np.eye(cells)
    if total:  # only the differences from an even spread have to be estimated
        free = np.vstack([np.eye(cells - 1), -np.ones(cells - 1)])
        strategy = strategy[np.abs(strategy @ free).sum(axis=1) > 0]
    inverse = np.linalg.inv((strategy @ free).T @ strategy @ free) if cells > 1 or not total else np.zeros((0, 0))
    covariance = noise * free @ inverse @ free.T
    spans = [(a, b) for a in range(cells) for b in range(a, cells)]
    rounded = {(a + 1, b + 1): round(float(covariance[a : b + 1, a : b + 1].sum()), 9) for a, b in spans}
    return {span: max(0.0, value) for span, value in rounded.items()}


def of_all_binary(cells: int = 4) -> tuple[float, float, Floats]:
    """Return the least sum of the variances of all ranges, the second least, and the strategy with the least.

    It tries all strategies of binary sums, with their source at 0. In the paper, sums to the last cell are the best.

    >>> least, second, strategy = of_all_binary()
    >>> least, round(second, 1), strategy.astype(int).tolist()
    (32.0, 74.7, [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]])
    """
    rows = np.array([row for row in product((0, 1), repeat=cells) if any(row)], dtype=float)
    ranges = np.array([[float(a <= c <= b) for c in range(cells)] for a in range(cells) for b in range(a, cells)])
    chosen = np.array(list(product((0.0, 1.0), repeat=len(rows))))
    grams = np.einsum("sr,ri,rj->sij", chosen, rows, rows)
    usable = np.linalg.det(grams) > 0.5  # whole numbers: at least 1 where it is not 0
    moved = np.abs(np.column_stack([rows[:, 0], np.diff(rows, axis=1)]))  # by a unit that comes, and by each step
    apart = (chosen[usable] @ moved).max(axis=1)
    totals = 2 * apart**2 * np.einsum("qi,sij,qj->s", ranges, np.linalg.inv(grams[usable]), ranges)
    first, second = np.argsort(totals)[:2]
    return round(float(totals[first]), 9), float(totals[second]), rows[chosen[usable][first] > 0]


def table(cells: int = 4) -> str:
    """Return a table of the variance of every range under each strategy."""
    columns = (
        ("each cell", variances(each(cells), apart=cells - 1)),
        ("each cell, total known", variances(each(cells), apart=cells - 1, total=True)),
        ("binary tree", variances(binary_tree(cells), apart=cells - 1)),
        ("binary tree, total known", variances(binary_tree(cells), apart=cells - 1, total=True)),
        ("prefixes, all of the axis", variances(prefixes(cells), apart=cells - 1, total=True)),
        ("prefixes, one cell", variances(prefixes(cells), apart=1, total=True)),
        ("so published (noise on the total)", variances(prefixes(cells), apart=1)),
    )
    lines = [
        "| range | " + " | ".join(name for name, _ in columns) + " |",
        "|---|" + "--:|" * len(columns),
    ]
    for span in columns[0][1]:
        cellwise = " | ".join(f"{found[span]:.2f}" for _, found in columns)
        lines.append(f"| {span[0]} to {span[1]} | {cellwise} |")
    lines.append("| mean | " + " | ".join(f"{np.mean(list(found.values())):.2f}" for _, found in columns) + " |")
    return "\n".join(lines)
