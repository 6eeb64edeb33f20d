"""Labels of queries, keys and cells in tables for people."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines import cli
from pipelines.published.labels import Labels
from tests.pipelines.spec_text import GOOD, loaded, problems
from tests.releases.continued import unpacked

ABOUT = "about: {labels: {covers: Occupied beds}, columns: {ward: Ward}, cells: {ward: {a: Alpha ward}}}\n"


def test_a_table_for_people_has_labels_and_keeps_what_has_none() -> None:
    table = pa.table(
        {"query": ["covers", "walks"], "ward": ["a", None], "floor": pa.array([1, 2]), "value": [1.0, 2.0]}
    )
    labels = Labels({"label covers": "Occupied beds", "column ward": "Ward", "cell floor: 2": "Second"})

    assert labels.table(table, ["ward", "floor"]).to_pydict() == {
        "query": ["Occupied beds", "walks"],
        "Ward": ["a", None],
        "floor": ["1", "Second"],
        "value": [1.0, 2.0],
    }
    assert Labels({"title": "T"}).table(table, ["ward"]) is table


@pytest.mark.slow
def test_show_prints_labels_and_names_of_windows_and_writes_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(Path(__file__).parents[2] / "releases/0.3.0/everything", tmp_path)
    (folder / "spec.yaml").write_text((folder / "spec.yaml").read_text() + ABOUT)
    monkeypatch.chdir(folder)

    assert cli.main(["show", "spec.yaml", "--query", "covers"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert cli.main(["show", "spec.yaml", "--query", "covers", "-o", "a.csv"]) == 0
    assert cli.main(["show", "spec.yaml", "--query", "covers", "-o", "a.md"]) == 0

    assert printed[0].split()[:4] == ["query", "kind", "window", "Ward"]
    assert printed[1].startswith("Occupied beds  level    the end of 1 January 2026  Alpha ward")
    head, first = Path("a.csv").read_text().splitlines()[:2]
    assert head.startswith('"query","kind","window_start","window_end","ward"')
    assert first.startswith('"covers","level","2026-01-01T00:00:00.000000Z"')
    assert (
        Path("a.md")
        .read_text()
        .splitlines()[2]
        .startswith("| Occupied beds | level | the end of 1 January 2026 | Alpha ward |")
    )


def test_labels_of_unknown_things_are_refused_and_do_not_change_the_hash(tmp_path: Path) -> None:
    said = problems(tmp_path, f"{GOOD}about: {{columns: {{wart: W}}, cells: {{wad: {{a: A}}}}}}\n")
    labelled = loaded(tmp_path, f"{GOOD}about: {{columns: {{ward: W}}, cells: {{ward: {{a: A}}}}}}\n")

    assert [line.partition(": ")[2] for line in said] == [
        "about.columns.wart: expected one of ward, not 'wart'",
        "about.cells.wad: expected one of ward, not 'wad'",
    ] or all("did you mean" in line for line in said)
    assert labelled.sha256 == loaded(tmp_path, GOOD).sha256
    assert dict(labelled.about) == {"column ward": "W", "cell ward: a": "A"}
