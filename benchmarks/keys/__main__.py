"""Keys found among a million, and the error of their counts: `python -m benchmarks.keys --windows 100`.

The workload is that of DP-SQLP as we understand it: 10 million users with 10 contributions on average, one million keys
by a Zipf-Mandelbrot distribution, at most 32 contributions of a user, epsilon 6 and delta 1e-9. Contributions are drawn
as counts of each key in each window, so reading and bounding are not measured: the steps that find keys are.
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


AT_ONCE = 50
"""Windows of a step, which continues from the state that the step before has kept."""

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
        seconds: Processor time of the steps.
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
    names = pc.binary_join_element_wise("k", pa.array(np.arange(len(means))).cast(pa.string()), "")
    step = plan.demands[0].measure.components[0].largest
    held, level, last = None, np.zeros(len(means), dtype=np.int64), np.zeros(0, dtype=np.int64)
    error, seconds = 0.0, 0.0
    for begin in range(0, windows, AT_ONCE):
        end = min(begin + AT_ONCE, windows)
        window, key, number = _drawn(means, end - begin, rng)
        there = np.flatnonzero(np.bincount(key, minlength=len(means)))
        place = np.searchsorted(there, key).astype(np.int32)
        exact = KeySums(names.take(pa.array(there)), place, window.astype(np.int64) + begin, number * step)
        began = time.process_time()
        held, shown = publish((part,), held, NewSums(windows=end, sums=exact))
        seconds += time.process_time() - began
        found = pc.utf8_slice_codeunits(shown["key"], 1).cast(pa.int64()).to_numpy()
        at, noisy = shown["window"].to_numpy() - begin, shown["value"].to_numpy() / step
        error = max(error, float(np.abs(noisy - level[found] - _added(key, window, number, found, at)).max(initial=0)))
        last = found[at == end - begin]
        np.add.at(level, key, number)
    return Found(
        keys=len(last),
        there=int(np.count_nonzero(level)),
        listed=error,
        missed=int(np.delete(level, last).max(initial=0)),
        seconds=seconds,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    )


def _drawn(means: np.ndarray, windows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return window (1, 2, ...; int16), key (int32) and number (int64) of the contributions of some windows."""
    drawn = [rng.poisson(means) for _ in range(windows)]
    there = [np.flatnonzero(one).astype(np.int32) for one in drawn]
    window = np.repeat(np.arange(1, windows + 1, dtype=np.int16), [len(one) for one in there])
    return window, np.concatenate(there), np.concatenate([one[keys] for one, keys in zip(drawn, there, strict=True)])


def _added(key: np.ndarray, window: np.ndarray, number: np.ndarray, found: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the contributions to some keys up to some windows."""
    own = np.isin(key, found)
    places = key[own].astype(np.int64) * (AT_ONCE + 2) + window[own]
    order = np.argsort(places)
    so_far, places = np.concatenate([[0], np.cumsum(number[own][order])]), places[order]
    begin = found.astype(np.int64) * (AT_ONCE + 2)
    added: np.ndarray = (
        so_far[np.searchsorted(places, begin + at, side="right")] - so_far[np.searchsorted(places, begin)]
    )
    return added


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
