"""`import slackwater`: the code on its page runs unchanged, and wrong arguments are reported at once."""

import re
import sys
from collections.abc import Callable
from contextlib import chdir
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater
from tests.e2e.specs import NO_NOISE, WINDOWS, changelog, write, write_spec

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_page_runs_from_a_spec_to_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/stays.csv").write_text(blocks("README.md", "csv")[0])
    spec = blocks("README.md", "yaml")[0]
    (tmp_path / "wards.yaml").write_text(spec)
    (tmp_path / "wards-in-pipeline.yaml").write_text(spec.replace("releases/wards", "releases/in-pipeline"))
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)  # where workers find the class of its rows
    said = vars(page)
    with chdir(tmp_path):
        for block in blocks("docs/python.md", "python"):
            for old, new in (("table.to_pandas()", "table"), ("beam.Pipeline()", "beam.Pipeline('FnApiRunner')")):
                block = block.replace(old, new)
            exec(block, said)  # noqa: S102
        again = slackwater.run("wards.yaml", until=datetime.fromisoformat("2026-01-08T00:00:00Z"))
        public = slackwater.show("releases/wards/public").table
        in_pipeline = slackwater.show("releases/in-pipeline/public").table
        days = [
            slackwater.answer("wards.yaml", kind="entered", window=f"2026-01-0{day}T00:00:00Z").table for day in (2, 5)
        ]
        less = slackwater.answer(
            "wards.yaml", kind="entered", window=datetime(2026, 1, 5, tzinfo=UTC), minus="2026-01-02T00:00:00Z"
        ).table
        with pytest.raises(slackwater.SpecError, match=r"^width: entered numbers of query beds have 1d"):
            slackwater.answer("wards.yaml", kind="entered", width=timedelta(days=2))

    table, elsewhere, ran = said["table"], said["elsewhere"], said["ran"]
    assert isinstance(table, pa.Table)
    assert isinstance(elsewhere, pa.Table)
    assert isinstance(ran, slackwater.Ran)
    assert (ran.windows, again.windows) == (7, 0)
    assert public.equals(table)
    before, later, between = (one["value"].to_pylist() for one in (*days, less))
    assert between == [later[0] - before[0]]
    assert in_pipeline["ward"].equals(table["ward"])
    levels = table.filter((pa.compute.field("kind") == "level") & (pa.compute.field("ward") != "surgery"))
    sums = [sum(levels["value"].to_pylist()[day : day + 2]) for day in range(0, 14, 2)]
    assert elsewhere["value"].to_pylist() == sums
    made, compared = said["made"], said["compared"]
    assert (made.windows, made.rows > 14 * 40) == (14, True)
    of = compared.to_json()["specs"]
    assert [(one["release"], one["windows"]) for one in of] == [("simulated-wards-january", 14)] * 2
    assert [one["spec"] for one in of] == ["simulated/spec.yaml", "simulated/other.yaml"]
    noise, wider = (one["queries"][0]["numbers"][0]["rmse_predicted"] for one in of)
    assert noise < wider
    assert "use the data in a way" in compared.text()


def test_an_invalid_argument_is_reported_in_one_line(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    spec = slackwater.load(path)

    with pytest.raises(slackwater.SpecError, match=r"^until: the time has no zone"):
        slackwater.run(path, until=datetime(2026, 1, 2))  # noqa: DTZ001
    with pytest.raises(slackwater.SpecError, match=r"^until: expected a datetime with a zone"):
        slackwater.run(path, until=date(2026, 1, 2))  # type: ignore[arg-type]  # as in a notebook
    with pytest.raises(slackwater.SpecError, match=r"^shards: expected a whole number of at least 1, not 0$"):
        slackwater.run(path, shards=0)
    for wrong, message in (
        ({"stay": timedelta(0)}, r"^stay: expected a duration above zero"),
        ({"stay": "5d"}, r"^stay: expected a duration above zero, such as timedelta\(days=5\), not 5d$"),
        ({"arrivals": float("nan")}, r"^arrivals: expected a number above 0, not nan$"),
        ({"burstiness": -1.0}, r"^burstiness: expected a number above 0, not -1\.0$"),
    ):
        with pytest.raises(slackwater.SpecError, match=message):
            slackwater.simulate(path, tmp_path / "made", **{"arrivals": 5.0, "stay": timedelta(days=1), **wrong})
    assert not (tmp_path / "made").exists()
    path.write_text(path.read_text().replace("at_most: 4", "at_most: 5"))
    with pytest.raises(slackwater.SpecError, match=r"has changed since it was read; load it again$"):
        slackwater.plan(spec)


SIMULATED: dict[str, Any] = {"arrivals": 5.0, "stay": timedelta(days=1)}
FIRST = {"path": "data/*.csv", "entry": "stay", "time": "at"}


@pytest.mark.parametrize(
    "call",
    [
        lambda spec, new: slackwater.simulate(spec, new, **SIMULATED, burstines=1.0),
        lambda spec, new: slackwater.init(new.with_suffix(".yaml"), **FIRST, epsilom="0.1"),
        lambda spec, new: slackwater.changelog(spec, output=new, timezon="UTC"),
    ],
)
def test_an_unknown_keyword_is_refused(tmp_path: Path, call: Callable[[Path, Path], object]) -> None:
    path = write_spec(tmp_path)

    with pytest.raises(TypeError, match=r"unexpected keyword argument '(burstines|epsilom|timezon)'"):
        call(path, tmp_path / "new")

    assert [*tmp_path.iterdir()] == [path]


def test_evaluate_returns_the_numbers_of_the_command_and_leaves_nothing_public(tmp_path: Path) -> None:
    write(tmp_path / "data/part.parquet", changelog())
    write_spec(tmp_path, NO_NOISE)
    with chdir(tmp_path):
        found = slackwater.evaluate("spec.yaml", runs=2, truth="private/truth.parquet")
        with pytest.raises(slackwater.SpecError, match=r"lies inside output\.public; exact values never go there$"):
            slackwater.evaluate("spec.yaml", truth="public/truth.parquet")
        with pytest.raises(slackwater.SpecError, match=r"^runs: expected a whole number of at least 1, not 0$"):
            slackwater.evaluate("spec.yaml", runs=0)
        table = pq.read_table("private/truth.parquet")

    (query,) = found.queries
    level = next(one for one in query["numbers"] if one["kind"] == "level")
    exact = table.filter(pa.compute.field("kind") == "level")["exact"].to_pylist()
    assert (found.release, found.windows, found.runs) == ("wards", WINDOWS, 2)
    assert level["rmse_observed"] == 0
    assert level["truth"] == pytest.approx((sum(one**2 for one in exact) / len(exact)) ** 0.5)
    assert found.warnings == tuple(found.to_json()["warnings"])
    assert found.text().startswith("NOT FOR RELEASE")
    assert "truth" not in repr(found)
    assert not (tmp_path / "public").exists()
