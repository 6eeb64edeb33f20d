"""The command line: what is a usage error, where results and errors go, and that one JSON document is all of stdout."""

import json
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.specs import CommandLine, Said, changelog, write, write_spec


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write_spec(tmp_path)
    return CommandLine(tmp_path, capsys)


USAGE = [
    ([], "COMMAND: missing; see `slackwater --help`"),
    (["plan"], "SPEC: missing; see `slackwater plan --help`"),
    (["local", "plan"], "SPEC: missing; see `slackwater local plan --help`"),
    (["smooth", "public"], "-o: missing; see `slackwater smooth --help`"),
    (["run", "spec.yaml", "--until"], "--until: expected one argument; see `slackwater run --help`"),
    (["pln", "spec.yaml"], "COMMAND: expected one of plan, run, "),
    (["completion", "csh"], "shell: expected one of bash, zsh, fish, not 'csh'; did you mean 'zsh'?"),
    (["run", "spec.yaml", "--shards=0"], "--shards: expected a whole number of at least 1, not '0'"),
    (["run", "spec.yaml", "--shards=two"], "--shards: expected a whole number of at least 1, not 'two'"),
    (["evaluate", "spec.yaml", "--runs=-1"], "--runs: expected a whole number of at least 1, not '-1'"),
    (["simulate", "spec.yaml", "--seed=-1"], "--seed: expected a whole number of at least 0, not '-1'"),
    (["simulate", "spec.yaml", "--arrivals=many"], "--arrivals: expected a number above 0, not 'many'"),
    (["simulate", "spec.yaml", "--stay=weekly"], "--stay: expected a duration such as "),
    (["run", "spec.yaml", "--until=2026-01-03"], "--until: the time has no zone; write 2026-01-03T00:00:00Z for UTC"),
    (["run", "spec.yaml", "--until=soon"], "--until: expected a time such as 2013-01-01T00:00:00Z, not 'soon'"),
]


@pytest.mark.parametrize(("arguments", "line"), USAGE, ids=[line for _, line in USAGE])
def test_wrong_usage_is_one_line_and_ends_with_code_2(slackwater: CommandLine, arguments: list[str], line: str) -> None:
    said = slackwater(*arguments)

    assert (said.code, said.out, len(said.lines)) == (2, "", 1)
    assert said.err.startswith(f"slackwater: {line}")


REFUSED = [
    (["plan", "spec.yaml", "--runner=FlinkRunner"], "--runner=FlinkRunner: plan runs no pipeline, so it takes no"),
    (["plan", "spec.yaml", "--shards=2"], "--shards=2: plan runs no pipeline"),
    (["run", "spec.yaml", "--shard=2"], "--shard: "),
    (["run", "spec.yaml", "another.yaml"], "another.yaml: "),
    (["evaluate", "spec.yaml", "--rnus=3"], "--rnus: "),
    (["plan", "nowhere.yaml"], "nowhere.yaml: "),
]


@pytest.mark.parametrize(("arguments", "line"), REFUSED, ids=[" ".join(a) for a, _ in REFUSED])
def test_invalid_arguments_are_reported_in_one_line(slackwater: CommandLine, arguments: list[str], line: str) -> None:
    said = slackwater(*arguments)

    assert (said.code, said.out) == (2, "")
    assert len(said.lines) == 1
    assert said.err.startswith(f"slackwater: {line}")


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["run", "--help"], ["evaluate", "--help"]])
def test_help_is_printed_on_stdout(slackwater: CommandLine, arguments: list[str]) -> None:
    said = slackwater(*arguments)

    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("usage: slackwater")
    assert all(
        command in said.out for command in (arguments[:1] if len(arguments) > 1 else ["plan", "run", "evaluate"])
    )


def test_plan_needs_no_data_and_leaves_no_trace(slackwater: CommandLine) -> None:
    said = slackwater("plan", "spec.yaml")

    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("wards: epsilon 1, delta 0\n")
    assert [path.name for path in slackwater.folder.iterdir()] == ["spec.yaml"]


def test_json_is_all_of_stdout(slackwater: CommandLine) -> None:
    said = slackwater("plan", "spec.yaml", "--json")

    assert (said.code, said.err) == (0, "")
    document = json.loads(said.out)
    assert document["release"] == "wards"
    assert document["windows"] == 5
    assert document["loss"]["epsilon"] == pytest.approx(1.0)


def test_plan_reckons_with_the_windows_until_a_given_time(slackwater: CommandLine) -> None:
    def windows(said: Said) -> int:
        return int(json.loads(said.out)["windows"])

    assert windows(slackwater("plan", "spec.yaml", "--json", "--until=2026-01-03T23:00:00Z")) == 2
    assert windows(slackwater("plan", "spec.yaml", "--json", "--until=2030-01-01T00:00:00Z")) == 5


