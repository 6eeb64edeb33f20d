"""How far off adaptive publication is, and what the papers' own forms of it really cost.

python -m benchmarks.adaptive           about four minutes
python -m benchmarks.adaptive --quick   fewer runs, in one
"""

import argparse
import math
from pathlib import Path

import numpy as np

from benchmarks.adaptive import paper
from benchmarks.adaptive.streams import Ints, flights, made_up
from privacy.adaptive.policy import RESERVE, Adaptive, Gains, Policy, usual_decisions
from privacy.adaptive.scales import scales_for
from privacy.adaptive.step import step
from privacy.noise.distributions import DiscreteLaplace

OUT = Path("out/benchmarks/adaptive/RESULTS.md")
EPSILON = 1.0


def sample(distribution: DiscreteLaplace, size: int) -> Ints:
    return distribution.noise(size)


def error(adaptive: Adaptive, stream: Ints, runs: int) -> float:
    """The mean absolute error of a published number, one unit in one cell."""
    scales = scales_for(adaptive, budget=EPSILON, sensitivity=1)
    return float(
        np.mean([np.abs(step(adaptive, scales, None, stream, sample)[1] - stream).mean() for _ in range(runs)])
    )


def thresholds(stream: Ints) -> list[int]:
    """From nothing to more than the data ever move, by factors of two."""
    most = int(np.abs(stream - stream[0]).sum(axis=1).max())
    return [0, *(2**j for j in range(4, max(5, math.ceil(math.log2(most + 1)))))]


def row(name: str, stream: Ints, span: int | None, samples: int, runs: int) -> str:
    windows, cells = stream.shape
    among: dict[str, int | None] = {"windows": None if span else windows, "span": span}

    def policy(policy: Policy, **parameters: object) -> Adaptive:
        decisions = usual_decisions(policy, cells)
        return Adaptive(policy=policy, decisions=decisions, **among, **parameters)  # type: ignore[arg-type]

    interval = -(-(span or windows) // samples)
    fixed = error(policy("fixed", interval=interval), stream, runs)
    known = [(error(policy("dsft", samples=samples, threshold=t), stream, runs), t) for t in thresholds(stream)]
    steered = error(policy("dsat", samples=samples, gains=Gains(), reserve=RESERVE if span else 0.0), stream, runs)
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
    lines += ["", "| form | epsilon of decisions, for each one claimed, at least | cap |", "|---|--:|--:|"]
    lines += [f"| {name} | {cost:.2f} | {cap:.2f} |" for name, cost, cap in paper.rows()]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
