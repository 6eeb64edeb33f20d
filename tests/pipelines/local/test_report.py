"""`slackwater local report`: contents of the page of a survey; tests/e2e/test_report_page.py tests its appearance."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines import cli
from pipelines.local import words
from pipelines.local.estimated import read_estimates
from pipelines.local.promise import CONDITIONS, sent, statement
from pipelines.local.survey import Survey, read_survey
from pipelines.pages.html import written
from privacy.local.bound import LocalBound
from privacy.local.candidates import candidates
from privacy.local.document import digest
from tests.pipelines.local.survey_page import WINDOWS, survey_files
from tests.pipelines.report.report_page import NASTY
from tests.pipelines.report.test_operation import Elements
from transforms.common.errors import SpecError

Files = tuple[str, str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return survey_files(tmp_path_factory.mktemp("survey"))


def test_the_page_states_the_promise_and_marks_numbers_that_are_mostly_noise(files, tmp_path, capsys):
    output = tmp_path / "page.html"
    assert cli.main(["local", "report", *files, "-o", str(output), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)

    page, survey = Elements(output.read_text()), read_survey(files[0])
    told = " ".join(page.text.split())
    promised = (*CONDITIONS, *words.not_protected(survey), words.WHO, words.WHAT, statement(survey.design))
    assert [said for said in promised if written(said) not in told] == []
    assert "At most 3 changes of a person can count, and the first answer is one. Then the device reports" in told
    assert "With delta 0.000001 and 90,000 people, 0.09 of them have a report in the open, on average." in told
    assert "Half of a typical interval, as a share of 90,000 people: level 4.4 %, change 4.4 %." in told
    assert f"Design {digest(survey.design)}" in told
    assert document["until"] == "2025-06-23T00:00:00Z"
    assert "up to the end of 22 June 2025, estimated from reports" in told
    assert f"{2 * 3 * WINDOWS} numbers from {WINDOWS} windows of 7 days" in told
    noisy = [one["noisy"] for one in document["signals"]]
    assert noisy == [False, False, True, True, True, True]
    assert document["signals"][0] | {"lost": 0} == {
        **{"kind": "level", "answer": "employed", "typical": 31_500, "half": 3_000, "lost": 0, "noisy": False}
    }
    assert document["warnings"][0].startswith("level: mostly noise: =an answer of which the name is longer than a")
    assert document["warnings"][1].startswith(f"change: mostly noise: employed, {NASTY}, =an answer")
    assert ["would reduce the noise" in one for one in (*document["warnings"], told)] == [True, True, False, False]
    (data,) = re.findall(r'id="data">(.*?)</script>', output.read_text())
    (answers,) = json.loads(data)["queries"]
    level, change = answers["series"]
    assert answers["cells"][1] == [NASTY]
    assert level["cells"][2]["v"] == [None] * 12 + [500] * 12
    assert change["first"] == level["first"] == 1_736_726_400_000  # 2025-01-13
    assert ("noisy" in level, len(level["stated"])) == (False, 8)


def test_the_page_states_numbers_differences_and_terms_like_the_page_of_a_release(files, tmp_path):
    output = tmp_path / "page.html"
    assert cli.main(["local", "report", *files, "-o", str(output)]) == 0

    page = output.read_text()
    text = " ".join(Elements(page).text.split())
    links = re.findall(r'<li><a href="#(.*?)">(.*?)</a>', page)
    assert links == re.findall(r'<h2 id="(.*?)-title">(.*?)</h2>', page)
    assert [title for _, title in links][1::2] == ["What may not be concluded", "How large the noise is", "Ledger"]
    assert re.search(r"\d-\d\dT\d", text) is None
    assert f"work {words.protected(read_survey(files[0]))} Do not conclude: which answer a person gave, why" in text
    first = "level, employed 43,000 95 % interval 40,000 to 46,000 level"
    assert f"Latest, the end of 22 June 2025 number interval {first}" in text
    assert f"The latest numbers state the rest. {words.reported(read_survey(files[0]))}" in text
    # 90,000 - 43,000 + 69,000 - 500, with the three intervals of 3,000, 4,000 and 60,000 at once
    assert "level, none of these answers, the rest of 90,000 115,500 85 % interval 48,500 to 182,500" in text
    both = "from 42,000 (the end of 15 June 2025) to 43,000 (the end of 22 June 2025), 1,000 higher (90 % interval"
    assert f"Since the window before: level, employed: {both}" in text
    both = "from 20,000 (the end of 12 January 2025) to 43,000 (the end of 22 June 2025), 23,000 higher (90 % interval"
    short, _, sections = text.partition("Answers How many")
    said = f"unless stated): level, employed: {both} 17,000 to 29,000 higher); more than the noise explains."
    assert (said in short, said in sections) == (True, False)
    assert "Each device sends 1 to 25 reports, at times that do not depend on its answers: on average about" in text
    assert "delta A small probability" in text.partition("Glossary window")[2]
    (saved,) = re.findall(r'download="work.csv" href="data:text/csv;charset=utf-8;base64,(.*?)"', page)
    rows = [*csv.DictReader(io.StringIO(base64.b64decode(saved).decode()))]
    assert [row["value"] == "" for row in rows].count(True) == 2 * 12
    assert (len(rows), rows[0]["answer"], rows[0]["window_end"]) == (144, "employed", "2025-01-13T00:00:00Z")


WRONG = [
    ("estimates.csv", ("employed", "unemployed"), "estimates.csv: not the numbers of this design, of work; give the"),
    ("estimates.csv", ("2025-01-06", "2025-01-05"), "estimates.csv: not the numbers of this design, of work"),
    ("estimates.csv", ("kind", "kinds"), "estimates.csv: not the numbers of this design, of work"),
    ("estimates.csv", ('"change"', '"level"'), "estimates.csv: not the numbers of this design, of work"),
    ("design.json", ('"employed"', '"at work"'), "design.json: design.survey: has other answers, people or windows"),
    ("design.json", ('"people": 90000', '"people": 0'), "design.json: people: expected"),
]


@pytest.mark.parametrize(("name", "change", "message"), WRONG, ids=[change[1] for _, change, _ in WRONG])
def test_files_that_do_not_belong_together_are_refused(files, tmp_path, monkeypatch, capsys, name, change, message):
    monkeypatch.chdir(tmp_path)
    for path in map(Path, files):
        text = path.read_text()
        if path.name == name:
            assert change[0] in text
            text = text.replace(*change)
        Path(path.name).write_text(text)

    assert cli.main(["local", "report", "design.json", "estimates.csv"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_numbers_of_no_window_or_of_too_many_or_without_end_are_refused(files, tmp_path):
    survey, path = read_survey(files[0]), str(tmp_path / "estimates.csv")
    head, first, *rest = Path(files[1]).read_text().splitlines(keepends=True)
    short = candidates(survey.design.space, LocalBound(at_most=1), windows=WINDOWS - 1, epsilon=2.0, delta=0.0)[
        0
    ].design
    assert ",20000" in first

    for lines, one in (
        ([head], survey),
        ([head, first, *rest], replace(survey, design=short)),
        ([head, first.replace(",20000", ",inf"), *rest], survey),
        ([head, first, *rest[:-1]], survey),
    ):
        Path(path).write_text("".join(lines))
        with pytest.raises(SpecError, match="not the numbers of this design"):
            read_estimates(path, one)
    with pytest.raises(SpecError, match=r"cannot be read \(ValueError\)"):
        read_estimates("a\0.csv", survey)
    Path(path).write_text("".join([head, first, *rest]))
    assert len(read_estimates(path, survey)[0][0].value) == WINDOWS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{0}", "{1}", "-o", "page.pdf"], "-o page.pdf: the name must end in .html"),
        (["{0}", "numbers.md"], "numbers.md: the name of a file of estimates must end in .parquet, .csv, .jsonl"),
        (["{0}", "nowhere.csv"], "nowhere.csv: cannot be read (FileNotFoundError); give the file that `local esti"),
        (["{0}", "{1}", "--runner=FlinkRunner"], "local report runs no pipeline"),
    ],
)
def test_an_impossible_report_is_refused(files, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)

    assert cli.main(["local", "report", *(word.format(*files) for word in arguments)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_commands_for_releases_name_those_for_a_design(files, capsys):
    assert cli.main(["show", files[0]]) == 2
    assert "the design of a survey, not a spec; the commands for it are slackwater local estimate and local report" in (
        capsys.readouterr().err
    )


def survey_of(files: Files, bound: LocalBound, *, delta: float = 0.0, once: bool = False) -> Survey:
    survey = read_survey(files[0])
    found = candidates(survey.design.space, bound, windows=25, epsilon=2.0, delta=delta)
    wanted = "once" if once else "mutations"
    return replace(survey, design=next(each.design for each in found if each.method == wanted))


@pytest.mark.slow
def test_every_bound_and_a_delta_are_stated_in_words(files):
    one, once = survey_of(files, LocalBound(at_most=1)), survey_of(files, LocalBound(at_most=1), once=True)

    assert "can be at most 89 % sure" in words.how_well(one)[-1]  # e^2 / (1 + e^2) is 88.1 %
    assert words.bound(one).startswith("At most 1 change of a person can count, and the first answer is one.")
    assert words.bound(once).startswith("Any number of changes: a device reports one answer")
    assert words.reported(once) == (
        "Each device reports once, in one window that it draws by chance: about 3,600 reports in each window of 7 days."
    )
    every = 90_000 * sum(each["people"] * each["of_a_person"] for each in sent(one.design, one.every)) / 25
    assert words.reported(one).endswith(
        f"on its answers: on average about {every:,.0f} reports in each window of 7 days."
    )
    assert [words.reported(each) in words.always(each) for each in (one, once)] == [True, True]
    assert words.bound(survey_of(files, LocalBound(within=2))).startswith(
        "Changes of a person count in the window of the first one, and for 14 days after it. Then the device"
    )
    assert words.bound(survey_of(files, LocalBound(within=0))).startswith(
        "Changes of a person count in the window of the first one alone."
    )
    assert words.how_well(survey_of(files, LocalBound(within=0), delta=1e-9))[-1].endswith(
        "by a factor of at most 7.39, except with probability 1e-09."
    )