@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_before_the_first_window_has_closed_nothing_is_due(slackwater: CommandLine, command: str) -> None:
    said = slackwater(command, "spec.yaml", "--until=2026-01-01T23:59:59Z")

    assert (said.code, said.err) == (0, "")
    assert said.out == "wards: nothing is due, no window has closed yet\n"
    assert [path.name for path in slackwater.folder.iterdir()] == ["spec.yaml"]


@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_windows_that_are_not_over_are_refused_with_the_two_times(slackwater: CommandLine, command: str) -> None:
    write_spec(slackwater.folder, ("  until: 2026-01-06T00:00:00Z\n", ""))
    before = datetime.now(UTC).replace(microsecond=0)

    said = slackwater(command, "spec.yaml", "--until=2150-01-01T00:00:00Z")

    assert (said.code, said.out, len(said.lines)) == (2, "", 1)
    assert said.err.startswith("slackwater: --until 2150-01-01T00:00:00Z: windows up to then are not over")
    (clock,) = re.findall(r"it is (\S+Z) by this machine's clock", said.err)
    assert before <= datetime.fromisoformat(clock) <= datetime.now(UTC)
    assert [path.name for path in slackwater.folder.iterdir()] == ["spec.yaml"]


@pytest.mark.slow
def test_a_future_time_is_accepted_if_it_closes_no_future_window(slackwater: CommandLine) -> None:
    """The schedule has ended, or the open window continues beyond the moment."""
    write(slackwater.folder / "data/all.parquet", changelog())

    said = slackwater("run", "spec.yaml", "--until=2150-01-01T00:00:00Z", "--json")

    assert (said.code, json.loads(said.out)["windows"]) == (0, 5)


@pytest.mark.parametrize("flags", [[], ["--until=2150-01-01T23:00:00Z"]])
def test_before_the_schedule_starts_nothing_is_due(slackwater: CommandLine, flags: list[str]) -> None:
    write_spec(slackwater.folder, ("start: 2026-01-01", "start: 2150-01-01"), ("  until: 2026-01-06T00:00:00Z\n", ""))

    said = slackwater("run", "spec.yaml", *flags)

    assert (said.code, said.out) == (0, "wards: nothing is due, no window has closed yet\n")
    assert slackwater("plan", "spec.yaml", "--until=2150-03-01T00:00:00Z").code == 0  # which may look ahead


IN_ADVANCE = (
    ("epsilon: 1.0", "epsilon: 1.0\n  delta: 1.0e-9\n  mechanism: gaussian"),
    ("strategy: disjoint", "strategy: {tree: {branching: 2, height: 3, refine: least_squares}}"),
)


@pytest.mark.slow
def test_the_claim_states_that_data_must_not_react_if_this_applies(slackwater: CommandLine) -> None:
    write(slackwater.folder / "data/all.parquet", changelog())
    write_spec(slackwater.folder, *IN_ADVANCE)

    said = [slackwater(command, "spec.yaml").out for command in ("plan", "run", "ledger")]

    statement = json.loads((slackwater.folder / "public/manifest.json").read_text())["statement"]
    for told in (*said, statement):
        assert (
            "The data do not react to what is published: Gaussian noise that is used in advance, as for query beds "
            in (" ".join(told.split()))
        )


def test_mechanisms_without_a_proof_for_reacting_people_are_refused(slackwater: CommandLine) -> None:
    write_spec(slackwater.folder, *IN_ADVANCE, ("constraint:", "adaptive_data: true\n  constraint:"))

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.out, len(said.lines)) == (2, "", 1)
    assert "least_squares uses Gaussian noise in advance" in said.err


def test_an_interruption_is_one_line(slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipelines.common.arguments.load", interrupted)

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.out) == (4, "")
    assert said.err == "slackwater: interrupted; run it again to complete it: published windows stay\n"


def test_an_unforeseen_error_is_one_line_without_its_text(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        int("s3cret")

    monkeypatch.setattr("pipelines.common.arguments.load", failing)

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.out) == (4, "")
    assert re.fullmatch(
        r"slackwater: run failed with ValueError in pipelines\.[\w.]+:\d+, a fault of the program; report it with this "
        r"line\n",
        said.err,
    )


def test_a_full_disk_under_stdout_is_one_line(slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        said = slackwater("plan", "spec.yaml")

    free = "No space left on device; free space, then run the command again\n"
    assert (said.code, said.err) == (4, f"slackwater: the output of the command, which is done: {free}")
