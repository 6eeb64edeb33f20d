"""Lines of a GeoJSON file (RFC 7946), such as the limits of a city, to draw over a map."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transforms.common.errors import SpecError

Line = list[tuple[float, float]]
"""Longitudes and latitudes, in degrees."""

MOST = 60_000
"""Most points of all lines: about a megabyte of the page."""

DIGITS = 5
"""Decimal digits of a degree: a metre."""

_PARTS = {"FeatureCollection": "features", "GeometryCollection": "geometries"}
_DEPTH = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}
"""Levels of lists above a line."""


def outline_of(path: Path) -> list[Line]:
    """Return the lines of a file: line strings, and the rings of polygons. Points and properties are left out.

    Raises:
        SpecError: The file is missing or not GeoJSON, has no line, or has too many points.
    """
    try:
        found = [_line(one) for one in _lines(json.loads(path.read_text(encoding="utf-8")))]
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}; name a GeoJSON file") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise SpecError(f"{path}: not GeoJSON with longitudes and latitudes in degrees (RFC 7946)") from None
    points = sum(len(line) for line in found)
    if not found:
        raise SpecError(f"{path}: has no line and no polygon; expected the outline of an area")
    if points > MOST:
        raise SpecError(f"{path}: {points:,} points; at most {MOST:,} fit on a page; simplify the lines")
    return found


def _lines(value: Any) -> Iterator[Any]:
    """Yield the lines of a GeoJSON object, as positions."""
    kind = value["type"]
    if kind == "Feature":
        yield from _lines(value["geometry"]) if value["geometry"] is not None else ()
    elif kind in _PARTS:
        for part in value[_PARTS[kind]]:
            yield from _lines(part)
    elif kind in _DEPTH:
        parts = [value["coordinates"]]
        for _ in range(_DEPTH[kind]):
            parts = [inner for part in parts for inner in part]
        yield from parts


def _line(positions: Any) -> Line:
    line = [(round(float(one[0]), DIGITS), round(float(one[1]), DIGITS)) for one in positions]
    if not all(math.isfinite(x) and math.isfinite(y) and abs(x) <= 360 and abs(y) <= 90 for x, y in line):
        raise ValueError("not degrees")
    return line
