"""Errors of local methods on the men of the demo, and the privacy cost of a person's reports over the year.

    python -m benchmarks.local           # four minutes; the first run installs multi-freq-ldpy

A million men, resampled from 432 (examples/employment), 52 weeks, numbers of employed and not employed men. Errors are
measured and include the bias of the constraint. The code of multi-freq-ldpy works man by man, so its errors come from
200,000 men in three weeks, three times, and are scaled by the square root of the numbers of men.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.emptied import own
from benchmarks.local import multifreq
from examples.employment.memoised import memoised
from examples.employment.men import Answers, changes_of, levels_of, read_men, resampled
from privacy.local.bound import LocalBound
from privacy.local.candidates import CandidateDesign, candidates
from privacy.local.collector import levels
from privacy.local.mutation_space import MutationSpace
from privacy.local.tallies import Tally
from transforms.local.collect import Collection, LayerNode, counted, parts_of
from transforms.local.randomise import BLOCK, randomised

OUT = Path("out/benchmarks/local")
PEOPLE, WEEKS, EPSILON = 1_000_000, 52, 1.0
ANSWERS_OF_A_MAN = 3  # none, employed, not employed: memoised protocols pay for each
BOUNDS = (2, 4, 8)
RUNS, MEN, SAMPLED = 3, 200_000, (4, 25, 50)


def estimated(candidate: CandidateDesign, men: Answers, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return estimated levels [weeks, answers] from a year of reports.

    Args:
        candidate: the method.
        men: answers of each man, [men, weeks].
        chosen: the man whose answers each person repeats, [people].
    """
    design = candidate.design
    collection = Collection(
        design=design, people=PEOPLE, names=("employed", "not"), publish=("level",), start=0, every=1, windows=WEEKS
    )
    tallies: dict[LayerNode, Tally] = {}
    for first in range(0, PEOPLE, BLOCK):
        some = chosen[first : first + BLOCK]
        for window, table in enumerate(
            randomised(design, changes_of(men, some, first=first), first=first, people=len(some))
        ):
            for _, part in parts_of(collection, table)[0]:
                for node, one in counted(design, window, [part])[0].items():
                    tallies[node] = tallies[node] + one if node in tallies else one
    values: NDArray[np.float64] = levels(design, tallies, people=PEOPLE, windows=WEEKS).values
    return values


def ours(men: Answers, chosen: NDArray[np.int64], truth: NDArray[np.int64]) -> None:
    """Print the error of the best design of each method.

    Args:
        men: answers of each man, [men, weeks].
        chosen: the man whose answers each person repeats, [people].
        truth: exact levels, [weeks, answers].
    """
    for bound in BOUNDS:
        shown: set[tuple[str, bool]] = set()
        for candidate in candidates(
            MutationSpace(answers=2), LocalBound(at_most=bound), windows=WEEKS, epsilon=EPSILON, publish=("level",)
        ):
            kind = candidate.method, len(candidate.design.layers) > 1
            if kind in shown or (candidate.method == "once" and bound != BOUNDS[0]):
                continue
            shown.add(kind)
            error = estimated(candidate, men, chosen) - truth
            rmse, planned = math.sqrt(float(np.mean(error**2))), candidate.deviation(PEOPLE)
            limit = "any number" if candidate.method == "once" else str(bound)
            print(f"| {candidate.name} | {limit} | {EPSILON:g} | {rmse:,.0f} | {planned:,.0f} |", flush=True)


def others(men: Answers, chosen: NDArray[np.int64], truth: NDArray[np.int64]) -> None:
    """Print errors of memoised reports and of multi-freq-ldpy, with the same epsilon for all answers of a man.

    Args:
        men: answers of each man, [men, weeks].
        chosen: the man whose answers each person repeats, [people].
        truth: exact levels, [weeks, answers].
    """
    each = EPSILON / ANSWERS_OF_A_MAN
    usual = memoised(men, chosen, epsilon=each)
    error = math.sqrt(float(np.mean((usual.levels - truth) ** 2)))
    print(f"| memoised randomised response | any number | none | {error:,.0f} | |")
    program = multifreq.python(own(OUT) / "multifreq")
    if program is None:
        return
    random = np.random.default_rng()
    weeks = np.repeat(SAMPLED, RUNS)
    answers = men[random.integers(0, len(men), (len(weeks), MEN)), weeks[:, None]].astype(np.int64)
    answers[answers < 0] = 2
    true = np.stack([(answers == symbol).mean(axis=1) for symbol in range(2)], axis=1)
    loss = multifreq.loss_of_a_change(symbols=3, epsilon=each, weeks=WEEKS)
    for name, found in multifreq.shares(program, answers, OUT, epsilon=each).items():
        error = math.sqrt(float(np.mean((found[:, :2] - true) ** 2))) * math.sqrt(MEN * PEOPLE)
        told = f"at least {loss:.1f}" if name == "L-GRR" else "not computed"
        print(f"| {name} of multi-freq-ldpy | any number | {told} | {error:,.0f} | |", flush=True)
    share = usual.shown / usual.changed
    print(f"\n{usual.changed:,} changes; memoised randomised response shows {share:.0%} of them, with their week.")


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    men = read_men()
    chosen = resampled(men, PEOPLE)
    truth = levels_of(men, chosen)
    print("| method | changes that count | epsilon of the year | RMSE | planned |\n|---|--:|--:|--:|--:|", flush=True)
    ours(men, chosen, truth)
    others(men, chosen, truth)


if __name__ == "__main__":
    main()
