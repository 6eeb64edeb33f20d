"""Make a release with a history of nightly runs, by one run over all days.

    python -m benchmarks.nights.history FOLDER DAYS WARDS STRATEGY

`slackwater run` releases all days at once. Its files become those of the last of `DAYS` epochs; the others get files of
a few bytes. All epochs are committed through the store, so commits, files and sources are as many as after `DAYS`
nights, and the state is that of the whole history.
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.nights.setting import DAY, START, path_of, spec, until, write_day
from pipelines.cli import main as slackwater
from pipelines.spec.times import microseconds
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from transforms.aggregation.shard_state import STATE
from transforms.release.release import ESTIMATES, NODES


def make(folder: Path, days: int, wards: int, strategy: str) -> None:
    """Make the release with its history.

    Args:
        folder: of the release; it is removed first.
        days: number of epochs.
        wards: number of cells of both queries.
        strategy: as in a spec.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for day in range(days):
        write_day(folder, day, wards)
    (folder / "spec.yaml").write_text(spec(folder, wards, strategy), encoding="utf-8")
    if slackwater(["run", str(folder / "spec.yaml"), until(days)]) != 0:
        raise SystemExit("the history could not be released")
    cut_up(folder, days)


def cut_up(folder: Path, days: int) -> None:
    """Replace the release of one epoch by one with `days` epochs."""
    whole = folder / "whole"
    whole.mkdir()
    for side in ("public", "private"):
        (folder / side).rename(whole / side)
    (made,) = Store(str(whole / "public"), str(whole / "private")).commits()
    store = Store(str(folder / "public"), str(folder / "private"))
    sources = {Path(source.path): source for source in made.sources}
    names = [name.replace(f"-{made.attempt}", "") for name in made.files]
    for day in range(days):
        record = replace(
            made,
            epoch=day + 1,
            released=day,
            windows=day + 1,
            start=microseconds(START + day * DAY),
            until=microseconds(START + (day + 1) * DAY),
            sources=(sources[path_of(folder, day)],),
        )
        commit(store, record, whole if day == days - 1 else None, names)
        if day % 50 == 0:
            store.clean()
    store.show()
    store.clean()
    shutil.rmtree(whole)


def commit(store: Store, record: Commit, whole: Path | None, names: list[str]) -> None:
    """Commit an epoch with the files of the whole release, or with small ones of the same names.

    Args:
        store: of the new release.
        record: of the epoch.
        whole: folder of the release of one epoch; None for small files.
        names: of the small files.
    """
    attempt = store.begin(record.epoch)
    target = Path(attempt.folder)
    if whole is not None:
        source = whole / "private/attempts" / record.attempt
        for side in ("nodes", "estimates", STATE):
            shutil.copytree(source / side, target / side)
    else:
        for name in names:
            (target / name).parent.mkdir(exist_ok=True)
            (target / name).write_bytes(b"a night")
    made = {side: [file.name for file in (target / side).glob("*")] for side in (NODES, ESTIMATES, STATE)}
    store.commit(attempt, record, made)
    store.show()


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
