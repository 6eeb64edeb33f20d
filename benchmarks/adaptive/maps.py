"""Errors of each method to sample ordered cells, for single cells and boxes, by the kind of data.

    python -m benchmarks.adaptive.maps           # about five minutes
    python -m benchmarks.adaptive.maps --quick   # fewer runs

All have epsilon = 1 and are sampled in the same windows (`fixed`), or in those that `dsat` chooses.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from benchmarks.adaptive.streams import Ints
from examples.stops.build import changelog
from privacy.adaptive.base import Policy
from privacy.adaptive.dsat import Dsat
from privacy.adaptive.fixed import Fixed
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis, Space, cells_of
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Measure
from privacy.planning.adaptive_part import AdaptiveDraft, AdaptivePart
from privacy.planning.demand import Demand
from privacy.planning.part import Calibrated
from privacy.planning.promise import Promise
from privacy.protection import EVERYTHING, Protection, Span
from privacy.series import Series
from transforms.release.sampled_chunk import released_anew

OUT = Path("out/benchmarks/adaptive/MAPS.md")
SIDE, WINDOWS, BOXES = 64, 52, 300
SIDES = (1, 8, 24)
"""Sides of boxes, in cells; ranges on a line have the square of it."""

WAYS: dict[str, CellChoice] = {
    "each": CellChoice(name="each"),
    "auto for ranges": CellChoice(workload="ranges"),
    "tree": CellChoice(name="tree", workload="ranges"),
    "quadtree": CellChoice(name="quadtree", workload="ranges"),
    "kdtree": CellChoice(name="kdtree"),
    "kdtree, height 2": CellChoice(name="kdtree", height=2),
}


def clusters(objects: int, spread: float, seed: int) -> Ints:
    """Return histograms [windows, cells] of objects around five moving centres.

    Args:
        objects: number of objects.
        spread: standard deviation of the distance from a centre, in cells.
        seed: of the generator.
    """
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
    """Return histograms [weeks, cells] of the stops in Minneapolis, 2017, in the last four weeks of each week."""
    table = changelog()
    day = pc.cast(table["at"], "date32").cast("int32").to_numpy()
    lat, long = (table[name].to_numpy() for name in ("lat", "long"))
    places = []
    for values, low, high in ((lat, 44.89, 45.05), (long, -93.33, -93.19)):
        places.append(np.clip(((values - low) / (high - low) * SIDE).astype(np.int64), 0, SIDE - 1))
    cell, end = places[0] * SIDE + places[1], day.min() + 7 * np.arange(1, WINDOWS + 1)
    return np.array([np.bincount(cell[(day < at) & (day >= at - 28)], minlength=SIDE * SIDE) for at in end])


def line() -> Ints:
    """Return histograms [windows, 1024] of the ages of people who grow older."""
    rng = np.random.default_rng(3)
    ages = np.concatenate([rng.normal(300, 90, 20_000), rng.normal(620, 140, 30_000)])
    found = []
    for window in range(WINDOWS):
        place = np.clip(ages + window, 0, 1023).astype(np.int64)
        found.append(np.bincount(place, minlength=1024))
    return np.array(found)


def errors(part: AdaptivePart, stream: Ints, space: Space, runs: int) -> list[float]:
    """Return the mean absolute error of boxes of each size, over all windows and runs.

    Args:
        part: a calibrated part, which each run releases with fresh noise.
        stream: exact histograms, [windows, cells].
        space: axes of the cells.
        runs: number of independent runs.
    """
    shape = tuple(axis.cells for axis in space)
    leaves = np.concatenate([np.zeros_like(stream[:1]), np.diff(stream, axis=0, prepend=0)])
    rng = np.random.default_rng(4)
    found = np.zeros(len(SIDES))
    for _ in range(runs):
        published = released_anew(part, leaves)
        off = (published - stream).reshape(-1, *shape)
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


def made(way: CellChoice, policy: Policy, space: Space, protects: Protection) -> AdaptivePart:
    """Return a calibrated part for levels with epsilon = 1.

    Args:
        way: the strategy over cells.
        policy: when to sample.
        space: axes of the cells.
        protects: protection of the release.
    """
    demand = Demand(
        name="map",
        measure=Measure(kind="count"),
        cells=cells_of(space),
        series=(Series(kind="level"),),
        axes=space,
        over=way,
        adaptive=policy,
    )
    constraint = AtMost(1) if protects == EVERYTHING else AtOnce()
    promise = Promise(constraint=constraint, window=1, windows=WINDOWS, protects=protects, owner=False)
    draft = AdaptiveDraft.of(0, demand, policy, promise, "laplace")
    return draft.calibrated(Calibrated(mechanism="laplace", scale=1.0, share=1.0, delta=0.0))


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
    policies: dict[str, tuple[Policy, Protection]] = {
        "fixed, all, 13 samples": (Fixed(interval=4), EVERYTHING),
        "fixed, any 4, 1 sample": (Fixed(interval=4), Span(4)),
        "dsat, all, 13 samples": (Dsat(samples=13), EVERYTHING),
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
