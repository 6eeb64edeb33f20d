"""The suggested spec: what it says, what it must not say, and that a filled-in one is a spec."""

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from ruamel.yaml import YAML

from pipelines.changelog.first_spec import FILL_IN, in_flow, section_of
from pipelines.changelog.suggest import suggested as made
from pipelines.cli import main
from pipelines.spec.load import load
from tests.e2e.specs import SECRETS, changelog, write
from transforms.common.errors import SpecError
from transforms.common.source import Source
from transforms.sources.inspection import inspect, state_columns

FILLED = {"epsilon": "1.0", "span": "14d", "start": "2026-01-01T00:00:00Z"}


def filled(text: str) -> str:
    """With every place filled in, those of the examples too."""
    text = re.sub(r"^  # (?!delta|where|types|until|constraint)", "  ", text, flags=re.MULTILINE)
    for key, value in FILLED.items():
        text, found = re.subn(rf"^( *{key}:)  {FILL_IN}.*$", rf"\1 {value}", text, flags=re.MULTILINE)
        assert found == 1, key
    text = re.sub(rf"\[\]}}  {FILL_IN}.*$", "[a, b, other]}", text, flags=re.MULTILINE)
    text = re.sub(rf"min: , max: }}  {FILL_IN}.*$", "min: 0, max: 120}", text, flags=re.MULTILINE)
    assert FILL_IN not in text
    return text


def suggested(source: Source) -> str:
    columns, _ = state_columns(source)
    return made(source, inspect(source, frozenset(), columns))


def source_at(folder: Path, format_: str = "parquet") -> Source:
    write(folder / f"part.{format_}", changelog())
    path = f"{folder}/*.{format_}"
    return Source(format=format_, paths=(path,), entry="stay", time="at", before="before_", after="after_")


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_filled_in_it_is_a_spec(format_: str, tmp_path: Path) -> None:
    source = source_at(tmp_path, format_)

    (tmp_path / "spec.yaml").write_text(filled(suggested(source)))
    spec = load(tmp_path / "spec.yaml")

    assert spec.changelog.source == source
    listed = {"by_age", "by_ward"} if format_ != "parquet" else {"by_ward"}
    assert {query.name for query in spec.queries} == {"entries", "sum_age"} | listed
    assert dict(next(q for q in spec.queries if q.name == "by_ward").by) == {"ward": ("a", "b", "other")}


def test_the_owner_that_states_name_is_no_key_of_a_suggested_query(tmp_path: Path) -> None:
    source = source_at(tmp_path)

    assert queries_of(suggested(source)) == {"by_ward", "sum_age"}
    assert queries_of(suggested(replace(source, owner="ward"))) == {"units", "sum_age"}


def test_no_command_accepts_it_unchanged(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(suggested(source_at(tmp_path)))

    with pytest.raises(SpecError) as caught:
        load(tmp_path / "spec.yaml")

    wrong = {line.split(": ")[1] for line in str(caught.value).splitlines()}
    assert wrong == {"privacy.epsilon", "privacy.protects.span", "schedule.start"}


def test_each_place_left_empty_is_an_error(tmp_path: Path) -> None:
    text = filled(suggested(source_at(tmp_path)))
    for value in ("1.0", "14d", "2026-01-01T00:00:00Z", "[a, b, other]", "0, max: 120"):
        empty = {"[a, b, other]": "[]", "0, max: 120": ", max: "}.get(value, "")
        assert len(re.findall(rf"^ [^#]*: {re.escape(value)}", text, re.MULTILINE)) == 1
        left = re.sub(rf"^( [^#]*: ){re.escape(value)}", rf"\1{empty}", text, flags=re.MULTILINE)
        (tmp_path / "spec.yaml").write_text(left)

        with pytest.raises(SpecError):
            load(tmp_path / "spec.yaml")


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_no_value_of_the_data_is_in_it(format_: str, tmp_path: Path) -> None:
    text = suggested(source_at(tmp_path, format_)).replace(str(tmp_path), "")

    assert [secret for secret in SECRETS if secret in text] == []


def test_two_changelogs_of_one_schema_have_one_suggestion(tmp_path: Path) -> None:
    texts = []
    for name, rows in (("one", changelog()), ("other", changelog(3)[:1])):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "part.parquet", rows)
        source = Source(
            format="parquet",
            paths=(f"{tmp_path}/{name}/*.parquet",),
            entry="stay",
            time="at",
            before="before_",
            after="after_",
        )
        texts.append(suggested(source).replace(f"/{name}/", "/"))

    assert texts[0] == texts[1]


