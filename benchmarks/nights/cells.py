"""Cost to release one window after few and after many windows, for any number of cells, without reading and bounding.

    python -m benchmarks.nights.cells CELLS STRATEGY

A night takes exact sums of one window, samples noise, makes the tables of nodes and estimates, and writes them and the
state, chunk by chunk in one process, by the functions that every runner calls. Between the measured nights, steps over
many windows at once advance the release and leave a state of the same size; their noise is 0 to save time.
"""

import argparse
import resource
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.memory.ours import peak
from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution
from privacy.planning.make_plan import make_plan
from privacy.planning.promise import Promise
from privacy.series import Ints, Series
from privacy.strategies.base import Nodes
from privacy.strategies.choice import Choice
from transforms.aggregation.leaf_sums import LeafSums
from transforms.aggregation.node_sums import Aggregation, NodeKey, encode
from transforms.aggregation.queries import Query, Timeline, planned
from transforms.common.ipc import from_bytes
from transforms.common.sinks import write_bytes, write_table
from transforms.release import noise
from transforms.release.release import ESTIMATES, NODES, ReleasePlan, protect, remember, tables

OUT = Path("out/benchmarks/nights/cells")
DAY = 86_400_000_000
SCHEDULE = 1461
STRATEGIES = {
    "tree": Choice(name="tree", branching=2, refine="none"),
    "bottom_up": Choice(name="tree", branching=2, refine="bottom_up"),
    "subtraction": Choice(name="tree", refine="subtraction"),
    "least_squares": Choice(name="tree", refine="least_squares"),
    "arma": Choice(name="factorised", form="arma"),
    "leaky": Choice(name="factorised", form="leaky"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """Cost of one night: seconds, processor seconds, bytes of state and bytes of published tables."""

    seconds: float
    processor: float
    state: int
    published: int


def release_of(cells: int, strategy: str) -> ReleasePlan:
    """Return the plan of a count's levels and changes for 1,461 days; each night replaces its timeline."""
    query = Query(
        name="beds",
        measure=Measure(kind="count"),
        by=(("cell", tuple(range(cells))),),
        publish=(Series(kind="level"), Series(kind="change")),
        strategy=STRATEGIES[strategy],
    )
    plan = make_plan(
        [query.demand],
        promise=Promise(constraint=AtMost(3), window=DAY, windows=SCHEDULE, owner=False),
        budget=Budget(epsilon=1.0, delta=1e-9),
        mechanism="gaussian",
        accounting=None,
    )
    queries = planned([query], plan)
    timeline = Timeline(start=0, every=DAY, windows=0)
    return ReleasePlan(plan=plan, aggregation=Aggregation(queries=queries, timeline=timeline, constraint=AtMost(3)))


def closing(made: ReleasePlan, released: int, windows: int) -> ReleasePlan:
    """Return the plan with a timeline that closes some windows.

    Args:
        made: the plan.
        released: number of windows that are already released.
        windows: number of windows that have closed.
    """
    timeline = replace(made.aggregation.timeline, released=released, windows=windows)
    return replace(made, aggregation=replace(made.aggregation, timeline=timeline))


def sums_of(made: ReleasePlan, key: NodeKey) -> Iterator[bytes]:
    """Yield changes of every cell in the last window that closes."""
    aggregation = made.aggregation
    cells = np.asarray(aggregation.cells_of(key), dtype=np.int64)
    steps = cells % 7 * aggregation.queries[0].measure.components[0].largest
    yield encode(LeafSums(node=aggregation.timeline.windows * aggregation.queries[0].cells + cells, sums=steps[None]))


def night(made: ReleasePlan, past: Path | None, state: Path, public: Path) -> None:
    """Release the closing windows, as a run does after bounding.

    Args:
        made: the plan.
        past: folder with the state of the last night; None for the first night.
        state: folder for the new state.
        public: folder for the tables.
    """
    for key in made.aggregation.node_keys():
        for noisy in protect(made, key, sums_of(made, key), past=None if past is None else str(past), keep=True):
            for side in (NODES, ESTIMATES):
                for name, table in tables(noisy, made, side):
                    write_table(from_bytes(table), f"{public}/{side}/{name}.parquet", format_="parquet")
            for file in remember(noisy):
                write_bytes(file, str(state))


def wind_forward(made: ReleasePlan, past: Path, state: Path) -> None:
    """Write the state after many windows at once, without noise.

    Args:
        made: the plan.
        past: folder with the state of the last night.
        state: folder for the new state.
    """
    exact = noise.sample_noise
    noise.sample_noise = no_noise
    try:
        for key in made.aggregation.node_keys():
            for noisy in protect(made, key, (), past=str(past), keep=True):
                for file in remember(noisy):
                    write_bytes(file, str(state))
    finally:
        noise.sample_noise = exact


def no_noise(distribution: NoiseDistribution | PrivateChoice, nodes: Nodes, *, component: int, cells: int) -> Ints:
    return np.zeros((len(nodes.end), cells), dtype=np.int64)


def measured(made: ReleasePlan, past: Path | None, state: Path, public: Path) -> Night:
    """Release the closing windows, and return the cost.

    Args:
        made: the plan.
        past: folder with the state of the last night; None for the first night.
        state: folder for the new state.
        public: folder for the tables; it is emptied first.
    """
    shutil.rmtree(public, ignore_errors=True)
    begun, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    night(made, past, state, public)
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return Night(
        seconds=time.perf_counter() - begun,
        processor=spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime,
        state=size_of(state),
        published=size_of(public),
    )


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cells", type=int)
    parser.add_argument("strategy", choices=STRATEGIES)
    parser.add_argument(
        "--after", type=int, nargs="+", default=[30, 730], help="numbers of windows before the measured nights"
    )
    parser.add_argument("--nights", type=int, default=5, help="number of measured nights each time")
    arguments = parser.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    made, past, done = release_of(arguments.cells, arguments.strategy), None, 0
    print(f"{arguments.cells:,} cells, {made.plan.linear(0)[0].strategy}\n")
    print("| windows before | state MB | published MB | seconds | processor | peak MB |\n|--:|--:|--:|--:|--:|--:|")

    def folder(windows: int) -> Path:
        return OUT / f"state-{windows}"

    night(closing(made, 0, 1), None, folder(1), OUT / "public")
    past, done = folder(1), 1
    for after in arguments.after:
        if after > done:
            wind_forward(closing(made, done, after), past, folder(after))
            shutil.rmtree(past)
            past, done = folder(after), after
        nights = []
        for _ in range(arguments.nights):
            nights.append(measured(closing(made, done, done + 1), past, folder(done + 1), OUT / "public"))
            shutil.rmtree(past)
            past, done = folder(done + 1), done + 1
        state, published = (median(getattr(n, name) for n in nights) / 1e6 for name in ("state", "published"))
        seconds, processor = (median(getattr(n, name) for n in nights) for name in ("seconds", "processor"))
        print(
            f"| {after} | {state:.2f} | {published:.2f} | {seconds:.3f} | {processor:.3f} | {peak() / 1e6:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
