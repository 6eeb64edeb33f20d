"""`slackwater simulate`: make a changelog from public parameters, and a copy of a spec that reads it.

Comparisons on this changelog cost no privacy, because it describes nobody.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any, NotRequired, TypedDict, Unpack

import numpy as np
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from pipelines.common.arguments import (
    SpecLike,
    duration_of,
    refuse_inside,
    refuse_not_positive,
    refuse_small,
    spec_of,
)
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.epochs.job import timeline_of
from pipelines.simulate.simulated import ENTRY, TIME, Rates, simulated
from pipelines.spec.document import read_document
from pipelines.spec.load import Spec, load
from pipelines.spec.times import moment_text, now, time_text
from privacy.counted import counted
from transforms.common.errors import SpecError

MOST_ROWS = 50_000_000
"""Approximate maximum number of rows: all of them are in memory."""

USUAL = 100
"""Number of windows for a schedule without an end."""

_HEAD = "# Made by `slackwater simulate`: its changelog is about nobody.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated(Value):
    """A synthetic changelog.

    Attributes:
        spec: Path of a copy of the spec that reads the changelog.
        rows: Number of rows of the changelog.
        windows: Number of windows that are over at `until`.
        until: Moment to give to `evaluate` and `run`.
        moved: Whether the schedule was moved back, so that its windows are over.
    """

    spec: str
    rows: int
    windows: int
    until: datetime
    moved: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater simulate --json`."""
        return {"spec": self.spec, "rows": self.rows, "windows": self.windows, "until": time_text(self.until)}

    def text(self) -> str:
        """Return the text that `slackwater simulate` prints."""
        moved = " The schedule is moved back, so that its windows are over." if self.moved else ""
        return (
            f"{Path(self.spec).parent}: {counted(self.rows, 'synthetic change')} in "
            f"{counted(self.windows, 'window')}.{moved} Next:\n"
            f"slackwater evaluate {self.spec} --until {time_text(self.until)}"
        )


class PublicRates(TypedDict):
    """Rates of events, all of them public.

    Attributes:
        arrivals: Mean number of entries that arrive in a window.
        stay: Mean length of stay of an entry.
        change: Mean time between two changes of an entry. Default: entries do not change.
        burstiness: Variance of the activity of windows, relative to a mean of 1. Default: 0.
        entries: Mean number of entries of one owner. Default: 1.
    """

    arrivals: float
    stay: timedelta
    change: NotRequired[timedelta | None]
    burstiness: NotRequired[float]
    entries: NotRequired[float]


def simulate(
    spec: SpecLike,
    output: str | Path,
    *,
    windows: int | None = None,
    seed: int | None = None,
    **rates: Unpack[PublicRates],
) -> Simulated:
    """Make a synthetic changelog from public rates, and a copy of the spec that reads it.

    It describes nobody, so comparisons on it cost no privacy.

    Args:
        spec: The path of a spec, or what `load` returns: the columns, cells and windows of the changelog.
        output: A new folder, for `changelog.parquet` and `spec.yaml`.
        windows: Number of windows. None: the schedule's, or 100.
        seed: Make the same changelog as an earlier call with this seed.
        rates: Rates of events; `arrivals` and `stay` are required.

    Raises:
        SpecError: The spec or a rate is wrong, or the folder exists.
    """
    spec, folder = spec_of(spec), Path(output)
    refuse_inside("output", str(folder), spec.output.public)
    public = _rates(**rates)
    refuse_small("windows", windows)
    refuse_small("seed", seed, least=0)
    back, end = _over(spec, windows)
    content = read_document(spec.path).content
    content["release"] = f"simulated-{spec.release}"[:100]  # so that its release is never mistaken for the real one
    content["changelog"] = {"format": "parquet", "path": f"{folder}/changelog.parquet", "entry": ENTRY, "time": TIME}
    content["output"] = {"public": f"{folder}/public", "private": f"{folder}/private"}
    labels, entry = (content.get("about") or {}).get("columns") or {}, spec.changelog.source.entry
    if entry in labels:
        labels[ENTRY] = labels.pop(entry)
    for key, moment in (("start", spec.schedule.start), ("until", spec.schedule.until)):
        if back and moment is not None:
            content["schedule"][key] = moment_text(moment - back)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise SpecError(f"{folder}: already exists, and nothing is overwritten; name a new folder") from None
    try:
        with (folder / "spec.yaml").open("w", encoding="utf-8") as file:
            file.write(_HEAD)
            YAML(pure=True).dump(content, file)
        made = load(folder / "spec.yaml")
        timeline = timeline_of(made, end - back)
        _refuse_too_many(public, timeline.windows, spec.schedule.every)
        table = simulated(made, timeline, public, np.random.default_rng(seed))
        pq.write_table(table, folder / "changelog.parquet")
    except BaseException:
        rmtree(folder)
        raise
    return Simulated(
        spec=f"{folder}/spec.yaml",
        rows=table.num_rows,
        windows=timeline.windows,
        until=datetime.fromisoformat(moment_text(end - back)),
        moved=back > 0,
    )


def _rates(
    *,
    arrivals: float,
    stay: timedelta,
    change: timedelta | None = None,
    burstiness: float = 0.0,
    entries: float = 1.0,
) -> Rates:
    positive = {"arrivals": arrivals, "entries": entries, **({"burstiness": burstiness} if burstiness else {})}
    for name, number in positive.items():
        refuse_not_positive(name, number)
    return Rates(
        arrivals=arrivals,
        stay=duration_of("stay", stay or timedelta()) or 0,
        change=duration_of("change", change),
        burstiness=burstiness,
        entries=entries,
    )


def _over(spec: Spec, windows: int | None) -> tuple[int, int]:
    """Return by how many windows to move the schedule back, and the end of the last window before the move."""
    schedule, clock = spec.schedule, now()
    if schedule.calendar is not None:
        over = timeline_of(spec, clock)
        if over.windows == 0:
            raise SpecError(f"{spec.path}: schedule: no window of the calendar is over; begin a copy of it earlier")
        if (windows or 0) > over.windows:
            there = counted(over.windows, "window")
            ended = f"by the calendar {there} ended so far; use fewer windows, or an earlier start"
            raise ArgumentError("windows", ended, windows)
        return 0, over.bounds.end(windows or over.windows)
    end = schedule.start + (windows or schedule.windows or USUAL) * schedule.every
    if schedule.until is not None and end > schedule.until:
        raise ArgumentError("windows", f"the schedule has {schedule.windows}; simulate at most that number", windows)
    return max(0, -(-(end - clock) // schedule.every)) * schedule.every, end


def _refuse_too_many(rates: Rates, windows: int, every: int) -> None:
    entries = rates.arrivals * (windows + rates.stay / every)
    changes = 0 if rates.change is None else rates.arrivals * windows * rates.stay / rates.change
    if 2 * entries + changes > MOST_ROWS:
        raise ArgumentError(
            "arrivals", f"about {2 * entries + changes:,.0f} changes; at most {MOST_ROWS:,} can be simulated"
        )
