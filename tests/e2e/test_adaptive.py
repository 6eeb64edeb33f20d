"""Adaptively published levels over killed runs: later runs continue exactly from the published levels."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.epochs.plans import committed_plan
from pipelines.spec.load import load
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from privacy.planning.document import digest
from privacy.planning.plan import Plan
from tests.e2e.specs import REPEATED, CommandLine, changelog, published, write, write_spec
from tests.e2e.test_streaming import ENDS, by_day
from transforms.release.sampled_chunk import SampledChunk

MAP = """\
  - name: ages
    measure: count
    by: {age: {from: 30, to: 70, step: 10}, ward: [a, b]}
    publish: [level]
    cells: {strategy: kdtree, height: 1}
    strategy: {adaptive: {policy: fixed, interval: 2d}}
"""
ADAPTIVE = (
    ("publish: [level, change]", "publish: [level]\n    strategy: {adaptive: {policy: dsat, samples: 4}}"),
    ("output:", "  - {name: moves, measure: count, publish: [change]}\n" + MAP + "output:"),
    ("private: private", "private: private\n  format: jsonl"),
)


@pytest.fixture
def release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Return a release whose first day has landed."""
    (tmp_path / "data").mkdir()
    write_spec(tmp_path, *ADAPTIVE)
    return CommandLine(tmp_path, capsys)


def night(slackwater: CommandLine, day: int) -> int:
    write(slackwater.folder / f"data/day-{day}.parquet", by_day(changelog())[day])
    return slackwater("run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}", REPEATED).code


def beds(folder: Path) -> pa.Table:
    return told(folder, "beds")


def told(folder: Path, query: str) -> pa.Table:
    rows = published(folder, "estimates")
    return rows.filter(pa.compute.equal(rows["query"], query)).sort_by("window_end")


def goes_on_from_what_is_published(folder: Path) -> bool:
    """Whether the committed state is that of the decisions and the noise that are public."""
    store, spec = Store(str(folder / "public"), str(folder / "private")), load(str(folder / "spec.yaml"))
    *_, last = commits = store.commits()
    path = store.attempts.state_paths(last)["release-0-net-00000.parquet"]
    plan = committed_plan(spec, commits)
    held = SampledChunk(plan.parts[0]).opened(Path(path).read_bytes(), windows=last.windows, plan=digest(plan))
    assert held.carry is not None
    rows = beds(folder).to_pylist()
    ends = sorted({row["window_end"] for row in rows})
    sampled = {ends.index(row["window_end"]) for row in rows if row["sampled"]}
    values = {row["ward"]: row["value"] for row in rows}  # the last ones
    published_last = [values[ward] for ward in ("a", "b", "other")]
    split = sketched_last(store, last, committed_plan(spec, commits))
    assert [row["value"] for row in told(folder, "ages").to_pylist()[-12:]] == pytest.approx(split)
    return (sampled, published_last) == ({window for window, _ in held.carry.spent}, held.carry.published.tolist())


def sketched_last(store: Store, last: Commit, plan: Plan) -> list[float]:
    """Return the cells of the sketch from which the committed state of a kd-tree continues."""
    (part,) = (part for part in plan.parts if part.query == 2)
    content = Path(store.attempts.state_paths(last)["release-2-net-00000.parquet"]).read_bytes()
    held = SampledChunk(part).opened(content, windows=last.windows, plan=digest(plan))
    assert held.carry is not None
    return part.over.read(held.carry.published).cells.tolist()


def dies(*_: object) -> None:
    raise OSError("no more")


def test_a_dead_run_makes_no_decision_that_differs_from_another_runs(release, monkeypatch):
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
    """Covers Gaussian noise too, which is on a finer grid."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(spec.read_text().replace("epsilon: 1.0", "epsilon: 1.0\n  delta: 1.0e-9\n  mechanism: gaussian"))
    assert night(release, 0) == 0
    document = json.loads((tmp_path / "public/plan.json").read_text())
    assert (document["mechanism"], document["accounting"]) == ("gaussian", "zcdp")
    assert document["queries"][0]["parts"][0]["scales"]["noise"] == "gaussian"
    assert night(release, 1) == 0  # continues with it

    assert {row["query"] for row in published(tmp_path, "nodes").to_pylist()} == {"moves"}
    both = json.loads(release("answer", "public", "--query", "beds", "--where", "ward <> 'b'", "--json").out)["answers"]
    assert len(both) == 2
    for row in both:
        cells = [one for one in beds(tmp_path).to_pylist() if str(one["window_end"])[:10] == row["window_end"][:10]]
        summed = sum(one["value"] for one in cells if one["ward"] != "b")
        assert row["value"] == pytest.approx(summed)
        alone = cells[0].get("stddev")
        assert row["stddev"] == (None if alone is None else pytest.approx(alone * 2**0.5))
    assert both[0]["stddev"] is not None
    spread = release("answer", "public", "--query", "ages")
    assert "share counts of regions" in spread.err
    rows = published(tmp_path, "estimates").to_pylist()
    assert {(row["query"], row["sampled"]) for row in rows} >= {("beds", True), ("moves", None)}
    said = release("smooth", "public", "-o", "smoothed.csv")
    assert said.code == 0, said.err
    assert "left out: beds, level: the data decide" in said.out
