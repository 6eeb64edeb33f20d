"""Four panels: errors against the number of windows, of changes, epsilon, and the width of sliding windows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

PANELS = {
    "levels by windows": "levels, by windows",
    "levels by changes": "levels, by most changes of an entry",
    "levels by epsilon": "levels, by epsilon",
    "sliding by width": "sliding windows, by width",
}
LINES = {
    "paper, best": ("paper, best tree or sliding", "#b3372f", "-"),
    "OpenDP tree": ("OpenDP, consistent tree", "#c98a1b", "-"),
    "jax-privacy, square root": ("jax-privacy, square root", "#3d7a3a", "-"),
    "Slackwater": ("Slackwater", "#1f5fa8", "-"),
    "bound": ("least of any Gaussian noise", "#6e6e6e", ":"),
}


def draw(results: Mapping[str, tuple[Sequence[float], Mapping[str, Sequence[float | None]]]], path: Path) -> None:
    """Write the figure; `results` has the values of each panel's axis and errors by method."""
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    whole = FuncFormatter(lambda value, _: f"{value:g}")
    axes = figure.subplots(1, len(PANELS))
    for side, (name, title) in zip(axes, PANELS.items(), strict=True):
        values, errors = results[name]
        for method, (label, colour, dashes) in LINES.items():
            if all(error is not None for error in errors[method]):
                wide = 2.2 if method == "Slackwater" else 1.2
                side.plot(values, errors[method], dashes, color=colour, linewidth=wide, label=label)
        side.set_xscale("log")
        side.set_yscale("log")
        side.set_xticks(values)
        side.xaxis.set_major_formatter(whole)
        side.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        side.minorticks_off()
        side.yaxis.set_major_formatter(whole)
        side.set_title(title, loc="left", fontweight="bold", fontsize=9)
        side.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes[0].set_ylabel("root mean square error")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(LINES), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
