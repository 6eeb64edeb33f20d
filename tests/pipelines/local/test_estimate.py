"""`slackwater local`: a spec, a design for devices, their reports, estimates."""

import gzip
import json
import logging
import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from pipelines import cli
from pipelines.local.quality import METADATA
from pipelines.local.spec import BoundSection, LocalSection, load_local
from pipelines.local.survey import frozen, read_survey
from privacy.constraint import MOST_COUNTED
from privacy.json_values import indented
from privacy.local.basis import MOST_ANSWERS
from privacy.local.bound import LocalBound
from privacy.local.candidates import candidates
from privacy.local.client import Reports, enrol, report
from privacy.local.document import mark
from privacy.local.signatures import SECRET, device_key, sign
from tests.pipelines.store.test_store import no_file_larger_than
from transforms.common.errors import SpecError
from transforms.common.sinks import write_table
from transforms.local.read import tables_of
from transforms.local.report_tables import table_of

SPEC = """\
release: employment
local:
  answers: [employed, not employed]
  people: 4000
  epsilon: 8.0
  constraint: {at_most: 2}
  publish: [level, change]
  method: signs
schedule: {start: 2025-01-06T00:00:00Z, every: 1w, until: 2025-02-03T00:00:00Z}
"""
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    Path("survey.yaml").write_text(SPEC)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["local", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.slow
def test_reports_of_devices_become_estimates(command: Command) -> None:
    """12 numbers within 6 deviations: all but with probability 12 * 2e-9. The last of four windows has not closed."""
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    survey = read_survey("design.json")
    Path("reports").mkdir()
    devices, answers = enrol(survey.design, 4000, most_epsilon=8.0), np.full(4000, -1)
    for window in range(4):
        answers[window::10] = window % 2
        reports, devices = report(survey.design, devices, window, answers)
        table = table_of(reports, window=window)
        if window == 0:  # the first report comes again, and one of nobody, and one of another design
            nobody = table.slice(0, 1).set_column(0, "person", pa.array([4000], table["person"].type))
            other = table.slice(0, 1).set_column(5, "design", pa.array(["0123456789abcdef"]))
            table = pa.concat_tables([table, table.slice(0, 1), nobody, other])
        kind = "csv" if window == 1 else "parquet"
        write_table(table, f"reports/{window}.{kind}", format_=kind)  # type: ignore[arg-type]

    until = ("--until", "2025-01-27T00:00:00Z")
    code, out, _ = command("estimate", "design.json", "reports/*", "-o", "numbers.csv", *until, "--json")

    said: dict[str, Any] = json.loads(out)
    assert (code, said["rows"], said["windows"], said["without_reports"]) == (0, 2 * 3 * 2, 3, 0)
    assert said["left_out"] == {"unusable": 1, "other_design": 1, "unsigned": 0, "repeated": 1, "contradictory": 0}
    assert said["left_out_by_file"] == [{"file": "reports/0.parquet", "other_design": 1, "unusable": 1}]
    assert (said["signatures_verified"], said["design"]) == (False, mark(survey.design))
    assert [warning.split(":")[0] for warning in said["warnings"]] == [
        "files hold reports of another design",
        "signatures were not verified (--secret)",
    ]
    numbers = pyarrow.csv.read_csv("numbers.csv")
    assert numbers.column_names == [
        *("kind", "window_start", "window_end", "answer", "value", "stddev", "ci_low", "ci_high")
    ]
    levels = np.array([[400, 0], [400, 400], [800, 400]])
    assert numbers["answer"].to_pylist() == ["employed", "not employed"] * 6
    truth = np.concatenate([levels.ravel(), np.diff(levels, axis=0, prepend=0).ravel()])
    assert (np.abs(numbers["value"].to_numpy() - truth) < 6 * numbers["stddev"].to_numpy()).all()
    assert sorted(path.name for path in Path().iterdir()) == ["design.json", "numbers.csv", "reports", "survey.yaml"]

    printed = command("estimate", "design.json", "reports/*", *until)[1].splitlines()
    assert printed[0].split() == ["kind", "window", *numbers.column_names[3:]]
    assert [line.split(maxsplit=1)[1].partition("  ")[0] for line in printed[1:3]] == ["the end of 12 January 2025"] * 2
    assert printed[13] == ""
    assert printed[14] == f"employment: 12 numbers up to the end of 26 January 2025 from {said['counted']:,} reports"
    assert printed[15] == "  left out: 1 report that no device of this survey sends (reports/0.parquet: 1)"
    assert printed[16] == "  left out: 1 report of another design (reports/0.parquet: 1)"
    assert printed[17] == "  left out: 1 report that came again"

    Path("reports/4.parquet").write_text("no reports")
    code, _, err = command("estimate", "design.json", "reports/*", "-o", "more.csv")

    assert code == 3
    assert err.startswith("slackwater: ")
    assert err.endswith("correct it, or leave it out; no estimates were written\n")
    assert not Path("more.csv").exists()


def sent_files(command: Command) -> list[dict[str, Any]]:
    """A design, and `good.csv` with a report of each of ten people, signed."""
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    design, secret = read_survey("design.json").design, bytes(range(SECRET))
    Path("secret").write_text(secret.hex())
    rows = []
    for person in range(10):
        sent = Reports(person=np.array([person]), design=mark(design), **_REPORT)
        (row,) = table_of(sent, window=0).to_pylist()
        rows.append({**row, "signature": sign(device_key(secret, design, person), sent, window=0)[0]})
    write_table(pa.Table.from_pylist(rows), "good.csv", format_="csv")
    return rows


_REPORT: dict[str, Any] = {
    "layer": np.zeros(1, dtype=np.uint8),
    "symbol": np.zeros(1, dtype=np.uint32),
    "sign": np.ones(1, dtype=np.int8),
}
AT = ("--until", "2025-01-13T00:00:00Z")


@pytest.mark.slow
def test_forged_rows_erase_no_report_if_signatures_are_verified(command: Command) -> None:
    rows = sent_files(command)
    forged = [{**row, "sign": -row["sign"]} for row in rows[:7]]
    write_table(pa.Table.from_pylist(forged), "forged.csv", format_="csv")

    def numbers(*reports: str, secret: bool) -> dict[str, Any]:
        flags = ("--secret", "secret") if secret else ()
        code, out, _ = command("estimate", "design.json", *reports, *AT, *flags, "--json")
        assert code == 0
        found: dict[str, Any] = json.loads(out)
        return found

    alone, erased = numbers("good.csv", secret=False), numbers("good.csv", "forged.csv", secret=False)
    verified = numbers("good.csv", "forged.csv", secret=True)

    assert (alone["counted"], erased["counted"], erased["left_out"]["contradictory"]) == (10, 3, 14)
    assert erased["warnings"][0].startswith("14 reports contradict others of the same person and window")
    assert verified["estimates"] == alone["estimates"]
    assert (verified["left_out"]["unsigned"], verified["signatures_verified"]) == (7, True)
    assert verified["warnings"] == ["files hold reports that no enrolled device has signed"]

    for content, said in (("00", "--secret secret: expected 32 bytes in hexadecimal"), (None, "FileNotFoundError")):
        Path("secret").unlink()
        if content is not None:
            Path("secret").write_text(content)
        code, _, err = command("estimate", "design.json", "good.csv", *AT, "--secret", "secret")
        assert (code, said in err) == (2, True), err


@pytest.mark.slow
def test_left_out_values_are_in_the_table_and_on_the_page(command: Command) -> None:
    rows = sent_files(command)
    other = replace(read_survey("design.json").design, survey="another")
    bad = [{**rows[0], "sign": -1}, {**rows[1], "design": mark(other)}]
    write_table(pa.Table.from_pylist(bad), "bad.csv", format_="csv")
    for output in ("numbers.parquet", "numbers.md", "numbers.csv"):
        assert command("estimate", "design.json", "good.csv", "bad.csv", *AT, "-o", output)[0] == 0

    told = json.loads(pq.read_schema("numbers.parquet").metadata[METADATA])
    assert told["left_out"] == {"unusable": 0, "other_design": 1, "unsigned": 0, "repeated": 0, "contradictory": 2}
    assert "\n      left out: 1 report of another design (./bad.csv: 1)\n" in Path("numbers.md").read_text()
    code, out, _ = command("report", "design.json", "numbers.parquet", "-o", "page.html", "--json")
    page = Path("page.html").read_text()
    assert "Left out: 1 report of another design (./bad.csv: 1)." in page
    assert "2 reports contradict others of the same person and window" in page
    assert sum("contradict" in warning for warning in json.loads(out)["warnings"]) == 1
    assert command("report", "design.json", "numbers.csv", "-o", "page.html")[0] == 0
    assert "does not say which reports were left out" in Path("page.html").read_text()

    table = pq.read_table("numbers.parquet")
    for wrong in ({**told, "design": mark(other)}, {**told, "counted": "9"}, {**told, "left_out": {}}, []):
        pq.write_table(table.replace_schema_metadata({METADATA: json.dumps(wrong)}), "wrong.parquet")
        code, _, err = command("report", "design.json", "wrong.parquet", "-o", "wrong.html")
        assert (code, "wrong.parquet: not the numbers of this design" in err) == (2, True)


def test_a_plan_states_the_cost_of_the_survey_and_the_best_design(command: Command) -> None:
    Path("survey.yaml").write_text(
        SPEC.replace("method: signs", "delta: 0.001").replace("level, ch", "level, level, ch")
    )

    code, out, _ = command("plan", "survey.yaml", "-o", "design.json", "--json")

    said: dict[str, Any] = json.loads(out)
    (chosen,) = (each for each in said["candidates"] if each["chosen"])
    errors = {each["method"]: sum(number["rmse"] ** 2 for number in each["numbers"]) for each in said["candidates"]}
    assert code == 0
    assert chosen["method"] == min(errors, key=lambda name: errors[name])
    assert {name.split(",")[0] for name in errors} == {"once", "signs", "mutations"}
    assert chosen["method"].endswith("tree of 3 layers, 2 to a node")
    assert said["paper_can_differ"] == 4 + 2 + 1  # two changes of each of two people, on all nodes
    assert said["loss"] == {"epsilon": 8.0, "delta": 0.001}
    assert "4 of them have a report in the open" in said["warnings"][0]
    assert len(said["warnings"]) == 1
    survey, spec = read_survey("design.json"), load_local("survey.yaml")
    best, *_ = candidates(spec.space, spec.bound, windows=4, epsilon=8.0, delta=0.001, publish=("level", "change"))
    assert survey.design == replace(best.design, survey=survey.asked)
    assert (survey.people, survey.publish) == (4000, ("level", "change"))
    assert chosen["numbers"] == [
        {"kind": kind, "rmse": pytest.approx(np.sqrt(4000 * variances.mean()))}
        for kind, variances in best.variances.items()
    ]
    sends = [(each["every"], each["of_a_person"], each["can_differ"]) for each in said["reports"]]
    assert sends == [("1w", 4, 4), ("2w", 2, 2), ("4w", 1, 1)]

    Path("survey.yaml").write_text(SPEC.replace("8.0", "0.1").replace("method: signs", "method: once"))
    said = json.loads(command("plan", "survey.yaml", "--json")[1])
    assert [each["method"].split(",")[0] for each in said["candidates"]] == ["once", "once"]
    assert [(each["every"], each["of_a_person"], each["can_differ"]) for each in said["reports"]] == [(None, 1, 1)]
    assert re.fullmatch(r"the margin of error is up to [\d,]+ of 4,000 people: .*", said["warnings"][0])


def test_a_design_that_devices_may_be_using_is_not_written_over(command: Command) -> None:
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    code, out, _ = command("plan", "survey.yaml", "-o", "design.json")
    assert (code, out.splitlines()[-1]) == (0, "the design for devices and collector: design.json")
    before = Path("design.json").read_bytes()
    Path("survey.yaml").write_text(SPEC.replace("epsilon: 8.0", "epsilon: 4.0"))

    code, _, err = command("plan", "survey.yaml", "-o", "design.json")

    assert (code, err.count("\n")) == (2, 1)
    assert "holds another design" in err
    assert Path("design.json").read_bytes() == before


def test_a_design_with_more_truth_in_it_than_its_epsilon_covers_is_refused(command: Command) -> None:
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    design = json.loads(Path("design.json").read_text())
    for epsilon, said in ((4.0, "does not cover the reports"), (1e300, "at most 50")):
        design["design"]["epsilon"] = epsilon.hex()
        Path("design.json").write_text(json.dumps(design))

        code, _, err = command("estimate", "design.json", "reports/*", "-o", "numbers.csv")

        assert code == 2
        assert said in err


def test_a_time_bound_is_counted_in_windows_and_transitions_by_name(command: Command) -> None:
    Path("survey.yaml").write_text(
        SPEC.replace("at_most: 2", "within: 8d").replace(
            "publish:", "transitions: {none: employed, employed: not employed}\n  publish:"
        )
    )

    spec = load_local("survey.yaml")

    assert spec.bound == LocalBound(within=2)
    assert spec.space.count == 3
    assert spec.space.allowed(np.array([2, 0, 1, 0]), np.array([0, 1, 0, 2])).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[employed, not employed]", "[a, a]", "survey.yaml:3: local.answers[1]: 'a' is the name of another answer"),
        ("[employed, not employed]", "[none]", "survey.yaml:3: local.answers: 'none' means people without"),
        ("{at_most: 2}", "{}", "survey.yaml:6: local.constraint: expected one of at_most: 4 and within: 14d"),
        ("epsilon: 8.0", "epsilon: 0", "survey.yaml:5: local.epsilon: expected a number above 0"),
        ("epsilon: 8.0", "epsilon: 1.0e-30", "local.epsilon: epsilon is too small"),
        (", until: 2025-02-03T00:00:00Z", "", "survey.yaml:9: schedule.until: missing"),
        (
            "start: 2025-01-06T00:00:00Z, every: 1w, until: 2025-02-03T00:00:00Z",
            "start: 2025-01-06, every: 1w, until: 2025-02-03, timezone: UTC",
            "schedule.timezone: devices report in windows of one length; remove it, and give times",
        ),
        ("at_most: 2", "at_most: 9999", "local.method: signs are for at most 1,024 changes"),
        ("method: signs", "transitions: {employed: [employed]}", "local.transitions.employed[0]: is no change"),
        (
            "method: signs",
            "transitions: {employed: not employed}",
            "local.transitions: nobody could ever come; add none",
        ),
        ("publish: [level, change]", "publish: [levels]", "expected one of level, change, not 'levels'"),
        ("publish: [level, change]", "publish: []", "local.publish: expected at least 1, not an empty list"),
        ("[employed, not employed]", "[]", "local.answers: expected at least 1, not an empty list"),
        ("people: 4000", "people: 1", "local.people: expected at least 2, not 1"),
        ("people: 4000", "people: 2147483649", "local.people: expected at most 2147483648, not 2147483649"),
        ("epsilon: 8.0", "epsilon: 50.5", "local.epsilon: expected at most 50, not 50.5"),
        ("method: signs", "delta: 1", "local.delta: expected a number below 1, not 1"),
        ("method: signs", "delta: -0.1", "local.delta: expected at least 0, not -0.1"),
        ("at_most: 2", "at_most: 0", "local.constraint.at_most: expected at least 1, not 0"),
        ("at_most: 2", f"at_most: {MOST_COUNTED + 1}", f"local.constraint.at_most: expected at most {MOST_COUNTED}"),
        ("at_most: 2", "at_most: 2, within: 8d", "local.constraint: expected one of at_most: 4 and within: 14d"),
        ("method: signs", "transitions: {none: []}", "local.transitions.none: expected at least 1, not an empty list"),
        ("method: signs", "transitions: {none: employed, emp: [none]}", "local.transitions.emp: expected one of"),
        ("method: signs", "transitions: {none: [emp]}", "local.transitions.none[0]: expected one of employed, not"),
        ("local:", "sanitise:", "survey.yaml: a spec of sanitised records; the commands for it are"),
    ],
)
def test_errors_are_reported_with_their_line(command: Command, old: str, new: str, line: str) -> None:
    text = SPEC.replace(old, new)
    if "at_most: 9999" in new:
        text = text.replace("2025-02-03", "2049-01-04").replace("[level, change]", "change")
    Path("survey.yaml").write_text(text)

    code, _, err = command("plan", "survey.yaml")

    assert code == 2
    assert line in err


