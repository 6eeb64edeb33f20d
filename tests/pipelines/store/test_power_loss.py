"""The release store on disks that forget what was not flushed: kills at every step, then the power goes."""

import os
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.audit.power import NAMES, Disk, Survives, forget
from pipelines.sanitised.store import NAMES as NAMES_SIDE
from pipelines.sanitised.store import NAMES_FILE, RECORDS, Sanitised, names_done, sanitised_store
from pipelines.store.attempt import Attempt
from pipelines.store.store import EpochStore, Store
from privacy.accounting.accounting import Budget
from tests.e2e.specs import contents
from tests.pipelines.store.releases import planned, record
from tests.pipelines.store.test_compaction import rows
from tests.processes import FORKED, alone
from tests.searches import TIMES
from transforms.common.sinks import make_folder, write_table

pytestmark = [FORKED, pytest.mark.slow]


EPOCHS = 2
MADE = ("nodes/a-net-00000.jsonl", "estimates/a-net-00000.jsonl", "state/shard-0.parquet")


def store_on(folder: Path) -> tuple[Store, tuple[Disk, Disk]]:
    """A release whose sides are on two file systems, in folders that are still to be made."""
    public, private = (Disk(folder / side, folder / f"{side} on disk") for side in ("public", "private"))
    for disk in (public, private):
        disk.root.mkdir(parents=True)
        disk.all_flushed()
    return Store(str(public.root / "of/wards"), str(private.root / "of/wards")), (public, private)


def draw(attempt: Attempt, content: bytes) -> None:
    """Write files like a worker, which flushes nothing."""
    for name in MADE:
        path = Path(attempt.folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content + b" " + name.encode())


def finish(store: Store, content: bytes) -> None:
    """Do the steps of a run, which may be repeated: show committed epochs and sample the others."""
    release = store.open()
    if release is not None:
        store.show()
    for epoch in range(1 if release is None else len(release.commits) + 1, EPOCHS + 1):
        attempt = store.begin(epoch)
        draw(attempt, content)
        store.commit(attempt, record(epoch), planned(MADE))
        store.show()
        store.clean()
    store.clean()


