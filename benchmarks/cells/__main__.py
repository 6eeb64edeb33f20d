"""Ranges, medians and histograms along ordered cells: the product's, Fang and Chang's, and OpenDP's.

    python -m benchmarks.cells                      # all parts: two minutes of processor time
    python -m benchmarks.cells medians peers        # some of them
    python -m benchmarks.cells --grid 52            # 1,000 x 1,000 cells by so many windows, in time and memory

Parts: over-cells (what sums over cells gain, beside lower bounds), weighted (what weighted sums gain beside trees),
small (each range of four cells), distance (what distances gain for ranges), points (ranges from sorted points), gains
(against the distance), medians, smooth (sensitivities of medians), crossings (of quantiles), curves (medians against
epsilon), peers (OpenDP), widths (of a histogram's cells).
"""

import argparse
from collections.abc import Callable

from benchmarks.cells import compared, near, over_cells, peers, small, weighted, widths

PARTS: dict[str, Callable[[], str]] = {
    "over-cells": over_cells.table,
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
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without any")
    parser.add_argument("--grid", type=int, metavar="WINDOWS")
    parser.add_argument("--mechanism", choices=list(over_cells.DELTA), default="laplace", help="of --grid")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if arguments.grid is not None:
        print(over_cells.grid(arguments.grid, arguments.mechanism))
        return
    for part in arguments.parts or PARTS:
        print(f"\n## {part}\n\n{PARTS[part]()}", flush=True)


if __name__ == "__main__":
    main()