def test_files_that_cannot_be_used_are_named(command: Command) -> None:
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    Path("reports.csv").touch()

    for arguments, said in (
        (("survey.yaml", "x.csv", "-o", "a.csv"), "survey.yaml: "),
        (("design.json", "x*.csv", "-o", "a.csv"), "x*.csv: no file matches"),
        (("design.json", "survey.yaml", "-o", "a.csv"), "survey.yaml: the names of files of reports"),
        (("design.json", "./re*.csv", "-o", "reports.csv"), "-o reports.csv: is one of the files of reports"),
        (("design.json", "survey.yaml", "-o", "a.xlsx"), "-o a.xlsx: the name must end in"),
    ):
        code, _, err = command("estimate", *arguments)
        assert (code, said in err) == (2, True), err
    with pytest.raises(SpecError, match="cannot be read"):
        read_survey("nothing.json")

    code, _, err = command("estimate", "design.json", "reports.csv", "-o", "reports.csv/a.csv")
    assert (code, err.count("\n")) == (4, 1)
    assert re.match(r"slackwater: \S*reports\.csv/\S+: Not a directory; check the path and your rights", err)


def test_options_are_checked_before_any_file_is_read(command: Command) -> None:
    code, _, err = command("estimate", "nothing.json", "x.csv", "--unknown_option=1")

    assert (code, "--unknown_option" in err, "nothing.json" in err) == (2, True, False)


