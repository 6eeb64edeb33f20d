"""The command line: what is a usage error, where results and errors go, and that one JSON document is all of stdout."""

import json
from pathlib import Path

import pytest

from pipelines import commands
from tests.e2e.specs import CommandLine, Said, write_spec


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write_spec(tmp_path)
    return CommandLine(tmp_path, capsys)


USAGE = [
    ([], "the following arguments are required: COMMAND"),
    (["plan"], "the following arguments are required: SPEC"),
    (["publish", "spec.yaml"], "argument COMMAND: invalid choice: 'publish'"),
    (["run", "spec.yaml", "--shards=0"], "argument --shards: expected a whole number of at least 1, not '0'"),
    (["run", "spec.yaml", "--shards=two"], "argument --shards: expected a whole number of at least 1, not 'two'"),
    (["evaluate", "spec.yaml", "--runs=-1"], "argument --runs: expected a whole number of at least 1, not '-1'"),
    (["run", "spec.yaml", "--until=2026-01-03"], "argument --until: the time has no zone; write 2026-01-03T00:00:00Z"),
    (["run", "spec.yaml", "--until=soon"], "argument --until: expected a time such as 2013-01-01T00:00:00Z"),
]


@pytest.mark.parametrize(("arguments", "why"), USAGE, ids=[why for _, why in USAGE])
def test_wrong_usage_ends_with_code_2_and_says_why(slackwater: CommandLine, arguments: list[str], why: str) -> None:
    said = slackwater(*arguments)

    assert (said.code, said.out) == (2, "")
    assert why in said.lines[-1]


REFUSED = [
    (["plan", "spec.yaml", "--runner=FlinkRunner"], "--runner=FlinkRunner: plan runs no pipeline and takes no"),
    (["plan", "spec.yaml", "--shards=2"], "--shards=2: plan runs no pipeline"),
    (["run", "spec.yaml", "--shard=2"], "--shard: "),
    (["run", "spec.yaml", "another.yaml"], "another.yaml: "),
    (["evaluate", "spec.yaml", "--rnus=3"], "--rnus: "),
    (["plan", "nowhere.yaml"], "nowhere.yaml: "),
]


@pytest.mark.parametrize(("arguments", "line"), REFUSED, ids=[" ".join(a) for a, _ in REFUSED])
def test_what_cannot_be_meant_is_one_line(slackwater: CommandLine, arguments: list[str], line: str) -> None:
    said = slackwater(*arguments)

    assert (said.code, said.out) == (2, "")
    assert len(said.lines) == 1
    assert said.err.startswith(f"slackwater: {line}")


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["run", "--help"], ["evaluate", "--help"]])
def test_help_is_told_on_stdout(slackwater: CommandLine, arguments: list[str]) -> None:
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


def test_an_interruption_is_one_line(slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "load", interrupted)

    said = slackwater("run", "spec.yaml")

    assert (said.code, said.out) == (4, "")
    assert said.err == "slackwater: interrupted; nothing more was published\n"
