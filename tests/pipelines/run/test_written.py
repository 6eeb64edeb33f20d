"""What a run writes again: the page, whose failure is a message and no failure of the run."""

from pathlib import Path

import pytest

from pipelines.run.written import write_again
from pipelines.spec.load import Spec, load
from tests.pipelines.spec_text import GOOD, changed, problems
from tests.releases.continued import unpacked

RELEASES = Path(__file__).parents[2] / "releases/0.3.0"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spec:
    folder = unpacked(RELEASES / "owners", tmp_path)
    monkeypatch.chdir(folder)
    path = Path("spec.yaml")
    text = path.read_text()
    path.write_text(changed("private: private,", "private: private, report: page.html,", text))
    return load("spec.yaml")


def test_a_run_writes_the_page_again(spec: Spec, capsys: pytest.CaptureFixture[str]) -> None:
    assert spec.output.report == "page.html"
    Path("page.html").write_text("an older one")

    write_again(spec)

    assert "<h1>kept</h1>" in Path("page.html").read_text()
    assert capsys.readouterr().err == ""


def test_a_page_that_cannot_be_written_is_a_message(spec: Spec, capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.html").mkdir()

    write_again(spec)

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("slackwater: the windows are published, but not the page page.html: ")
    assert line.endswith("write it with `slackwater report spec.yaml -o page.html`")
    assert not list(Path.cwd().glob(".*.draft"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("out/public/page.html", "output.report: lies inside public"),
        ("out/private/page.html", "output.report: lies inside private"),
        ("page.pdf", "output.report: the name of the page must end in .html"),
    ],
)
def test_a_page_in_a_folder_of_the_release_is_refused(tmp_path: Path, path: str, message: str) -> None:
    (line,) = problems(tmp_path, changed("private: out/private\n", f"private: out/private\n  report: {path}\n", GOOD))

    assert message in line
