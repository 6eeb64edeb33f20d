"""Time and memory of adaptive publication for many cells and windows at once, by the function that every runner calls.

    python -m benchmarks.adaptive.wide              # about four minutes

A fixed number of entries moves between cells of a map in each window, and one run closes all windows. The benchmark
starts from exact sums, without reading and bounding. The last column is the time to make Arrow tables of published
numbers, measured for some of the windows.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.memory.ours import peak
from privacy.accounting.accounting import Budget
from privacy.adaptive.base import Policy
from privacy.adaptive.table import POLICIES
from privacy.cells.choice import CellChoice
from privacy.constraint import AtOnce
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Series
from transforms.aggregation.leaf_sums import LeafSums
from transforms.aggregation.node_sums import Aggregation, encode
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline, planned
from transforms.release.release import ESTIMATES, ReleasePlan, protect, remember, tables

DAY = 86_400_000_000
TABLES = 10
"""Number of windows of which tables are made."""


def release_of(side: int, windows: int, choice: Policy, cells: str) -> ReleasePlan:
    """Return the plan of a count's levels on a map of `side` x `side` cells.

    Args:
        side: cells along each axis.
        windows: number of windows.
        choice: the policy.
        cells: the strategy over cells.
    """
    along = OrderedKey(start=0, step=1, steps=side - 2)
    query = Query(
        name="cars",
        measure=Measure(kind="count"),
        by=(("x", along), ("y", along)),
        over=CellChoice(name=cells),
        publish=(Series(kind="level"),),
        adaptive=choice,
    )
    plan = make_plan(
        [query.demand],
        promise=Promise(constraint=AtOnce(), window=DAY, windows=windows, owner=False),
        budget=Budget(epsilon=1.0),
        mechanism="laplace",
        accounting="naive",
    )
    timeline = Timeline(start=0, every=DAY, windows=windows)
    aggregation = Aggregation(queries=planned([query], plan), timeline=timeline, constraint=AtOnce())
    return ReleasePlan(plan=plan, aggregation=aggregation)


def sums_of(cells: int, windows: int, moves: int) -> Iterator[bytes]:
    """Yield sums as of several shards: of the entries at the start, and of those that move in each window.

    Args:
        cells: number of cells.
        windows: number of windows.
        moves: entries that move in each window.
    """
    chance = np.random.default_rng(1)
    for first in range(0, windows + 1, 100):
        rows = np.arange(first, min(first + 100, windows + 1)).repeat(2 * moves)
        node = rows * cells + chance.integers(0, cells, len(rows))
        steps = np.where(rows == 0, 1, np.tile([1, -1], len(rows) // 2))
        order = np.argsort(node, kind="stable")
        yield encode(LeafSums(node=node[order], sums=steps[order][None]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--side", type=int, default=1024, help="cells each way")
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--moves", type=int, default=5000, help="entries that move in each window")
    parser.add_argument("--policy", choices=[one for one in POLICIES if one != "pegasus"], default="dsat")
    parser.add_argument("--cells", choices=("each", "tree", "quadtree", "kdtree"), default="each")
    parser.add_argument("--samples", type=int, default=20)
    arguments = parser.parse_args()
    choice = POLICIES[arguments.policy](**({"samples": arguments.samples} if arguments.policy == "dsat" else {}))
    made = release_of(arguments.side, arguments.windows, choice, arguments.cells)
    (key,) = made.aggregation.node_keys()
    payloads = list(sums_of(arguments.side**2, arguments.windows, arguments.moves))
    begun, spent, tabled, size, state = time.perf_counter(), 0.0, 0.0, 0, 0
    for block, noisy in enumerate(protect(made, key, payloads, past=None, keep=True)):
        made_at = time.perf_counter()
        spent += made_at - begun
        size += len(noisy[1])
        state = sum(len(content) for _, content in remember(noisy))
        if block < TABLES:
            list(tables(noisy, made, ESTIMATES))
        begun = time.perf_counter()
        tabled += (begun - made_at) / TABLES if block < TABLES else 0
    print("| cells | windows | seconds | peak MB | MB sent to the next step | state MB | tables of a block, seconds |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    print(
        f"| {arguments.side**2:,} | {arguments.windows:,} | {spent:.0f} | {peak() / 1e6:,.0f} | {size / 1e6:,.0f} "
        f"| {state / 1e6:.1f} | {tabled:.2f} |"
    )


if __name__ == "__main__":
    main()
