"""Which way to make samples of ordered cells is nearest to the truth, for single cells and boxes, and for what data.

    python -m benchmarks.adaptive.maps           # about five minutes
    python -m benchmarks.adaptive.maps --quick   # fewer runs

All have epsilon = 1 and are sampled at the same windows (`fixed`), or where `dsat` decides.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from benchmarks.adaptive.streams import Ints
from examples.stops.build import changelog
from privacy.adaptive.choice import AdaptiveChoice
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis, Space
from privacy.measure import Measure
from privacy.planning.adaptive_part import AdaptivePart, adaptive_of, calibrated, decisions_over, over_of
from privacy.planning.promise import Promise
from privacy.protection import EVERYTHING, Protection, Span
from transforms.release.adaptive_sketches import released_anew

OUT = Path("out/benchmarks/adaptive/MAPS.md")
SIDE, WINDOWS, BOXES = 64, 52, 300
SIDES = (1, 8, 24)
"""Of boxes, in cells; on a line those of ranges squared."""

WAYS: dict[str, CellChoice] = {
    "each": CellChoice(name="each"),
    "auto for ranges": CellChoice(workload="ranges"),
    "tree": CellChoice(name="tree", workload="ranges"),
    "quadtree": CellChoice(name="quadtree", workload="ranges"),
    "kdtree": CellChoice(name="kdtree"),
    "kdtree, height 2": CellChoice(name="kdtree", height=2),
}


def clusters(objects: int, spread: float, seed: int) -> Ints:
    """Objects about five centres that wander, [windows, cells]."""
    rng = np.random.default_rng(seed)
    centres, of = rng.uniform(12, SIDE - 12, (5, 2)), rng.integers(0, 5, objects)
    own, found = rng.normal(0, spread, (objects, 2)), []
    for _ in range(WINDOWS):
        centres = np.clip(centres + rng.normal(0, 0.7, centres.shape), 4, SIDE - 4)
        own = own + rng.normal(0, 0.1, own.shape)
        place = np.clip(np.floor(centres[of] + own), 0, SIDE - 1).astype(np.int64)
        found.append(np.bincount(place[:, 0] * SIDE + place[:, 1], minlength=SIDE * SIDE))
    return np.array(found)


def everywhere(objects: int) -> Ints:
    rng = np.random.default_rng(2)
    start = rng.integers(0, SIDE * SIDE, objects)
    found = []
    for _ in range(WINDOWS):
        moved = rng.random(objects) < 0.05
        start = np.where(moved, rng.integers(0, SIDE * SIDE, objects), start)
        found.append(np.bincount(start, minlength=SIDE * SIDE))
    return np.array(found)


def stops() -> Ints:
    """Of Minneapolis, 2017: those of the last four weeks, week by week."""
    table = changelog()
    day = pc.cast(table["at"], "date32").cast("int32").to_numpy()
    lat, long = (table[name].to_numpy() for name in ("lat", "long"))
    places = []
    for values, low, high in ((lat, 44.89, 45.05), (long, -93.33, -93.19)):
        places.append(np.clip(((values - low) / (high - low) * SIDE).astype(np.int64), 0, SIDE - 1))
    cell, end = places[0] * SIDE + places[1], day.min() + 7 * np.arange(1, WINDOWS + 1)
    return np.array([np.bincount(cell[(day < at) & (day >= at - 28)], minlength=SIDE * SIDE) for at in end])


def line() -> Ints:
    """Ages of people who grow older, in 1,024 cells."""
    rng = np.random.default_rng(3)
    ages = np.concatenate([rng.normal(300, 90, 20_000), rng.normal(620, 140, 30_000)])
    found = []
    for window in range(WINDOWS):
        place = np.clip(ages + window, 0, 1023).astype(np.int64)
        found.append(np.bincount(place, minlength=1024))
    return np.array(found)


def errors(part: AdaptivePart, stream: Ints, space: Space, runs: int) -> list[float]:
    """The mean absolute error of boxes of each size, over all windows and runs."""
    shape = tuple(axis.cells for axis in space)
    leaves = np.concatenate([np.zeros_like(stream[:1]), np.diff(stream, axis=0, prepend=0)])
    rng = np.random.default_rng(4)
    found = np.zeros(len(SIDES))
    for _ in range(runs):
        published = released_anew(part, leaves)
        off = (published.values - stream).reshape(-1, *shape)
        sums = np.zeros((len(off), *(size + 1 for size in shape)))
        sums[(slice(None), *(slice(1, None),) * len(shape))] = off
        for axis in range(1, sums.ndim):
            sums = sums.cumsum(axis=axis)
        for place, side in enumerate(SIDES):
            far = side if len(shape) == 2 else side**2
            low = [rng.integers(0, size - far + 1, BOXES) for size in shape]
            if len(shape) == 1:
                boxes = sums[:, low[0] + far] - sums[:, low[0]]
            else:
                (a, b), (c, d) = low, (low[0] + far, low[1] + far)
                boxes = sums[:, c, d] - sums[:, a, d] - sums[:, c, b] + sums[:, a, b]
            found[place] += np.abs(boxes).mean() / runs
    return [float(one) for one in found]


def made(way: CellChoice, choice: AdaptiveChoice, space: Space, protects: Protection) -> AdaptivePart:
    over = over_of(way, space)
    cells = decisions_over(over, math.prod(axis.cells for axis in space))
    count = Measure(kind="count")
    policy = adaptive_of(
        choice, promise=Promise(window=1, windows=WINDOWS, protects=protects, owner=False), cells=cells, measure=count
    )
    return calibrated(0, policy, scale=1.0, sensitivity=1, noise="laplace", over=over)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    runs = 1 if parser.parse_args().quick else 5
    square = (Axis(cells=SIDE, ordered=True), Axis(cells=SIDE, ordered=True))
    streams: dict[str, tuple[Ints, Space]] = {
        "5 places, 2,000 objects": (clusters(2_000, 1.0, 1), square),
        "5 places, 50,000 objects": (clusters(50_000, 4.0, 1), square),
        "everywhere, 400,000 objects": (everywhere(400_000), square),
        "stops of Minneapolis": (stops(), square),
        "ages, 1,024 cells": (line(), (Axis(cells=1024, ordered=True),)),
    }
    policies: dict[str, tuple[AdaptiveChoice, Protection]] = {
        "fixed, all, 13 samples": (AdaptiveChoice(policy="fixed", interval=4), EVERYTHING),
        "fixed, any 4, 1 sample": (AdaptiveChoice(policy="fixed", interval=4), Span(4)),
        "dsat, all, 13 samples": (AdaptiveChoice(policy="dsat", samples=13), EVERYTHING),
    }
    sizes = " | ".join("one cell" if side == 1 else f"{side**2} cells" for side in SIDES)
    lines = [f"| histogram | policy | samples made with | {sizes} |", "|---|---|---|" + "--:|" * len(SIDES)]
    for name, (stream, space) in streams.items():
        for said, (choice, protects) in policies.items():
            for way, over in WAYS.items():
                if way == "quadtree" and len(space) == 1:
                    continue
                found = errors(made(over, choice, space, protects), stream, space, runs)
                lines.append(f"| {name} | {said} | {way} | {' | '.join(f'{one:.1f}' for one in found)} |")
                print(lines[-1], flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
