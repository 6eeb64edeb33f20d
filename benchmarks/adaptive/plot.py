"""Draw figures in the form of Li et al.'s figures 2 to 9 from the tables in FIGURES.md, without running anything.

python -m benchmarks.adaptive.plot
"""

import argparse
import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

HERE = Path(__file__).parent
TABLES, PLOTS = HERE / "FIGURES.md", HERE / "figures.png"

LINES = {
    "every window": ("every window", "#6e6e6e", ":"),
    "fixed": ("fixed", "#111111", "--"),
    "dsft": ("dsft, best threshold", "#3d7a3a", "-"),
    "dsat": ("dsat", "#1f5fa8", "-"),
    "bd": ("bd", "#b3372f", "-"),
    "ba": ("ba", "#c98a1b", "-"),
}

Rows = list[tuple[str, float, list[float]]]
"""Histograms, the value on the axis, and an error for each of `LINES`."""


def tables(text: str) -> dict[str, tuple[str, Rows]]:
    """Return the title and the rows of each axis in the text of FIGURES.md.

    >>> head = "## share\\n| histograms | share of decisions | every window | fixed | dsft | dsat | bd | ba |\\n"
    >>> tables(head + "|---|--:|--:|--:|--:|--:|--:|--:|\\n| census | 0.2 | 2,980 | 5 | 6 | 7 | 8 | 9 |\\n")
    {'share': ('share of decisions', [('census', 0.2, [2980.0, 5.0, 6.0, 7.0, 8.0, 9.0])])}
    """
    found = {}
    for name, body in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in body.strip().splitlines()]
        if head[2:] != [*LINES]:
            raise ValueError(f"{name}: columns are {', '.join(head[2:])}, not {', '.join(LINES)}")
        numbers = [
            (histograms, float(at.split()[0]), [float(error.replace(",", "")) for error in errors])
            for histograms, at, *errors in rows
        ]
        found[name] = (head[1], numbers)
    return found


def draw(axes: dict[str, tuple[str, Rows]], path: Path) -> None:
    """Write a figure with a row for each kind of histogram and a column for each axis, on logarithmic scales."""
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    kinds = list(dict.fromkeys(histograms for _, rows in axes.values() for histograms, _, _ in rows))
    figure = Figure(figsize=(2.3 * len(axes), 2.3 * len(kinds) + 0.6), layout="constrained")
    panels = figure.subplots(len(kinds), len(axes), squeeze=False)
    for down, kind in enumerate(kinds):
        for across, (title, rows) in enumerate(axes.values()):
            own = [(at, errors) for histograms, at, errors in rows if histograms == kind]
            panel(panels[down, across], own)
            if own:
                panels[down, across].set_title(title if down == 0 else "", loc="left", fontweight="bold", fontsize=9)
        panels[down, 0].set_ylabel(f"{kind}: mean absolute error")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(LINES), frameon=False)
    figure.savefig(path, dpi=90)


def panel(axes: Axes, rows: list[tuple[float, list[float]]]) -> None:
    if not rows:
        axes.set_axis_off()
        return
    ats = [at for at, _ in rows]
    for place, (label, colour, dashes) in enumerate(LINES.values()):
        wide = 2.2 if label == "dsat" else 1.2
        axes.plot(ats, [errors[place] for _, errors in rows], dashes, color=colour, linewidth=wide, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(ats)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.minorticks_off()
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    draw(tables(TABLES.read_text()), PLOTS)


if __name__ == "__main__":
    main()