@pytest.mark.slow
def test_a_runner_that_needs_another_option_is_reported(command: Command) -> None:
    sent_files(command)

    code, _, err = command("estimate", "design.json", "good.csv", *AT, "--runner=DataflowRunner")

    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith("slackwater: pipeline options: ")


@pytest.mark.slow
def test_a_full_disk_is_reported_in_one_line_and_leaves_nothing(command: Command) -> None:
    sent_files(command)
    before = set(Path().iterdir())

    with no_file_larger_than(100):
        code, _, err = command("estimate", "design.json", "good.csv", *AT, "-o", "numbers.csv")

    assert (code, err.count("\n")) == (1, 1), err
    assert err.endswith("; no estimates were written\n")
    assert set(Path().iterdir()) == before


MARK = "Zq7marker"
_HEAD = "person,window,layer,symbol,sign,design,signature"
BROKEN: dict[str, bytes | pa.Table] = {
    "values.csv": f"{MARK},{MARK}\n1,2\n".encode(),
    "semicolons.csv": f"person;{MARK}\n".encode(),
    "quotes.csv": f'{_HEAD}\n1,0,0,0,1,{MARK},"{MARK}\n'.encode(),
    "utf16.csv": f"{_HEAD}\n{MARK}".encode("utf-16"),
    "twice.csv": f"{_HEAD},person,{MARK}\n".encode(),
    "other.parquet": f"{MARK}\n".encode(),
    "types.parquet": pa.table({"person": [MARK], "window": [[MARK]], MARK: [1]}),
    "gzip.jsonl": gzip.compress(MARK.encode()),
}
"""Files that are not files of reports."""

