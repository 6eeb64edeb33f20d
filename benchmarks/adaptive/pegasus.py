"""Errors of grouping and smoothing after PeGaSus if a unit may be in many windows, at its privacy cost there.

    python -m benchmarks.adaptive.pegasus           # about two minutes
    python -m benchmarks.adaptive.pegasus --quick

`privacy.adaptive.pegasus` has the method and its cost. The threshold is the best of five in hindsight. The comparison
is with each window alone, `fixed` with the best interval, `ba` and `dsat`.
"""

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.adaptive.rules import published, settled
from benchmarks.adaptive.streams import CELLS, WINDOWS, Ints, flights, made_up
from privacy.adaptive.base import Rule
from privacy.adaptive.pegasus import SMOOTHS, Smooth

OUT = Path("out/benchmarks/adaptive/PEGASUS.md")


def steps() -> dict[str, Ints]:
    """Return histograms [windows, cells] that change about every hundred windows, for which grouping is made."""
    rng = np.random.default_rng(6)
    jumps = rng.random((WINDOWS, CELLS)) < 0.01
    few = np.where(rng.random((WINDOWS, CELLS)) < 0.3, rng.integers(1, 60, (WINDOWS, CELLS)), 0)
    found = {}
    for name, level in (("steps", rng.integers(0, 2_000, (WINDOWS, CELLS))), ("mostly none", few)):
        jumps[0] = True
        at = np.maximum.accumulate(np.where(jumps, np.arange(WINDOWS)[:, None], 0), axis=0)
        found[name] = np.take_along_axis(level, at, axis=0).astype(np.int64)
    return found


def error(rule: Rule, stream: Ints) -> float:
    """Return the mean absolute error of a published number.

    Args:
        rule: of the policy.
        stream: exact histograms, [windows, cells].
    """
    return float(np.abs(published(rule, stream, 1.0) - stream).mean())


def row(name: str, stream: Ints, span: int, runs: int) -> str:
    """Return a line of the table.

    Args:
        name: of the stream.
        stream: exact histograms, [windows, cells].
        span: protected span in windows.
        runs: number of independent runs of each policy.
    """
    cells = stream.shape[1]

    def best(tried: Iterable[Callable[[], float]]) -> float:
        return min(float(np.mean([one() for _ in range(runs)])) for one in tried)

    def made(policy: str, **parameters: object) -> Rule:
        return settled(policy, stream, span, **parameters)

    def of_smoother(smooth: Smooth) -> float:
        rules = [made("pegasus", threshold=times * span, smooth=smooth) for times in (0, 10, 40, 160, 640)]
        return best(partial(error, one, stream) for one in rules)

    fixed = [made("fixed", interval=interval) for interval in (1, 2, 5, 10, 30) if interval <= span]
    dsat = made("dsat", samples=max(1, span // 5))
    others = [fixed[:1], fixed, [made("ba")], [dsat]]
    found = [of_smoother(smoother) for smoother in SMOOTHS]
    found += [best(partial(error, one, stream) for one in tried) for tried in others]
    return f"| {name} | {cells} | {span} | " + " | ".join(f"{one:.1f}" for one in found) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    runs = 1 if parser.parse_args().quick else 3
    lines = [
        "| histogram | cells | windows in any span | pegasus, mean | median | James-Stein | each window | "
        "fixed, best interval | ba | dsat |",
        "|---|" + "--:|" * 9,
    ]
    for name, stream in {**steps(), **made_up(), **flights()}.items():
        for span in (1, 3, 7, 30):
            lines.append(row(name, stream, span, runs))
            print(lines[-1], flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
