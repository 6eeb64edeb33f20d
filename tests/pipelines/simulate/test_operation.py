"""Simulated changelogs: flows follow the rates, and an unchanged spec reads them."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines import cli
from pipelines.epochs.job import timeline_of
from pipelines.simulate.simulated import ENTRY, STATE, TIME, Rates, simulated
from pipelines.spec.load import load
from transforms.common.errors import SpecError

SPEC = """\
release: wards
changelog: {format: csv, path: data/*.csv, entry: stay, time: at}
privacy: {unit: person, epsilon: 1.0, protects: {span: 7d}, constraint: {entries: 2}}
schedule: {start: 2027-01-01T00:00:00Z, every: 1d, until: 2027-03-02T00:00:00Z}
queries:
  - name: beds
    measure: count
    by: {ward: [a, b, other], age: {from: 0, to: 100, step: 50}}
    publish: [level]
  - {name: cost, measure: {sum: cost, min: -1, max: 3}, publish: [change]}
output: {public: r/public, private: r/private}
"""
DAY = 86_400_000_000
WINDOWS = 60


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def made(path: Path, seed: int = 1, **rates: float) -> pa.Table:
    read = load(path)
    return simulated(
        read,
        timeline_of(read, read.schedule.until),
        Rates(**{"arrivals": 40.0, "stay": 5 * DAY, "change": 2 * DAY, **rates}),
        np.random.default_rng(seed),
    )


def test_entries_come_change_and_go_at_the_given_rates(spec: Path) -> None:
    """Numbers are Poisson: 6 standard deviations, of fixed draws."""
    start, table = load(spec).schedule.start, made(spec)
    time, gone = table[TIME].cast(pa.int64()).to_numpy() - start, table[STATE].is_null().to_numpy(zero_copy_only=False)
    _, first = np.unique(table[ENTRY].to_numpy(), return_index=True)
    came = time[first]

    assert abs((came >= 0).sum() - 40 * WINDOWS) < 6 * (40 * WINDOWS) ** 0.5
    assert abs((came < 0).sum() - 200) < 6 * 200**0.5  # the mean number of entries
    changes = len(table) - len(first) - gone.sum()
    assert abs(changes / (200 * WINDOWS / 2) - 1) < 0.15  # 200 at once, every second day
    assert abs(len(first) - gone.sum() - 200) < 6 * 200**0.5  # and at the end
    assert time.max() < WINDOWS * DAY
    last = np.zeros(len(table), dtype=bool)
    last[len(table) - 1 - np.unique(table[ENTRY].to_numpy()[::-1], return_index=True)[1]] = True
    assert (last | ~gone).all()  # nothing happens to who is gone


def test_columns_are_those_of_the_spec_and_one_seed_gives_one_changelog(spec: Path) -> None:
    table = made(spec)
    there = table.filter(table[STATE].is_valid())

    assert set(table.column_names) == {ENTRY, TIME, "person", STATE, "ward", "age", "cost"}
    assert set(pc.unique(there["ward"]).to_pylist()) == {"a", "b", None}
    assert (pc.min(there["age"]).as_py() < 0, pc.max(there["age"]).as_py() >= 100) == (True, True)
    assert -1 <= pc.min(there["cost"]).as_py() < pc.max(there["cost"]).as_py() <= 3
    assert table.equals(made(spec))
    assert not table.equals(made(spec, seed=2))
    owners = there.group_by(ENTRY).aggregate([("person", "count_distinct")])
    assert set(owners["person_count_distinct"].to_pylist()) == {1}


def test_a_unit_never_changes_its_class_and_each_class_has_units(spec: Path) -> None:
    classes = "constraint: {by: fare, classes: {a: {at_most: 2, entries: 1}, b: {at_most: 4, entries: 1}}}}"
    spec.write_text(SPEC.replace("protects: {span: 7d}, constraint: {entries: 2}}", classes))
    there = (table := made(spec)).filter(table[STATE].is_valid())

    of_person = there.group_by("person").aggregate([("fare", "count_distinct")])
    assert set(of_person["fare_count_distinct"].to_pylist()) == {1}
    assert set(pc.unique(there["fare"]).to_pylist()) == {"a", "b"}


def test_bursts_bring_many_at_once(spec: Path) -> None:
    def spread(burstiness: float) -> float:
        table = made(spec, burstiness=burstiness, change=None)
        _, first = np.unique(table[ENTRY].to_numpy(), return_index=True)
        came = (table[TIME].cast(pa.int64()).to_numpy()[first] - load(spec).schedule.start) // DAY
        numbers = np.bincount(came[came >= 0], minlength=WINDOWS)
        return float(numbers.var() / numbers.mean())

    assert 0.4 < spread(0.0) < 2
    assert spread(2.0) > 10  # 1 + 2 * 40 on average


def test_a_condition_on_a_column_that_is_not_simulated_is_refused(spec: Path) -> None:
    spec.write_text(SPEC.replace("measure: count\n", 'measure: count\n    where: "nights > 2"\n'))

    with pytest.raises(SpecError, match="query beds: where: reads nights, and a simulated changelog"):
        made(spec)


@pytest.mark.slow
def test_policies_are_compared_on_synthetic_data(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = spec.parent / "made"
    flows = ["--arrivals", "5", "--stay", "3d", "--change", "2d", "--windows", "12", "--seed", "5", "--burstiness", "1"]
    assert cli.main(["simulate", str(spec), "-o", str(folder), *flows]) == 0
    until = capsys.readouterr().out.split()[-1]
    copy = folder / "spec.yaml"
    assert load(copy).release == "simulated-wards"  # differs from the real release
    other = folder / "other.yaml"
    other.write_text(copy.read_text().replace("- name: beds", "- name: beds\n  strategy: {adaptive: ba}"))

    compared = ["evaluate", str(copy), "--compare", str(other), "--until", until, "--runs", "2"]
    assert cli.main([*compared, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["notice"].startswith("NOT FOR RELEASE")
    assert "use the data in a way" in document["look"]
    assert [(of["spec"], of["windows"]) for of in document["specs"]] == [(str(copy), 12), (str(other), 12)]
    assert [of["queries"][0]["strategy"] for of in document["specs"]] == ["direct", "adaptive ba"]
    truths = [of["queries"][0]["numbers"][0]["truth"] for of in document["specs"]]
    assert truths[0] == truths[1] > 0
    assert cli.main([*compared, "--truth", "t.parquet"]) == 2
    assert "--truth: is for one spec" in capsys.readouterr().err
    assert cli.main(["simulate", str(spec), "-o", str(folder), *flows]) == 2
    assert "already exists" in capsys.readouterr().err
    public = load(spec).output.public
    assert cli.main(["simulate", str(spec), "-o", f"{public}/made", *flows]) == 2
    assert "lies in the public folder" in capsys.readouterr().err
    assert cli.main(["simulate", str(spec), "-o", f"{folder}2", *flows[:-6], "--windows", "900"]) == 2
    assert "the schedule has 60" in capsys.readouterr().err
    assert cli.main(["simulate", str(spec), "-o", f"{folder}2", *flows[2:], "--arrivals", "1e9"]) == 2
    assert "changes; at most 50,000,000 can be simulated" in capsys.readouterr().err
    assert not Path(f"{folder}2").exists()


@pytest.mark.slow
def test_of_a_calendar_as_many_windows_are_made_as_are_asked_for(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calendar = "{start: 2025-03-29, every: 1d, timezone: Europe/Berlin}"
    spec.write_text("\n".join(f"schedule: {calendar}" if "schedule" in line else line for line in SPEC.split("\n")))
    rates = ["--arrivals=1", "--stay=1d", "--json"]

    said = {}
    for windows in (2, 5):
        assert (
            cli.main(["simulate", str(spec), "-o", str(spec.with_name(str(windows))), *rates, f"--windows={windows}"])
            == 0
        )
        said[windows] = json.loads(capsys.readouterr().out)
    refused = cli.main(["simulate", str(spec), "-o", str(spec.with_name("all")), *rates, "--windows=99999"])

    assert {windows: found["windows"] for windows, found in said.items()} == {2: 2, 5: 5}
    assert said[2]["until"] == "2025-03-30T22:00:00Z"  # after the night in which clocks are put forward
    assert refused == 2
    assert "--windows 99999: " in capsys.readouterr().err
