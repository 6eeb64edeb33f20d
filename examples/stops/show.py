"""Map the published numbers of the release stops-2017: a picture, and an interactive page.

Reads only the public side, as any reader of the release would.

    python -m examples.stops.show        writes out/stops/map.png and out/stops/map.html
"""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pipelines.answer.operation import answers
from pipelines.published.release import Published, published
from privacy.series import Series
from transforms.aggregation.ordered_key import OrderedKey

PUBLIC = Path("releases/stops/public")
NEAR = Path("releases/stops-near/public")
OUT = Path("out/stops")
TEMPLATE = Path(__file__).with_name("map.html")
WEST = np.timedelta64(-6, "h")  # the release's days, as in its spec
BAND = "lat >= 44.97 and lat < 44.988"
DOWNTOWN = "lat >= 44.97 and lat < 44.988 and long >= -93.28 and long < -93.256"
MOST = 1000.0
"""Stops of a year in the darkest cell of the picture."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """Numbers of one kind, [windows, lat, long, problem], without `below` and `above`; `half`: margin of error."""

    value: Floats
    half: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class City:
    """Everything that the pages show.

    Attributes:
        ends: the last day of each window.
        lat, long: edges of the cells.
        problems: why stops were made.
        maps: by kind.
        downtown: the numbers of some cells together, by kind.
    """

    ends: list[str]
    lat: OrderedKey
    long: OrderedKey
    problems: tuple[str, ...]
    maps: dict[str, Maps]
    downtown: dict[str, pa.Table]


def read(release: Published) -> City:
    (query,) = release.spec.queries
    keys = dict(query.by)
    lat, long, problems = keys["lat"], keys["long"], keys["problem"]
    assert isinstance(lat, OrderedKey)
    assert isinstance(long, OrderedKey)
    assert isinstance(problems, tuple)
    shape = (-1, len(lat), len(long), len(problems))
    maps: dict[str, Maps] = {}
    last: list[str] = []
    for series, table in release.numbers(query):
        low, value, high = (
            table[name].to_numpy().reshape(shape)[:, 1:-1, 1:-1] for name in ("ci_low", "value", "ci_high")
        )
        maps[series.kind] = Maps(value=value, half=(high - low) / 2)
        ends = table["window_end"].to_numpy().reshape(len(value), -1)[:, 0]
        last = [str(day) for day in (ends + WEST).astype("datetime64[D]") - 1]
    downtown = {kind: answers(release, query, Series(kind=kind), where=DOWNTOWN) for kind in ("change", "level")}
    return City(ends=last, lat=lat, long=long, problems=tuple(map(str, problems)), maps=maps, downtown=downtown)


def draw(city: City, bands: tuple[pa.Table, pa.Table], path: Path) -> None:
    """Draw the year on the left; every four weeks, downtown, and a band by both releases on the right.

    Args:
        city: the maps.
        bands: numbers of the band from both releases.
        path: of the picture.
    """
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1, 1.5))[0]
    year = left.subplots()
    shown = _shade(year, city, "level", -1, MOST)
    year.set_title(f"Stops of 2017, to {city.ends[-1]}", loc="left", fontweight="bold")
    year.set(xticks=[-93.32, -93.28, -93.24, -93.2], xlabel="longitude", ylabel="latitude")
    half = float(np.sqrt((city.maps["level"].half[-1] ** 2).sum(axis=-1)).max())
    about = f"stops in a cell of 670 by 630 m, ± {half:.0f} with 95 %; grey: may be zero"
    bar = left.colorbar(shown, ax=year, shrink=0.7, label=about)
    bar.set_ticks([10, 30, 100, 300, 1000], labels=["10", "30", "100", "300", "1,000"])
    bar.minorticks_off()
    upper, lower = right.subfigures(2, 1, height_ratios=(2.2, 1))
    for place, axes in enumerate(np.ravel(upper.subplots(2, 7))):
        axes.set_axis_off()
        if place < len(city.ends):
            _shade(axes, city, "change", place, MOST / len(city.ends))
            axes.set_title(f"four weeks\nto {city.ends[place][5:]}", fontsize=8)
    downtown, band = lower.subplots(1, 2)
    _lines(downtown, city, [(city.downtown["change"], "#1f5fa8", "")])
    downtown.set_title("Downtown, a sum of 18 cells", loc="left", fontweight="bold")
    _lines(band, city, [(bands[0], "#1f5fa8", "everything protected"), (bands[1], "#c1272d", "only places protected")])
    band.set_title("From east to west at downtown", loc="left", fontweight="bold")
    band.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=110)


def _shade(axes: Axes, city: City, kind: str, window: int, most: float) -> mpl.collections.QuadMesh:
    """Draw the sum of both problems in one window.

    Their noise is independent, so the squared margin of the sum is at most the sum of the squared margins.

    Args:
        axes: to draw on.
        city: the maps.
        kind: of the numbers.
        window: its index.
        most: number of the darkest colour.
    """
    maps = city.maps[kind]
    value = maps.value[window].sum(axis=-1)
    half = np.sqrt((maps.half[window] ** 2).sum(axis=-1))
    edges = city.long.edges(0, city.long.steps + 1), city.lat.edges(0, city.lat.steps + 1)
    axes.pcolormesh(*edges, np.ones_like(value), cmap="Greys", vmin=0, vmax=6)
    told = np.ma.masked_where(value - half <= 0, np.maximum(value, 1))
    axes.set_aspect(1 / np.cos(np.radians(44.97)))
    return axes.pcolormesh(*edges, told, cmap="YlOrRd", norm=LogNorm(vmin=most / 250, vmax=most))


def _lines(axes: Axes, city: City, lines: list[tuple[pa.Table, str, str]]) -> None:
    """Draw the numbers of four weeks with their 95 % intervals."""
    at = np.arange(len(city.ends))
    for table, colour, label in lines:
        axes.fill_between(at, table["ci_low"].to_numpy(), table["ci_high"].to_numpy(), color=colour, alpha=0.25, lw=0)
        axes.plot(at, table["value"].to_numpy(), color=colour, marker="o", ms=3, label=label)
    axes.set_xticks(at[::3], [end[5:] for end in city.ends[::3]])
    axes.set_ylim(0)
    axes.set_ylabel("stops in four weeks")


def write_page(city: City, bands: tuple[pa.Table, pa.Table], path: Path) -> None:
    """Write a page without external files.

    Args:
        city: the maps.
        bands: numbers of the band from both releases.
        path: of the page.
    """
    data = {
        "ends": city.ends,
        "problems": city.problems,
        "lat": city.lat.edges(0, city.lat.steps + 1).tolist(),
        "long": city.long.edges(0, city.long.steps + 1).tolist(),
        "maps": {
            kind: {
                "value": np.round(maps.value).astype(int).tolist(),
                "half": np.round(maps.half[:, 0, 0, 0], 1).tolist(),
            }
            for kind, maps in city.maps.items()
        },
    }
    downtown = _rows(city, (city.downtown["change"],))
    text = TEMPLATE.read_text().replace("/*DATA*/", json.dumps(data).replace("<", "\\u003c"))
    text = text.replace("<!--ROWS-->", downtown).replace("<!--BANDS-->", _rows(city, bands))
    path.write_text(text)


def _rows(city: City, tables: tuple[pa.Table, ...]) -> str:
    """Return rows of a table in the page: the day, and for each release the number and its interval."""
    found = []
    for end, *rows in zip(city.ends, *(table.to_pylist() for table in tables), strict=True):
        cells = (f"<td>{row['value']:,.0f}<td>{row['ci_low']:,.0f} to {row['ci_high']:,.0f}" for row in rows)
        found.append(f"<tr><td>{escape(end)}{''.join(cells)}")
    return "".join(found)


def main() -> None:
    if not (PUBLIC / "manifest.json").exists():
        raise SystemExit(f"{PUBLIC}/manifest.json: there is no release yet; make one with `make demo-map`")
    city = read(published(str(PUBLIC)))
    OUT.mkdir(parents=True, exist_ok=True)
    found = bands()
    draw(city, found, OUT / "map.png")
    write_page(city, found, OUT / "map.html")
    first, last = (city.downtown["change"].slice(at, 1).to_pylist()[0] for at in (0, len(city.ends) - 1))
    print(
        f"{OUT}/map.png and {OUT}/map.html: {len(city.ends)} maps of {city.lat.steps} by {city.long.steps} cells.\n"
        f"Downtown is a sum of 18 cells that the spec does not mention: {_told(first)} stops in the four weeks to\n"
        f"{city.ends[0]}, {_told(last)} in those to {city.ends[-1]} (95 % intervals). Such sums\n"
        "are computed from published numbers by `slackwater answer`, and any number of them costs no privacy."
    )
    print(compared(found))


def bands() -> tuple[pa.Table, pa.Table]:
    """Return one band of the city from the maps, and from the release in which only places are protected."""
    maps, near = (published(str(folder)) for folder in (PUBLIC, NEAR))

    def band(release: Published) -> pa.Table:
        return answers(release, release.spec.queries[0], Series(kind="change"), where=BAND)

    return band(maps), band(near)


def compared(bands: tuple[pa.Table, pa.Table]) -> str:
    """Describe the first numbers of both releases."""
    everything, place = (band.slice(0, 1).to_pylist()[0] for band in bands)
    return (
        f"From east to west at the latitude of downtown it is {_told(everything)} by the maps, and {_told(place)}\n"
        "if only the place of a stop is protected, up to one cell of 111 metres, also with epsilon 1. PRESENCE IS\n"
        "NOT HIDDEN there: that a stop was made, and when, may be visible. The maps hide it."
    )


def _told(row: dict[str, Any]) -> str:
    return f"{row['ci_low']:.0f} to {row['ci_high']:.0f}"


if __name__ == "__main__":
    main()
