"""Map what the release of stops-2017 published: a picture, and a page to look around in.

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

from pipelines.reports.answer import answers
from pipelines.reports.published import Published, published
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
    """One kind of numbers: [windows, lat, long, problem], `below` and `above` left out; `half` is half an interval."""

    value: Floats
    half: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class City:
    """All that is shown.

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
    maps, last = {}, []
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
    """The year on the left; every four weeks, downtown, and a band by both releases, on the right."""
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
    year = left.subplots()
    shown = _shade(year, city, "level", -1, MOST)
    year.set_title(f"Stops of 2017, to {city.ends[-1]}", loc="left", fontweight="bold")
    year.set(xticks=[-93.32, -93.28, -93.24, -93.2], xlabel="longitude", ylabel="latitude")
    half = float(np.sqrt((city.maps["level"].half[-1] ** 2).sum(axis=-1)).max())
    about = f"stops in a cell of 670 by 630 m, ± {half:.0f} with 95 %; grey: may be none"
    bar = left.colorbar(shown, ax=year, shrink=0.7, label=about)
    bar.set_ticks([10, 30, 100, 300, 1000], labels=["10", "30", "100", "300", "1,000"])
    bar.minorticks_off()
    upper, lower = right.subfigures(2, 1, height_ratios=(2.2, 1))
    for place, axes in enumerate(upper.subplots(2, 7).ravel()):
        axes.set_axis_off()
        if place < len(city.ends):
            _shade(axes, city, "change", place, MOST / len(city.ends))
            axes.set_title(f"four weeks\nto {city.ends[place][5:]}", fontsize=8)
    downtown, band = lower.subplots(1, 2)
    _lines(downtown, city, [(city.downtown["change"], "#1f5fa8", "")])
    downtown.set_title("Downtown, a sum of 18 cells", loc="left", fontweight="bold")
    _lines(band, city, [(bands[0], "#1f5fa8", "all is protected"), (bands[1], "#c1272d", "places alone")])
    band.set_title("From east to west at downtown", loc="left", fontweight="bold")
    band.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=110)


def _shade(axes: Axes, city: City, kind: str, window: int, most: float) -> mpl.collections.QuadMesh:
    """Both problems together; their noise is independent, so their intervals add up in squares at most."""
    maps = city.maps[kind]
    value = maps.value[window].sum(axis=-1)
    half = np.sqrt((maps.half[window] ** 2).sum(axis=-1))
    edges = city.long.edges(0, city.long.steps + 1), city.lat.edges(0, city.lat.steps + 1)
    axes.pcolormesh(*edges, np.ones_like(value), cmap="Greys", vmin=0, vmax=6)
    told = np.ma.masked_where(value - half <= 0, np.maximum(value, 1))
    axes.set_aspect(1 / np.cos(np.radians(44.97)))
    return axes.pcolormesh(*edges, told, cmap="YlOrRd", norm=LogNorm(vmin=most / 250, vmax=most))


def _lines(axes: Axes, city: City, lines: list[tuple[pa.Table, str, str]]) -> None:
    """Numbers of four weeks with their 95 % intervals."""
    at = np.arange(len(city.ends))
    for table, colour, label in lines:
        axes.fill_between(at, table["ci_low"].to_numpy(), table["ci_high"].to_numpy(), color=colour, alpha=0.25, lw=0)
        axes.plot(at, table["value"].to_numpy(), color=colour, marker="o", ms=3, label=label)
    axes.set_xticks(at[::3], [end[5:] for end in city.ends[::3]])
    axes.set_ylim(0)
    axes.set_ylabel("stops in four weeks")


def write_page(city: City, bands: tuple[pa.Table, pa.Table], path: Path) -> None:
    """A page that needs nothing but itself."""
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
    """Of a table in the page: the day, and of each release the number and its interval."""
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
        f"Downtown is a sum of 18 cells that nobody had planned for: {_told(first)} stops in the four weeks to\n"
        f"{city.ends[0]}, {_told(last)} in those to {city.ends[-1]} (95 % intervals). Such sums are made\n"
        "from what is published, with `slackwater answer`, and cost no privacy, whoever asks for however many."
    )
    print(beside(found))


def bands() -> tuple[pa.Table, pa.Table]:
    """One band of the city from the maps, and where places alone are protected."""
    maps, near = (published(str(folder)) for folder in (PUBLIC, NEAR))

    def band(release: Published) -> pa.Table:
        return answers(release, release.spec.queries[0], Series(kind="change"), where=BAND)

    return band(maps), band(near)


def beside(bands: tuple[pa.Table, pa.Table]) -> str:
    """The first numbers of both."""
    everything, place = (band.slice(0, 1).to_pylist()[0] for band in bands)
    return (
        f"From east to west at the latitude of downtown it is {_told(everything)} by the maps, and {_told(place)}\n"
        "where the place of a stop alone is protected, up to one cell of 111 metres, with epsilon 1 too. PRESENCE\n"
        "IS NOT HIDDEN there: that a stop was made, and when, may show. The maps hide it."
    )


def _told(row: dict[str, Any]) -> str:
    return f"{row['ci_low']:.0f} to {row['ci_high']:.0f}"


if __name__ == "__main__":
    main()
