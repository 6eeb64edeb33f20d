"""Ranges, medians and histograms along ordered cells: the product's, Fang and Chang's, and OpenDP's.

    python -m benchmarks.cells                      # all parts: two minutes of processor time
    python -m benchmarks.cells medians peers        # some of them
    python -m benchmarks.cells --grid 52            # time and memory for 1,000 x 1,000 cells and 52 windows

Parts: over-cells (gain of sums over cells, compared with lower bounds), factors (of totals, subtotals and cells),
weighted (gain of weighted sums, compared with trees), small (each range of four cells), distance (gain of distances for
ranges), points (ranges from sorted points), gains (by distance), medians, smooth (sensitivities of medians), crossings
(of quantiles), curves (medians by epsilon), peers (OpenDP), widths (of a histogram's cells).
"""

import argparse
from collections.abc import Callable

from benchmarks.cells import compared, factors, near, over_cells, peers, small, weighted, widths

PARTS: dict[str, Callable[[], str]] = {
    "over-cells": over_cells.table,
    "factors": factors.table,
    "weighted": weighted.table,
    "small": small.table,
    "distance": near.factors,
    "points": compared.ranges,
    "gains": compared.gains,
    "medians": compared.medians_table,
    "smooth": compared.smooth_sensitivities,
    "crossings": compared.crossings,
    "curves": compared.curves,
    "peers": peers.tables,
    "widths": widths.table,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--grid", type=int, metavar="WINDOWS", help="measure a grid of 1,000 x 1,000 cells instead")
    parser.add_argument("--mechanism", choices=list(over_cells.DELTA), default="laplace", help="noise of --grid")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    if arguments.grid is not None:
        print(over_cells.grid(arguments.grid, arguments.mechanism))
        return
    for part in arguments.parts or PARTS:
        print(f"\n## {part}\n\n{PARTS[part]()}", flush=True)


if __name__ == "__main__":
    main()
