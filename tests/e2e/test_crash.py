"""Runs killed at random moments and run again, in small; `python -m benchmarks.crash` does it hundreds of times."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.crash.checks import BrokenError, Watch, compare
from benchmarks.crash.setting import CLOSED, Place
from tests.processes import FORKED, program

pytestmark = FORKED

KILLS, NIGHTS = 2, 3

Files = dict[str, bytes]
Sides = tuple[Files, Files]
"""Public and private."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the benchmark in a separate process, since it forks runs; return the folder of its releases."""
    place = tmp_path_factory.mktemp("crash")
    folder = place / "out"
    flags = ("--no-faults", f"--kills={KILLS}", f"--nights={NIGHTS}", f"--folder={folder}")
    code, said = program("benchmarks.crash.__main__", *flags, folder=place)
    assert code == 0
    names, _, cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines())
    counts = dict(zip(names, cells, strict=True))
    assert (counts["store"], counts["kills"]) == ("local", f"{KILLS}")
    begun = sum(int(counts[phase]) for phase in ("at work", "sampled", "committed", "shown"))
    assert begun > KILLS / 4, said  # most are, but of runs that are finished or find nothing to do
    return folder


@pytest.fixture
def sides(folder: Path) -> Sides:
    place = Place(folder=folder / "local-0", nights=NIGHTS)
    return place.read("public"), place.read("private")


def finished(sides: Sides) -> Watch:
    """A watch that has seen a finished release and found no fault."""
    watch = Watch()
    standing = watch.look_at_end(*sides, windows=CLOSED[NIGHTS - 1])
    assert standing.committed == NIGHTS
    return watch


def test_a_release_whose_runs_were_killed_is_whole(folder: Path, sides: Sides) -> None:
    watch = finished(sides)
    whole = Place(folder=folder / "whole", nights=NIGHTS)
    at_once = Watch()
    at_once.look_at_end(whole.read("public"), whole.read("private"), windows=CLOSED[NIGHTS - 1])

    compare(watch, at_once, None)

    assert len(watch.estimates) > 50
    del watch.estimates[max(watch.estimates, key=str)]
    with pytest.raises(BrokenError, match="numbers differ from those of one run"):
        compare(watch, at_once, None)


def change_a_file(public: Files, private: Files) -> None:
    name = max(name for name in public if name.startswith("nodes/"))
    public[name] += b" "


def change_a_record(public: Files, private: Files) -> None:
    private["commits/000001.json"] += b" "


def lose_a_record(public: Files, private: Files) -> None:
    del private["commits/000001.json"]


def lose_an_epoch(public: Files, private: Files) -> None:
    manifest = json.loads(public["manifest.json"])
    del manifest["epochs"][-1]
    public["manifest.json"] = json.dumps(manifest).encode()


def show_what_is_not_committed(public: Files, private: Files) -> None:
    name = max(name for name in public if name.startswith("nodes/"))
    public[f"{name}-again.parquet"] = public[name]


def leave_an_attempt(public: Files, private: Files) -> None:
    private["attempts/000001-0123456789abcdef/run.json"] = b"{}"


def leave_a_draft(public: Files, private: Files) -> None:
    public["nodes/.draft"] = b""


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        (change_a_file, "a published file has changed"),
        (change_a_record, "a commit record has changed"),
        (lose_a_record, "a commit record has changed or is lost"),
        (lose_an_epoch, "the manifest has lost an epoch"),
        (show_what_is_not_committed, "public, but not committed"),
        (leave_an_attempt, "left of dead attempts: .'000001-0123456789abcdef'"),
        (leave_a_draft, "public, but not listed"),
    ],
)
def test_the_watch_reports_each_fault(sides: Sides, plant: Callable[[Files, Files], None], told: str) -> None:
    """A check that misses this fault would make the benchmark worthless."""
    watch = finished(sides)
    plant(*sides)

    with pytest.raises(BrokenError, match=told):
        watch.look_at_end(*sides, windows=CLOSED[NIGHTS - 1])


def test_the_watch_sees_a_second_draw(sides: Sides) -> None:
    """A file that is committed and shown, but holds nodes that an earlier one has told."""
    public, private = sides
    record = json.loads(private["commits/000002.json"])
    name, digest = next((n, d) for n, d in json.loads(private["commits/000001.json"])["files"].items() if "nodes/" in n)
    record["files"]["nodes/again.parquet"] = digest
    private["commits/000002.json"] = json.dumps(record).encode()
    public["nodes/again.parquet"] = public[name]

    with pytest.raises(BrokenError, match="published twice"):
        Watch().look(public, private)


def test_the_watch_sees_a_lost_window(sides: Sides) -> None:
    public, private = sides
    manifest = json.loads(public["manifest.json"])
    record = json.loads(private["commits/000002.json"])
    manifest["epochs"][1]["released"] = record["released"] = 0
    public["manifest.json"] = json.dumps(manifest).encode()
    private["commits/000002.json"] = json.dumps(record).encode()

    with pytest.raises(BrokenError, match="windows are lost or published twice"):
        Watch().look(public, private)


def test_the_watch_sees_a_ledger_that_forgets(sides: Sides) -> None:
    watch = finished(sides)
    epochs = json.loads(sides[0]["manifest.json"])["epochs"]
    watch.look_at_ledger({"epochs": epochs})

    with pytest.raises(BrokenError, match="the ledger differs from the commits"):
        watch.look_at_ledger({"epochs": epochs[:-1]})
