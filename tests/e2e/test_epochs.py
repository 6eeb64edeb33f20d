"""A release over many epochs has the same numbers as in one run, each published once and never changed."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from pipelines.epochs import epoch
from pipelines.run import operation as run
from pipelines.store.store import Store
from tests.e2e.specs import CommandLine, changelog, contents, files_under, published, write, write_spec
from tests.pipelines.store.releases import attempt_at, planned
from transforms.common import sinks
from transforms.common.sinks import write_table

FALSE_ALARM = 1e-6
START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 12
WEEKLY = "publish: [level, change, entered, left, {sliding: 4d, every: 2d}]"


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def prepare(slackwater: CommandLine, strategy: str, *changes: tuple[str, str]) -> None:
    write_spec(
        slackwater.folder,
        ("until: 2026-01-06T00:00:00Z", f"until: {(START + timedelta(days=DAYS)).isoformat()}"),
        ("publish: [level, change]", WEEKLY),
        ("strategy: disjoint", f"strategy: {strategy}"),
        *changes,
    )


def deliver(slackwater: CommandLine, since: datetime | None, until: datetime) -> None:
    """Write the file of changes between two times."""
    rows, known = [], set()
    for row in changelog(80):
        # Nobody is there before the first row: who is first seen later, with a before image, enters where that is.
        new = {} if row["stay"] in known else {"before_ward": None, "before_age": None}
        known.add(row["stay"])
        if (since is None or row["at"] >= since) and row["at"] < until:
            rows.append({**row, **new})
    write(slackwater.folder / "data" / f"{until:%m-%d-%H}.parquet", rows)


def until(moment: datetime) -> str:
    return f"--until={moment.isoformat()}"


def nights(slackwater: CommandLine, moments: list[datetime]) -> list[dict[str, bytes]]:
    """Run after run over what has come since; what is public after each."""
    seen, since = [], None
    for moment in moments:
        deliver(slackwater, since, moment)
        said = slackwater("run", "spec.yaml", until(moment))
        assert said.code == 0, said.err
        seen.append(contents(slackwater.folder / "public"))
        since = moment
    return seen


MOMENTS = [START + timedelta(days=d, hours=h) for d, h in ((1, 5), (2, 0), (2, 20), (5, 3), (6, 23), (9, 1), (12, 4))]


def test_a_run_without_a_due_window_prints_so_and_changes_no_byte(slackwater: CommandLine) -> None:
    prepare(slackwater, "auto")
    (public,) = nights(slackwater, [START + timedelta(days=3)])

    said = slackwater("run", "spec.yaml", until(START + timedelta(days=3, hours=23)))

    assert (said.code, said.out) == (0, "wards: nothing is due, 3 windows closed so far, all are published\n")
    assert contents(slackwater.folder / "public") == public


def test_a_run_without_a_due_window_removes_files_of_a_dead_run(slackwater: CommandLine) -> None:
    """One that had published its epoch and died before it removed what others had left."""
    prepare(slackwater, "disjoint")
    nights(slackwater, [START + timedelta(days=3)])
    attempts = slackwater.folder / "private/attempts"
    (kept,) = attempts.iterdir()
    write(attempts / "000001-0123456789abcdef/state/units-00000.parquet", changelog(1))

    assert slackwater("run", "spec.yaml", until(START + timedelta(days=3))).code == 0

    assert list(attempts.iterdir()) == [kept]


@pytest.mark.parametrize(("module", "stalls_before"), [(epoch, "settled_by"), (run, "run_release")])
def test_a_run_that_stalls_while_others_continue_names_the_winner(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, module: ModuleType, stalls_before: str
) -> None:
    """By then the state that it would start from is no longer needed by anybody, and is removed."""
    prepare(slackwater, "disjoint")
    nights(slackwater, [START + timedelta(days=1)])
    store = Store(str(slackwater.folder / "public"), str(slackwater.folder / "private"))
    (first,) = store.commits()
    deliver(slackwater, START + timedelta(days=1), START + timedelta(days=2))
    go_on = getattr(module, stalls_before)

    def stall(*arguments: object, **named: object) -> object:
        for number in (2, 3):
            at, length = first.until + (number - 2) * (first.until - first.start), first.until - first.start
            store.commit(
                attempt_at(store, number),
                replace(first, epoch=number, released=number - 1, windows=number, start=at, until=at + length),
                planned(),
            )
            store.show()
        assert store.clean() == [first.attempt]
        return go_on(*arguments, **named)

    monkeypatch.setattr(module, stalls_before, stall)
    said = slackwater("run", "spec.yaml", until(START + timedelta(days=2)))

    assert (said.code, said.out) == (1, "")
    _, second, third = store.commits()
    assert f"another run, attempt {second.attempt}, committed epoch 2 at {second.committed_at}" in said.err
    assert "restore" not in said.err
    assert {path.name for path in (slackwater.folder / "private/attempts").iterdir()} == {
        second.attempt,
        third.attempt,
    }


def test_all_rows_of_a_node_have_one_sample_even_if_a_repeated_step_writes_late(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every bundle runs twice, and nodes of the first time are written once more after the second, as by a worker that
    was given up and is not dead. Levels are sums of published nodes, also in the next epoch, from the state.
    """
    prepare(slackwater, "disjoint")
    first: dict[str, pa.Table] = {}
    writes: list[str] = []

    def write_late(table: pa.Table, path: str, *, format_: str) -> None:
        writes.append(path)
        write_table(first.setdefault(path, table) if "/nodes/" in path else table, path, format_=format_)

    monkeypatch.setattr(sinks, "write_table", write_late)
    for day, since in ((2, None), (5, START + timedelta(days=2))):
        deliver(slackwater, since, START + timedelta(days=day))
        said = slackwater("run", "spec.yaml", until(START + timedelta(days=day)), "--direct_runner_bundle_repeat=1")
        assert said.code == 0, said.err

    assert set(Counter(writes).values()) == {2}
    nodes, estimates = (published(slackwater.folder, side).to_pandas() for side in ("nodes", "estimates"))
    levels = estimates[estimates["kind"] == "level"]
    for ward in ("a", "b", "other"):
        told = nodes[(nodes["query"] == "beds") & (nodes["ward"] == ward)].sort_values("node_end")["noisy_value"]
        assert len(told) == 6
        own = levels[levels["ward"] == ward].sort_values("window_end")["value"]
        np.testing.assert_array_equal(own, np.cumsum(told)[1:])


