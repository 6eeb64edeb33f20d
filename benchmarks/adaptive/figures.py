"""Errors by Li et al.'s axes: number of samples, windows, epsilon, updates, cells, ranges and the span.

    python -m benchmarks.adaptive.figures                    # all, five to ten minutes
    python -m benchmarks.adaptive.figures epsilon span       # some
    python -m benchmarks.adaptive.figures --runs 3
    python -m benchmarks.adaptive.plot                       # draws the tables of FIGURES.md

The axes are those of their figures 2 to 9. The values are ours: smaller, and in the range where errors differ.
`benchmarks.adaptive.printed` uses their parameters. One axis varies at a time; the defaults are 300 windows, C = 20
samples, epsilon = 1, a fifth of it for decisions, and everything protected.
Errors are the mean absolute error of a published number, or of the sum of a range of cells.

every window    the baseline: all windows are published, with epsilon / 300 each
fixed           C evenly spaced windows, independent of the data
dsft            the best of nine thresholds, chosen in hindsight
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.adaptive.populations import census, patients, roads
from benchmarks.adaptive.rules import published, settled

Ints = NDArray[np.int64]
RUNS, THRESHOLDS = 5, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Values of all axes."""

    name: str
    stream: Ints
    samples: int = 20
    epsilon: float = 1.0
    decisions: float = 0.2
    span: int | None = None
    size: int = 1


def error(point: Point, policy: str, runs: int, **parameters: object) -> float:
    """Return the mean absolute error over windows and ranges of `point.size` adjacent cells.

    Args:
        point: values of all axes.
        policy: its name in a spec.
        runs: number of independent runs.
        **parameters: of the policy.
    """
    stream = point.stream
    decisions = {} if policy == "fixed" else {"decisions": point.decisions}
    rule = settled(policy, stream, point.span, **decisions, **parameters)
    found = []
    for _ in range(runs):
        off = np.cumsum(np.pad(published(rule, stream, point.epsilon) - stream, ((0, 0), (1, 0))), axis=1)
        found.append(np.abs(off[:, point.size :] - off[:, : -point.size]).mean())
    return float(np.mean(found))


def ways(point: Point, runs: int) -> dict[str, float]:
    most = np.abs(point.stream - point.stream[0]).sum(axis=1).max()
    thresholds = [0, *np.unique(np.geomspace(16, max(17, most), THRESHOLDS - 1).astype(int)).tolist()]
    interval = math.ceil((point.span or len(point.stream)) / point.samples)
    return {
        "every window": error(point, "fixed", runs, interval=1),
        "fixed": error(point, "fixed", runs, interval=interval),
        "dsft": min(error(point, "dsft", runs, samples=point.samples, threshold=t) for t in thresholds),
        "dsat": error(point, "dsat", runs, samples=point.samples),
        "bd": error(point, "bd", runs),
        "ba": error(point, "ba", runs),
    }


def usual() -> tuple[Point, Point, Point]:
    return (
        Point(name="census", stream=census()),
        Point(name="roads", stream=roads()),
        Point(name="patients", stream=patients()),
    )


Moved = Iterator[tuple[object, Point]]


def by_samples() -> Moved:
    yield from ((c, replace(point, samples=c)) for point in usual() for c in (5, 20, 80))


def by_share() -> Moved:
    yield from ((share, replace(point, decisions=share)) for point in usual() for share in (0.05, 0.2, 0.5))


def by_windows() -> Moved:
    for windows in (75, 300, 1200):
        yield windows, Point(name="census", stream=census(windows=windows))
    for windows in (75, 300):
        yield windows, Point(name="roads", stream=roads(windows=windows))


def by_epsilon() -> Moved:
    yield from ((epsilon, replace(point, epsilon=epsilon)) for point in usual() for epsilon in (0.1, 1.0, 10.0))


def by_updates() -> Moved:
    yield from ((rate, Point(name="census", stream=census(rate=rate))) for rate in (0.001, 0.01, 0.05, 0.2))


def by_attributes() -> Moved:
    for count in (1, 2, 3, 4, 5):
        yield f"{count} ({4**count} cells)", Point(name="census", stream=census(attributes=count))


def by_size() -> Moved:
    four = Point(name="census", stream=census(attributes=4))
    yield from ((size, replace(point, size=size)) for point in (four, usual()[1]) for size in (1, 4, 16, 63))


def by_span() -> Moved:
    for point in usual():
        for span in (10, 30, 100):
            yield span, replace(point, span=span, samples=max(1, span // 10))


AXES: dict[str, tuple[str, Callable[[], Moved]]] = {
    "samples": ("C", by_samples),
    "share": ("share of decisions", by_share),
    "windows": ("windows", by_windows),
    "epsilon": ("epsilon", by_epsilon),
    "updates": ("updated in a window", by_updates),
    "attributes": ("attributes", by_attributes),
    "size": ("cells of a range", by_size),
    "span": ("windows of the span", by_span),
}


def table(axis: str, runs: int) -> Iterator[str]:
    title, moved = AXES[axis]
    for number, (at, point) in enumerate(moved()):
        found = ways(point, runs)
        if number == 0:
            yield f"| histograms | {title} | {' | '.join(found)} |"
            yield "|---|--:|" + "--:|" * len(found)
        yield f"| {point.name} | {at} | {' | '.join(f'{value:,.3g}' for value in found.values())} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"any of {', '.join(AXES)}; default: all")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each policy; default: {RUNS}")
    given = parser.parse_args(arguments)
    if unknown := set(given.axes) - set(AXES):
        parser.error(f"unknown axis: {', '.join(sorted(unknown))}; known: {', '.join(AXES)}")
    for axis in given.axes or AXES:
        print(f"\n## {axis}\n", flush=True)
        for line in table(axis, given.runs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
