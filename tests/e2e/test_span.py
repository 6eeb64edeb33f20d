"""A release that protects any span of time: from the spec to the published numbers, night by night and at once."""

import json
from collections import Counter
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.spans import clinic
from slackwater import run
from tests.e2e.specs import (
    DAY,
    NO_NOISE,
    REPEATED,
    START,
    WINDOWS,
    CommandLine,
    changelog,
    published,
    write,
    write_spec,
)
from tests.pipelines.spec_text import changed

SPAN = ("  epsilon: 1.0\n  constraint: {at_most: 4}", "  epsilon: 1.0\n  protects: {span: 3d}")
AUTO = ("\nstrategy: disjoint", "")
EVENTS = ("publish: [level, change]", "publish: [level, change, entered, left]")


def wards(rows: list[dict], until: datetime) -> dict[str, str]:
    """In which listed ward each stay is at the end of a window."""
    found: dict[str, str | None] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        if row["at"] < until:
            found[row["stay"]] = row["after_ward"]
        else:  # there before its first row, or not
            found.setdefault(row["stay"], row["before_ward"])
    return {stay: ward if ward in ("a", "b") else "other" for stay, ward in found.items() if ward is not None}


ENDS = [START + day * DAY for day in range(WINDOWS + 1)]

SPRING = timedelta(days=86, hours=-1)
BERLIN = [ENDS[day] + SPRING - (day > 1) * timedelta(hours=1) for day in range(WINDOWS + 1)]
"""Midnights of Berlin from 28 March 2026 on; the clocks go forward on the 29th."""
BY_CALENDAR = (
    ("  time: at\n", "  time: at\n  freshness: {file: data/progress}\n"),
    ("start: 2026-01-01T00:00:00Z", "start: 2026-03-28\n  timezone: Europe/Berlin"),
    ("until: 2026-01-06T00:00:00Z", "until: 2026-04-02"),
)


def wanted(rows: list[dict], ends: list[datetime] = ENDS) -> dict[tuple[str, datetime, str], float]:
    there = [wards(rows, end) for end in ends]
    found: dict[tuple[str, datetime, str], float] = {}
    for day in range(1, WINDOWS + 1):
        now, before = there[day].items(), there[day - 1].items()
        entered, left = Counter(w for _, w in now - before), Counter(w for _, w in before - now)
        level, earlier = Counter(w for _, w in now), Counter(w for _, w in before)
        for ward in ("a", "b", "other"):
            numbers = {"level": level[ward], "change": level[ward] - earlier[ward]}
            numbers |= {"entered": entered[ward], "left": left[ward]}
            found |= {(kind, ends[day], ward): float(number) for kind, number in numbers.items()}
    return found


def told(table: pa.Table) -> dict[tuple[str, datetime, str], float]:
    return {(r["kind"], r["window_end"], r["ward"]): r["value"] for r in table.to_pylist()}


@pytest.mark.few(1)
@pytest.mark.parametrize("nightly", [False, True], ids=["at once", "nightly, by a calendar"])
def test_levels_count_the_units_present_at_the_ends_of_windows(nightly: bool, tmp_path: Path, capsys) -> None:
    """By a calendar whose clocks go forward, and no night before the source has passed its end."""
    slackwater = CommandLine(tmp_path, capsys)
    rows, ends = changelog(), BERLIN if nightly else ENDS
    if nightly:
        rows = [{**row, "at": row["at"] + SPRING} for row in rows]
    write(tmp_path / "data" / "stays.parquet", rows)
    write_spec(tmp_path, SPAN, AUTO, EVENTS, NO_NOISE, *(BY_CALENDAR if nightly else ()))

    for night, end in enumerate(ends[1:] if nightly else ends[-1:]):
        flags = ("--until", f"{end:%Y-%m-%dT%H:%M:%SZ}")
        if nightly:
            _source_says(slackwater, end - timedelta(seconds=1))
            early = slackwater("run", "spec.yaml", *flags)
            assert (early.code, early.out.count(f"nothing is due, window {night + 1}, which ended at")) == (0, 1)
            assert "run with --assume-complete" in early.out
            if end == ends[-1]:
                with chdir(tmp_path):
                    assert run("spec.yaml", until=end, assume_complete=True).windows == 1
                continue
            if end == ends[-2]:
                flags = (*flags, "--assume-complete")
            else:
                _source_says(slackwater, end)
        said = slackwater("run", "spec.yaml", *flags)
        assert said.code == 0, said.err

    assert told(published(tmp_path, "estimates")) == wanted(rows, ends)
    if nightly:
        _stand(slackwater, ends)


def _source_says(slackwater: CommandLine, moment: datetime) -> None:
    (slackwater.folder / "data" / "progress").write_text(f"{moment.isoformat()}\n")


def _stand(slackwater: CommandLine, ends: list[datetime]) -> None:
    """What is committed of a calendar: the ends of windows, which the manifest shows, and how noise was scaled."""
    public = slackwater.folder / "public"
    epochs, plan = (json.loads((public / name).read_text()) for name in ("manifest.json", "plan.json"))
    shown = [end for epoch in epochs["epochs"] for end in epoch["ends"]]
    assert [datetime.fromtimestamp(end / 1e6, UTC) for end in shown] == ends[1:]
    assert (plan["version"], plan["promise"]["slack"]) == (1, 3_600_000_000)
    numbers = slackwater("show", "public").out
    assert "2026-03-29    2026-03-30" in numbers
    assert ":00" not in numbers
    assert slackwater("report", "public", "-o", "page.html").code == 0
    assert slackwater("ledger", "spec.yaml").code == 0
    told = slackwater("metrics", "spec.yaml").out
    assert 'windows_due{release="wards"} 0.0' in told
    assert 'protected_span_seconds{release="wards"} 259200.0' in told


