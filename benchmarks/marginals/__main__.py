"""Marginals and trees: variances compared with the least possible ones, 365 windows, and a million cells.

    python -m benchmarks.marginals                     # all parts; five minutes
    python -m benchmarks.marginals variances windows   # some of them

Parts: variances (one window, compared with ResidualPlanner's optimum), peers (errors of ResidualPlanner and HDMM),
trees (weights of levels compared with bounds), windows (one release over 365 windows, compared with single cells),
coverage (of intervals in 2,000 releases), million (time and memory).
"""

import argparse
from collections.abc import Callable

from benchmarks.marginals import compared, coverage, million, trees

PARTS: dict[str, Callable[[], str]] = {
    "variances": compared.variances,
    "peers": compared.peers,
    "trees": trees.table,
    "windows": compared.windows,
    "coverage": coverage.table,
    "million": million.table,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument(
        "--alone", choices=list(million.QUERIES), help="measure one query of a million cells in this process"
    )
    parser.add_argument("--mechanism", choices=list(compared.MECHANISMS), default="laplace", help="noise of --alone")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    if arguments.alone is not None:
        print(million.alone(arguments.alone, arguments.mechanism))
        return
    for part in arguments.parts or PARTS:
        print(f"\n## {part}\n\n{PARTS[part]()}", flush=True)


if __name__ == "__main__":
    main()
