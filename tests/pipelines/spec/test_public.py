"""The published spec: all that explains the numbers, and no place, host or note of the house."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.spec.changelog import ChangelogSection
from pipelines.spec.load import load
from pipelines.spec.models import OutputSection, SpecModel
from pipelines.spec.public import SHOWN, public_spec
from pipelines.store.store import Store
from tests.pipelines.spec.test_hash import FULL
from tests.pipelines.spec_text import changed
from tests.pipelines.store.releases import SPEC, released

ROOT = Path(__file__).resolve().parents[3]


def _of(format_: str, path: str, *, time: str) -> str:
    return changed(
        "  time: at\n", time, changed("data/*.parquet", path, changed("format: parquet", f"format: {format_}"))
    )


SPECS = {
    **{path.name: path.read_text() for path in (ROOT / "templates/specs").iterdir()},
    "every section": f"{FULL}about: {{curator: a house, contact: privacy@house.example}}\n",
    "snapshots": _of("snapshots", "gs://house/%Y%m/%d/stays-*.csv.gz", time=""),
    "topics": _of(
        "jsonl",
        "kafka://broker.house:9092/stays",
        time="  time: at\n  kafka: /secrets/kafka.properties\n  freshness: {heartbeat: kafka://broker.house:9092/beats}\n",
    ),
}


def test_every_key_is_shown_or_withheld_on_purpose() -> None:
    assert SpecModel.model_fields.keys() - SHOWN.keys() == {"about"}  # its texts are in the manifest, as they are now
    withheld = {
        "changelog": {"path", "kafka", "freshness"},
        "output": {"public", "private", "bigquery", "witness", "latest", "report"},
    }
    for name, section in (("changelog", ChangelogSection), ("output", OutputSection)):
        keys = {field.alias or key for key, field in section.model_fields.items()}
        assert keys - (SHOWN[name] or set()) == withheld[name]


@pytest.mark.slow
@pytest.mark.parametrize("text", SPECS.values(), ids=SPECS)
def test_the_published_spec_is_the_same_release_without_its_paths(tmp_path: Path, text: str) -> None:
    (tmp_path / "full.yaml").write_text(text)
    (tmp_path / "public.yaml").write_text(public_spec(f"# gs://house/notes\n{text}"))

    full, public = load(tmp_path / "full.yaml"), load(tmp_path / "public.yaml")

    source = replace(full.changelog.source, paths=public.changelog.source.paths, kafka=None)
    without = replace(full.changelog, source=source, freshness=None)
    same = {"changelog": without, "output": public.output, "path": public.path, "sha256": public.sha256, "about": ()}
    assert replace(full, **same) == public
    assert public.output.format == full.output.format
    told = public.text.split("\n", 1)[1]
    inside = full.changelog.source
    places = [
        *inside.paths,
        inside.kafka,
        *full.output.folders,
        *(table.name for table in full.output.tables),
        "house",
        "#",
        "secrets",
        "freshness",
    ]
    assert [place for place in places if place is not None and place in told] == []


def test_a_release_whose_whole_spec_was_shown_withholds_it_from_the_next_run_on(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "public"), str(tmp_path / "private"))
    released(store, 1)
    (tmp_path / "public/spec.yaml").write_text(SPEC)

    store.show()

    assert (tmp_path / "public/spec.yaml").read_text() == public_spec(SPEC)
