"""Errors of adaptive publication, and the true privacy cost of the algorithms as printed in the papers.

python -m benchmarks.adaptive           about four minutes
python -m benchmarks.adaptive --quick   fewer runs, one minute
"""

import argparse
import math
from pathlib import Path

import numpy as np

from benchmarks.adaptive import paper
from benchmarks.adaptive.rules import published, settled
from benchmarks.adaptive.streams import Ints, flights, made_up
from privacy.adaptive.base import Rule

OUT = Path("out/benchmarks/adaptive/RESULTS.md")
EPSILON = 1.0


def error(rule: Rule, stream: Ints, runs: int) -> float:
    """Return the mean absolute error of a published number, if one unit is in one cell.

    Args:
        rule: of the policy.
        stream: exact histograms, [windows, cells].
        runs: number of independent runs.
    """
    return float(np.mean([np.abs(published(rule, stream, EPSILON) - stream).mean() for _ in range(runs)]))


def thresholds(stream: Ints) -> list[int]:
    """Return 0 and powers of two from 16 to above the largest change in the data.

    Args:
        stream: exact histograms, [windows, cells].
    """
    most = int(np.abs(stream - stream[0]).sum(axis=1).max())
    return [0, *(2**j for j in range(4, max(5, math.ceil(math.log2(most + 1)))))]


def row(name: str, stream: Ints, span: int | None, samples: int, runs: int) -> str:
    """Return a line of the table.

    Args:
        name: of the stream.
        stream: exact histograms, [windows, cells].
        span: protected span in windows; None: everything is protected.
        samples: number of samples C in the span, or in all windows.
        runs: number of independent runs of each policy.
    """
    windows, cells = stream.shape

    def policy(name: str, **parameters: object) -> Rule:
        return settled(name, stream, span, **parameters)

    interval = -(-(span or windows) // samples)
    fixed = error(policy("fixed", interval=interval), stream, runs)
    known = [(error(policy("dsft", samples=samples, threshold=t), stream, runs), t) for t in thresholds(stream)]
    steered = error(policy("dsat", samples=samples), stream, runs)
    others = [error(policy("bd"), stream, runs), error(policy("ba"), stream, runs)]
    (dsft, at), bad = min(known), max(known)[0]
    protects = f"any {span}" if span else f"all {windows}"
    return (
        f"| {name} | {cells} | {protects} | {samples} | {fixed:.1f} | {dsft:.1f} at {at} | {bad:.1f} | {steered:.1f} | "
        f"{steered / dsft:.2f} | {steered / fixed:.2f} | {others[0]:.1f} | {others[1]:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    runs = 3 if parser.parse_args().quick else 20
    lines = [
        "| histogram | cells | windows protected | C | fixed | dsft, best threshold | dsft, worst | dsat | "
        "dsat / dsft | dsat / fixed | bd | ba |",
        "|---|" + "--:|" * 11,
    ]
    for name, stream in {**made_up(), **flights()}.items():
        for span, samples in ((None, 20), (None, 60), (30, 2), (30, 6)):
            lines.append(row(name, stream, span, samples, runs))
            print(lines[-1], flush=True)
    lines += ["", "| form | epsilon of decisions per unit of the claimed one, at least | cap |", "|---|--:|--:|"]
    lines += [f"| {name} | {cost:.2f} | {cap:.2f} |" for name, cost, cap in paper.rows()]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
