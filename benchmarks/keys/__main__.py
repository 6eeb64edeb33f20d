"""Keys found among a million, and the error of their counts: `python -m benchmarks.keys --windows 100`.

The workload is that of DP-SQLP as we understand it: 10 million users with 10 contributions on average, one million keys
by a Zipf-Mandelbrot distribution, at most 32 contributions of a user, epsilon 6 and delta 1e-9. Contributions are drawn
as counts of each key in each window, so reading and bounding are not measured: the step that finds keys is.
"""

import argparse
import resource
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost
from privacy.discovery.rules import ANY
from privacy.measure import Measure
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.series import Series
from transforms.aggregation.discovered_key import KeySums
from transforms.release.discovered_chunk import NewSums, publish

CONTRIBUTIONS, KEYS = 100_000_000, 1_000_000
SHIFT, EXPONENT = 1000, 1.4
"""Parameters of the Zipf-Mandelbrot distribution: the chance of key k is proportional to (k + SHIFT)^-EXPONENT."""

PEER = {100: (28_338, 1391.0), 1000: (22_280, None)}
"""Keys found and largest error of DP-SQLP (arXiv 2303.18086), by number of micro-batches; quoted second-hand."""


HEADING = (
    *("windows", "strategy", "threshold", "keys found", "DP-SQLP", "largest error", "DP-SQLP"),
    *("largest missed key", "s", "GB"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Result of a run.

    Attributes:
        keys: Number of keys that are listed at the end.
        there: Number of keys with a contribution.
        listed, missed: Largest error of a listed key in any window, and the largest key that is not listed at the end.
        seconds: Processor time of the step.
        memory: Largest memory of the process, in GB.
    """

    keys: int
    there: int
    listed: float
    missed: int
    seconds: float
    memory: float


def planned(windows: int) -> Plan:
    """Return the plan of a count of users by key."""
    counts = Demand(
        name="keys", measure=Measure(kind="units"), cells=ANY, discover=True, series=(Series(kind="level"),)
    )
    promise = Promise(constraint=AtMost(32), window=1, windows=windows, owner=True)
    budget = Budget(epsilon=6.0, delta=1e-9)
    return make_plan([counts], promise, budget=budget, mechanism="auto", accounting=None)


def run(plan: Plan, contributions: int, keys: int, rng: np.random.Generator, *, largest: int | None = None) -> Found:
    """Draw a workload, and find its keys.

    Args:
        plan: The plan, with the number of windows.
        contributions: Number of contributions on average.
        keys: Number of keys.
        rng: Source of the workload.
        largest: Number of keys that take part, the largest ones; None: all.
    """
    part, windows = plan.discovered_of(0), plan.promise.windows
    assert part is not None
    assert windows is not None
    chances = (np.arange(1, keys + 1) + SHIFT) ** -EXPONENT
    means = (contributions * chances / chances.sum() / windows)[:largest]
    drawn = [_drawn(rng.poisson(means)) for _ in range(windows)]
    window = np.repeat(np.arange(windows, dtype=np.int16), [len(one) for one, _ in drawn])
    key, number = (np.concatenate(each) for each in zip(*drawn, strict=True))
    del drawn
    total = np.bincount(key, number, minlength=len(means)).astype(np.int64)
    there = np.flatnonzero(total)
    place = np.zeros(len(means), dtype=np.int32)
    place[there] = np.arange(len(there))
    step = plan.demands[0].measure.components[0].largest
    names = pc.binary_join_element_wise("k", pa.array(there).cast(pa.string()), "")
    exact = KeySums(names, place[key], window + np.int16(1), number.astype(np.int64) * step)
    began = time.process_time()
    _, shown = publish((part,), None, NewSums(windows=windows, sums=exact))
    seconds = time.process_time() - began
    found = pc.utf8_slice_codeunits(shown["key"], 1).cast(pa.int64()).to_numpy()
    at, level = shown["window"].to_numpy(), shown["value"].to_numpy() / step
    truth = _levels(key, window, number, found, at)
    last = found[at == windows]
    return Found(
        keys=len(last),
        there=len(there),
        listed=float(np.abs(level - truth).max(initial=0)),
        missed=int(np.delete(total, last).max(initial=0)),
        seconds=seconds,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    )


def _drawn(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys with contributions in one window, and the numbers of these, int32 each."""
    there = np.flatnonzero(counts)
    return there.astype(np.int32), counts[there].astype(np.int32)


def _levels(key: np.ndarray, window: np.ndarray, number: np.ndarray, found: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the exact levels of some keys after some windows."""
    own = np.isin(key, found)
    places = key[own].astype(np.int64) * (int(window.max()) + 2) + window[own]
    order = np.argsort(places)
    so_far, places = np.concatenate([[0], np.cumsum(number[own][order])]), places[order]
    begin = found.astype(np.int64) * (int(window.max()) + 2)
    levels: np.ndarray = so_far[np.searchsorted(places, begin + at)] - so_far[np.searchsorted(places, begin)]
    return levels


def main() -> None:
    """Print a row of the table for each number of windows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, nargs="+", default=[100])
    parser.add_argument("--contributions", type=int, default=CONTRIBUTIONS)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--largest", type=int, help="leave out all but this number of keys, which are too small")
    given = parser.parse_args()
    print(f"| {' | '.join(HEADING)} |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for windows in given.windows:
        plan = planned(windows)
        part = plan.discovered_of(0)
        assert part is not None
        threshold = part.found(plan.demands[0], plan.promise)["threshold"]
        found = run(plan, given.contributions, given.keys, np.random.default_rng(7), largest=given.largest)
        keys, error = PEER.get(windows, (None, None))
        row = (
            f"{windows:,}",
            plan.strategies[0],
            f"{threshold:,.0f}",
            f"{found.keys:,} of {found.there:,}",
            "-" if keys is None else f"{keys:,}",
            f"{found.listed:,.0f}",
            "-" if error is None else f"{error:,.0f}",
            f"{found.missed:,}",
            f"{found.seconds:,.0f}",
            f"{found.memory:.1f}",
        )
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
