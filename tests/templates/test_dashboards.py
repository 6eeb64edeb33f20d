"""Examples of dashboards: their SQL runs on a release, and their files have the form that the tools read."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ruamel.yaml import YAML

from pipelines import cli
from pipelines.published.latest import write_latest
from pipelines.spec.load import Output
from tests.releases.continued import unpacked
from tests.test_readme import blocks

ROOT = Path(__file__).parents[2]
DASHBOARDS = ROOT / "templates/dashboards"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tables of all numbers, and the facts of a report."""
    folder = unpacked(ROOT / "tests/releases/0.3.0/everything", tmp_path_factory.mktemp("dashboards"))
    write_latest(Output(public=str(folder / "public"), private=str(folder / "private"), latest="parquet"))
    return folder


def rows(sql: str, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a query, with the kept release in place of the wards."""
    for path in ("/srv/releases/wards/public", "releases/wards/public"):
        sql = sql.replace(f"'{path}/latest/beds.parquet'", f"'{folder}/public/latest/covers.parquet'")
    sql = sql.replace("'releases/wards.json'", f"'{folder}/facts.json'")
    with duckdb.connect() as connection:
        return connection.query(sql).to_arrow_table().to_pylist()


def dataset() -> Any:
    return YAML(typ="safe").load(DASHBOARDS / "superset/datasets/slackwater/beds.yaml")


SQL = {
    "evidence": (DASHBOARDS / "evidence/sources/wards/beds.sql").read_text,
    "superset": lambda: dataset()["sql"],
    "page": lambda: blocks(ROOT / "docs/how-to/dashboards.md", "sql")[0],
}


@pytest.mark.parametrize("name", SQL)
def test_sql_returns_the_levels_of_a_release(folder: Path, name: str) -> None:
    found = rows(SQL[name](), folder)

    assert len(found) == (2 if name == "page" else 8)
    assert {row["ward"] for row in found} == {"a", "b"}
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in found)


def grafana_sql() -> list[str]:
    """Return the SQL of each panel, with its macro and its variable in the form that Grafana sends."""
    board = json.loads((DASHBOARDS / "grafana/dashboard.json").read_text())
    within = "window_end between timestamp '2026-01-01' and timestamp '2026-02-01'"
    found = [target["rawSql"] for panel in board["panels"] for target in panel["targets"]]
    return [one.replace("$__timeFilter(window_end)", within).replace("${ward}", "a") for one in found]


def test_sql_of_grafana_returns_the_levels_of_a_release(folder: Path) -> None:
    """In DuckDB instead of BigQuery, on the columns that both have."""
    table = f"(select *, 'wards-january' as release from read_parquet('{folder}/public/latest/covers.parquet'))"
    over_time, latest = (
        rows(sql.replace("`my-project.hospital.estimates`", table).replace("'beds'", "'covers'"), folder)
        for sql in grafana_sql()
    )

    assert len(over_time) == 4
    assert all(row["low"] < row["beds"] < row["high"] for row in over_time)
    assert [row["time"] for row in over_time] == sorted(row["time"] for row in over_time)
    assert {row["ward"] for row in latest} == {"a", "b"}
    assert {row["window_end"] for row in latest} == {over_time[-1]["time"]}


def test_sql_returns_the_differences_of_a_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(folder / "public"), "-o", str(folder / "page.html"), "--json"]) == 0
    facts = capsys.readouterr().out
    (folder / "facts.json").write_text(facts)

    found = rows((DASHBOARDS / "evidence/sources/wards/changes.sql").read_text(), folder)

    stated = [
        one for query in json.loads(facts)["queries"] for series in query["series"] for one in series["differences"]
    ]
    assert [row["difference"] for row in found] == [one["value"] for one in stated]
    assert {row["real"] for row in found} <= {"higher", "lower", "unclear", "unknown"}


def test_files_refer_to_each_other() -> None:
    yaml = YAML(typ="safe")
    evidence = yaml.load(DASHBOARDS / "evidence/sources/wards/connection.yaml")
    page = (DASHBOARDS / "evidence/pages/index.md").read_text()
    source = yaml.load(DASHBOARDS / "grafana/provisioning/datasources/slackwater.yaml")["datasources"][0]
    board = json.loads((DASHBOARDS / "grafana/dashboard.json").read_text())
    database = yaml.load(DASHBOARDS / "superset/databases/slackwater.yaml")
    columns = [column["column_name"] for column in dataset()["columns"]]

    asked = re.findall(r"from wards\.(\w+)", page)
    assert evidence["type"] == "duckdb"
    assert {path.stem for path in (DASHBOARDS / "evidence/sources/wards").glob("*.sql")} == set(asked)
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {source["uid"]}
    sql = [target["rawSql"] for panel in board["panels"] for target in panel["targets"]]
    assert all("`my-project.hospital.estimates`" in one and "release = 'wards-january'" in one for one in sql)
    assert dataset()["database_uuid"] == database["uuid"]
    assert [one for one in columns if one not in dataset()["sql"]] == []
    assert yaml.load(DASHBOARDS / "superset/metadata.yaml")["type"] == "SqlaTable"  # Superset 6.1 takes no other
