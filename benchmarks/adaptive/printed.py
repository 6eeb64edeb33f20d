"""Li et al.'s figures 3 to 6, 8 and 9 with the parameters that they print, on synthetic people.

    python -m benchmarks.adaptive.printed                # five minutes
    python -m benchmarks.adaptive.printed epsilon span   # some of them

Their table 2: N = 500 windows, 6 attributes of 96, 2, 12, 2, 2 and 3 values (27,648 cells), 500,000 people of
3,000,000, epsilon = 1, C = 0.01 N samples, update rate 0.5, and the share of decisions k = 0.0532 of section 7.2. In
each window m people leave and m others come; m is around a quarter of 500,000, times a factor that differs in each of
ten periods. Errors are mean absolute errors of counts of random ranges of all attributes. The paper's census, taxis and
cars of Oldenburg are not available: all figures use synthetic people (a mixture of twenty kinds), figures 8 and 9 for
1,000 windows.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.adaptive.rules import published, settled
from privacy.noise.distributions import DiscreteLaplace

Ints = NDArray[np.int64]
SIZES, KINDS, PEOPLE, ALL = (96, 2, 12, 2, 2, 3), 20, 500_000, 3_000_000
PERIODS, QUERIES, LOOKED_AT, SHARE = 10, 500, 25, 0.0532


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The parameters that Li et al. vary, with their defaults."""

    windows: int = 500
    attributes: int = 6
    rate: float = 0.5
    epsilon: float = 1.0
    span: int | None = None

    @property
    def samples(self) -> int:
        return max(1, (self.span or self.windows) // 100)

    @property
    def sizes(self) -> tuple[int, ...]:
        return SIZES[: self.attributes]


@cache
def stream(sizes: tuple[int, ...], windows: int, rate: float) -> Ints:
    """Return histograms [windows, cells] of synthetic people; the same at each call.

    Args:
        sizes: number of values of each attribute.
        windows: number of windows.
        rate: update rate.
    """
    random = np.random.default_rng(2015)
    kinds = np.zeros(math.prod(sizes))
    for weight in random.dirichlet(np.ones(KINDS)):
        of_kind = np.full(1, weight)
        for size in sizes:
            of_kind = np.outer(of_kind, random.dirichlet(np.ones(size))).ravel()
        kinds += of_kind
    everybody = random.multinomial(ALL, kinds)
    level = random.multivariate_hypergeometric(everybody, PEOPLE, method="marginals")
    found = [level]
    factors = random.uniform(0, 2, PERIODS)
    for window in range(1, windows):
        moved = int(np.clip(random.normal(rate * PEOPLE / 2, 316) * factors[window * PERIODS // windows], 0, PEOPLE))
        leave = random.multivariate_hypergeometric(level, moved, method="marginals")
        come = random.multivariate_hypergeometric(everybody - level, moved, method="marginals")
        level = level - leave + come
        found.append(level)
    return np.array(found, dtype=np.int64)


def range_errors(off: Ints, sizes: tuple[int, ...]) -> float:
    """Return the mean absolute error of random boxes, which bound each attribute by an interval.

    Args:
        off: published minus exact counts, [windows, cells].
        sizes: number of values of each attribute.
    """
    random = np.random.default_rng(5000)  # the same boxes for all methods
    ends = np.sort(np.stack([random.integers(0, size, (2, QUERIES)) for size in sizes]), axis=1)
    found = []
    for row in off[np.linspace(0, len(off) - 1, min(LOOKED_AT, len(off))).astype(int)]:
        sums = np.pad(row.reshape(sizes), [(1, 0)] * len(sizes))
        for axis in range(len(sizes)):
            sums = sums.cumsum(axis=axis)
        total = np.zeros(QUERIES)
        for corner in product((0, 1), repeat=len(sizes)):  # the corner before the interval, or its last value
            at = tuple(ends[axis, last] + last for axis, last in enumerate(corner))
            total += (-1.0) ** (len(sizes) - sum(corner)) * sums[at]
        found.append(np.abs(total).mean())
    return float(np.mean(found))


def error(point: Point, policy: str, **parameters: object) -> float:
    exact = stream(point.sizes, point.windows, point.rate)
    if policy in ("dsft", "dsat"):
        parameters |= {"decisions": SHARE, "samples": point.samples}
    elif policy != "fixed":
        parameters["decisions"] = 0.5
    rule = settled(policy, exact, point.span, **parameters)
    return range_errors(published(rule, exact, point.epsilon) - exact, point.sizes)


def ways(point: Point) -> dict[str, float]:
    interval = (point.span or point.windows) // point.samples
    exact = stream(point.sizes, point.windows, point.rate)
    stale = np.repeat(exact[::interval], interval, axis=0)[: len(exact)]
    each = DiscreteLaplace((point.span or point.windows) / point.epsilon)
    return {
        "baseline": range_errors(each.noise(LOOKED_AT * math.prod(point.sizes)).reshape(LOOKED_AT, -1), point.sizes),
        "fixed": error(point, "fixed", interval=interval),
        "fixed without noise": range_errors(stale - exact, point.sizes),
        "dsat": error(point, "dsat"),
        **({way: error(point, way) for way in ("bd", "ba")} if point.span else {}),
    }


def by_threshold() -> Iterator[tuple[object, dict[str, float]]]:
    """Yield errors by threshold. The distance of Li et al. is normalised: 0.025 corresponds to 12,500 people."""
    for threshold in (0.0, 0.01, 0.025, 0.1, 0.2, 0.3, 0.4):
        yield threshold, {"dsft": error(Point(), "dsft", threshold=round(threshold * PEOPLE))}
    yield "dsat", {"dsft": error(Point(), "dsat")}


AXES: dict[str, tuple[str, list[tuple[object, Point]]]] = {
    "epsilon": ("figure 4: epsilon", [(e, Point(epsilon=e)) for e in (0.1, 0.5, 1.0, 2.0)]),
    "updates": ("figure 5: update rate", [(r, Point(rate=r)) for r in (0.1, 0.3, 0.5, 0.7, 0.9)]),
    "attributes": ("figure 6: attributes", [(d, Point(attributes=d)) for d in (3, 4, 5, 6)]),
    "span": ("figure 8: w", [(w, Point(windows=1000, span=w)) for w in (100, 200, 400, 800)]),
    "spans_epsilon": (
        "figure 9: epsilon at w = 800",
        [(e, replace(Point(windows=1000, span=800), epsilon=e)) for e in (0.1, 0.5, 1.0, 2.0)],
    ),
}


def table(axis: str) -> Iterator[str]:
    rows = by_threshold() if axis == "threshold" else ((at, ways(point)) for at, point in AXES[axis][1])
    title = "figure 3: threshold" if axis == "threshold" else AXES[axis][0]
    for number, (at, found) in enumerate(rows):
        if number == 0:
            yield f"| {title} | {' | '.join(found)} |"
            yield "|--:|" + "--:|" * len(found)
        yield f"| {at} | {' | '.join(f'{value:,.0f}' for value in found.values())} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = ["threshold", *AXES]
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"any of {', '.join(names)}; default: all")
    given = parser.parse_args(arguments)
    if unknown := set(given.axes) - set(names):
        parser.error(f"unknown axis: {', '.join(sorted(unknown))}; known: {', '.join(names)}")
    for axis in given.axes or names:
        print(f"\n## {axis}\n", flush=True)
        for line in table(axis):
            print(line, flush=True)


if __name__ == "__main__":
    main()
