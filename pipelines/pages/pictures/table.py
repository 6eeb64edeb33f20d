"""All kinds of charts of a query's cells; the first that suits a query draws it."""

from collections.abc import Mapping

from pipelines.pages.pictures.bars import BARS
from pipelines.pages.pictures.base import Picture, Pictured
from pipelines.pages.pictures.crossed import CROSSED
from pipelines.pages.pictures.hierarchy import TREE
from pipelines.pages.pictures.maps import MAP
from pipelines.pages.pictures.ordered import HISTOGRAM
from pipelines.pages.pictures.quantiles import FAN

PICTURES: Mapping[str, Picture] = {
    "quantiles": FAN,
    "map": MAP,
    "ordered": HISTOGRAM,
    "hierarchy": TREE,
    "crossed": CROSSED,
    "bars": BARS,
}
"""By the name of the script in `assets`."""


def picture_of(subject: Pictured) -> str | None:
    """Return the kind of chart of some numbers; None if they have one cell."""
    return next((kind for kind, picture in PICTURES.items() if picture.suits(subject)), None)
