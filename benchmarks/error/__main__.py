"""Root mean square error of levels and sliding windows: ours, the paper's, jax-privacy's, OpenDP's, and lower bounds.

    python -m benchmarks.error            # about ten minutes; one minute with --quick

Nothing is simulated: every error is exact, from the matrices of the method and the calibration of its noise. Tables
go to out/benchmarks/error/RESULTS.md, and the plot to errors.png in the same folder.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.error import jaxprivacy, lower_bounds, opendp_tree, ours, paper, plot
from benchmarks.error.setting import Setting

OUT = Path("out/benchmarks/error")
LEVELS = Setting()
SLIDING = Setting(width=30)
AXES: dict[str, tuple[float, ...]] = {
    "windows": (64, 128, 256, 512, 1024, 2048, 4096),
    "changes": (1, 2, 4, 8, 16, 32),
    "span": (1, 3, 7, 14, 30, 90),
    "epsilon": (0.1, 0.3, 1, 3, 10),
    "width": (7, 14, 30, 90, 180, 365),
}
QUICK: dict[str, tuple[float, ...]] = {
    "windows": (64, 256),
    "changes": (1, 4, 16),
    "span": (1, 7),
    "epsilon": (0.1, 1, 10),
    "width": (7, 30, 90),
}
HEADS = {"windows": "T", "changes": "k", "span": "B", "epsilon": "epsilon", "width": "w"}
Errors = dict[str, list[float | None]]


def settings(base: Setting, axis: str, values: Sequence[float]) -> list[Setting]:
    """Return the points of an axis.

    Args:
        base: the setting of all other values.
        axis: name of the axis, a key of `AXES`.
        values: on the axis.
    """
    if axis == "epsilon":
        return [replace(base, epsilon=value) for value in values]
    if axis == "span":
        return [replace(base, changes=None, span=int(value)) for value in values]
    return [replace(base, **{axis: int(value)}) for value in values]


def errors(points: Sequence[Setting], python: str | None) -> Errors:
    """Return errors by method, in the order of the points; None for a missing program."""
    names = ["auto", "factorised", "tree", "disjoint"] + (["sliding"] if points[0].width is not None else [])
    found: Errors = {}
    for name in names:
        found["Slackwater" if name == "auto" else name] = [ours.rmse(point, name) for point in points]
    found["paper, binary tree"] = [paper.binary(point, "laplace") for point in points]
    found["paper, best"] = [paper.best(point)[0] for point in points]
    found["jax-privacy, square root"] = [*jaxprivacy.rmse(python, points, "sqrt")] if python else [None] * len(points)
    found["OpenDP tree"] = [opendp_tree.best(point) for point in points]
    found["bound"] = [lower_bounds.rmse(point) for point in points]
    return found


def table(axis: str, values: Sequence[float], found: Errors) -> str:
    """Return a table of errors along an axis.

    Args:
        axis: a key of `HEADS`.
        values: on the axis.
        found: errors by method, in the order of the values.
    """
    lines = [f"| {HEADS[axis]} | {' | '.join(found)} |", f"|--:|{'--:|' * len(found)}"]
    for place, value in enumerate(values):
        cells = ("" if column[place] is None else f"{column[place]:.1f}" for column in found.values())
        lines.append(f"| {value:,g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def base_table(base: Setting, python: str | None, *, fitted: bool) -> str:
    """Return a table of all methods at one point.

    Args:
        base: the point.
        python: interpreter of jax-privacy; None leaves it out.
        fitted: whether to include jax-privacy's matrices that take minutes to fit.
    """
    rows = [(f"Slackwater, {way.strategy}", way.detail, way.mechanism, way.rmse) for way in ours.ways(base)]
    for mechanism in ("laplace", "gaussian"):
        rows.append(("paper, binary tree", "", mechanism, paper.binary(base, mechanism)))
        rows.append(("OpenDP tree", "consistent", mechanism, opendp_tree.rmse(base, mechanism)))
    least, way, mechanism = paper.best(base)
    rows.append(("paper, best", str(way), mechanism, least))
    if python:
        for strategy, detail in (("sqrt", "square root"), ("blt", "buffered Toeplitz")):
            if strategy == "sqrt" or (fitted and base.width is None):  # buffered ones are fitted to prefix sums
                rows.append(("jax-privacy", detail, "gaussian", jaxprivacy.rmse(python, [base], strategy)[0]))
    rows.append(("least of any Gaussian noise", "", "gaussian", lower_bounds.rmse(base)))
    lines = ["| release | | noise | RMSE |", "|---|---|---|--:|"]
    lines += [
        f"| {name} | {detail} | {mechanism} | {rmse:.1f} |" for name, detail, mechanism, rmse in sorted(rows, key=last)
    ]
    return "\n".join(lines)


def last(row: tuple[str, str, str, float]) -> float:
    return row[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and smaller points")
    quick = parser.parse_args().quick
    axes = QUICK if quick else AXES
    levels, sliding = (replace(base, windows=256 if quick else 1024) for base in (LEVELS, SLIDING))
    OUT.mkdir(parents=True, exist_ok=True)
    python = jaxprivacy.python(OUT / "jax-privacy")

    parts = []
    results: dict[str, tuple[Sequence[float], Errors]] = {}
    for what, base in (("levels", levels), ("sliding", sliding)):
        print(f"{what} ...", file=sys.stderr, flush=True)
        title = "Levels" if base.width is None else f"Sliding windows of {base.width}, one after each window"
        fixed = f"T = {base.windows}, k = {base.changes}, epsilon = {base.epsilon:g}, delta = {base.delta:g}"
        parts.append(f"## {title}: {fixed}\n\n{base_table(base, python, fitted=not quick)}")
        for axis, values in axes.items():
            if axis == "width" and base.width is None:
                continue
            print(f"{what} by {axis} ...", file=sys.stderr, flush=True)
            points = settings(base, axis, values)
            results[f"{what} by {axis}"] = values, errors(points, python)
            parts.append(f"### {what.capitalize()} by {HEADS[axis]}\n\n{table(axis, *results[f'{what} by {axis}'])}")
    text = "# Errors\n\n[How they were computed](../README.md#error).\n\n" + "\n\n".join(parts) + "\n"
    (OUT / "RESULTS.md").write_text(text)
    plot.draw(results, OUT / "errors.png")
    print(text)


if __name__ == "__main__":
    main()
