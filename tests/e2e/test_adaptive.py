"""Levels that are published adaptively, over runs that die: what goes on is what was published, to the last bit."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.epochs.plans import committed_plan
from pipelines.spec.load import load
from pipelines.store.store import Store
from privacy.planning.document import digest
from tests.e2e.specs import CommandLine, changelog, published, write, write_spec
from tests.e2e.test_streaming import ENDS, by_day
from transforms.release.level_state import level_from_bytes

ADAPTIVE = (
    ("publish: [level, change]", "publish: [level]\n    strategy: {adaptive: {policy: dsat, samples: 4}}"),
    ("output:", "  - {name: moves, measure: count, publish: [change]}\noutput:"),
    ("private: private", "private: private\n  format: jsonl"),
)


@pytest.fixture
def release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """One whose first day has landed."""
    (tmp_path / "data").mkdir()
    write_spec(tmp_path, *ADAPTIVE)
    return CommandLine(tmp_path, capsys)


def night(slackwater: CommandLine, day: int) -> int:
    write(slackwater.folder / f"data/day-{day}.parquet", by_day(changelog())[day])
    return slackwater("run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}").code


def beds(folder: Path) -> pa.Table:
    rows = published(folder, "estimates")
    return rows.filter(pa.compute.equal(rows["query"], "beds")).sort_by("window_end")


def goes_on_from_what_is_published(folder: Path) -> bool:
    """Whether the committed state is that of the decisions and the noise that are public."""
    store, spec = Store(str(folder / "public"), str(folder / "private")), load(str(folder / "spec.yaml"))
    *_, last = commits = store.commits()
    path = store.attempts.state_paths(last)["release-0-net-00000.parquet"]
    plan = digest(committed_plan(spec, commits))
    held = level_from_bytes(Path(path).read_bytes(), windows=last.windows, cells=3, plan=plan)
    assert held.carry is not None
    rows = beds(folder).to_pylist()
    ends = sorted({row["window_end"] for row in rows})
    sampled = {ends.index(row["window_end"]) for row in rows if row["sampled"]}
    values = {row["ward"]: row["value"] for row in rows}  # the last ones
    published_last = [values[ward] for ward in ("a", "b", "other")]
    return (sampled, published_last) == ({window for window, _ in held.carry.spent}, held.carry.published.tolist())


def dies(*_: object) -> None:
    raise OSError("no more")


def test_a_run_that_dies_decides_nothing_that_another_one_does_not(release, monkeypatch):
    """One dies with its noise sampled and nothing committed, one before it has shown what it committed."""
    folder = release.folder
    assert night(release, 0) == 0
    assert goes_on_from_what_is_published(folder)
    for step in ("commit", "show"):
        for day in (1, 2) if step == "commit" else (3,):
            with monkeypatch.context() as fails:
                fails.setattr(Store, step, dies)
                assert night(release, day) != 0
            assert night(release, day) == 0
            assert goes_on_from_what_is_published(folder)

    rows = beds(folder).to_pylist()
    assert len({(row["window_end"], row["ward"]) for row in rows}) == len(rows) == 4 * 3
    private = sorted(path.name for path in (folder / "private/commits").iterdir())
    assert private == [f"00000{epoch}.json" for epoch in (1, 2, 3, 4)]


def test_it_has_no_nodes_and_others_have(release, tmp_path):
    assert night(release, 0) == 0

    assert {row["query"] for row in published(tmp_path, "nodes").to_pylist()} == {"moves"}
    rows = published(tmp_path, "estimates").to_pylist()
    assert {(row["query"], row["sampled"]) for row in rows} == {("beds", True), ("moves", None)}
    said = release("smooth", "public", "-o", "smoothed.csv")
    assert said.code == 0, said.err
    assert "left out: beds, level: the data decide" in said.out