def run(work: Callable[[], object], disks: tuple[Disk, Disk], dies_after: int | None, told: Path | None = None) -> int:
    """Do work in a separate process; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            forget(disks, dies_after=dies_after, told=told)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def steps(call: str = "") -> list[int]:
    """After how many calls a run dies: each time that it has just changed a name, or made some one call."""
    with tempfile.TemporaryDirectory() as folder:
        store, disks = store_on(Path(folder))
        finish(Store(f"{folder}/a", f"{folder}/b"), b"")  # what a process needs once, here instead of in each child
        assert run(partial(finish, store, b""), disks, None, told=Path(folder, "told")) == 0
        told = Path(folder, "told").read_text().split()
    return [number for number, name in enumerate(told, start=1) if name == call or (not call and name in NAMES)]


def seen(store: Store) -> dict[str, bytes]:
    """Return the files that a reader of the public side has seen."""
    public = contents(Path(store.public))
    return {name: content for name, content in public.items() if not Path(name).name.startswith(".")}


def loss(
    folder: Path, first: int, second: int | None, public: Survives, private: Survives, *, made: bool = False
) -> None:
    """A run is killed at a step, a second one continues and may be killed, power is lost, a third one continues.

    Args:
        made: whether the folders of the release have long been there.
    """
    store, disks = store_on(folder / f"{first}-{second}")
    for disk, side in zip(disks, (store.public, store.private), strict=True):
        if made:
            Path(side).mkdir(parents=True)
            disk.all_flushed()
    assert run(partial(finish, store, b"first"), disks, first) == -9
    told = seen(store)
    assert run(partial(finish, store, b"second"), disks, second) in (0, -9)
    told |= seen(store)
    for disk, chance in zip(disks, (public, private), strict=True):
        disk.lose_power(chance)
    assert run(partial(finish, store, b"third"), disks, None) == 0, (first, second)
    left = seen(store)
    tables = [name for name in told if name.startswith(("nodes/", "estimates/"))]
    assert {name: left.get(name) for name in tables} == {name: told[name] for name in tables}, (first, second)
    release = Store(store.public, store.private).open()
    assert release is not None
    assert release.shown == len(release.commits) == EPOCHS
    listed = {name for commit in release.commits for name in commit.files}
    assert left.keys() == {*listed, "manifest.json", "spec.yaml", "plan.json"}, (first, second)


def nothing_survives() -> bool:
    return False


def everything_survives() -> bool:
    return True


def something_survives() -> bool:
    return random.random() < 0.5


def by_chance(folder: Path, losses: int, public: Survives, private: Survives) -> None:
    every = steps()
    for number in range(losses):  # the same two steps may come twice
        loss(folder / str(number), random.choice(every), random.choice(every), public, private)


@pytest.mark.hypothesis  # `make search` selects by this mark
def test_power_loss_after_a_kill_at_any_step_loses_no_published_file(tmp_path: Path) -> None:
    """The public side keeps all, the private side what was flushed, also of the folders that the first run made.

    At every second step; `make search` tries each.
    """
    alone(at_any_step, tmp_path)


def at_any_step(folder: Path) -> None:
    every = steps()
    assert len(every) > 20
    for step in every[:: 2 if TIMES == 1 else 1]:
        loss(folder, step, None, everything_survives, nothing_survives)


def test_power_loss_while_a_found_commit_is_published_leads_to_no_second_draw(tmp_path: Path) -> None:
    """The first run dies before its commit is on the disk, the second one finds it and begins to show its files."""
    alone(while_it_is_published, tmp_path)


def while_it_is_published(folder: Path) -> None:
    _, link = steps("link")
    for step in steps()[:10]:
        loss(folder, link, step, everything_survives, nothing_survives, made=True)


@pytest.mark.parametrize(
    ("public", "private"),
    [(nothing_survives, everything_survives), (something_survives, something_survives)],
    ids=["of the public side", "of both sides"],
)
def test_power_loss_after_two_kills_leads_to_no_second_sample_and_loses_nothing(
    tmp_path: Path, public: Survives, private: Survives
) -> None:
    alone(by_chance, tmp_path, 6, public, private)


def test_power_loss_while_epochs_are_compacted_loses_no_row(tmp_path: Path) -> None:
    """It dies when the record that names the joined files has a name, or later; the public side loses all it can."""
    alone(while_epochs_are_joined, tmp_path)


def while_epochs_are_joined(folder: Path) -> None:
    def finished(name: str) -> tuple[Store, tuple[Disk, Disk]]:
        store, disks = store_on(folder / name)
        finish(store, b"row")
        for disk in disks:
            disk.all_flushed()
        return store, disks

    whole, disks = finished("whole")
    assert run(whole.compact, disks, None, folder / "told") == 0
    calls = (folder / "told").read_text().split()
    named = len(calls) - calls[::-1].index("link")
    after = [number for number, name in enumerate(calls, start=1) if number >= named and name in NAMES]
    for step in (*after[:3], len(calls)):
        store, disks = finished(str(step))
        before = rows(store)
        assert run(store.compact, disks, step) == -9
        disks[0].lose_power(nothing_survives)
        assert run(partial(finish, store, b"another"), disks, None) == 0, step
        assert rows(store) == before, step


def sanitise(store: EpochStore[Sanitised], content: bytes) -> None:
    """What `slackwater sanitise` does with one record, whose name is its noise here."""
    commits = store.commits()
    store.open()
    store.show()
    store.clean()
    if names_done(store, commits):
        return
    attempt = store.begin(1)
    for side, name in ((RECORDS, "part.csv"), (NAMES_SIDE, NAMES_FILE)):
        make_folder(f"{attempt.folder}/{side}")
        write_table(pa.table({"name": [content.decode()]}), f"{attempt.folder}/{side}/{name}", format_=FORMATS[side])
    done = Sanitised(
        release="r", epoch=1, spec_sha256="", plan="{}", statement="", loss=Budget(epsilon=1.0), records=1, left_out=0
    )
    store.commit(attempt, done, {RECORDS: ["part.csv"], NAMES_SIDE: [NAMES_FILE]})
    store.show()


FORMATS = {RECORDS: "csv", NAMES_SIDE: "parquet"}


def test_power_loss_while_sanitised_records_are_published_leads_to_no_second_sample(tmp_path: Path) -> None:
    """The first run dies as soon as its commit has a name, the second one while it shows it, and the power goes."""
    alone(while_records_are_shown, tmp_path)


def while_records_are_shown(folder: Path) -> None:
    def on_disks(name: str) -> tuple[EpochStore[Sanitised], tuple[Disk, Disk]]:
        release, disks = store_on(folder / name)
        return sanitised_store(release.public, release.private), disks

    sanitise(sanitised_store(f"{folder}/a", f"{folder}/b"), b"warm")
    whole, disks = on_disks("whole")
    assert run(partial(sanitise, whole, b"none"), disks, None, folder / "told") == 0
    calls = (folder / "told").read_text().split()
    (link,) = (number for number, name in enumerate(calls, start=1) if name == "link")
    for second in (5, 15, None):
        store, disks = on_disks(str(second))
        assert run(partial(sanitise, store, b"first"), disks, link) == -9
        run(partial(sanitise, store, b"second"), disks, second)
        told = contents(Path(store.public)) if Path(store.public).exists() else {}
        disks[1].lose_power(nothing_survives)
        assert run(partial(sanitise, store, b"third"), disks, None) == 0
        left = contents(Path(store.public))
        seen_before = {name: content for name, content in told.items() if name.startswith(f"{RECORDS}/part")}
        assert {name: left[name] for name in seen_before} == seen_before
        assert len([name for name in left if name.startswith(f"{RECORDS}/part")]) == 1
        if second is None:
            assert any(b"first" in content for content in seen_before.values())
