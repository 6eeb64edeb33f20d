"""`slackwater init`: its questions, what it reads of the data, a spec that `plan` accepts; completion in a shell."""

import json
import os
import pty
import re
import select
import shlex
import subprocess
import time
from contextlib import chdir
from pathlib import Path

import pytest

from pipelines.spec.load import load
from tests.e2e.specs import CommandLine, Said
from tests.programs import require
from transforms.sources.freshness import Freshness

HEADING = "stay,at,ward\n"
ROW = "s3cret,2026-01-01T08:00:00Z,w3st\n"
FLAGS = ["--path=data/*.csv", "--entry=stay", "--time=at", "--epsilon=0.5", "--at-most=3"]
FLAGS += ["--start=2026-01-01T00:00:00+01:00"]


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/stays.csv").write_text(HEADING + ROW)
    return CommandLine(tmp_path, capsys)


@pytest.mark.slow
def test_of_flags_alone_it_makes_a_spec_that_plan_takes_and_reads_no_data(slackwater: CommandLine) -> None:
    (slackwater.folder / "data/stays.csv").unlink()

    said = slackwater("init", "Our wards.yaml", *FLAGS, "--by=ward=yes,a b")
    planned = slackwater("plan", "Our wards.yaml")
    shown = slackwater("show", "Our wards.yaml")
    again = slackwater("init", "Our wards.yaml", *FLAGS)

    assert said.out.startswith("Our wards.yaml: written; you can edit it\n\nquery ")
    assert said.out.endswith("\nnext: slackwater plan Our wards.yaml\n")
    assert (planned.code, planned.err) == (0, "")
    with chdir(slackwater.folder):
        spec = load("Our wards.yaml")
    assert (spec.release, spec.changelog.source.entry) == ("our-wards", "stay")
    assert spec.changelog.freshness == Freshness(by="newer_file")
    assert [query.by for query in spec.queries] == [(("ward", ("yes", "a b", "other")),)]
    assert shown.code == 1
    assert "nothing is published yet in releases/our-wards/public; `slackwater run Our wards.yaml`" in shown.err
    assert "if this is the folder where it ran" in shown.err
    assert again.code == 2
    assert again.err == "slackwater: Our wards.yaml: already exists, and nothing is overwritten; name another file\n"


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        ([], ["--path: missing; ", "--entry: ", "--time: "]),
        (
            ["--epsilon=none", "--every=0d"],
            ["--epsilon: expected a number above", "--every: expected a duration above"],
        ),
        (["--start=2026-01-01T09:00"], ["--start: the time has no zone"]),
        (["--timezone=Berlin"], ["--timezone: 'Berlin' is not an IANA time zone; did you mean 'Europe/Berlin'?"]),
        ([*FLAGS, "--span=7d"], ["--at-most: has no effect with unit entry and span 7d; leave it out"]),
        ([*FLAGS[:3], "--entries=2"], ["--entries: has no effect with unit entry and span 14d; leave it out"]),
        (
            [*FLAGS[:3], "--timezone=Europe/Berlin", "--start=2026-01-06"],
            ["schedule.start: weeks begin on Monday; use 2026-01-05", "nothing was written"],
        ),
        (["--path=debezium.avro"], ["--path: expected files that end in .parquet, .csv, "]),
        (["--by=ward"], ["--by: expected COLUMN=VALUE,VALUE, such as op=D,delete, not 'ward'"]),
        ([*FLAGS, "--to=end", "--deleted=op=D"], ["--deleted: has no effect"]),
        ([*FLAGS, "--until=2025-01-01T00:00:00Z"], ["schedule", "nothing was written"]),
        ([*FLAGS, "--runner=FlinkRunner"], ["--runner=FlinkRunner: init runs no pipeline"]),
    ],
)
def test_each_missing_or_wrong_answer_is_one_line_and_nothing_is_written(
    slackwater: CommandLine, flags: list[str], lines: list[str]
) -> None:
    said = slackwater("init", "new.yaml", *flags)

    assert said.code == 2
    assert len(said.lines) == len(lines)
    assert all(line.startswith(f"slackwater: {begin}") for line, begin in zip(said.lines, lines, strict=True))
    assert not (slackwater.folder / "new.yaml").exists()


