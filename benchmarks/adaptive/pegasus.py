"""What grouping and smoothing after PeGaSus is worth where a unit may be in many windows, at its price there.

    python -m benchmarks.adaptive.pegasus           # about two minutes
    python -m benchmarks.adaptive.pegasus --quick

What it costs there, and how it is done: privacy.adaptive.grouping. The threshold is the best of five that nobody knows
beforehand. Beside it each window by itself, `fixed` with the best interval, `ba` and `dsat`.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks.adaptive.streams import CELLS, WINDOWS, Ints, flights, made_up
from privacy.adaptive.grouping import step_grouped
from privacy.adaptive.policy import RESERVE, SMOOTHS, Adaptive, Gains, Policy, Smooth, usual_decisions
from privacy.adaptive.scales import scales_for
from privacy.adaptive.step import step

OUT = Path("out/benchmarks/adaptive/PEGASUS.md")


def pegasus(stream: Ints, span: int, smooth: Smooth, threshold: int) -> np.ndarray:
    """What is published of [windows, cells]."""
    policy = Adaptive(
        policy="pegasus", span=span, decisions=usual_decisions("pegasus", 1), threshold=threshold, smooth=smooth
    )
    scales, carry, values = scales_for(policy, budget=1.0, sensitivity=1), None, []
    for level in stream:
        value, _, carry = step_grouped(
            policy, scales, carry, level, lambda distribution, size: distribution.noise(size)
        )
        values.append(value)
    return np.array(values)


def steps() -> dict[str, Ints]:
    """Numbers that stay as they are for a hundred windows or so: what grouping is for."""
    rng = np.random.default_rng(6)
    jumps = rng.random((WINDOWS, CELLS)) < 0.01
    few = np.where(rng.random((WINDOWS, CELLS)) < 0.3, rng.integers(1, 60, (WINDOWS, CELLS)), 0)
    found = {}
    for name, level in (("steps", rng.integers(0, 2_000, (WINDOWS, CELLS))), ("mostly none", few)):
        jumps[0] = True
        at = np.maximum.accumulate(np.where(jumps, np.arange(WINDOWS)[:, None], 0), axis=0)
        found[name] = np.take_along_axis(level, at, axis=0).astype(np.int64)
    return found


def of_policy(policy: Adaptive, stream: Ints) -> float:
    scales = scales_for(policy, budget=1.0, sensitivity=1)
    values = step(policy, scales, None, stream, lambda distribution, size: distribution.noise(size))[1]
    return float(np.abs(values - stream).mean())


def row(name: str, stream: Ints, span: int, runs: int) -> str:
    cells = stream.shape[1]

    def best(tried: Iterable[Callable[[], float]]) -> float:
        return min(float(np.mean([one() for _ in range(runs)])) for one in tried)

    def of_smoother(smooth: Smooth) -> float:
        return best(
            lambda threshold=times * span: np.abs(pegasus(stream, span, smooth, threshold) - stream).mean()
            for times in (0, 10, 40, 160, 640)
        )

    def made(policy: Policy, **parameters: object) -> Adaptive:
        decisions = usual_decisions(policy, cells)
        return Adaptive(policy=policy, span=span, decisions=decisions, **parameters)  # type: ignore[arg-type]

    fixed = [made("fixed", interval=interval) for interval in (1, 2, 5, 10, 30) if interval <= span]
    dsat = made("dsat", gains=Gains(), samples=max(1, span // 5), reserve=RESERVE)
    others = [fixed[:1], fixed, [made("ba")], [dsat]]
    found = [of_smoother(smoother) for smoother in SMOOTHS]
    found += [best(lambda one=one: of_policy(one, stream) for one in tried) for tried in others]
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
