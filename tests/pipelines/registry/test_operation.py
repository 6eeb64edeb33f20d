"""`slackwater registry`: entries are valid by the schema of the registry, and state the release."""

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from ruamel.yaml import YAML

import slackwater
from pipelines import cli
from pipelines.disclosure.facts import Subject
from pipelines.epochs.plans import plan_of
from pipelines.registry.entry import EXAMPLES, entry_of
from pipelines.spec.load import load
from tests.pipelines.disclosure.test_facts import ABOUT
from tests.pipelines.pages.test_words import KINDS, SPEC
from tests.pipelines.spec_text import changed
from transforms.common.errors import SpecError

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = Path(__file__).with_name("schema.yaml")


def read(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


def refuse_invalid(entry: Any) -> None:
    """Check an entry by the registry's schema.

    Raises:
        ValidationError: It is invalid.
    """
    checker = jsonschema.FormatChecker(formats=["date"])
    jsonschema.Draft202012Validator(read(SCHEMA), format_checker=checker).validate(entry)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["owners", "one window and one change", "a span", "a distance", "adaptive"])
def test_entries_of_releases_of_several_kinds_are_valid(tmp_path: Path, kind: str) -> None:
    text = SPEC
    for old, new in KINDS[kind][0]:
        text = changed(old, new, text)
    (tmp_path / "spec.yaml").write_text(text + ABOUT)
    spec = load(tmp_path / "spec.yaml")

    entry = entry_of(Subject(spec=spec, plan=plan_of(spec), program="0.3.0", sampler=1), None)

    refuse_invalid(entry)
    deployment = entry["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {
        "epsilon": pytest.approx(1.0, rel=1e-9),
        **({"delta": 1e-9} if kind == "owners" else {}),
    }
    variants = {"owners": "Approximate DP", "a distance": "Custom"}
    assert deployment["dp_variant"]["variant_name"] == variants.get(kind, "Pure DP")
    assert deployment["deployment_model"]["release_type"] == (
        "One release" if kind == "one window and one change" else "Many releases"
    )
    assert "number_of_privacy_units" not in deployment["privacy_loss"]


def test_the_check_sees_a_wrong_entry(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC + ABOUT)
    entry = slackwater.registry(tmp_path / "spec.yaml", output=tmp_path / "entry.yaml").entry
    for part, key, value in (
        ("basic", "publication_date", "1/1/2026"),
        ("basic", "surprise", ""),
        ("basic", "name", 3),
    ):
        deployment = {**entry["deployment"], part: {**entry["deployment"][part], key: value}}
        with pytest.raises(jsonschema.ValidationError):
            refuse_invalid({**entry, "deployment": deployment})


def test_the_entry_of_the_demo_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec.yaml").write_text((ROOT / "examples/flights/spec.yaml").read_text())
    monkeypatch.chdir(tmp_path)

    assert cli.main(["registry", "spec.yaml", "-o", "entry.yaml"]) == 0

    entry = read(tmp_path / "entry.yaml")
    refuse_invalid(entry)
    assert entry["deployment"]["basic"]["publication_date"] == "2013-01-02"
    assert entry["deployment"]["administrative"]["status"] == "Draft"
    assert entry["deployment"]["basic"]["data_curators"][0]["data_curator_type"] == "Nonprofit"
    assert not (tmp_path / "releases").exists()


def test_missing_texts_are_named_together(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(f"{SPEC}about: {{curator: a house, use: counting}}\n")

    with pytest.raises(SpecError) as refused:
        slackwater.registry(tmp_path / "spec.yaml", output=tmp_path / "entry.yaml")

    lines = str(refused.value).splitlines()
    assert sorted(line.split(": ")[1] for line in lines) == ["about.curator", "about.justification", "about.region"]
    assert EXAMPLES["region"] in str(refused.value)
    assert not (tmp_path / "entry.yaml").exists()


@pytest.mark.parametrize(("output", "message"), [("e.json", "must end in .yaml"), ("public/e.yaml", "public folder")])
def test_an_impossible_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, message: str
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC + ABOUT)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SpecError, match=message):
        slackwater.registry("spec.yaml", output=output)