def on_terminal(slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, *answers: str, flags: tuple[str, ...] = ()):
    """Return the output when these lines are typed on a terminal."""
    terminal, own = os.openpty()
    with os.fdopen(own, "r") as stdin, os.fdopen(terminal, "wb") as typed:
        typed.write("".join(f"{answer}\n" for answer in answers).encode() + b"\x04")
        typed.flush()
        monkeypatch.setattr("sys.stdin", stdin)
        return slackwater("init", "new.yaml", *flags)


@pytest.mark.slow
@pytest.mark.parametrize("leave", ["y", ""])
def test_names_of_columns_are_read_only_with_leave_and_values_never(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, leave: str
) -> None:
    wrong = ["stays"] if leave == "y" else []  # which is no column, if they are known

    said = on_terminal(slackwater, monkeypatch, "data/*.csv", leave, *wrong, "stay", "at", *[""] * 10)

    assert said.code == 0, said.err
    assert slackwater("plan", "new.yaml").code == 0
    text = (slackwater.folder / "new.yaml").read_text()
    assert ("(stay, at, ward)" in said.err, "there is no column 'stays'" in said.err) == (leave == "y", leave == "y")
    assert "They are as private" in said.err
    assert not [value for value in ("s3cret", "w3st") if value in said.err + said.out + text]
    assert "ward" not in text