def test_a_file_that_changed_after_it_was_read_is_named(slackwater: CommandLine) -> None:
    prepare(slackwater, "disjoint")
    (public,) = nights(slackwater, [START + timedelta(days=3)])
    (path,) = files_under(slackwater.folder / "data")
    write(path, changelog(3))

    said = slackwater("run", "spec.yaml", until(START + timedelta(days=4)))

    assert said.code == 3
    assert f"data/{path.name}: has changed since an earlier run read it" in said.err
    assert contents(slackwater.folder / "public") == public


def test_a_file_that_changes_while_it_is_read_is_named_and_nothing_is_published(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise rows of both contents would count, and no later run could tell which."""
    prepare(slackwater, "disjoint")
    deliver(slackwater, None, START + timedelta(days=3))
    (path,) = files_under(slackwater.folder / "data")
    read = run.run_release

    def changing(*arguments: object, **named: object) -> object:
        found = read(*arguments, **named)
        write(path, changelog(3))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(run, "run_release", changing)
        said = slackwater("run", "spec.yaml", until(START + timedelta(days=3)))

    assert said.code == 3
    assert f"data/{path.name}: has changed while it was read, so nothing new was published; write files" in said.err
    assert contents(slackwater.folder / "public") == {}
    assert not list((slackwater.folder / "private").glob("commits/*"))
    nights(slackwater, [START + timedelta(days=3)])


def test_a_file_that_was_read_may_be_archived(slackwater: CommandLine) -> None:
    prepare(slackwater, "disjoint")
    nights(slackwater, [START + timedelta(days=3)])
    files_under(slackwater.folder / "data")[0].unlink()
    deliver(slackwater, START + timedelta(days=3), START + timedelta(days=4))

    assert slackwater("run", "spec.yaml", until(START + timedelta(days=4))).code == 0


def test_another_spec_is_refused_and_the_difference_shown(slackwater: CommandLine) -> None:
    prepare(slackwater, "disjoint")
    (public,) = nights(slackwater, [START + timedelta(days=3)])
    spec = slackwater.folder / "spec.yaml"
    spec.write_text(spec.read_text().replace("at_most: 4", "at_most: 5"))

    said = slackwater("run", "spec.yaml", until(START + timedelta(days=4)))

    assert said.code == 1
    assert "-  constraint: {at_most: 4}" in said.err
    assert "+  constraint: {at_most: 5}" in said.err
    assert "--new-release NAME" in said.err
    assert contents(slackwater.folder / "public") == public


def test_state_of_another_version_of_the_program_is_refused_in_one_line(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(slackwater, "disjoint")
    [public] = nights(slackwater, [START + timedelta(days=2)])
    monkeypatch.setattr("pipelines.epochs.settled.STATE_VERSION", "99")

    said = slackwater("run", "spec.yaml", until(START + timedelta(days=3)))

    assert (said.code, said.out, len(said.lines)) == (1, "", 1)
    assert "settled.json: the state of units and noise is not of this version of the program" in said.err
    assert contents(slackwater.folder / "public") == public


def test_a_release_does_not_continue_without_its_unchanged_private_state(slackwater: CommandLine) -> None:
    """From the noise of an epoch before, the last one's would be drawn a second time."""
    prepare(slackwater, "disjoint")
    *_, public = nights(slackwater, [START + timedelta(days=2), START + timedelta(days=3)])
    deliver(slackwater, START + timedelta(days=3), START + timedelta(days=4))
    older, last = sorted((slackwater.folder / "private/attempts").iterdir())
    names = {path.name for path in (last / "state").iterdir()}
    assert {"settled.json", "release-0-net-00000.parquet"} < names

    for name in names:
        path, stale = last / "state" / name, (older / "state" / name).read_bytes()
        whole = path.read_bytes()
        for content in (whole[: len(whole) // 2], *({stale} - {whole}), None):
            path.unlink()
            if content is not None:
                path.write_bytes(content)
            said = slackwater("run", "spec.yaml", until(START + timedelta(days=4)))
            assert (said.code, said.out) == (1, "")
            assert f"{name}: missing, or not what epoch 2 left; restore the private folder" in said.err
            path.write_bytes(whole)
    assert contents(slackwater.folder / "public") == public
    assert slackwater("run", "spec.yaml", until(START + timedelta(days=4))).code == 0


def test_the_ledger_lists_the_published_windows(slackwater: CommandLine) -> None:
    prepare(slackwater, "disjoint")
    nights(slackwater, MOMENTS[:4])

    told = json.loads(slackwater("ledger", "spec.yaml", "--json").out)
    of_public = json.loads(slackwater("ledger", "public", "--json").out)
    assert of_public == {key: value for key, value in told.items() if key not in ("together", "apart")}
    assert "epoch" in slackwater("ledger", "public").out

    assert told["release"] == "wards"
    assert told["total"] == {"epsilon": pytest.approx(1.0), "delta": 0.0}
    assert [epoch["epoch"] for epoch in told["epochs"]] == [1, 2, 3]  # the third moment closed no window
    manifest = json.loads((slackwater.folder / "public/manifest.json").read_text())
    assert manifest["spec_sha256"] == told["spec_sha256"]
    assert 0 < told["spent"]["epsilon"] <= 1


def test_a_new_release_has_a_separate_spec_and_shows_the_sum_of_both_budgets(slackwater: CommandLine) -> None:
    prepare(slackwater, "disjoint")
    (public,) = nights(slackwater, [START + timedelta(days=3)])

    said = slackwater("run", "spec.yaml", "--new-release", "wards-2", until(START + timedelta(days=3)))

    assert said.code == 0, said.err
    assert all("Together they are (2, 0)-differentially private" in told for told in (said.out, said.err))
    assert "run spec-wards-2.yaml from now on" in said.out
    assert contents(slackwater.folder / "public") == public
    assert json.loads((slackwater.folder / "public-wards-2/manifest.json").read_text())["release"] == "wards-2"
    assert "nothing is due" in slackwater("run", "spec-wards-2.yaml", until(START + timedelta(days=3))).out
    again = slackwater("run", "spec.yaml", "--new-release", "wards-2")
    assert again.code == 2
    assert "already exists" in again.err