def test_changes_that_are_held_back_come_when_the_block_ends(tmp_path: Path, capsys) -> None:
    numbers = []
    for folder, closing in ((tmp_path / "in parts", [2, WINDOWS]), (tmp_path / "at once", [WINDOWS])):
        folder.mkdir()
        slackwater = CommandLine(folder, capsys)
        write(folder / "data" / "stays.parquet", changelog())
        write_spec(
            folder,
            SPAN,
            AUTO,
            EVENTS,
            ("protects: {span: 3d}", "protects: {span: 3d}\n  constraint: {at_most: 2}"),
            NO_NOISE,
        )
        for day in closing:
            until = f"--until={START + day * DAY:%Y-%m-%dT%H:%M:%SZ}"
            said = slackwater("run", "spec.yaml", until, REPEATED)
            assert said.code == 0, said.err
        numbers.append(told(published(folder, "estimates")))

    in_parts, at_once = numbers
    exact = wanted(changelog())
    assert in_parts == at_once
    assert at_once != exact
    third = [key for key in exact if key[:2] == ("level", START + 3 * DAY)]
    assert [at_once[key] for key in third] == [exact[key] for key in third]


def test_windows_with_weights_have_separate_noise_night_by_night(tmp_path: Path, capsys) -> None:
    """The numbers are exact except for the noise, whose scale is published with each of them."""
    slackwater = CommandLine(tmp_path, capsys)
    write(tmp_path / "data" / "stays.parquet", changelog())
    weighted = ("\nstrategy: disjoint", "\nstrategy: {direct: {weights: [1, 27]}}")
    write_spec(tmp_path, SPAN, weighted, ("publish: [level, change]", "publish: [level]"), ("1.0", "1.0e12"))

    for day in (2, WINDOWS):
        said = slackwater("run", "spec.yaml", "--until", f"{START + day * DAY:%Y-%m-%dT%H:%M:%SZ}")
        assert said.code == 0, said.err

    exact = wanted(changelog())
    assert told(published(tmp_path, "estimates")) == {key: exact[key] for key in exact if key[0] == "level"}
    nodes = published(tmp_path, "nodes").to_pylist()
    scale = {(node["node_end"] - START) // DAY: node["scale"] * 1e12 for node in nodes}
    assert max(sum(1 / scale[day + n] for n in range(3)) for day in (1, 2, 3)) == pytest.approx(1, rel=1e-6)
    assert scale[2] == pytest.approx(scale[4], rel=1e-6)
    assert scale[3] > 2 * scale[2]  # the first day is in one run alone, and takes what that has left


def test_every_claim_states_the_span(tmp_path: Path, capsys) -> None:
    slackwater = CommandLine(tmp_path, capsys)
    write(tmp_path / "data" / "stays.parquet", changelog())
    write_spec(tmp_path, SPAN, AUTO)

    planned = slackwater("plan", "spec.yaml")
    ran = slackwater("run", "spec.yaml", "--until", "2026-01-03T00:00:00Z")
    ledger = slackwater("ledger", "spec.yaml")
    metrics = slackwater("metrics", "spec.yaml")
    evaluated = slackwater("evaluate", "spec.yaml")

    for said in (planned, ran, ledger, metrics, evaluated):
        assert said.code == 0, said.err
    says = "for everything that one privacy unit does in any 3 days"
    assert says in " ".join(planned.out.split())
    assert says in json.loads((tmp_path / "public" / "manifest.json").read_text())["statement"]
    assert json.loads((tmp_path / "public" / "plan.json").read_text())["promise"]["protects"] == {
        "kind": "span",
        "length": 3 * 86_400_000_000,
    }
    assert "in any 3 days" in ledger.out
    assert "direct" in planned.out


def test_evaluate_shows_events_and_entries_beyond_the_bound_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stays = [
        ("first", 0.5, 2.5, "p", "a"),
        ("second", 0.6, 1.5, "p", "a"),
        *((f"v{n}", 1.2, 1.4, "q", "b") for n in (1, 2)),
    ]
    lines = ["stay,at,patient,now_ward"]
    for stay, comes, goes, patient, ward in stays:
        lines += [f"{stay},{clinic.START + at * DAY},{patient},{now}" for at, now in ((comes, ward), (goes, ""))]
    (tmp_path / "stays.csv").write_text("\n".join(lines))
    spec = clinic.spec(".", ".", privacy="protects: {span: 3d}, constraint: {entries: 1}", days=3, delta=0.0)
    (tmp_path / "spec.yaml").write_text(changed("publish: [level]", "publish: [level, change, entered, left]", spec))

    said = CommandLine(tmp_path, capsys)("evaluate", "spec.yaml", "--runs=1", "--json")

    assert said.code == 0, said.err
    (query,) = json.loads(said.out)["queries"]
    # Of three windows and two wards: `second` counts at no end of a day, and p arrives once on the first day.
    # One of the two visits of q counts.
    squares = {number["kind"]: number["bounding_rmse"] ** 2 * 6 for number in query["numbers"]}
    assert squares == pytest.approx({"level": 1, "change": 1 + 1, "entered": 1 + 1, "left": 1})
