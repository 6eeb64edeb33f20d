"""`slackwater metrics` of releases by runs and by a stream, compared with numbers counted from their rows."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.crash.server import strict_gcs
from pipelines.epochs.failures import keep_trace
from pipelines.store.store import Store
from tests.e2e.specs import DAY, START, CommandLine, Row, changelog, contents, mutation, write, write_spec
from tests.e2e.test_gcs import with_buckets
from tests.e2e.test_streaming import by_day, stream
from tests.pipelines.store.releases import attempt_at, planned
from transforms.common.hashing import unit_hash

PRIVATE = "slackwater_private_"
SHARDS = 3
MOST = 2
"""Changes of an entry that count."""

CHANGES = (("at_most: 4", f"at_most: {MOST}"), ("  before: before_\n", "  before: before_\n  bad_rows: 0.5\n"))
OF_READING = {f"{PRIVATE}last_rows_{what}" for what in ("read", "dead", "per_second")}
OF_RECORDS = {f"slackwater_{what}" for what in ("records_published_total", "record_epsilon", "record_delta")}
TIMES = {f"slackwater_last_{what}" for what in ("commit_timestamp_seconds", "attempt_seconds")}
"""They tell how long a run took, and when."""

Told = dict[tuple[str, ...], float]
"""Return values by name, or by name and the value of the label next to the release's."""


def parsed(text: str, release: str = "wards") -> Told:
    told: Told = {}
    for family in text_string_to_metric_families(text):
        is_private = family.name.startswith(PRIVATE)
        assert family.documentation.endswith("private side.") == is_private
        assert family.type == ("counter" if family.samples[0].name.endswith("_total") else "gauge")
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("release") == release
            key = (sample.name, *labels.values())
            assert key not in told
            told[key] = sample.value
    return told


