"""Two ordered keys: a heat map for a window, of longitude and latitude with their proportions."""

import math
from typing import Any

from pipelines.pages.pictures.base import Picture, Pictured

EAST, NORTH = ("lon", "long", "longitude", "lng"), ("lat", "latitude")
"""Names of keys that are coordinates on the earth, in degrees."""


def _suits(subject: Pictured) -> bool:
    return len(subject.query.ordered) == 2


def _document(subject: Pictured) -> dict[str, Any]:
    """Return which key goes across, and how much taller than wide a step of one unit is."""
    (one, key), (other, other_key) = subject.query.ordered
    names = [one.lower(), other.lower()]
    if names[0] in NORTH and names[1] in EAST:
        across, north = 1, key
    elif names[0] in EAST and names[1] in NORTH:
        across, north = 0, other_key
    else:
        return {"across": 1, "tall": None}
    first, last = north.edges(0, 1)[0], north.edges(north.steps, north.steps + 1)[0]
    return {"across": across, "tall": 1 / math.cos(math.radians(float(first + last) / 2))}


MAP = Picture(suits=_suits, document=_document, largest="Largest cell", whole=True)
