"""A release that finds its keys, by the commands: plan, two nightly runs, and everything that reads them."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from pipelines import cli
from pipelines.answer.operation import answer
from pipelines.audit.operation import audit
from pipelines.evaluate.operation import evaluate
from pipelines.plan.operation import plan
from pipelines.report.operation import report
from pipelines.run.operation import Ran, run
from pipelines.show.operation import show
from pipelines.smooth.operation import smooth
from transforms.common.errors import SpecError

SPEC = """\
release: towns
changelog: {format: csv, path: data/*.csv, entry: stay, time: at, after: after_}
privacy: {epsilon: 4.0, delta: 1.0e-6, mechanism: laplace, constraint: {at_most: 2}}
schedule: {start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-07T00:00:00Z}
queries:
  - {name: towns, measure: count, by: {town: {discover: true}}, publish: [level, {sliding: 2d}]}
  - {name: total, measure: count, publish: [level]}
  - {name: pairs, measure: count, by: {sex: [f, m], town: {discover: true}}, publish: [level]}
  - {name: sexes, measure: count, by: {sex: [f, m]}, publish: [level]}
output: {public: public, private: private, format: csv}
"""
SIZES = {"Ulm": 3000, "Hof": 900, "Alone": 1, "Few-é": 3}
LATER = {"Rom": 2000, "Ulm": 100}


def write(path: Path, day: int, sizes: dict[str, int]) -> None:
    towns = [town for town, size in sizes.items() for _ in range(size)]
    entries = [f"d{day}-{number}" for number in range(len(towns))]
    times = [f"2026-01-{day:02}T12:00:00Z"] * len(towns)
    days = [day] * len(towns)
    sexes = ["m" if number % 3 else "f" for number in range(len(towns))]
    pa_csv.write_csv(
        pa.table({"stay": entries, "at": times, "after_town": towns, "after_sex": sexes, "after_size": days}), path
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Ran]]:
    """Return the spec of a release with two epochs, and what its runs returned."""
    folder = tmp_path_factory.mktemp("found")
    (folder / "data").mkdir()
    spec = folder / "spec.yaml"
    spec.write_text(SPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write(folder / "data/one.csv", 1, SIZES)
        runs = [run("spec.yaml", until="2026-01-03T00:00:00Z", shards=2)]
        write(folder / "data/two.csv", 4, LATER)
        runs.append(run("spec.yaml", until="2026-01-06T00:00:00Z"))
    return folder, runs


def test_found_keys_have_rows_from_their_window_of_discovery_on(released, monkeypatch) -> None:
    folder, runs = released
    monkeypatch.chdir(folder)

    table = show("spec.yaml", query=["towns"]).table
    rows = table.filter(pc.equal(table["kind"], "level"))
    sliding = table.filter(pc.equal(table["kind"], "sliding"))

    found = [(row["window_end"].day - 1, row["town"]) for row in rows.to_pylist()]
    assert found == [
        (day, town) for day in range(1, 6) for town in (["Hof", "Rom", "Ulm"] if day > 3 else ["Hof", "Ulm"])
    ]
    assert [len(one.files) for one in runs] == [6, 6]  # estimates of all queries, and nodes of the totals
    last = dict(zip(rows["town"].to_pylist()[-3:], rows["value"].to_pylist()[-3:], strict=True))
    exact = {"Hof": 900, "Rom": 2000, "Ulm": 3100}
    assert all(abs(last[town] - exact[town]) < 200 for town in exact)  # beyond it with probability below 1e-20
    assert rows["stddev"].null_count == 0
    assert [row["town"] for row in sliding.to_pylist()] == ["Hof", "Ulm"] * 3  # those of three days, from the third on


def test_nothing_public_names_a_key_that_is_not_found(released) -> None:
    folder, _ = released
    files = [path for path in (folder / "public").rglob("*") if path.is_file()]

    texts = {path: path.read_bytes() for path in files}

    assert len(files) == 15  # manifest, spec, plan, and six files for each epoch
    assert not [path for path, text in texts.items() if b"Alone" in text or b"Few" in text]
    assert [path for path, text in texts.items() if b"Ulm" in text]


def test_plan_and_statement_say_what_discovery_costs(released, monkeypatch) -> None:
    folder, runs = released
    monkeypatch.chdir(folder)

    planned = plan("spec.yaml", explain=True)

    found = planned.document["queries"][0]["found"]
    assert found["delta"] == 5e-7
    assert planned.document["queries"][2]["found"]["cells"] == 2
    assert "in which its noisy count over 2 cells reaches " in planned.text()
    assert (
        f"towns: a key is listed from the first window on in which its noisy count reaches {found['threshold']:,.4g}. "
        in (planned.text())
    )
    assert planned.document["queries"][1]["found"] is None
    assert "1e-06 of delta covers the discovery of keys." in runs[0].epoch.statement
    assert planned.delta == runs[1].epoch.loss.delta == 1e-6


def test_the_report_lists_keys_by_the_window_in_which_they_were_found(released, monkeypatch) -> None:
    folder, _ = released
    monkeypatch.chdir(folder)

    told = report("spec.yaml", output="page.html")
    page = Path(told.file).read_text()

    assert "1 January 2026: Hof, Ulm" in page
    assert "4 January 2026: Rom" in page
    assert "Alone" not in page
    rows = [row for row in show("spec.yaml").table.to_pylist() if not row["kind"].endswith("_other")]
    assert told.facts is not None
    assert told.facts.numbers == len(rows)
    assert "unknown</td>" not in page
    assert "noise decides which keys are found" in page
    assert page.count("All other keys: ") == page.count("All other keys, f: ") == 1
    listed = [
        found for epoch in json.loads(Path("public/manifest.json").read_text())["epochs"] for found in epoch["found"]
    ]
    assert [(one["query"], one["window"], one["keys"]) for one in listed] == [
        (query, window, keys) for window, keys in ((1, ["Hof", "Ulm"]), (4, ["Rom"])) for query in ("towns", "pairs")
    ]
    assert [one["until"] for one in told.to_json()["found"]][::2] == ["2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z"]
    query = next(one for one in told.facts.queries if one.query == "towns")
    together = replace(query.series[0], latest=[replace(query.series[0].latest[0], cell=None)])
    facts = replace(told.facts, queries=[replace(query, series=[together])])
    assert "<td>all keys found so far</td>" in replace(told, facts=facts)._repr_html_()


def test_a_key_that_is_found_next_to_listed_ones_has_all_their_cells(released, monkeypatch) -> None:
    folder, _ = released
    monkeypatch.chdir(folder)

    rows = show("spec.yaml", query=["pairs"]).table.filter(pc.field("kind") == "level").to_pylist()

    assert [(row["window_end"].day - 1, row["town"], row["sex"]) for row in rows] == [
        (day, town, sex)
        for day in range(1, 6)
        for town in (["Hof", "Rom", "Ulm"] if day > 3 else ["Hof", "Ulm"])
        for sex in "fm"
    ]
    exact = {"Hof": (300, 600), "Rom": (667, 1333), "Ulm": (1034, 2066)}
    for row in rows[-6:]:  # beyond it with probability below 1e-20
        assert abs(row["value"] - exact[row["town"]]["fm".index(row["sex"])]) < 200


def test_the_rest_is_the_total_without_the_found_keys_with_its_exact_deviation(released, monkeypatch) -> None:
    folder, _ = released
    monkeypatch.chdir(folder)
    table = show("spec.yaml").table

    for query, total, each in (("towns", "total", 1), ("pairs", "sexes", 2)):
        of, whole, rest = (
            table.filter((pc.field("query") == name) & (pc.field("kind") == kind)).to_pylist()
            for name, kind in ((query, "level"), (total, "level"), (query, "level_other"))
        )
        assert len(rest) == len(whole) == 5 * each
        assert {row["town"] for row in rest} == {"other"}
        for row, one in zip(rest, whole, strict=True):
            own = [key for key in of if (key["window_end"], key["sex"]) == (row["window_end"], row["sex"])]
            assert (row["window_end"], row["sex"]) == (one["window_end"], one["sex"])
            assert row["value"] == pytest.approx(one["value"] - sum(key["value"] for key in own))
            assert row["stddev"] ** 2 == pytest.approx(sum(key["stddev"] ** 2 for key in [one, *own]))
            assert row["ci_low"] < row["value"] - row["stddev"] < row["value"] + row["stddev"] < row["ci_high"]
            assert abs(row["value"] - 4 / each) < 400  # four entries; beyond it with probability below 1e-20


def test_evaluate_states_the_share_of_found_keys_by_size_and_the_error_of_their_numbers(released, monkeypatch) -> None:
    folder, _ = released
    monkeypatch.chdir(folder)

    found = evaluate("spec.yaml", until="2026-01-06T00:00:00Z", runs=3, truth="truth.parquet")

    towns = found.queries[0]
    assert towns["found"] == [
        {"from": 1, "to": 9, "keys": 2, "share": 0.0},
        {"from": 100, "to": 999, "keys": 1, "share": 1.0},
        {"from": 1000, "to": 9999, "keys": 2, "share": 1.0},
    ]
    level = towns["numbers"][0]
    assert level["rows"] == 12  # of three towns in five windows, two of them from the first one on
    assert level["rmse_predicted"] / 3 < level["rmse_observed"] < 3 * level["rmse_predicted"]
    assert level["bounding_rmse"] == 0
    assert (
        "towns, share of keys that are found, by largest count: 1 to 9: 0.0% of 2; 100 to 999: 100.0%" in found.text()
    )
    truth = pq.read_table("truth.parquet").filter(pc.equal(pc.field("query"), "towns"))
    last = truth.filter(pc.equal(pc.field("kind"), "level")).sort_by("window_end").slice(20).to_pylist()
    assert {row["town"]: row["exact"] for row in last} == {**SIZES, "Rom": 2000, "Ulm": 3100}
    assert [row["bounded"] for row in last] == [row["exact"] for row in last]


def test_commands_that_need_listed_cells_say_so(released, monkeypatch, capsys) -> None:
    folder, _ = released
    monkeypatch.chdir(folder)

    with pytest.raises(SpecError, match="for a total, add a query without by"):
        answer("spec.yaml", query="towns")
    assert "towns, level: its keys are found" in smooth("spec.yaml", output="smooth.csv").text()
    assert audit(public="public").passed
    assert cli.main(["ledger", "spec.yaml"]) == 0
    assert "1e-06" in capsys.readouterr().out


def test_a_report_without_a_found_key_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    means = "  - {name: means, measure: {mean: size, min: 0, max: 9}, by: {town: {discover: true}}, publish: [level]}\n"
    (tmp_path / "spec.yaml").write_text(SPEC.replace("output:", f"{means}output:"))
    write(tmp_path / "data/one.csv", 1, {"Alone": 1})
    run("spec.yaml", until="2026-01-02T00:00:00Z")

    page = Path(report("spec.yaml", output="page.html").file).read_text()

    assert "Query towns has found no key so far." in page
    assert "The mean of all keys that are not found is unknown: counts of found keys are not public." in page
    assert show("spec.yaml", query=["towns"]).table["kind"].to_pylist() == ["level_other"]