def metrics(slackwater: CommandLine, *flags: str) -> Told:
    said = slackwater("metrics", "spec.yaml", *flags)
    assert (said.code, said.err) == (0, "")
    return parsed(said.out)


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected contents of the shards, counted entry by entry."""

    units: Counter[int]
    finished: Counter[int]
    waiting: Counter[int]

    def told(self, name: str, of: Counter[int]) -> Told:
        return {(f"{PRIVATE}{name}", str(shard)): of[shard] for shard in range(SHARDS)}


def cell(row: Row, side: str) -> str | None:
    ward = row[f"{side}_ward"]
    return ward if ward in (None, "a", "b") else "other"


def held(rows: Sequence[Row], until: datetime) -> Expected:
    """Return the contents of the states that released the windows until then."""
    entries: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        entries.setdefault(row["stay"], []).append(row)
    expected = Expected(Counter(), Counter(), Counter())
    for key, mutations in entries.items():
        shard = int(unit_hash(pa.array([key]))[0]) % SHARDS
        past = [row for row in mutations if row["at"] < until]
        changes = sum(cell(row, "before") != cell(row, "after") for row in past)
        changes += bool(mutations and cell(mutations[0], "before"))  # it was there at the start
        if changes >= MOST:
            expected.finished[shard] += 1
            continue
        # Who was there before the first row is known, also if its first row is yet to count.
        expected.units[shard] += bool(past or cell(mutations[0], "before"))
        expected.waiting[shard] += len(mutations) - len(past)
    return expected


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write_spec(tmp_path, *CHANGES)
    return CommandLine(tmp_path, capsys)


def run(slackwater: CommandLine, windows: int, *flags: str) -> None:
    said = slackwater("run", "spec.yaml", f"--until={(START + windows * DAY).isoformat()}", *flags)
    assert said.code == 0, said.err


def commits(slackwater: CommandLine) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((slackwater.folder / "private/commits").iterdir())]


def own_folder(slackwater: CommandLine) -> Path:
    return slackwater.folder / "private/attempts" / commits(slackwater)[-1]["attempt"]


def test_metrics_of_a_release_by_runs_are_exact(slackwater: CommandLine) -> None:
    rows = changelog()
    bad = {**rows[0], "stay": None}
    write(slackwater.folder / "data/1.parquet", [*rows, bad])
    run(slackwater, 1, f"--shards={SHARDS}")
    known, at_first = held(rows, START + DAY), metrics(slackwater, "--private")
    again = [row for row in rows if row["at"] < START + DAY][-6:]  # a late delivery of known rows
    new = [mutation(90 + n, START + n * DAY, None, ("a", 40)) for n in range(4)]
    write(slackwater.folder / "data/2.parquet", [*again, *new, bad, bad])
    run(slackwater, 3)

    told = metrics(slackwater, "--private")

    assert len(again) == 6
    assert at_first[f"{PRIVATE}last_rows_read",] == len(rows) + 1
    of_all = held([*rows, *new], START + 3 * DAY)
    assert min(map(sum, (of_all.units.values(), of_all.finished.values(), of_all.waiting.values()))) > 0
    sizes = [(slackwater.folder / f"data/{n}.parquet").stat().st_size for n in (1, 2)]
    last = commits(slackwater)[-1]
    began = json.loads((own_folder(slackwater) / "run.json").read_text())["began"]
    committed = datetime.fromisoformat(last["committed_at"]).timestamp()
    superseded = Counter(
        int(unit_hash(pa.array([row["stay"]]))[0]) % SHARDS
        for row in again
        if held([r for r in rows if r["stay"] == row["stay"]], START + DAY).units.total()
    )
    assert 0 < superseded.total() < len(again)
    assert known.finished.total() > 0  # their rows are dropped before they are looked at
    rate = told.pop((f"{PRIVATE}last_rows_per_second",))
    seconds = json.loads((own_folder(slackwater) / "read.json").read_text())["seconds"]
    assert rate == pytest.approx((len(again) + len(new) + 2) / seconds, rel=1e-9)
    assert told == {
        ("slackwater_windows_published_total",): 3,
        ("slackwater_windows_due",): 2,
        ("slackwater_window_seconds",): 86_400,
        ("slackwater_published_until_timestamp_seconds",): (START + 3 * DAY).timestamp(),
        ("slackwater_lag_seconds",): 2 * 86_400,  # the schedule has ended
        ("slackwater_epochs_published_total",): 2,
        ("slackwater_epochs_unpublished",): 0,
        ("slackwater_last_commit_timestamp_seconds",): committed,
        ("slackwater_last_attempt_seconds",): committed - datetime.fromisoformat(began).timestamp(),
        ("slackwater_attempts_unfinished", "alive"): 0,
        ("slackwater_attempts_unfinished", "dead"): 0,
        ("slackwater_attempts_unfinished", "unknown"): 0,
        ("slackwater_failure_kept",): 0,
        **spent(slackwater),
        (f"{PRIVATE}files_read_total",): 2,
        (f"{PRIVATE}bytes_read_total",): sum(sizes),
        (f"{PRIVATE}last_files_read",): 1,
        (f"{PRIVATE}last_bytes_read",): sizes[1],
        (f"{PRIVATE}last_rows_read",): len(again) + len(new) + 2,
        (f"{PRIVATE}last_rows_dead",): 2,
        **of_all.told("units", of_all.units),
        **of_all.told("entries", of_all.units),
        **of_all.told("units_finished", of_all.finished),
        **of_all.told("rows_waiting", of_all.waiting),
        **of_all.told("rows_superseded_total", superseded),
        **state_bytes(slackwater),
    }
    # A store whose attempts have no such note, as earlier versions left them.
    (own_folder(slackwater) / "read.json").unlink()
    assert metrics(slackwater, "--private") == {key: told[key] for key in told if key[0] not in OF_READING}


def test_rows_of_finished_owners_do_not_wait(slackwater: CommandLine) -> None:
    """Two owners with four stays to come each; the bound of one is used up in the first window."""
    spec = slackwater.folder / "spec.yaml"
    dropped = ("before: before_", "after: after_", 'where: "age >= 0"')
    lines = [line for line in spec.read_text().splitlines() if line.strip() not in dropped]
    spec.write_text("\n".join(lines).replace("privacy:", "privacy:\n  unit: person").replace("parquet", "csv") + "\n")
    (slackwater.folder / "data").mkdir(exist_ok=True)
    past = [f"{n},2026-01-01T0{n}:00:00Z,busy,a" for n in range(2)] + ["2,2026-01-01T02:00:00Z,calm,a"]
    ahead = [f"{n},2026-01-03T00:00:00Z,{'busy' if n < 14 else 'calm'},b" for n in range(10, 18)]
    (slackwater.folder / "data/all.csv").write_text("\n".join(["stay,at,person,ward", *past, *ahead, ""]))

    run(slackwater, 1, "--shards=1")
    told = metrics(slackwater, "--private")

    assert {name: told[f"{PRIVATE}{name}", "0"] for name in ("units", "units_finished", "rows_waiting")} == {
        "units": 1,
        "units_finished": 1,
        "rows_waiting": 4,
    }


def spent(slackwater: CommandLine) -> Told:
    """Return the spent epsilon and delta, as the ledger states them."""
    ledger = json.loads(slackwater("ledger", "spec.yaml", "--json").out)
    assert ledger["spent"]["epsilon"] > 0
    return {
        (f"slackwater_{loss}_{name}",): ledger[of][loss]
        for loss in ("epsilon", "delta")
        for name, of in (("allowed", "total"), ("spent", "spent"))
    }


def state_bytes(slackwater: CommandLine) -> Told:
    found = sorted((own_folder(slackwater) / "state").glob("units-*.parquet"))
    assert len(found) == SHARDS
    return {(f"{PRIVATE}state_bytes", str(shard)): path.stat().st_size for shard, path in enumerate(found)}


def test_metrics_of_a_release_by_a_stream_are_exact(slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(slackwater.folder)
    write_spec(slackwater.folder, *CHANGES, ("  until: 2026-01-06T00:00:00Z\n", ""))
    days = by_day(changelog())[:3]
    good = [row for day in days for row in day]
    days[2] = [*days[2], {**days[2][0], "stay": None}]
    write(slackwater.folder / "data/day-0.parquet", days[0])

    stream(days)

    before = time.time()
    told = metrics(slackwater, "--private")
    after = time.time()
    until = (START + 3 * DAY).timestamp()
    sizes = [(slackwater.folder / f"data/day-{day}.parquet").stat().st_size for day in range(3)]
    committed = [datetime.fromisoformat(commit["committed_at"]).timestamp() for commit in commits(slackwater)]
    of_all = held(good, START + 3 * DAY)
    lag, took = told.pop(("slackwater_lag_seconds",)), told.pop(("slackwater_last_attempt_seconds",))
    assert before - until <= lag <= after - until
    assert 0 <= took <= after - before + 60
    assert told.pop(("slackwater_windows_due",)) == lag // 86_400
    assert told == {
        ("slackwater_windows_published_total",): 3,
        ("slackwater_window_seconds",): 86_400,
        ("slackwater_published_until_timestamp_seconds",): until,
        ("slackwater_epochs_published_total",): 3,
        ("slackwater_epochs_unpublished",): 0,
        ("slackwater_last_commit_timestamp_seconds",): committed[-1],
        ("slackwater_attempts_unfinished", "alive"): 0,
        ("slackwater_attempts_unfinished", "dead"): 0,
        ("slackwater_attempts_unfinished", "unknown"): 0,
        ("slackwater_failure_kept",): 0,
        **spent(slackwater),
        (f"{PRIVATE}files_read_total",): 3,
        (f"{PRIVATE}bytes_read_total",): sum(sizes),
        (f"{PRIVATE}last_files_read",): 1,
        (f"{PRIVATE}last_bytes_read",): sizes[-1],
        (f"{PRIVATE}last_rows_read",): len(days[2]),
        (f"{PRIVATE}last_rows_dead",): 1,
        **of_all.told("units", of_all.units),
        **of_all.told("entries", of_all.units),
        **of_all.told("units_finished", of_all.finished),
        **of_all.told("rows_waiting", Counter()),
        **of_all.told("rows_superseded_total", Counter()),
        **state_bytes(slackwater),
    }


def test_without_private_no_metric_depends_on_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []
    for name, rows in (("many", changelog(60)), ("few", changelog(60)[:2])):
        (tmp_path / name).mkdir()
        slackwater = CommandLine(tmp_path / name, capsys)
        write_spec(slackwater.folder, *CHANGES)
        write(slackwater.folder / "data/1.parquet", rows)
        run(slackwater, 2, f"--shards={SHARDS}")
        seen.append((metrics(slackwater), metrics(slackwater, "--private")))

    (many, all_of_many), (few, all_of_few) = seen
    assert {key: many[key] for key in many if key[0] not in TIMES} == {
        key: few[key] for key in few if key[0] not in TIMES
    }
    assert {name for name, *_ in many} == {name for name, *_ in few} >= TIMES
    assert not any(name.startswith(PRIVATE) for name, *_ in many)
    private = {key for key in all_of_many if key not in many}
    assert private == all_of_few.keys() - few.keys()
    assert all(name.startswith(PRIVATE) for name, *_ in private)
    assert all(all_of_many[key] != all_of_few[key] for key in private if key[0].endswith(("rows_read", "units")))


def test_before_the_first_epoch_nothing_is_published_and_nothing_written(slackwater: CommandLine) -> None:
    told = metrics(slackwater, "--private")

    assert told["slackwater_windows_published_total",] == told["slackwater_epochs_published_total",] == 0
    assert told["slackwater_epsilon_spent",] == 0
    assert (told["slackwater_windows_due",], told["slackwater_lag_seconds",]) == (5, 5 * 86_400)
    assert not any("timestamp" in name or name.startswith(PRIVATE) for name, *_ in told)
    assert list(contents(slackwater.folder)) == ["spec.yaml"]


def test_metrics_count_live_dead_and_waiting_attempts(slackwater: CommandLine) -> None:
    write(slackwater.folder / "data/1.parquet", changelog())
    run(slackwater, 1)
    store = Store(str(slackwater.folder / "public"), str(slackwater.folder / "private"))
    store.begin(0)  # of `evaluate`
    store.begin(2)
    gone = Path(store.begin(2).folder, "run.json")
    gone.write_text(json.dumps({**json.loads(gone.read_text()), "process": "1 0"}))
    for _ in range(2):
        elsewhere = Path(store.begin(2).folder, "run.json")
        note = json.loads(elsewhere.read_text())
        elsewhere.write_text(json.dumps({**note, "place": "another machine", "held": False}))

    told = metrics(slackwater)

    unfinished = {key[1]: value for key, value in told.items() if key[0] == "slackwater_attempts_unfinished"}
    assert unfinished == {"alive": 1, "dead": 1, "unknown": 2}
    (first,) = store.commits()
    every = first.until - first.start
    second = replace(first, epoch=2, released=1, windows=2, start=first.until, until=first.until + every)
    committed = store.commit(attempt_at(store, 2), second, planned())
    told = metrics(slackwater)
    assert told["slackwater_attempts_unfinished", "alive"] == 0
    assert told["slackwater_epochs_unpublished",] == 1
    assert told["slackwater_windows_published_total",] == 1
    committed_at = datetime.fromisoformat(committed.committed_at).timestamp()
    assert told["slackwater_last_commit_timestamp_seconds",] == committed_at


def test_the_time_of_the_last_failure_is_reported(slackwater: CommandLine) -> None:
    keep_trace(str(slackwater.folder / "private"), ValueError("a row"))

    told = metrics(slackwater)

    assert told["slackwater_failure_kept",] == 1
    written = (slackwater.folder / "private/failure.txt").stat().st_mtime
    assert told["slackwater_last_failure_timestamp_seconds",] == pytest.approx(written, abs=1e-3)


def test_an_unreadable_file_is_one_line_and_no_failure_of_the_release(slackwater: CommandLine) -> None:
    write(slackwater.folder / "data/1.parquet", changelog())
    run(slackwater, 1)
    assert slackwater("metrics", "spec.yaml", "--runner=FlinkRunner").code == 2
    Path(own_folder(slackwater), "run.json").unlink()
    Path(own_folder(slackwater), "run.json").mkdir()  # cannot be read, also by who may read everything

    said = slackwater("metrics", "spec.yaml")

    assert (said.code, said.out, len(said.lines)) == (4, "", 1)
    assert said.err.startswith("slackwater: private: cannot be read (IsADirectoryError); check the path")
    assert not (slackwater.folder / "private/failure.txt").exists()
    write_spec(slackwater.folder, *CHANGES, ("epsilon: 1.0", "epsilon: 2.0"))
    Path(own_folder(slackwater), "run.json").rmdir()
    assert slackwater("metrics", "spec.yaml").code == 1


def test_metrics_from_gs_have_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        write(folder / "data/1.parquet", changelog())
        write_spec(folder, *CHANGES)
    sides = [(f": {side}\n", f": gs://out/{side}\n") for side in ("public", "private")]
    write_spec(there, *CHANGES, *sides)
    seen = []
    with strict_gcs() as client:
        with_buckets(client)
        for folder in (here, there):
            slackwater = CommandLine(folder, capsys)
            run(slackwater, 1, f"--shards={SHARDS}")
            keep_trace(str(folder / "private") if folder == here else "gs://out/private", ValueError("a row"))
            seen.append(metrics(slackwater, "--private"))

    local, remote = seen
    vary = {*TIMES, f"{PRIVATE}last_rows_per_second", "slackwater_last_failure_timestamp_seconds"}
    assert local.keys() == remote.keys()
    assert vary < {name for name, *_ in remote}
    assert abs(remote["slackwater_last_failure_timestamp_seconds",] - time.time()) < 600
    assert {key: value for key, value in local.items() if key[0] not in vary} == {
        key: value for key, value in remote.items() if key[0] not in vary
    }


def test_json_has_the_same_numbers(slackwater: CommandLine) -> None:
    document = json.loads(slackwater("metrics", "spec.yaml", "--json").out)

    assert document["release"] == "wards"
    told = {
        (m["name"], *[v for k, v in m["labels"].items() if k != "release"]): m["value"] for m in document["metrics"]
    }
    assert len(told) == len(document["metrics"])
    assert told == metrics(slackwater)


def test_the_page_for_operators_lists_every_metric(slackwater: CommandLine) -> None:
    write(slackwater.folder / "data/1.parquet", changelog())
    run(slackwater, 1)
    freshness = ("  before: before_\n", "  before: before_\n  freshness: newer_file\n")
    tables = ("private: private\n", "private: private\n  bigquery: {estimates: house-1.wards.all}\n")
    write_spec(slackwater.folder, *CHANGES, freshness, tables)
    keep_trace(str(slackwater.folder / "private"), ValueError("a row"))
    page = (Path(__file__).resolve().parents[2] / "docs/operations.md").read_text()
    listed = re.findall(r"^\| `(slackwater_\w+)(?:\{\w+\})?` \|", page, re.MULTILINE)

    told = {name for name, *_ in metrics(slackwater, "--private")}
    others = {"slackwater_protected_span_seconds", *OF_RECORDS}  # test_span and test_records_shown have them
    assert sorted(listed) == sorted({*told, *others})
    assert set(re.findall(r"slackwater_\w+", page)) <= {*listed, PRIVATE}


def test_progress_of_the_source_is_as_it_reports_and_of_files_by_windows_alone(slackwater: CommandLine) -> None:
    stored = (START + 1.5 * DAY).timestamp()
    for name in ("data/1.parquet", "progress"):
        path = slackwater.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text((START + 1.5 * DAY).isoformat())
        os.utime(path, (stored, stored))

    told = []
    for rule in ("newer_file", "{file: progress}"):
        write_spec(slackwater.folder, *CHANGES, ("  before: before_\n", f"  before: before_\n  freshness: {rule}\n"))
        told.append(metrics(slackwater)["slackwater_source_passed_timestamp_seconds",])

    assert told == [stored - 0.5 * 86_400, stored]


def test_a_state_that_is_lost_or_was_removed_by_other_runs_is_reported_as_such(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(slackwater.folder / "data/1.parquet", changelog())
    run(slackwater, 1)
    earlier = Store.open(Store(*(str(slackwater.folder / side) for side in ("public", "private"))))
    state = next((own_folder(slackwater) / "state").glob("units-*"))
    content, told = state.read_bytes(), []
    for damaged in (None, content[:-9], content[:40]):
        state.unlink()
        if damaged is not None:
            state.write_bytes(damaged)
        told.append(slackwater("metrics", "spec.yaml", "--private"))
        state.write_bytes(content)
    run(slackwater, 2)
    state.unlink()  # as runs do to states of earlier epochs, while this command has the history of that time
    histories = iter([earlier])
    found = Store.open
    monkeypatch.setattr(Store, "open", lambda store: next(histories, None) or found(store))
    removed = slackwater("metrics", "spec.yaml", "--private")

    assert [(one.code, len(one.lines)) for one in (*told, removed)] == [(1, 1)] * 4
    assert {one.err.partition("units-")[2].partition(": ")[2] for one in told} == {
        "missing, or not what epoch 1 left; restore the private folder from a copy\n"
    }
    assert removed.err.endswith("other runs have committed epochs up to 2 meanwhile; try again\n")