def test_names_that_yaml_or_a_query_would_take_amiss_come_through(tmp_path: Path) -> None:
    names = ["no", "null", "a: b # c", 'qu"ote', "line\nbreak", "Größe (cm)", "GröBe (cm)", "kind", "1e3"]
    table = pa.table({"stay": ["x"], "at": pa.array([0], pa.timestamp("us", "UTC")), **{name: ["v"] for name in names}})
    pa.parquet.write_table(table, tmp_path / "part.parquet")
    source = Source(
        format="parquet", paths=(f"{tmp_path}/*.parquet",), entry="stay", time="at", before=None, after=None
    )

    (tmp_path / "spec.yaml").write_text(filled(suggested(source)))
    spec = load(tmp_path / "spec.yaml")

    keys = {key for query in spec.queries for key, _ in query.by}
    assert keys == set(names) - {"kind"}  # which the published files have already


def test_a_section_in_flow_style_is_read_back() -> None:
    source = Source(
        format="jsonl",
        paths=("gs://bucket/a b/*.jsonl", "x"),
        entry="no",
        time="the: time",
        before=None,
        after="after",
        order=("Geändert am", "a\u2028b", "\U0001f4b6"),
        timezone="Europe/Paris",
        types=(("1", "int64"),),
        nulls=("", "NULL"),
    )

    section = section_of(source)

    assert '"Geändert am"' in in_flow(section)
    assert YAML(typ="safe", pure=True).load(in_flow(section)) == section
    assert section["path"] == ["gs://bucket/a b/*.jsonl", "x"]


def queries_of(text: str) -> set[str]:
    """Return the names of the examples."""
    return set(re.findall(r"^  (?:# )?- name: (\S+)$", text, re.MULTILINE)) - {"entries"}


def test_a_column_with_unique_values_is_no_measure_and_no_cell_but_may_be_the_owner(tmp_path: Path) -> None:
    columns = {"price": 1.5, "patientID": 7, "zip_code": 12, "email": "x", "ward": "a"}
    table = pa.table(
        {"stay": ["x"], "at": pa.array([0], pa.timestamp("us", "UTC")), **{k: [v] for k, v in columns.items()}}
    )
    pa.parquet.write_table(table, tmp_path / "part.parquet")

    source = Source(
        format="parquet", paths=(f"{tmp_path}/*.parquet",), entry="stay", time="at", before=None, after=None
    )
    text = suggested(source)

    assert queries_of(text) == {"sum_price", "by_ward"}
    assert "the person behind it: email, patientID, ward, zip_code\n" in text
    named = suggested(replace(source, owner="email"))
    assert "\n  unit: email  # all entries of one owner together" in named
    assert f"\n    entries:  {FILL_IN}" in named


def test_decimals_as_text_can_be_summed_in_any_column_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In CSV, copies of a table too, as they are; in files that call them text, with a type."""
    (tmp_path / "beds-2026-01-31.csv").write_text("bed,price,owner_id\n1,12.50,7\n")
    assert main(["changelog", f"{tmp_path}/beds-*.csv", "--suggest"]) == 2
    assert f"write '{tmp_path}/beds-%Y-%m-%d.csv' for SRC" in capsys.readouterr().err
    assert main(["changelog", f"{tmp_path}/beds-%Y-%m-%d.csv", "--suggest"]) == 2
    assert "an entry's key: one of 'bed', 'price', 'owner_id'" in capsys.readouterr().err
    assert main(["changelog", f"{tmp_path}/beds-%Y-%m-%d.csv", "--suggest", "--entry=bed", "--every=1d"]) == 0
    assert queries_of(capsys.readouterr().out) == {"by_price", "sum_price"}

    table = pa.table({"bed": [1], "at": pa.array([0], pa.timestamp("us", "UTC")), "price": ["12.50"]})
    pa.parquet.write_table(table, tmp_path / "part.parquet")
    asked = ["changelog", f"{tmp_path}/part.parquet", "--suggest", "--entry=bed", "--time=at"]
    assert main(asked) == 0
    assert (
        "  # types: {price: float64}  # of columns of text that hold numbers, such as decimals\n"
        in capsys.readouterr().out
    )
    assert main([*asked, "--types=price=float64"]) == 0
    assert queries_of(capsys.readouterr().out) == {"sum_price"}
