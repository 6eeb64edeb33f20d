"""`slackwater simulate`: a changelog from public parameters, and a copy of a spec that reads it.

What is compared on it costs nothing: it is about nobody.
"""

import argparse
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from pipelines.changelog.simulated import ENTRY, TIME, Rates, simulated
from pipelines.epochs.flags import refuse_any
from pipelines.epochs.job import timeline_of
from pipelines.epochs.results import Result
from pipelines.spec.document import read_document
from pipelines.spec.load import Spec, load
from pipelines.spec.paths import within
from pipelines.spec.times import moment_text, now
from privacy.counted import counted
from transforms.common.errors import SpecError

MOST_ROWS = 50_000_000
"""About so many are made at most: all of them are in memory."""

USUAL = 100
"""Windows of a schedule without an end."""

_HEAD = "# Made by `slackwater simulate`: its changelog is about nobody.\n"


def simulate(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Write a new folder with `changelog.parquet` and `spec.yaml`."""
    refuse_any(flags, "simulate")
    spec, folder = load(arguments.spec), Path(arguments.output)
    if within(str(folder), spec.output.public):
        raise SpecError(f"-o {folder}: lies in the public folder, which holds what is published and nothing else")
    rates = Rates(
        arrivals=arguments.arrivals,
        stay=arguments.stay,
        change=arguments.change,
        burstiness=arguments.burstiness,
        entries=arguments.entries,
    )
    back, end = _over(spec, arguments.windows)
    content = read_document(Path(arguments.spec)).content
    content["release"] = f"simulated-{spec.release}"[:100]  # told apart wherever it goes
    content["changelog"] = {"format": "parquet", "path": f"{folder}/changelog.parquet", "entry": ENTRY, "time": TIME}
    content["output"] = {"public": f"{folder}/public", "private": f"{folder}/private"}
    for key, moment in (("start", spec.schedule.start), ("until", spec.schedule.until)):
        if back and moment is not None:
            content["schedule"][key] = moment_text(moment - back)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise SpecError(f"{folder}: is there already, and nothing is overwritten; name a new folder") from None
    try:
        with (folder / "spec.yaml").open("w", encoding="utf-8") as file:
            file.write(_HEAD)
            YAML(pure=True).dump(content, file)
        made = load(folder / "spec.yaml")
        timeline = timeline_of(made, end - back)
        _refuse_too_many(rates, timeline.windows, spec.schedule.every)
        table = simulated(made, timeline, rates, np.random.default_rng(arguments.seed))
        pq.write_table(table, folder / "changelog.parquet")
    except BaseException:
        rmtree(folder)
        raise
    until = moment_text(end - back)
    document = {"spec": f"{folder}/spec.yaml", "rows": table.num_rows, "windows": timeline.windows, "until": until}
    moved = " The schedule is moved back, so that its windows are over." if back else ""
    return document, (
        f"{folder}: {counted(table.num_rows, 'synthetic change')} in {counted(timeline.windows, 'window')}.{moved} "
        f"Next:\n"
        f"slackwater evaluate {folder}/spec.yaml --until {until}"
    )


def _over(spec: Spec, windows: int | None) -> tuple[int, int]:
    """By how much the schedule is moved back, in whole windows, and the end of the last window as it stands."""
    schedule, clock = spec.schedule, now()
    if schedule.calendar is not None:
        over = timeline_of(spec, clock)
        if over.windows == 0:
            raise SpecError(f"{spec.path}: schedule: no window of the calendar is over; begin a copy of it earlier")
        if (windows or 0) > over.windows:
            there = counted(over.windows, "window")
            raise SpecError(
                f"--windows {windows}: by the calendar {there} ended so far; take fewer, or an earlier start"
            )
        return 0, over.bounds.end(windows or over.windows)
    end = schedule.start + (windows or schedule.windows or USUAL) * schedule.every
    if schedule.until is not None and end > schedule.until:
        raise SpecError(f"--windows {windows}: the schedule has {schedule.windows}; simulate as many at most")
    return max(0, -(-(end - clock) // schedule.every)) * schedule.every, end


def _refuse_too_many(rates: Rates, windows: int, every: int) -> None:
    entries = rates.arrivals * (windows + rates.stay / every)
    changes = 0 if rates.change is None else rates.arrivals * windows * rates.stay / rates.change
    if 2 * entries + changes > MOST_ROWS:
        raise SpecError(f"--arrivals: about {2 * entries + changes:,.0f} changes, and at most {MOST_ROWS:,} are made")