ODD = {
    "cells.csv": "\n".join([_HEAD, *(",".join(MARK if at == place else "0" for at in range(7)) for place in range(7))])
    + f'\n{MARK}\n{MARK},{MARK}\n"{MARK}" {MARK},0,0,0,1,,\n',
    "members.jsonl": "\n".join(
        [json.dumps({"person": {MARK: 1}, "window": [MARK], "design": MARK}), f'{{"{MARK}', MARK, f'["{MARK}"]', "{}"]
    ),
}
"""Files with rows that are no reports."""


@pytest.mark.slow
def test_no_text_of_a_file_of_reports_is_in_a_message(command: Command, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sent_files(command)
    Path("mark").write_text(MARK)
    for name, content in {**BROKEN, **{name: text.encode() for name, text in ODD.items()}}.items():
        write_table(content, name) if isinstance(content, pa.Table) else Path(name).write_bytes(content)

    told = [
        command("estimate", "design.json", *files, *AT)
        for files in (["good.csv", *ODD, "--secret", "secret"], BROKEN, ["good.csv", "--secret", "mark"])
    ]
    for name in BROKEN:
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - any text but one of the file
            list(tables_of(name, signed=True))
        told.append((3, "", str(refused.value)))

    assert [code for code, _, _ in told[:3]] == [0, 3, 2]
    assert "reports that no device of this survey sends (./cells.csv:" in told[0][1]
    texts = [caplog.text, *(text for _, *texts in told for text in texts)]
    assert [text for text in texts if MARK.lower() in text.lower()] == []


def test_nothing_is_estimated_before_the_first_window_ends(command: Command) -> None:
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0

    code, _, err = command("estimate", "design.json", "x.csv", "-o", "a.csv", "--until", "2025-01-12T00:00:00Z")

    assert (code, "the first window ends at 2025-01-13T00:00:00Z" in err) == (1, True)


def test_a_file_with_missing_columns_is_not_a_file_of_reports(tmp_path: Path) -> None:
    write_table(pa.table({"person": [1]}), str(tmp_path / "a.parquet"))
    write_table(pa.table({"person": [1]}), str(tmp_path / "a.csv"), format_="csv")

    for name in ("a.parquet", "a.csv"):
        with pytest.raises(ValueError, match="the file has no column"):
            list(tables_of(str(tmp_path / name)))


def test_the_page_s_spec_and_the_page_s_device_work_as_they_stand(command: Command) -> None:
    page = (Path(__file__).parents[3] / "docs/local.md").read_text()
    (spec,), codes = (re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) for language in ("yaml", "python"))
    told = {row.split("`")[1] for row in re.findall(r"^\| `(?:local|release|schedule).*", page, re.MULTILINE)}
    Path("survey.yaml").write_text(spec)

    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    Path("device.py").write_text("".join(codes))
    Path("secret.key").write_text("0f" * 32 + "\n")
    made = runpy.run_path("device.py")
    assert len(made["signatures"]) == len(made["reports"].sign) <= 1
    assert told == {"release", "schedule", *(f"local.{name}" for name in LocalSection.model_fields)}


