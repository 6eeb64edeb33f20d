"""A hospital's changes in windows of a second: captured as Debezium does, with exact results by SQL."""

from dataclasses import dataclass
from datetime import UTC, datetime

from tests.postgres import capture
from tests.postgres.stays import EARLY, EVERY, LATE, TABLES, Hospital, Step, opened
from tests.postgres.truth import Numbers, history, levels

WRITERS = {
    "stays_full": capture.Writer(),
    "stays_default": capture.Writer(version="1.9.7.Final", schema=True),
    "emptied_full": capture.Writer(schema=True),
    "emptied_default": capture.Writer(),
}
LATECOMERS = {"late_full": "stays_full", "late_default": "stays_default"}
"""Captures that began in the middle, without a snapshot, with the table of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """Captured lines and exact results of a whole workload.

    Attributes:
        start: Start of the first window.
        windows: Number of windows.
        delivered: Time at which the first file of each table came, in the middle of the workload.
        files: Lines of each file, by table; the second holds all changes, also those of the first, and a new snapshot.
        tables: Levels of each table at the end of some windows.
        history: Exact results of each table for all windows.
    """

    start: datetime
    windows: int
    delivered: datetime
    files: dict[str, list[list[str]]]
    tables: dict[str, Numbers]
    history: dict[str, Numbers]


def live(address: str) -> Lived:
    """Run the workload."""
    with opened(address) as hospital:
        first, lsn, name = capture.start(address, "debezium")
        read = capture.snapshot(address, WRITERS, name=name, lsn=lsn)
        first.close()
        start = now(hospital).replace(microsecond=0) + EVERY
        tables: dict[str, Numbers] = {table: {} for table in TABLES}
        for step in EARLY:
            act(hospital, step, start, tables)
        early = capture.changes(hospital.one, "debezium", WRITERS, keep=True)
        delivered = now(hospital)

        since = now(hospital)
        capture.start(address, "late")[0].close()
        for step in LATE:
            act(hospital, step, start, tables)
        windows = act(hospital, lambda _: None, start, tables) + 1
        rest = capture.changes(hospital.one, "debezium", WRITERS)
        again = capture.snapshot(address, WRITERS, name=None, lsn=place(hospital), kind="incremental")
        late = capture.changes(hospital.one, "late", WRITERS)
        until(hospital, start + windows * EVERY)
        told = {}
        for name, table in {**{table: table for table in TABLES}, **LATECOMERS}.items():
            told[name] = history(
                hospital.one,
                table,
                since=since if name in LATECOMERS else datetime.fromtimestamp(0, UTC),
                images=name != "late_default",
                start=start,
                windows=windows,
            )
    return Lived(
        start=start,
        windows=windows,
        delivered=delivered,
        files={
            **{table: [read[table] + early[table], rest[table] + again[table]] for table in TABLES},
            **{name: [late[table]] for name, table in LATECOMERS.items()},
        },
        tables=tables,
        history=told,
    )


def act(hospital: Hospital, step: Step, start: datetime, tables: dict[str, Numbers]) -> int:
    """Run a step in a separate window, and record the levels of the tables afterwards.

    Args:
        hospital: The hospital to change.
        step: The changes.
        start: Start of the first window.
        tables: Levels by table, to which the new ones are added.

    Returns:
        Number of the window in which the step ended.
    """
    until(hospital, start + window_of(now(hospital), start) * EVERY + EVERY)
    step(hospital)
    window = window_of(now(hospital), start)
    for table in TABLES:
        tables[table] |= levels(hospital.one, table, window)
    return window


def window_of(moment: datetime, start: datetime) -> int:
    return (moment - start) // EVERY


def now(hospital: Hospital) -> datetime:
    moment: datetime = capture.one(hospital.one, "select clock_timestamp()")[0]
    return moment


def place(hospital: Hospital) -> int:
    """Return the current position in the log."""
    return capture.to_number(capture.one(hospital.one, "select pg_current_wal_lsn()::text")[0])


def until(hospital: Hospital, moment: datetime) -> None:
    hospital.one.execute("select pg_sleep(extract(epoch from %s - clock_timestamp()) + 0.001)", [moment])
