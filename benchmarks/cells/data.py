"""Units on an axis whose ends are public: places of stops, and synthetic units."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from examples.stops.build import changelog

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Units:
    """Ordered places of units.

    Attributes:
        scale: number of `unit`s in one unit of the axis.
    """

    name: str
    places: Floats
    low: float
    high: float
    unit: str = ""
    scale: float = 1.0

    def counts(self, cells: int) -> NDArray[np.int64]:
        """Return the number of units in each of `cells` cells of equal size."""
        return np.histogram(self.places, bins=cells, range=(self.low, self.high))[0].astype(np.int64)


def stops(days: int) -> Units:
    """Return the demo's stops from south to north (18.7 km), of the first days of June 2017 or of the whole year."""
    table = _stops()
    low, high = 44.886, 45.054
    at = table["at"].to_numpy()
    begin = np.datetime64("2017-06-01" if days < 365 else "2017-01-01")
    chosen = table["lat"].to_numpy()[(at >= begin) & (at < begin + np.timedelta64(days, "D"))]
    inside = np.sort(chosen[(chosen >= low) & (chosen < high)])
    name = {1: "a day", 365: "a year"}.get(days, f"{days} days")
    return Units(f"stops, {name}", inside, low, high, "m", 111_200.0)


@lru_cache
def _stops():  # type: ignore[no-untyped-def]
    return changelog()


def made_up() -> tuple[Units, ...]:
    """Return synthetic units from a fixed seed: only the noise differs between runs."""
    random = np.random.default_rng(14)
    halves = np.concatenate([random.normal(20, 3, 5_000), random.normal(80, 3, 5_000)])
    return (
        Units("normal", _inside(random.normal(50, 15, 10_000), 100.0), 0.0, 100.0),
        Units("prices, log-normal", _inside(random.lognormal(4, 1, 1_000), 1000.0), 0.0, 1000.0),
        Units("two towns", _inside(halves, 100.0), 0.0, 100.0),
    )


def _inside(values: Floats, high: float) -> Floats:
    ordered: Floats = np.sort(np.clip(values, 0.0, np.nextafter(high, 0.0)))
    return ordered