def test_a_survey_has_at_most_as_many_answers_as_a_design() -> None:
    answers = [str(number) for number in range(MOST_ANSWERS + 1)]

    with pytest.raises(ValidationError) as refused:
        LocalSection(answers=answers, people=2, epsilon=1.0, constraint=BoundSection(at_most=1))

    message = f"expected at most {MOST_ANSWERS}, not {MOST_ANSWERS + 1}"
    assert refused.value.errors()[0]["ctx"]["problems"] == [(("answers",), message)]


def test_a_survey_with_members_that_do_not_fit_is_refused(command: Command) -> None:
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    survey = read_survey("design.json")

    changes: list[tuple[dict[str, Any], str]] = [
        ({"names": ("employed",)}, "names: their number differs"),
        ({"people": 0}, "people: expected an integer of at least 1"),
        ({"every": 0}, "every: expected an integer of at least 1"),
        ({"publish": ()}, "publish: expected some of level, change"),
        ({"publish": ("level", "level")}, "publish: expected some of level, change"),
    ]
    for change, told in changes:
        with pytest.raises(ValueError, match=f"^{told}"):
            replace(survey, **change)

    late = frozen(replace(survey, start=10**18))  # in the year 33658
    Path("late.json").write_bytes(indented(late.to_json()))
    for name, told in (("late.json", "date value out of range"), ("design\0.json", r"cannot be read \(ValueError\)")):
        with pytest.raises(SpecError, match=told):
            read_survey(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value"),
    [("start", 10**20), ("every", 10**20), ("publish", ["level", "levels"]), ("answers", ["employed"])],
)
def test_a_design_that_was_not_written_so_is_refused_and_named(command: Command, key: str, value: object) -> None:
    assert command("plan", "survey.yaml", "-o", "design.json")[0] == 0
    design = json.loads(Path("design.json").read_text())
    Path("design.json").write_text(json.dumps(design | {key: value}))

    with pytest.raises(SpecError, match=r"^design\.json: .*; give the file that"):
        read_survey("design.json")
