"""The example of docs/pipelines.md: the transforms in a pipeline that the command line knows nothing of."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from examples import own_pipeline
from transforms.errors import InputError, RefusedError, SlackwaterError

DAY = 86_400_000_000
STORM = 38  # the day, from 0
BAD = 1_000
FALSE_ALARM = 1e-6
CELLS = 3 * 365


def write_changelog(path: Path, keys: Sequence[str | None]) -> Path:
    """Cancellations at Newark on the day of the storm, one for each key."""
    rows = len(keys)
    start = own_pipeline.AGGREGATION.timeline.start + STORM * DAY
    times = pa.array(start + np.arange(rows), type=pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = {"entry_id": pa.array(keys, type=pa.string()), "event_time": times}
    for side, status in (("before", "scheduled"), ("after", "cancelled")):
        columns |= {f"{side}_status": pa.array([status] * rows), f"{side}_origin": pa.array(["EWR"] * rows)}
    pq.write_table(pa.table(columns), path)
    return path


def alarms(folder: Path) -> list[tuple[str, int]]:
    (path,) = (folder / "public").iterdir()
    told = pyarrow.csv.read_csv(path)
    start = told["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    days = (start - own_pipeline.AGGREGATION.timeline.start) // DAY
    return list(zip(told["origin"].to_pylist(), days.tolist(), strict=True))


def test_only_the_day_and_airport_of_the_storm_raise_an_alarm(tmp_path: Path) -> None:
    changelog = write_changelog(tmp_path / "flights.parquet", [f"flight {n}" for n in range(BAD)])

    sentence = own_pipeline.run(str(changelog), tmp_path)

    # An alarm in error needs noise beyond MANY, a missed one noise beyond BAD - MANY less an interval's half;
    # P(|noise| > x) <= exp(-x / scale) for the discrete Laplace law.
    law = own_pipeline.plan().released[0].noise[0]
    far = min(own_pipeline.MANY, BAD - own_pipeline.MANY - law.half_width(1, 0.95))
    assert CELLS * math.exp(-far / law.scale) <= FALSE_ALARM
    assert alarms(tmp_path) == [("EWR", STORM)]
    assert sentence.startswith("(0.5, 0)-differential privacy")


@pytest.mark.parametrize(
    ("keys", "error", "released_before"), [(["a", None], InputError, False), (["a"], RefusedError, True)]
)
def test_bad_rows_and_a_second_release_publish_nothing(
    tmp_path: Path, keys: Sequence[str | None], error: type[SlackwaterError], released_before: bool
) -> None:
    changelog = write_changelog(tmp_path / "flights.parquet", keys)
    if released_before:
        (tmp_path / "public").mkdir()

    with pytest.raises(error):
        own_pipeline.run(str(changelog), tmp_path)

    assert list(tmp_path.glob("public/*")) == []