@pytest.mark.slow
def test_of_files_that_are_not_there_no_names_are_offered(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = on_terminal(slackwater, monkeypatch, "later/*.csv", "stay", "at", *[""] * 10)

    assert said.code == 0, said.err
    assert "there is no such file yet" in said.err
    assert "They are as private" not in said.err


def test_answers_that_end_write_nothing(slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    said = on_terminal(
        slackwater,
        monkeypatch,
        "",
        "soon",
        "2026-01-01T00:00:00Z",
        flags=(*FLAGS[:-1], "--to=", "--unit=stay", "--timezone=UTC"),
    )

    assert said.code == 2
    assert "  expected a time such as 2013-01-01T00:00:00Z, not 'soon'\n" in said.err
    assert said.lines[-1].endswith("the answers ended; nothing was written")
    assert not (slackwater.folder / "new.yaml").exists()


def planned_margins(said: Said) -> list[str]:
    """Return the margins of error in the last lines."""
    return re.findall(r"^(?:entries|units) .*?(± [0-9.]+)", said.out, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["entry", "member"])
def test_missing_flags_take_the_defaults_of_the_questions_and_match_the_tutorial(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    flags = ("--path=data/*.csv", "--entry=stay", "--time=at", f"--unit={unit}")
    (slackwater.folder / "data/stays.csv").write_text("stay,at,member\n")
    of_flags = slackwater("init", "new.yaml", *flags)
    text = (slackwater.folder / "new.yaml").read_text()
    (slackwater.folder / "new.yaml").unlink()

    typed = on_terminal(slackwater, monkeypatch, *[""] * 14, flags=flags)

    assert (of_flags.code, typed.code) == (0, 0), (of_flags.err, typed.err)
    assert text == (slackwater.folder / "new.yaml").read_text()
    assert of_flags.out == typed.out
    assert planned_margins(of_flags) == ["± 6"]  # as of the tutorial's spec, which has four cells
    assert "protects: {span: 14d}" in text
    assert ("constraint: {entries: 1}" in text) == (unit == "member")


@pytest.mark.slow
def test_times_without_a_zone_ask_for_one_and_make_windows_of_its_calendar(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slackwater.folder / "data/stays.csv").write_text(HEADING + "s3cret,2026-01-01T08:00:00,w3st\n")
    flags = ("--path=data/*.csv", "--entry=stay", "--time=at")

    refused = slackwater("init", "flags.yaml", *flags)
    of_flags = slackwater("init", "flags.yaml", *flags, "--timezone=UTC")
    typed = on_terminal(
        slackwater, monkeypatch, "data/*.csv", "y", "stay", "at", "", "", "", "Berlin", "Europe/Berlin", *[""] * 7
    )

    assert (refused.code, len(refused.lines)) == (2, 1)
    assert refused.err.startswith("slackwater: --timezone: missing; the times in column 'at' have no zone")
    assert typed.code == 0, typed.err
    assert "  the times in column 'at' name no time zone\n" in typed.err
    assert "an answer is required" in typed.err
    assert "did you mean 'Europe/Berlin'?" in typed.err
    with chdir(slackwater.folder):
        spec = load("new.yaml")
        assert load("flags.yaml").changelog.source.timezone == "UTC"
    assert spec.changelog.source.timezone == "Europe/Berlin"
    assert spec.schedule.calendar is not None
    assert [of_flags.code, slackwater("evaluate", "new.yaml", "--until=2026-02-02T00:00:00Z").code] == [0, 0]


def test_contradictory_answers_are_asked_again_with_the_typed_text(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--path=later.csv", "--entry=stay", "--time=at", "--unit=entry", "--timezone=Europe/Berlin")

    said = on_terminal(
        slackwater,
        monkeypatch,
        *("", "", "", "2.0", "2026-01-06", *[""] * 3),
        *("", "", "", "", "2026-01-05"),
        *[""] * 3,
        flags=flags,
    )

    assert said.code == 0, said.err
    assert "schedule.start: weeks begin on Monday; use 2026-01-05" in said.err
    with chdir(slackwater.folder):
        assert load("new.yaml").privacy.epsilon == 2.0


def test_a_column_that_marks_deletions_is_asked_for_and_otherwise_warned_about(slackwater: CommandLine) -> None:
    (slackwater.folder / "data/stays.csv").write_text("stay,at,op\n1,2026-01-01T08:00:00Z,I\n")

    unmarked = slackwater("init", "unmarked.yaml", *FLAGS)
    marked = slackwater("init", "marked.yaml", *FLAGS, "--deleted=op=D,delete")

    assert "warning: column op is not read; if it marks deletions, name it" in unmarked.out
    assert (marked.code, "warning" in marked.out) == (0, False)
    with chdir(slackwater.folder):
        assert load("marked.yaml").changelog.source.deleted == ("op", ("D", "delete"))


@pytest.mark.slow
def test_stays_with_a_begin_and_an_end_are_a_spec_that_plan_and_run_accept(slackwater: CommandLine) -> None:
    (slackwater.folder / "data/stays.csv").write_text("stay,came,went\n1,2026-01-05T08:00:00Z,\n")

    made = slackwater("init", "new.yaml", "--path=data/*.csv", "--entry=stay", "--time=came", "--to=went")

    text = (slackwater.folder / "new.yaml").read_text()
    assert made.code == 0, made.err
    assert "  from: came  #" in text
    assert "  to: went  #" in text
    assert slackwater("evaluate", "new.yaml", "--until=2026-01-19T00:00:00Z").code == 0


@pytest.mark.slow
def test_plan_reports_problems_of_the_first_file_that_a_run_would_refuse(slackwater: CommandLine) -> None:
    (slackwater.folder / "data/stays.csv").write_text(HEADING + "s3cret,2026-01-01T08:00:00,w3st\n")
    slackwater("init", "new.yaml", *FLAGS, "--timezone=UTC", "--by=wrad=a,b")
    spec = slackwater.folder / "new.yaml"
    spec.write_text(spec.read_text().replace("  timezone: UTC", "  # timezone: UTC"))

    without_zone = slackwater("plan", "new.yaml", "--json")
    spec.write_text(spec.read_text().replace("  # timezone: UTC", "  timezone: UTC"))
    misspelt = slackwater("plan", "new.yaml", "--json")

    assert [without_zone.code, misspelt.code] == [0, 0]
    (told,), (other,) = (json.loads(said.out)["warnings"] for said in (without_zone, misspelt))
    assert told.startswith("new.yaml:9: changelog.time: column 'at' of data/stays.csv: time without a zone")
    assert other.endswith("has no column 'wrad'; the name of column 3 is similar; compare the spelling")
    assert "s3cret" not in without_zone.out + misspelt.out


def test_other_column_separators_are_reported(slackwater: CommandLine) -> None:
    (slackwater.folder / "data/stays.csv").write_text("stay;at;ward\n")

    said = slackwater("changelog", "data/stays.csv", "--suggest")

    assert said.lines == [
        "slackwater: data/stays.csv: it has one column, with a semicolon in its name; write the file with commas "
        "between columns (docs/how-to/changelogs.md, Files of spreadsheets)"
    ]


TYPED = {
    "slackwater pl": "slackwater plan ",
    ".venv/bin/slackwater plan --ex": ".venv/bin/slackwater plan --explain ",
    "slackwater plan ou": "slackwater plan our.yaml ",
    "slackwater plan our.yaml --html da": "slackwater plan our.yaml --html data/",
    "slackwater local e": "slackwater local estimate ",
}
"""Return the text of the line before and after the key is pressed."""

READ = {
    "bash": """bind -x '"\\C-g": echo "<$READLINE_LINE>"'; source {script}""",
    "zsh": """fpath=({script.parent} $fpath); autoload -Uz compinit; compinit -D -u
show() {{ print -r -- "<$BUFFER>" }}; zle -N show; bindkey '^G' show""",
}
"""How a shell takes the script, and shows its line when Control-G is pressed."""


def made_for(shell: str, slackwater: CommandLine) -> Path:
    require(shell)
    (slackwater.folder / "our.yaml").touch()
    script = slackwater.folder / "scripts/_slackwater"
    script.parent.mkdir()
    script.write_text(slackwater("completion", shell).out)
    return script


@pytest.mark.slow
@pytest.mark.parametrize(("shell", "flags"), [("bash", ["--norc", "--noprofile"]), ("zsh", ["-f"])])
def test_a_shell_completes_commands_flags_and_files(slackwater: CommandLine, shell: str, flags: list[str]) -> None:
    script = made_for(shell, slackwater)

    ours, its = pty.openpty()
    process = subprocess.Popen(
        [shell, *flags, "-i"],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=slackwater.folder,
        env=os.environ | {"HOME": str(slackwater.folder), "TERM": "dumb", "COLUMNS": "200"},
        start_new_session=True,
    )
    os.close(its)

    def said(keys: str, pattern: str) -> str:
        os.write(ours, keys.encode())
        heard, until = "", time.monotonic() + 300
        while (found := re.search(pattern, heard)) is None:
            assert select.select([ours], [], [], until - time.monotonic())[0], heard
            heard += os.read(ours, 1 << 16).decode()
        return found[1]

    try:
        said(f"{READ[shell].format(script=script)}; PS1='now''> '\n", "(now> )")
        found = {line: said(f"{line}\t\a\x15", "<(.*?)>") for line in TYPED}  # Tab, Control-G; the line is emptied
    finally:
        process.kill()
        process.wait()
        os.close(ours)

    assert found == TYPED


def test_fish_completes_commands_flags_and_files(slackwater: CommandLine) -> None:
    script = made_for("fish", slackwater)
    asked = [f"complete -C {shlex.quote(line)}" for line in TYPED]

    done = subprocess.run(
        ["fish", "--no-config", "-c", "; ".join([f"source {script}", *asked])],
        cwd=slackwater.folder,
        env=os.environ | {"HOME": str(slackwater.folder)},
        capture_output=True,
        text=True,
        check=True,
    )

    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert words == [completed.split()[-1] for completed in TYPED.values()]
    assert done.stderr == ""
