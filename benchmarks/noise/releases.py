"""Releases with many numbers, and a synthetic changelog for each."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 200_000
DAY = 86_400_000_000

SPEC = """\
release: {name}
changelog: {{format: parquet, path: "{folder}/*.parquet", entry: entry, time: at}}
privacy: {{unit: entry, epsilon: 1.0, delta: 1e-9, mechanism: {noise}, constraint: {{at_most: 1}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: {every}, until: {until}}}
queries:
{queries}
output: {{public: "{folder}/public", private: "{folder}/private"}}
"""

QUERY = """\
  - name: {publish}
    measure: count
    by: {{x: {{from: 1, to: {x}, step: 1}}, y: {{from: 1, to: {y}, step: 1}}}}
    publish: [{publish}]
    {cells}
"""

MAP = {"every": "28d", "until": "2026-06-18T00:00:00Z", "x": 499, "y": 499, "publish": "change", "cells": ""}
HOURS = {
    **{"every": "1h", "until": "2026-01-31T00:00:00Z", "x": 33, "y": 35, "publish": "level change"},
    "cells": "cells: {for: ranges}",
}

LARGE: dict[str, dict[str, Any]] = {
    "wide": {**MAP, "noise": "gaussian", "y": 3333},
    "wide-laplace": {**MAP, "noise": "laplace", "y": 3333},
    "long": {**HOURS, "noise": "gaussian", "x": 99, "y": 138, "publish": "level", "cells": ""},
    "ranges": {**MAP, "noise": "gaussian", "x": 999, "y": 999, "publish": "level", "cells": HOURS["cells"]},
    "ranges-laplace": {**MAP, "noise": "laplace", "x": 999, "y": 999, "publish": "level", "cells": HOURS["cells"]},
}
"""Ten million numbers: 1.7 million cells in six windows, and 13,900 cells in 720 windows; and a million cells for
ranges in six windows."""

RELEASES: dict[str, dict[str, Any]] = {
    "map": {**MAP, "noise": "gaussian"},
    "map-laplace": {**MAP, "noise": "laplace"},
    "hours": {**HOURS, "noise": "gaussian"},
    "hours-laplace": {**HOURS, "noise": "laplace"},
}
"""Fields of `SPEC` by name: a map of 500 x 500 cells in six windows, and 1,224 cells for ranges
in 720 windows, levels and changes as two queries."""


def write_release(name: str, folder: Path) -> Path:
    """Write the changelog and the spec of a release into a new folder, and return the spec's path."""
    fields = (RELEASES | LARGE)[name]
    folder.mkdir()
    chance = np.random.default_rng(1)
    start = int(np.datetime64("2026-01-01", "us").astype(np.int64))
    days = 30 if fields["every"] == "1h" else 6 * 28
    at = start + np.sort(chance.integers(0, days * DAY, ROWS))
    rows = {
        "entry": np.arange(ROWS),
        "at": pa.array(at, pa.timestamp("us", tz="UTC")),
        "op": ["insert"] * ROWS,
        "x": chance.integers(0, int(fields["x"]) + 1, ROWS),
        "y": chance.integers(0, int(fields["y"]) + 1, ROWS),
    }
    pq.write_table(pa.table(rows), folder / "changelog.parquet")
    spec = folder / "spec.yaml"
    queries = [QUERY.format(**{**fields, "publish": kind}) for kind in fields["publish"].split()]
    spec.write_text(SPEC.format(name=folder.name, folder=folder, queries="".join(queries), **fields))
    return spec
